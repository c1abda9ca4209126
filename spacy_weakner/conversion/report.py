"""What `convert` has to tell."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Iterable, Iterator

from spacy.tokens import Doc

from ..corpus import weak
from ..corpus.rows import RowCounts
from ..runtime.stage import Report


@dataclass
class ConvertReport(RowCounts, Report):
    """What was converted, beside what `RowCounts` and `Report` tell.

    tokens (int): Tokens of the Docs written.
    unknown (int): Docs without any entity annotation.
    entities (Counter[str]): Entities of `doc.ents` per label.
    weak (Counter[str]): Weak spans per source.
    lost (Counter[str]): What the format of the output cannot say, in words.
    """

    tokens: int = 0
    unknown: int = 0
    entities: "Counter[str]" = field(default_factory=Counter)
    weak: "Counter[str]" = field(default_factory=Counter)
    lost: "Counter[str]" = field(default_factory=Counter)

    @property
    def files(self) -> int:
        """RETURNS (int): Files that the output is made of."""
        return self.written + self.skipped

    def counting(self, docs: Iterable[Doc]) -> Iterator[Doc]:
        """Count Docs that pass by.

        docs (Iterable[Doc]): The Docs.
        YIELDS (Doc): The same.
        """
        for doc in docs:
            self.tokens += len(doc)
            self.unknown += not doc.has_annotation("ENT_IOB")
            self.entities.update(ent.label_ for ent in doc.ents)
            self.weak.update({source: len(doc.spans[weak.weak_group(source)]) for source in weak.weak_sources(doc)})
            yield doc
