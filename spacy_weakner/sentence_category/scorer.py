"""Scores of categories that are not known everywhere."""

from typing import Any, Callable, Dict, Iterable, Optional, Sequence

from spacy.scorer import Scorer
from spacy.training import Example

CHOSEN = 0.5


def score_categories(
    examples: Iterable[Example],
    *,
    labels: Sequence[str],
    exclusive_classes: bool = True,
    positive_label: Optional[str] = None,
    **settings: Any,
) -> Dict[str, Any]:
    """Score as spaCy scores its `textcat` or, if classes are not exclusive, `textcat_multilabel`; but of exclusive ones
    only Docs whose class is known. (Elsewhere a Doc without categories counts as one of no class.)

    examples (Iterable[Example]): Predictions and gold.
    labels (Sequence[str]): The categories.
    exclusive_classes (bool): Whether a Doc has exactly one.
    positive_label (Optional[str]): Of two exclusive ones the one whose F1 is the score.
    RETURNS (Dict[str, Any]): The scores, "cats_score" first of all.
    """
    used = list(examples)
    if exclusive_classes:
        used = [eg for eg in used if 1.0 in eg.reference.cats.values()]
    else:
        settings = {"threshold": CHOSEN, **settings}
    return Scorer.score_cats(
        used, "cats", labels=labels, multi_label=not exclusive_classes, positive_label=positive_label, **settings
    )


def make_category_scorer() -> Callable[..., Dict[str, Any]]:
    """Create the scorer of `doc.cats` that `sentence_category` has: that of spaCy's `textcat` or, if classes are not
    exclusive, of `textcat_multilabel`, but of exclusive ones only on Docs whose class is known. Registered as
    `spacy_weakner.category_scorer.v1`.

    RETURNS (Callable): The scorer.
    """
    return score_categories
