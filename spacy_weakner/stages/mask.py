"""Hides a share of the gold entities: for experiments on annotations with holes."""

from collections import Counter
from pathlib import Path
from typing import Dict, Iterable, Iterator, NamedTuple

from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..annotations import weak
from ..annotations.entities import set_entities
from ..annotations.gold import find_gold, keep_gold
from ..errors import check_choice, check_range
from ..ty import Entity
from .runtime.hashes import hash_text
from .runtime.shards import run_shards

UNMATCHED = ("outside", "missing")
_HEX_DIGITS = 13  # 52 bits, which a float holds


class MaskReport(NamedTuple):
    """What was hidden.

    docs (int): Docs written.
    entities (int): Gold entities.
    hidden (Dict[str, int]): Those that were hidden, per label.
    without_gold (int): Docs that have no gold, and stay as they are.
    skipped (int): Shards that were finished already.
    """

    docs: int
    entities: int
    hidden: Dict[str, int]
    without_gold: int
    skipped: int


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
    check_range("probability", probability, 0.0, 1.0)
    check_choice("unmatched", unmatched, UNMATCHED)
    counts: Counter[str] = Counter()

    def transform(docs: Iterable[Doc]) -> Iterator[Doc]:
        for doc in docs:
            _mask(doc, probability, unmatched, seed, counts)
            yield doc

    settings = {"probability": probability, "unmatched": unmatched, "seed": seed}
    report = run_shards(input_path, output_path, "mask", transform, settings, Vocab(), progress=progress, counts=counts)
    found = report.counts
    return MaskReport(
        docs=report.docs_out,
        entities=found["entities"],
        hidden={key[len("label:") :]: n for key, n in sorted(found.items()) if key.startswith("label:")},
        without_gold=found["without_gold"],
        skipped=report.skipped,
    )


def _mask(doc: Doc, probability: float, unmatched: str, seed: int, counts: "Counter[str]") -> None:
    keep_gold(doc)
    gold = find_gold(doc)
    if gold is None:
        counts["without_gold"] += 1
        return
    words = "\n".join(token.text for token in doc)
    kept = [entity for entity in sorted(gold.entities) if _draw(seed, words, entity) >= probability]
    hidden = gold.entities - {*kept}
    known = [unmatched == "outside" and i not in gold.missing for i in range(len(doc))]
    set_entities(doc, kept, known)
    weak.set_weak(doc)
    counts["entities"] += len(gold.entities)
    counts.update(f"label:{label}" for _, _, label in hidden)


def _draw(seed: int, words: str, entity: Entity) -> float:
    # Uniform in [0, 1).
    digest = hash_text(f"{seed}\n{entity}\n{words}")
    return float(int(digest[:_HEX_DIGITS], 16) / 16**_HEX_DIGITS)
