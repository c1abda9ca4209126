"""How often candidates with the same words were right: a term such as "water" may always be wrong."""

from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy
from spacy.tokens import Doc

from ..ty import Entity
from .competition import Floats

# What is remembered of a candidate: its words, those at its ends, and those around; each for its label.
WORDS = ("text", "first", "last", "previous", "next")
COLUMNS = tuple(f"{which} {what}" for which in WORDS for what in ("seen right", "seen wrong"))


class Memory:
    """How often what was right, and how often wrong.

    counts (Optional[Dict[str, Tuple[int, int]]]): Per key, what `memory_keys` gives, how many candidates were right,
        and how many wrong.
    """

    def __init__(self, counts: Optional[Dict[str, Tuple[int, int]]] = None) -> None:
        self.counts = {key: (int(right), int(wrong)) for key, (right, wrong) in (counts or {}).items()}

    def add(self, keys: Sequence[Sequence[str]], right: Floats) -> None:
        """Remember the candidates of a Doc.

        keys (Sequence[Sequence[str]]): The keys of each candidate.
        right (Floats): Shape (n_candidates,): 1 for those that are right, else 0.
        """
        for own, is_right in zip(keys, right.tolist(), strict=True):
            for key in own:
                before = self.counts.get(key, (0, 0))
                self.counts[key] = (before[0] + (is_right > 0), before[1] + (is_right == 0))

    def columns(self, keys: Sequence[Sequence[str]]) -> Floats:
        """What is remembered of some candidates.

        keys (Sequence[Sequence[str]]): The keys of each candidate.
        RETURNS (Floats): Shape (n_candidates, len(COLUMNS)): n / (n + 1), where n is how often it was right, or wrong.
        """
        counts: Any = numpy.array([[self.counts.get(key, (0, 0)) for key in own] for own in keys], dtype="float64")
        counts = counts.reshape(-1, len(COLUMNS))
        result: Floats = counts / (counts + 1.0)
        return result


def memory_keys(doc: Doc, entities: Sequence[Entity]) -> List[List[str]]:
    """By what candidates are remembered.

    doc (Doc): The Doc.
    entities (Sequence[Entity]): Its candidates.
    RETURNS (List[List[str]]): Per candidate a key for each of `WORDS`.
    """
    words = [token.text.lower() for token in doc] + [""]  # also at -1
    result = []
    for start, end, label in entities:
        said = (" ".join(words[start:end]), words[start], words[end - 1], words[start - 1], words[end])
        result.append([f"{which}\t{label}\t{text}" for which, text in zip(WORDS, said, strict=True)])
    return result


def held_out_columns(keys: Sequence[List[List[str]]], right: Sequence[Floats], fold_of: Any) -> List[Floats]:
    """What is remembered of candidates, by the Docs of other folds: of its own Doc a candidate must know nothing.

    keys (Sequence[List[List[str]]]): The keys of each Doc's candidates.
    right (Sequence[Floats]): Which of them are right, see `Memory.add`.
    fold_of (Any): Shape (n_docs,): the fold of each Doc.
    RETURNS (List[Floats]): Per Doc as `Memory.columns`.
    """
    memories = {}
    for fold in numpy.unique(fold_of).tolist():
        memories[fold] = Memory()
        for own, truth, other in zip(keys, right, fold_of, strict=True):
            if other != fold:
                memories[fold].add(own, truth)
    return [memories[fold].columns(own) for own, fold in zip(keys, fold_of, strict=True)]
