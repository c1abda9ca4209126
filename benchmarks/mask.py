"""Hides a share of the gold entities: for experiments on annotations with holes."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Iterable, Iterator

from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_weakner.corpus import weak
from spacy_weakner.corpus.entities import set_entities
from spacy_weakner.corpus.gold import find_gold, keep_gold
from spacy_weakner.errors import check_choice, check_range
from spacy_weakner.runtime.hashes import hash_text
from spacy_weakner.runtime.lock import holding
from spacy_weakner.runtime.shards import Shards
from spacy_weakner.runtime.stage import Report, Stage
from spacy_weakner.ty import Entity

UNMATCHED = ("outside", "missing")
_HEX_DIGITS = 13  # 52 bits, which a float holds


@dataclass
class MaskReport(Report):
    """What was hidden, beside what `Report` tells.

    entities (int): Gold entities.
    hidden (Counter[str]): Those that were hidden, per label.
    without_gold (int): Docs that have no gold, and stay as they are.
    """

    entities: int = 0
    hidden: "Counter[str]" = field(default_factory=Counter)
    without_gold: int = 0


@holding("output_path")
def mask(
    input_path: Path,
    output_path: Path,
    *,
    probability: float,
    unmatched: str = "outside",
    seed: int = 0,
    progress: bool = False,
) -> MaskReport:
    """Hide each gold entity with the same probability, as the papers on negative sampling do to make annotations with
    holes. The gold is kept in the span group "gold", and the Docs are marked as weak.

    Which entities are hidden depends on the seed and on the sentence, not on its place in the corpus.

    input_path (Path): A gold corpus: a `.spacy` file or a folder of them.
    output_path (Path): A `.spacy` file, or a folder where every shard keeps its name.
    probability (float): Of an entity to be hidden.
    unmatched (str): What the tokens that are left become: "outside" (as in the papers: the holes look like "O") or
        "missing".
    seed (int): Seed.
    progress (bool): Show how far it has come.
    RETURNS (MaskReport): What was done.
    RAISES (WeaknerError): For missing input and unusable settings.
    """
    return Shards(Mask.name, input_path, output_path).run(Mask(probability, unmatched, seed), progress=progress)


class Mask(Stage[MaskReport]):
    """The stage; for its settings see `mask`."""

    name = "mask"
    report = MaskReport

    def __init__(self, probability: float, unmatched: str, seed: int) -> None:
        check_range("probability", probability, 0.0, 1.0)
        check_choice("unmatched", unmatched, UNMATCHED)
        super().__init__({"probability": probability, "unmatched": unmatched, "seed": seed}, Vocab())
        self.probability = probability
        self.unmatched = unmatched
        self.seed = seed

    def __call__(self, docs: Iterable[Doc]) -> Iterator[Doc]:
        for doc in docs:
            self._mask(doc)
            yield doc

    def _mask(self, doc: Doc) -> None:
        keep_gold(doc)
        gold = find_gold(doc)
        if gold is None:
            self.stats.without_gold += 1
            return
        words = "\n".join(token.text for token in doc)
        kept = [entity for entity in sorted(gold.entities) if _draw(self.seed, words, entity) >= self.probability]
        known = [self.unmatched == "outside" and i not in gold.missing for i in range(len(doc))]
        set_entities(doc, kept, known)
        weak.set_weak(doc)
        self.stats.entities += len(gold.entities)
        self.stats.hidden.update(label for _, _, label in gold.entities - {*kept})


def _draw(seed: int, words: str, entity: Entity) -> float:
    # Uniform in [0, 1).
    digest = hash_text(f"{seed}\n{entity}\n{words}")
    return float(int(digest[:_HEX_DIGITS], 16) / 16**_HEX_DIGITS)
