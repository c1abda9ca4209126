"""Scores of categories that are missing in some Docs."""

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
    """Score like spaCy's `textcat` or, if classes are not exclusive, `textcat_multilabel`; but with exclusive classes,
    only Docs with a known class. (spaCy takes a Doc without categories as one without a class.)

    examples (Iterable[Example]): Predictions and gold.
    labels (Sequence[str]): The categories.
    exclusive_classes (bool): Whether a Doc has exactly one category.
    positive_label (Optional[str]): With two exclusive categories, the one whose F1 is the score.
    RETURNS (Dict[str, Any]): The scores, of which "cats_score" is the main one.
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
    """Create the scorer of `doc.cats` for `sentence_category`: like that of spaCy's `textcat` or, if classes are not
    exclusive, `textcat_multilabel`; but with exclusive classes, only Docs with a known class are scored. Registered as
    `spacy_weakner.category_scorer.v1`.

    RETURNS (Callable): The scorer.
    """
    return score_categories
