"""The stages of `aggregate`: by a policy for conflicts, or by distributions over tags."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence

from spacy.tokens import Doc
from spacy.util import minibatch
from spacy.vocab import Vocab

from ..aggregation.decoding import Floats
from ..aggregation.fitting import Prepared
from ..aggregation.methods import Combined, combine
from ..aggregation.policies import candidates_of, contested, resolve
from ..corpus import weak
from ..corpus.entities import set_entities
from ..corpus.gold import keep_gold, missing_tokens
from ..corpus.tags import TagScheme
from ..runtime.stage import Report, Stage
from ..ty import Entity

BATCH_SIZE = 256


@dataclass
class AggregateCounts(Report):
    """What is counted, beside what `Report` tells.

    unlabelled (int): Docs that none of the sources has looked at; all their tokens are missing.
    gold (int): Docs whose gold entities were moved to the span group "gold".
    candidates (int): Different candidates (same span and label counted once).
    entities (Counter[str]): Entities per label.
    tokens (int): Tokens written.
    missing (int): Tokens about which nothing is known.
    answers (Counter[str]): Docs that each source has looked at.
    """

    unlabelled: int = 0
    gold: int = 0
    candidates: int = 0
    entities: "Counter[str]" = field(default_factory=Counter)
    tokens: int = 0
    missing: int = 0
    answers: "Counter[str]" = field(default_factory=Counter)


class Combine(Stage[AggregateCounts]):
    """Base of both.

    settings (Dict[str, Any]): See `aggregate`.
    """

    name = "aggregate"
    report = AggregateCounts

    def __init__(self, settings: Dict[str, Any]) -> None:
        super().__init__(settings, Vocab())
        # What was learned before; None if nothing was.
        self.prepared: Optional[Prepared] = None

    def _begin(self, doc: Doc, sources: Iterable[str]) -> None:
        """Put gold aside, and note which sources have looked at a Doc."""
        self.stats.gold += keep_gold(doc)
        for source in sources:
            self.stats.answers[source] += weak.weak_group(source) in doc.spans

    def _write(
        self, doc: Doc, entities: Sequence[Entity], known: Sequence[bool], soft: Optional[weak.SoftLabels] = None
    ) -> None:
        set_entities(doc, entities, known)
        weak.set_weak(doc)
        # What was estimated, completed or suspected of earlier labels says nothing about these.
        weak.set_confidence(doc, None)
        weak.set_tags(doc, None)
        weak.set_soft_labels(doc, soft)
        weak.remove_group(doc, weak.MATCHED_GROUP)
        weak.remove_group(doc, weak.SUSPECT_GROUP)
        self.stats.tokens += len(doc)
        self.stats.missing += len(missing_tokens(doc))
        self.stats.entities.update(label for _, _, label in entities)


class Proposals(Combine):
    """All that any source proposes."""

    def __call__(self, docs: Iterable[Doc]) -> Iterator[Doc]:
        policy, sources = self.settings["policy"], self.settings["sources"]
        for doc in docs:
            there = weak.weak_sources(doc)
            used = there if sources is None else [source for source in sources if source in there]
            self._begin(doc, used if sources is None else sources)
            candidates = [candidate for source in used for candidate in candidates_of(doc, source)]
            known = [bool(used) and self.settings["unmatched"] == "outside"] * len(doc)
            if policy == "drop":
                for c in contested(candidates):
                    known[c.start : c.end] = [False] * (c.end - c.start)
            self._write(doc, resolve(candidates, policy, used), known)
            self.stats.unlabelled += not used
            self.stats.candidates += len({c.entity for c in candidates})
            yield doc


class Distributions(Combine):
    """What votes or a label model make of it.

    learn (Callable[[], Prepared]): Learns what the method needs to know.
    """

    def __init__(self, settings: Dict[str, Any], learn: Callable[[], Prepared]) -> None:
        super().__init__(settings)
        self.learn = learn

    def open(self) -> None:
        """Learn, once."""
        if self.prepared is None:
            self.prepared = self.learn()

    def __call__(self, docs: Iterable[Doc]) -> Iterator[Doc]:
        assert self.prepared is not None
        method, names, scheme = self.prepared.method, self.prepared.names, self.prepared.scheme
        for batch in minibatch(docs, BATCH_SIZE):
            for doc in batch:
                self._begin(doc, names)
            for doc, combined in zip(batch, combine(method, batch, names, scheme), strict=True):
                if combined is None:
                    self._write(doc, [], [False] * len(doc))
                    self.stats.unlabelled += 1
                else:
                    soft = self._soft_labels(combined, scheme) if self.settings["soft"] else None
                    self._write(doc, combined.entities, self._known(combined.probabilities), soft)
                    self.stats.candidates += combined.candidates
                yield doc

    def _known(self, probabilities: Floats) -> List[bool]:
        if self.settings["unmatched"] == "confident":
            known: List[bool] = (probabilities[:, 0] >= self.settings["min_probability"]).tolist()
            return known
        return [self.settings["unmatched"] == "outside"] * len(probabilities)

    def _soft_labels(self, combined: Combined, scheme: TagScheme) -> weak.SoftLabels:
        probabilities: Any = combined.probabilities.astype("float32")
        return weak.SoftLabels(scheme.tags, scheme.name, probabilities)
