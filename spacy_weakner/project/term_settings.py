"""Proposes other settings of the term lists if the package gains by them on gold that neither its parts nor the
settings have seen."""

from typing import Any, Dict, List, Sequence, Tuple

import numpy
from spacy.tokens import Doc

from ..corpus.gold import Gold, find_gold
from ..corpus.weak import keep_entities, weak_group
from ..evaluation.bootstrap import Bootstrap, Difference
from ..evaluation.compare import SAMPLES
from ..evaluation.terms.matches import MatchedSentence, read_sentence
from ..evaluation.terms.proposal import MAX_P, Proposal, TermSettings, choose_term_settings
from .combine import Combination, CombinedFold
from .recommendations import Recommendation, count_by_sentence
from .rules import COMBINED

_POLICY = "longest"


def propose_settings(
    combination: Combination, proposals: Sequence[Dict[str, Any]], seed: int
) -> Tuple[List[Recommendation], List[str]]:
    """Return the proposals of `analyze --tune-terms`, which improve the lists, as recommendations if they improve the
    combination of lists and heads, else as notes. The heads stay the same."""
    proposals = [proposal for proposal in proposals if proposal["source"] in combination.lists]
    if not proposals or len(combination.folds) < 2:
        return [], []
    gain = _gain(combination, [proposal["source"] for proposal in proposals], seed)
    names = ", ".join(f"'{proposal['source']}'" for proposal in proposals)
    if gain.f1 <= 0 or gain.p > MAX_P:
        text = f"other settings of {names}, which would improve the list alone, are not proposed: with them, the"
        return [], [f"{text} combination has {gain.text()}"]
    lines = [f"{proposal['source']}: {line}" for proposal in proposals for line in _lines(proposal)]
    text = f"Other settings of the term list in sources.cfg ({'; '.join(lines)}): the combination has {gain.text()}."
    return [(gain.f1, text)], []


def _lines(proposal: Dict[str, Any]) -> List[str]:
    found = Proposal(**proposal)
    return [*found.lines(), *filter(None, [found.doubts()])]


def _gain(combination: Combination, sources: Sequence[str], seed: int) -> Difference:
    """Measure the gain of settings that are chosen, for each fold, on the others."""
    folds, counts = combination.folds, []
    for n, fold in enumerate(folds):
        others = [doc for other in folds if other is not fold for doc in other.docs]
        chosen = {
            source: choose_term_settings([_sentence(doc, source) for doc in others], _POLICY) for source in sources
        }
        changed = [CombinedFold(*([_apply(doc, chosen) for doc in docs] for docs in each)) for each in folds]
        compared = (combination, Combination(combination.lists, combination.heads, changed, combination.language))
        decided = [each.decide_fold(n) for each in compared]
        counts.append(numpy.stack([count_by_sentence(zip(fold.docs, docs, strict=True)) for docs in decided]))
    return Bootstrap(numpy.concatenate(counts, axis=1), SAMPLES, seed).difference(1, 0, COMBINED)


def _sentence(doc: Doc, source: str) -> MatchedSentence:
    return read_sentence(doc, find_gold(doc) or Gold(frozenset()), source)


def _apply(doc: Doc, chosen: Dict[str, TermSettings]) -> Doc:
    """Return a copy of a Doc without the matches that the lists no longer have."""
    changed = doc.copy()
    for source, settings in chosen.items():
        kept = settings.apply(_sentence(doc, source).matches)
        keep_entities(changed, weak_group(source), [match.candidate.entity for match in kept])
    return changed
