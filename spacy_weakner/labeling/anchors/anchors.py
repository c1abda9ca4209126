"""Makes a corpus of the links in wikis and web pages: a first task for the recognition of entities (CoFEE)."""

from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Iterable, Iterator, List, Optional, Sequence, Tuple

from preshed.maps import PreshMap  # a part of spaCy
from spacy.language import Language
from spacy.tokens import Doc

from ...corpus import weak
from ...corpus.docbin import SUFFIX, write_docs
from ...corpus.entities import set_entities
from ...corpus.formats.reading import input_files
from ...corpus.language import CorpusLanguage, record_language
from ...corpus.sentences import SentenceSplitter, longest_run, sentence_key
from ...errors import Errors, WeaknerError, check_range, require
from ...files import check_output
from ...progress import Progress
from ...runtime.hashes import hash_text
from ...runtime.lock import holding
from ...runtime.output import SHARD_SIZE, check_there, is_folder, write_shards
from ...ty import Entity
from .markup import HTML, PageParser, Paragraph
from .pages import NO_ARTICLE, REDIRECT, SUFFIXES, Page, page_format, read_pages

SOURCE = "anchors"
# Pages that share a memory zone: the words of one are of use for the next.
_ZONE = 200
_HEX_DIGITS = 15  # 60 bits


@dataclass
class AnchorsReport:
    """Counts of a run.

    docs, tokens, anchors (int): Sentences written, their tokens, and their anchors.
    files (int): Files written.
    pages (int): Articles read.
    redirects, other (int): Pages passed over: those that only lead to others, and pages of dumps that are no articles.
    unreadable (List[str]): Pages that were skipped, with the reason.
    skipped (Counter[str]): Their number by reason: "too slow", "unreadable".
    few (int): Sentences left out for too few anchors. A paragraph that has too few as a whole counts as one.
    long (int): Sentences left out for their length. A paragraph that the tokenizer would take very long for counts as
        one.
    duplicates (int): Sentences left out since an equal one was written.
    misaligned (int): Anchors left out since they do not begin and end at token borders within one sentence.
    """

    docs: int = 0
    tokens: int = 0
    anchors: int = 0
    files: int = 1
    pages: int = 0
    redirects: int = 0
    other: int = 0
    unreadable: List[str] = field(default_factory=list)
    skipped: "Counter[str]" = field(default_factory=Counter)
    few: int = 0
    long: int = 0
    duplicates: int = 0
    misaligned: int = 0


@holding("output_path")
def anchors(
    inputs: Sequence[Path],
    output_path: Path,
    *,
    format: Optional[str] = None,
    label: str = "Entity",
    min_anchors: int = 4,
    max_length: int = 250,
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
    output_path (Path): A `.spacy` file, which is made in memory, or a folder (no suffix) that takes `.spacy` shards.
    format (Optional[str]): Format of the input: "dump", "wikitext", "html", "jsonl". None: the suffixes tell.
    label (str): The label.
    min_anchors (int): Leave out sentences with fewer anchors. (In the paper: with three or fewer.)
    max_length (int): Leave out sentences with more tokens.
    limit (Optional[int]): Stop after so many sentences. None: read everything.
    lang (str): Language of the text.
    tokenizer (Optional[str]): Name of a registered tokenizer; None is the language's own.
    shard_size (int): Docs per shard, if the output is a folder.
    overwrite (bool): Replace an output that exists: the file, or all shards in the folder.
    progress (bool): Show progress.
    RETURNS (AnchorsReport): The counts.
    RAISES (WeaknerError): For malformed or missing input, for unusable settings, if a package is missing or no sentence
        is left, and if the output would overwrite the input, or anything at all without `overwrite`.
    """
    check_range("min_anchors", min_anchors, 0, None)
    for setting, value in (("max_length", max_length), ("shard_size", shard_size)):
        check_range(setting, value, 1, None)
    if limit is not None:
        check_range("limit", limit, 1, None)
    if not label.strip():
        raise WeaknerError(Errors.WK005.format(setting="label", value=repr(label), expected="a name"))
    paths, output = [Path(path) for path in inputs], Path(output_path)
    if output.is_file() if is_folder(output) else output.suffix != SUFFIX:
        expected = f"a {SUFFIX} file, or a folder (a name without suffix)"
        raise WeaknerError(Errors.WK305.format(path=output, expected=expected))
    found = [file_ for path in paths for file_ in input_files(path, format, suffixes=SUFFIXES, tell=page_format)]
    files = list(dict.fromkeys(found))
    check_output([*paths, *(file_ for file_, _ in files)], [output])
    check_there(output, overwrite)
    report = AnchorsReport()
    pages = chain.from_iterable(read_pages(file_, format_) for file_, format_ in files)
    language = CorpusLanguage.make(lang, tokenizer)
    with closing(PageParser()) as parser:
        sentences = _Sentences(language.blank(), parser, label, min_anchors, max_length, report)
        docs = _checked(islice(sentences.of_pages(pages), limit), paths, report)
        docs = iter(Progress(docs, desc=f"anchors {output.name}", unit="doc", enabled=progress))
        if is_folder(output):
            report.files = write_shards(docs, output, shard_size)
        else:
            write_docs(output, docs)
    record_language(output, language)
    return report


def _checked(docs: Iterable[Doc], paths: Sequence[Path], report: AnchorsReport) -> Iterator[Doc]:
    yield from docs
    # Raised before the writers end, so that no empty file is left.
    if not report.docs:
        names = ", ".join(map(str, paths)) or "nothing"
        raise WeaknerError(Errors.WK441.format(path=names, pages=report.pages, few=report.few, long=report.long))


@dataclass
class _Sentences:
    """Makes Docs of pages, and counts."""

    nlp: Language
    parser: PageParser
    label: str
    min_anchors: int
    max_length: int
    report: AnchorsReport

    def __post_init__(self) -> None:
        self.splitter = SentenceSplitter(self.nlp)
        # Hashes of the sentences written: 16 bytes and a little room for each, and a wiki has millions.
        self.seen = PreshMap()

    def of_pages(self, pages: Iterable[Page]) -> Iterator[Doc]:
        """The Docs of pages. A Doc must not be used any more when the next one is read."""
        rest = iter(pages)
        for first in rest:
            # The vocabulary would otherwise hold all words of a wiki in the end.
            with self.nlp.memory_zone():
                for page in chain([first], islice(rest, _ZONE - 1)):
                    for number, (doc, entities) in enumerate(self._of_page(page), start=1):
                        if page.identifier is not None:
                            weak.set_id(doc, f"{page.identifier}.{number}")
                        set_entities(doc, entities, [True] * len(doc))
                        weak.set_source(doc, SOURCE, entities)
                        weak.set_weak(doc)
                        self.report.docs += 1
                        self.report.tokens += len(doc)
                        self.report.anchors += len(entities)
                        yield doc

    def _of_page(self, page: Page) -> Iterator[Tuple[Doc, List[Entity]]]:
        """The sentences to write, with their anchors in tokens."""
        report = self.report
        report.redirects += page.markup == REDIRECT
        report.other += page.markup == NO_ARTICLE
        if page.markup in (REDIRECT, NO_ARTICLE):
            return
        require("lxml" if page.markup == HTML else "mwparserfromhell", extra="wiki")
        paragraphs, problem = self.parser.parse(page.markup, page.text, page.namespaces)
        report.pages += 1
        if problem:
            report.skipped[problem] += 1
            report.unreadable.append(f"{page.place} ({problem})")
        for paragraph in paragraphs:
            if len(paragraph[1]) < self.min_anchors:
                report.few += 1  # and is not tokenized, which would take most of the time
            elif longest_run(paragraph[0], self.nlp):
                report.long += 1
            else:
                yield from (found for found in self._split(paragraph) if self._is_wanted(*found))

    def _split(self, paragraph: Paragraph) -> Iterator[Tuple[Doc, List[Entity]]]:
        text, anchors = paragraph
        begin = 0
        for doc in self.splitter.split(text):
            end = begin + len(doc.text)
            inside = [(a, b) for a, b in anchors if begin <= a < end]
            spans = [doc.char_span(a - begin, b - begin, self.label) if b <= end else None for a, b in inside]
            entities = [(span.start, span.end, self.label) for span in spans if span is not None]
            self.report.misaligned += len(inside) - len(entities)
            yield doc, entities
            begin = end + text.startswith(" ", end)

    def _is_wanted(self, doc: Doc, entities: Sequence[Entity]) -> bool:
        # Duplicates last, so that only the hashes of sentences that are written are kept.
        key = int(hash_text(sentence_key(doc.text))[:_HEX_DIGITS], 16)
        if len(entities) < self.min_anchors:
            self.report.few += 1
        elif len(doc) > self.max_length:
            self.report.long += 1
        elif key in self.seen:
            self.report.duplicates += 1
        else:
            self.seen[key] = 1
            return True
        return False
