"""Makes a corpus of the links in wikis and web pages: a first task for the recognition of entities (CoFEE)."""

from collections import Counter
from itertools import chain, islice
from pathlib import Path
from typing import Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from preshed.maps import PreshMap  # a part of spaCy
from spacy.language import Language
from spacy.tokens import Doc

from ..annotations import weak
from ..annotations.corpus import SUFFIX, write_docs
from ..annotations.entities import set_entities
from ..annotations.formats import SentenceSplitter, input_files
from ..annotations.sentences import sentence_key
from ..errors import Errors, WeaknerError, check_range
from ..files import check_output
from ..progress import progress as show
from ..ty import Entity
from .anchoring.pages import DUMP, SUFFIXES, WIKITEXT, Page, page_format, read_pages
from .anchoring.paragraphs import Paragraph
from .anchoring.wikitext import require_parser
from .runtime.hashes import hash_text
from .runtime.output import SHARD_SIZE, check_there, is_folder, write_shards
from .runtime.pipelines import blank_pipeline

LABEL = "Entity"
SOURCE = "anchors"
MIN_ANCHORS = 4
MAX_LENGTH = 250
# Pages that share a memory zone: the words of one are of use for the next.
_ZONE = 200
_HEX_DIGITS = 15  # 60 bits


class AnchorsReport(NamedTuple):
    """What was made.

    docs (int): Sentences written.
    tokens (int): Their tokens.
    anchors (int): Their anchors.
    files (int): Files written.
    pages (int): Articles read.
    redirects (int): Pages passed over because they only lead to others.
    other (int): Pages of dumps passed over because they are no articles.
    unreadable (List[str]): Pages that the parser gave up.
    few (int): Sentences left out for too few anchors. A paragraph that has too few as a whole counts as one.
    long (int): Sentences left out for their length.
    duplicates (int): Sentences left out because they were there before.
    misaligned (int): Anchors left out because they do not begin and end at token borders within one sentence.
    """

    docs: int
    tokens: int
    anchors: int
    files: int
    pages: int
    redirects: int
    other: int
    unreadable: List[str]
    few: int
    long: int
    duplicates: int
    misaligned: int


def anchors(
    inputs: Sequence[Path],
    output: Path,
    *,
    format: Optional[str] = None,
    label: str = LABEL,
    min_anchors: int = MIN_ANCHORS,
    max_length: int = MAX_LENGTH,
    limit: Optional[int] = None,
    lang: str = "en",
    tokenizer: Optional[str] = None,
    shard_size: int = SHARD_SIZE,
    overwrite: bool = False,
    progress: bool = False,
) -> AnchorsReport:
    """Write the sentences of wikis and web pages with their links to articles as entities of one label (Xue et al.
    2020, Section 4.1): in `doc.ents`, where all other tokens are "O", and in the span group "weak:anchors". The Docs
    are marked as weak. The output is written whole or not at all.

    Templates, tables, references and comments are left out; headings and list items end a sentence. Of HTML only
    paragraphs (`<p>`) are read. Links to files, categories and talk, to other wikis and the web count as text, if they
    show any. Of equal sentences the first one is written.

    inputs (Sequence[Path]): Files, or folders of them: XML exports of MediaWiki (`.xml`), wikitext (`.wiki`, `.txt`)
        and HTML (`.html`, `.htm`), one page each, and `.jsonl` with "wikitext" or "html" in each row; all also as `.gz`
        or `.bz2`.
    output (Path): A `.spacy` file, which is made in memory, or a folder (no suffix) that takes `.spacy` shards.
    format (Optional[str]): Format of the input: "dump", "wikitext", "html", "jsonl". None: the suffixes tell.
    label (str): The label.
    min_anchors (int): Leave out sentences with fewer anchors. (In the paper: with three or fewer.)
    max_length (int): Leave out sentences with more tokens.
    limit (Optional[int]): Stop after so many sentences. None: read everything.
    lang (str): Language of the text.
    tokenizer (Optional[str]): Name of a registered tokenizer; None is the language's own.
    shard_size (int): Docs per shard, if the output is a folder.
    overwrite (bool): Replace an output that exists: the file, or all shards in the folder.
    progress (bool): Show how far it has come.
    RETURNS (AnchorsReport): What was made.
    RAISES (WeaknerError): For malformed or missing input, for unusable settings, if a package is missing or no sentence
        is left, and if the output would overwrite the input, or anything at all without `overwrite`.
    """
    for setting, value, low in (("min_anchors", min_anchors, 0), ("max_length", max_length, 1)):
        check_range(setting, value, low, None)
    check_range("shard_size", shard_size, 1, None)
    if limit is not None:
        check_range("limit", limit, 1, None)
    if not label.strip():
        raise WeaknerError(Errors.WK005.format(setting="label", value=repr(label), expected="a name"))
    paths, output = [Path(path) for path in inputs], Path(output)
    if output.is_file() if is_folder(output) else output.suffix != SUFFIX:
        expected = f"a {SUFFIX} file, or a folder (a name without suffix)"
        raise WeaknerError(Errors.WK305.format(path=output, expected=expected))
    found = [file_ for path in paths for file_ in input_files(path, format, suffixes=SUFFIXES, tell=page_format)]
    files = list(dict.fromkeys(found))
    check_output([*paths, *(file_ for file_, _ in files)], [output])
    check_there(output, overwrite)
    if any(format_ in (DUMP, WIKITEXT) for _, format_ in files):
        require_parser()
    counts: Counter[str] = Counter()
    unreadable: List[str] = []
    pages = chain.from_iterable(read_pages(file_, format_, counts) for file_, format_ in files)
    sentences = _Sentences(blank_pipeline(lang, tokenizer), label, min_anchors, max_length, counts, unreadable)
    docs = _checked(islice(sentences.of_pages(pages), limit), paths, counts)
    docs = iter(show(docs, desc=output.name, unit="doc", enabled=progress))
    n_files = 1
    if is_folder(output):
        n_files = write_shards(docs, output, shard_size)
    else:
        write_docs(output, docs)
    return AnchorsReport(
        docs=counts["docs"],
        tokens=counts["tokens"],
        anchors=counts["anchors"],
        files=n_files,
        pages=counts["pages"],
        redirects=counts["redirects"],
        other=counts["other"],
        unreadable=unreadable,
        few=counts["few"],
        long=counts["long"],
        duplicates=counts["duplicates"],
        misaligned=counts["misaligned"],
    )


def _checked(docs: Iterable[Doc], paths: Sequence[Path], counts: "Counter[str]") -> Iterator[Doc]:
    yield from docs
    # Raised before the writers end, so that no empty file is left.
    if not counts["docs"]:
        names = ", ".join(map(str, paths)) or "nothing"
        found = {key: counts[key] for key in ("pages", "few", "long")}
        raise WeaknerError(Errors.WK441.format(path=names, **found))


class _Sentences:
    """Makes Docs of pages.

    nlp (Language): Its vocabulary and tokenizer are used.
    label, min_anchors, max_length: See `anchors`.
    counts (Counter[str]): Where to count.
    unreadable (List[str]): Where to note pages that the parser gives up.
    """

    def __init__(
        self,
        nlp: Language,
        label: str,
        min_anchors: int,
        max_length: int,
        counts: "Counter[str]",
        unreadable: List[str],
    ) -> None:
        self.nlp = nlp
        self.label = label
        self.min_anchors = min_anchors
        self.max_length = max_length
        self.counts = counts
        self.unreadable = unreadable
        self.splitter = SentenceSplitter(nlp)
        # Hashes of the sentences written: 16 bytes and a little room for each, and a wiki has millions.
        self.seen = PreshMap()

    def of_pages(self, pages: Iterable[Page]) -> Iterator[Doc]:
        """The Docs of pages. A Doc must not be used any more when the next one is asked for.

        pages (Iterable[Page]): The pages.
        YIELDS (Doc): The Docs.
        """
        rest = iter(pages)
        for first in rest:
            # The vocabulary would otherwise hold all words of a wiki in the end.
            with self.nlp.memory_zone():
                for page in chain([first], islice(rest, _ZONE - 1)):
                    yield from self._of_page(page)

    def _of_page(self, page: Page) -> Iterator[Doc]:
        paragraphs = page.paragraphs()
        self.counts["pages"] += 1
        if paragraphs is None:
            self.unreadable.append(page.place)
            return
        number = 0
        for paragraph in paragraphs:
            if len(paragraph.anchors) < self.min_anchors:
                self.counts["few"] += 1  # and is not tokenised, which would take most of the time
                continue
            for doc, entities in self._split(paragraph):
                if self._is_wanted(doc, entities):
                    number += 1
                    if page.identifier is not None:
                        weak.set_id(doc, f"{page.identifier}.{number}")
                    yield self._label(doc, entities)

    def _split(self, paragraph: Paragraph) -> Iterator[Tuple[Doc, List[Entity]]]:
        """The sentences with their anchors in tokens."""
        begin = 0
        for doc in self.splitter.split(paragraph.text):
            end = begin + len(doc.text)
            inside = [(a, b) for a, b in paragraph.anchors if begin <= a < end]
            spans = [doc.char_span(a - begin, b - begin, self.label) if b <= end else None for a, b in inside]
            entities = [(span.start, span.end, self.label) for span in spans if span is not None]
            self.counts["misaligned"] += len(inside) - len(entities)
            yield doc, entities
            begin = end + paragraph.text.startswith(" ", end)

    def _is_wanted(self, doc: Doc, entities: Sequence[Entity]) -> bool:
        if len(entities) < self.min_anchors:
            self.counts["few"] += 1
            return False
        if len(doc) > self.max_length:
            self.counts["long"] += 1
            return False
        # The last one to be asked, so that only the hashes of sentences that are written are kept.
        key = int(hash_text(sentence_key(doc.text))[:_HEX_DIGITS], 16)
        if key in self.seen:
            self.counts["duplicates"] += 1
            return False
        self.seen[key] = 1
        return True

    def _label(self, doc: Doc, entities: Sequence[Entity]) -> Doc:
        set_entities(doc, entities, [True] * len(doc))
        weak.set_source(doc, SOURCE, entities)
        weak.set_weak(doc)
        self.counts.update(docs=1, tokens=len(doc), anchors=len(entities))
        return doc
