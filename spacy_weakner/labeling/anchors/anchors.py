"""Makes a corpus from the links in wikis, for pre-training of entity recognition (CoFEE)."""

import time
from collections import Counter
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Iterable, Iterator, List, Optional, Sequence, Tuple

from preshed.maps import PreshMap  # a part of spaCy
from spacy.language import Language
from spacy.tokens import Doc

from ...corpus import weak
from ...corpus.counts import RowCounts
from ...corpus.docbin import SUFFIX, write_docs
from ...corpus.entities import set_entities
from ...corpus.formats.reading import Reading, input_files, read_corpus
from ...corpus.language import CorpusLanguage, record_language
from ...corpus.sentences import SentenceSplitter, longest_run, sentence_key
from ...errors import Errors, WeaknerError, check_range, require
from ...progress import Progress
from ...runtime.hashes import hash_text
from ...runtime.output import SHARD_SIZE, SHARDS, is_folder, making, write_shards
from ...runtime.pool import ProcessPool, processes
from ...ty import Entity
from .pages import JSONL, NO_ARTICLE, REDIRECT, SUFFIXES, Page, is_corpus, page_format, read_pages

if TYPE_CHECKING:
    from .markup import Paragraph

SOURCE = "anchors"
# Hostile pages can keep the parser busy for hours.
MAX_SECONDS = 10.0
# Pages that share a memory zone, since pages have words in common.
_ZONE = 200


@dataclass
class AnchorsReport:
    """Counts of a run."""

    docs: int = 0
    tokens: int = 0
    anchors: int = 0
    files: int = 1
    pages: int = 0  # articles
    redirects: int = 0
    other: int = 0  # pages of dumps that are no articles
    unreadable: List[str] = field(default_factory=list)  # pages that were skipped, with the reason
    skipped: "Counter[str]" = field(default_factory=Counter)  # skipped pages by reason: "too slow", "unreadable"
    # Sentences left out; a paragraph with too few anchors, or one that would slow down the tokenizer, counts as one.
    few: int = 0
    long: int = 0
    duplicates: int = 0
    misaligned: int = 0  # anchors left out that do not begin and end at token boundaries within one sentence


@making("output_path", "inputs", replaces=SHARDS)
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
    """Write the sentences of wikis, with their links to articles as entities of a single label (Xue et al. 2020,
    Section 4.1): in `doc.ents`, where all other tokens are "O", and in the span group "weak:anchors". The Docs are
    marked as weak. The output is written whole or not at all.

    Templates, tables, references and comments are left out; headings and list items end a sentence. Links to files,
    categories, talk pages, other wikis and the web become plain text, if they display any. Of equal sentences, only the
    first is written.

    inputs (Sequence[Path]): Files, or folders of files: XML exports of MediaWiki (`.xml`), wikitext (`.wiki`, `.txt`)
        with one page per file, and `.jsonl` with "wikitext" in each row; all also as `.gz` or `.bz2`. Also `.jsonl`
        corpora whose "ents" or "spans" are the anchors, with any labels.
    output_path (Path): A `.spacy` file, built in memory, or a folder (no suffix) for `.spacy` shards.
    format (Optional[str]): Format of the input: "dump", "wikitext", "jsonl". None: given by the suffixes.
    label (str): The label of all entities.
    min_anchors (int): Leave out sentences with fewer anchors. (The paper leaves out those with three or fewer.)
    max_length (int): Leave out sentences with more tokens.
    limit (Optional[int]): Stop after this number of sentences. None: read everything.
    lang (str): Language of the text.
    tokenizer (Optional[str]): Name of a registered tokenizer; None is that of the language.
    shard_size (int): Docs per shard, if the output is a folder.
    overwrite (bool): Replace an output that this command has not made, or that was edited.
    progress (bool): Show progress.
    RETURNS (AnchorsReport): The counts.
    RAISES (WeaknerError): For malformed or missing input, for invalid settings, if a package is missing or no sentence
        is left, and if the output would overwrite the input, or an existing output without `overwrite`.
    """
    check_range("min_anchors", min_anchors, 0, None)
    check_range("max_length", max_length, 1, None)
    check_range("shard_size", shard_size, 1, None)
    check_range("limit", limit, 1, None, optional=True)
    if not label.strip():
        raise WeaknerError(Errors.WK005.format(setting="label", value=repr(label), expected="a name"))
    paths, output = [Path(path) for path in inputs], Path(output_path)
    if output.is_file() if is_folder(output) else output.suffix != SUFFIX:
        expected = f"a {SUFFIX} file, or a folder (a name without suffix)"
        raise WeaknerError(Errors.WK305.format(path=output, expected=expected))
    files = {file_: None for path in paths for file_ in input_files(path, format, suffixes=SUFFIXES, tell=page_format)}
    corpora = [path for path, format_ in files if is_corpus(path, format_)]
    if len(corpora) < len(files):
        require("mwparserfromhell", extra="wiki")
    language = CorpusLanguage.make(lang, tokenizer)
    pages = chain.from_iterable(read_pages(path, format_) for path, format_ in files if path not in corpora)
    report = AnchorsReport()
    sentences = _Sentences(language.blank(), label, min_anchors, max_length, report)
    # Raise an error before the writers end, so that no empty file is left.
    found = chain(sentences.of_pages(pages), sentences.of_corpora(corpora))
    docs: Iterable[Doc] = chain(islice(found, limit), _check_any(paths, report))
    docs = iter(Progress(docs, desc=f"anchors {output.name}", unit="doc", enabled=progress))
    if is_folder(output):
        report.files = write_shards(docs, output, shard_size)
    else:
        write_docs(output, docs)
    record_language(output, language)
    report.misaligned += sentences.counts.misaligned
    return report


def _check_any(paths: Sequence[Path], report: AnchorsReport) -> Iterator[Doc]:
    if not report.docs:
        names = ", ".join(map(str, paths)) or "nothing"
        raise WeaknerError(Errors.WK441.format(path=names, pages=report.pages, few=report.few, long=report.long))
    yield from ()


class _Parser:
    """A parser in a separate process, which ends if a page takes longer than `MAX_SECONDS`."""

    def __init__(self) -> None:
        self._process = ExitStack()
        self._pool: Optional[ProcessPool] = None
        self._has_answered = False

    def parse(self, page: Page) -> Tuple[List["Paragraph"], str]:
        """Return the paragraphs of a page, and why it has none, if so: "too slow" or "unreadable"."""
        # The import needs an extra that no other command needs.
        from .markup import parse_page

        if self._pool is None:
            self._pool = self._process.enter_context(processes(1, with_spacy=False))
        begin = time.monotonic()
        try:
            found = self._pool.submit(parse_page, (page.text, page.namespaces, MAX_SECONDS)).result()
            self._has_answered = True
            return found, ""
        except BrokenProcessPool as error:
            is_slow = time.monotonic() - begin > MAX_SECONDS
            if not (is_slow or self._has_answered):
                raise self._pool.failure(error, page.place) from error  # the process cannot even start
            self.close()
            return [], "too slow" if is_slow else "unreadable"
        except Exception:  # the parser raises many kinds of errors; the page is counted
            return [], "unreadable"

    def close(self) -> None:
        self._pool = None
        self._process.close()


@dataclass
class _Sentences:
    """A converter of pages to Docs, with counts."""

    nlp: Language
    label: str
    min_anchors: int
    max_length: int
    report: AnchorsReport
    # Hashes of the sentences written: little more than 16 bytes each, as a wiki has millions of sentences.
    seen: PreshMap = field(default_factory=PreshMap)
    counts: RowCounts = field(default_factory=RowCounts)  # of corpora

    def of_pages(self, pages: Iterator[Page]) -> Iterator[Doc]:
        """Yield the Docs of pages. A Doc must not be used after the next one was requested."""
        self.splitter = SentenceSplitter(self.nlp)
        with closing(_Parser()) as parser:
            for first in pages:
                # Otherwise, the vocabulary would finally hold all words of a wiki.
                with self.nlp.memory_zone():
                    for page in chain([first], islice(pages, _ZONE - 1)):
                        wanted = (found for found in self._of_page(page, parser) if self._is_wanted(*found))
                        for number, (doc, entities) in enumerate(wanted, start=1):
                            if page.identifier is not None:
                                weak.set_id(doc, f"{page.identifier}.{number}")
                            yield self._marked(doc, entities)

    def of_corpora(self, paths: Sequence[Path]) -> Iterator[Doc]:
        """Yield the Docs of corpora whose entities are anchors."""
        reading = Reading(documents=True, misaligned="drop")
        for path in paths:
            for doc in read_corpus(path, self.nlp, reading, format=JSONL, counts=self.counts):
                entities = [(start, end, self.label) for start, end, _ in weak.doc_entities(doc)]
                if self._is_wanted(doc, entities):
                    yield self._marked(doc, entities)

    def _marked(self, doc: Doc, entities: List[Entity]) -> Doc:
        set_entities(doc, entities, [True] * len(doc))
        weak.set_source(doc, SOURCE, entities)
        weak.set_weak(doc)
        return doc

    def _of_page(self, page: Page, parser: _Parser) -> Iterator[Tuple[Doc, List[Entity]]]:
        """Yield the sentences of a page, with their anchors in tokens."""
        report = self.report
        report.redirects += page.markup == REDIRECT
        report.other += page.markup == NO_ARTICLE
        if page.markup in (REDIRECT, NO_ARTICLE):
            return
        paragraphs, problem = parser.parse(page)
        report.pages += 1
        if problem:
            report.skipped[problem] += 1
            report.unreadable.append(f"{page.place} ({problem})")
        for text, anchors in paragraphs:
            if len(anchors) < self.min_anchors:
                report.few += 1  # not tokenized, which would take most of the time
            elif longest_run(text, self.nlp):
                report.long += 1
            else:
                begin = 0
                for doc in self.splitter.split(text):
                    end = begin + len(doc.text)
                    inside = [(a - begin, b - begin) for a, b in anchors if begin <= a < end]
                    spans = [doc.char_span(a, b, self.label) if b <= len(doc.text) else None for a, b in inside]
                    entities = [(span.start, span.end, self.label) for span in spans if span is not None]
                    report.misaligned += len(inside) - len(entities)
                    yield doc, entities
                    begin = end + text.startswith(" ", end)

    def _is_wanted(self, doc: Doc, entities: Sequence[Entity]) -> bool:
        key = int(hash_text(sentence_key(doc.text))[:15], 16)  # 60 bits
        if len(entities) < self.min_anchors:
            self.report.few += 1
        elif len(doc) > self.max_length:
            self.report.long += 1
        elif key in self.seen:
            self.report.duplicates += 1
        else:
            self.seen[key] = 1
            self.report.docs += 1
            self.report.tokens += len(doc)
            self.report.anchors += len(entities)
            return True
        return False
