"""Sentences with their anchors as entities."""

from collections import Counter
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Iterable, Iterator, List, Sequence, Tuple

from preshed.maps import PreshMap  # a part of spaCy
from spacy.language import Language
from spacy.tokens import Doc

from ...annotations import weak
from ...annotations.entities import set_entities
from ...annotations.runs import longest_run
from ...annotations.sentences import sentence_key
from ...annotations.splitting import SentenceSplitter
from ...ty import Entity
from ..runtime.hashes import hash_text
from .limits import PageReader
from .pages import Page, PageCounts
from .paragraphs import Paragraph

SOURCE = "anchors"
# Pages that share a memory zone: the words of one are of use for the next.
_ZONE = 200
_HEX_DIGITS = 15  # 60 bits


@dataclass
class AnchorsReport(PageCounts):
    """What was made, beside what `PageCounts` tells.

    docs (int): Sentences written.
    tokens (int): Their tokens.
    anchors (int): Their anchors.
    files (int): Files written.
    pages (int): Articles read.
    unreadable (List[str]): Pages that were skipped, with the reason.
    skipped (Counter[str]): Their number by reason: "too large", "nested too deeply", "too slow", "unreadable".
    few (int): Sentences left out for too few anchors. A paragraph that has too few as a whole counts as one.
    long (int): Sentences left out for their length. A paragraph of which the tokenizer would take very long counts as
        one.
    duplicates (int): Sentences left out because they were there before.
    misaligned (int): Anchors left out because they do not begin and end at token borders within one sentence.
    """

    docs: int = 0
    tokens: int = 0
    anchors: int = 0
    files: int = 1
    pages: int = 0
    unreadable: List[str] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    few: int = 0
    long: int = 0
    duplicates: int = 0
    misaligned: int = 0


class Sentences:
    """Makes Docs of pages.

    nlp (Language): Its vocabulary and tokenizer are used.
    reader (PageReader): Reads the pages.
    label, min_anchors, max_length: See `anchors`.
    report (AnchorsReport): Where to count.
    """

    def __init__(
        self,
        nlp: Language,
        reader: PageReader,
        label: str,
        min_anchors: int,
        max_length: int,
        report: AnchorsReport,
    ) -> None:
        self.nlp = nlp
        self.reader = reader
        self.label = label
        self.min_anchors = min_anchors
        self.max_length = max_length
        self.report = report
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
        paragraphs, problem = self.reader.read(page)
        self.report.pages += 1
        if problem is not None:
            self.report.skipped[problem] += 1
            self.report.unreadable.append(f"{page.place} ({problem})")
            return
        number = 0
        for paragraph in paragraphs:
            if len(paragraph.anchors) < self.min_anchors:
                self.report.few += 1  # and is not tokenised, which would take most of the time
                continue
            if longest_run(paragraph.text, self.nlp):
                self.report.long += 1
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
            self.report.misaligned += len(inside) - len(entities)
            yield doc, entities
            begin = end + paragraph.text.startswith(" ", end)

    def _is_wanted(self, doc: Doc, entities: Sequence[Entity]) -> bool:
        if len(entities) < self.min_anchors:
            self.report.few += 1
            return False
        if len(doc) > self.max_length:
            self.report.long += 1
            return False
        # The last one to be asked, so that only the hashes of sentences that are written are kept.
        key = int(hash_text(sentence_key(doc.text))[:_HEX_DIGITS], 16)
        if key in self.seen:
            self.report.duplicates += 1
            return False
        self.seen[key] = 1
        return True

    def _label(self, doc: Doc, entities: Sequence[Entity]) -> Doc:
        set_entities(doc, entities, [True] * len(doc))
        weak.set_source(doc, SOURCE, entities)
        weak.set_weak(doc)
        self.report.docs += 1
        self.report.tokens += len(doc)
        self.report.anchors += len(entities)
        return doc
