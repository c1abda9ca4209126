"""The phrases that a source gets wrong most often."""

from collections import Counter
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from spacy.tokens import Doc

from .matches import Sentence, choose_matches

_EXAMPLES = 2
# Tokens around a match.
_CONTEXT = 8


class WorstTerm(NamedTuple):
    """A phrase that is often matched wrongly.

    term (str): The phrase, as its source compares it.
    label (str): The label that it gets.
    source (str): Who gives it.
    wrong (int): How often that is wrong.
    right (int): How often it is right.
    examples (Tuple[str, ...]): Sentences where it is wrong.
    """

    term: str
    label: str
    source: str
    wrong: int
    right: int
    examples: Tuple[str, ...]


def find_worst_terms(
    docs: Sequence[Doc], said: Mapping[str, Sequence[Optional[Sentence]]], policy: str, top: int
) -> List[WorstTerm]:
    """Find the phrases whose matches do most harm: by how much oftener they are wrong than right.

    docs (Sequence[Doc]): The gold sentences.
    said (Mapping[str, Sequence[Optional[Sentence]]]): By source what it says about each; None: it has not looked.
    policy (str): How the conflicts of a source are settled.
    top (int): How many to give.
    RETURNS (List[WorstTerm]): The worst first; in the order of the alphabet where they are equal.
    """
    right: Counter[Tuple[str, str, str]] = Counter()
    wrong: Counter[Tuple[str, str, str]] = Counter()
    examples: Dict[Tuple[str, str, str], List[str]] = {}
    for source, sentences in said.items():
        for doc, sentence in zip(docs, sentences, strict=True):
            if sentence is None:
                continue
            for match in choose_matches(sentence.matches, policy):
                start, end, label = match.candidate.entity
                key = (match.term, label, source)
                if match.candidate.entity in sentence.gold.entities:
                    right[key] += 1
                else:
                    wrong[key] += 1
                    shown = examples.setdefault(key, [])
                    if len(shown) < _EXAMPLES:
                        shown.append(doc[max(0, start - _CONTEXT) : end + _CONTEXT].text.strip())
    ranked = sorted(wrong, key=lambda key: (right[key] - wrong[key], key))[:top]
    return [WorstTerm(*key, wrong[key], right[key], tuple(examples[key])) for key in ranked]
