"""Combines the labels of gold sentences as `aggregate` would."""

from pathlib import Path
from typing import List, Optional, Sequence

import numpy
from spacy.tokens import Doc

from ...aggregation.fitting import labels_of, learn
from ...aggregation.methods import Method, combine_sources
from ...aggregation.policies import candidates_of, select_spans
from ...corpus import weak
from ...corpus.docbin import stream_docs
from ...labeling.aggregate import UNION
from ...ty import Entities

FOLDS = 5
# Per Doc; None if no source has labeled it.
SourceLabels = List[Optional[Entities]]


def combined_labels(
    docs: Sequence[Doc],
    sources: Sequence[str],
    *,
    method: str,
    policy: str,
    fit_on: Optional[Path] = None,
) -> SourceLabels:
    """Combine the labels of sources on gold sentences, the most trusted source first. The method "weighted" fits its
    weights on the folds without the sentence. For the settings see `labeling.aggregate.aggregate`."""
    seen = [[source for source in sources if weak.weak_group(source) in doc.spans] for doc in docs]
    if method == UNION:
        return [_union(doc, used, policy) if used else None for doc, used in zip(docs, seen, strict=True)]
    result: SourceLabels = [[] if used else None for used in seen]
    labels = labels_of(docs, sources)
    if not labels:
        return result
    if method != "weighted":
        corpus = docs if fit_on is None else stream_docs(fit_on)
        place = Path() if fit_on is None else fit_on
        fitted = learn(corpus, method, sources, place=place, labels=labels)
        return _distributions(docs, fitted)
    fold_of = numpy.random.default_rng(0).permutation(len(docs)) % FOLDS
    for fold in range(FOLDS):
        others = [docs[i] for i in numpy.flatnonzero(fold_of != fold).tolist()]
        here = numpy.flatnonzero(fold_of == fold).tolist()
        if labels_of(others, sources):
            found = _distributions([docs[i] for i in here], learn(others, method, sources, others, labels=labels))
            for i, entities in zip(here, found, strict=True):
                result[i] = entities
    return result


def _union(doc: Doc, used: Sequence[str], policy: str) -> Entities:
    return select_spans([candidate for source in used for candidate in candidates_of(doc, source)], policy, used)


def _distributions(docs: Sequence[Doc], method: Method) -> SourceLabels:
    found = combine_sources(method, docs)
    return [None if combined is None else combined.entities for combined in found]
