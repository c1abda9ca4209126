"""Fitting of the methods of `aggregate` on a corpus."""

from pathlib import Path
from typing import Iterable, Optional, Sequence, Tuple

import numpy
from spacy.tokens import Doc

from ..corpus import weak
from ..corpus.gold import find_gold
from ..corpus.tags import TagScheme, make_scheme
from ..errors import Errors, WeaknerError
from .label_model import fit_label_model
from .methods import SCHEME, Majority, Method, Weighted
from .observations import ObservedSource, SourceSurvey, all_labels
from .sample import DocSample
from .votes import GoldCounts

MAX_DOCS = 50_000


def learn(
    docs: Iterable[Doc],
    method: str,
    names: Optional[Sequence[str]] = None,
    gold: Iterable[Doc] = (),
    *,
    place: Path = Path(),
    gold_place: Optional[Path] = None,
    labels: Sequence[str] = (),
) -> Method:
    """Fit a method to Docs; "weighted" needs gold. `place` and `gold_place` are named in errors; without `gold_place`,
    gold without usable votes is no error. `labels` are labels of the Docs to be labeled, which sources may not use
    here."""
    seen = SourceSurvey(names)
    sample = DocSample(MAX_DOCS, seed=0, names=names or ())
    for doc in docs:
        seen.add(doc)
        if method == "label_model":
            sample.add(doc)
    sources = seen.sources()
    used = tuple(source.name for source in sources)
    proposed = all_labels(sources)
    if not proposed:
        raise WeaknerError(Errors.WK333.format(path=place, sources=", ".join(used)))
    known = tuple(sorted({*proposed, *labels}))
    scheme = make_scheme(SCHEME, known)
    if method == "majority":
        return Majority(scheme=scheme, sources=tuple(sources))
    if method == "weighted":
        counts = _count_gold(gold, sources, scheme)
        if gold_place is not None and not counts.votes.any():
            raise WeaknerError(Errors.WK332.format(path=gold_place, sources=", ".join(used)))
        by_source = tuple(map(tuple, counts.by_source()))
        return Weighted(
            scheme=scheme,
            sources=tuple(sources),
            docs=counts.docs,
            source_accuracies=tuple(count.accuracy for of_source in by_source for count in of_source),
            counts=by_source,
            outside_accuracy=counts.outside_accuracy(),
        )
    return fit_label_model(sample.observations(used, scheme), sources, known)


def labels_of(docs: Iterable[Doc], names: Optional[Sequence[str]]) -> Tuple[str, ...]:
    """Return the labels that sources give to Docs, sorted."""
    seen = SourceSurvey(names)
    for doc in docs:
        seen.add(doc)
    return all_labels(seen.sources())


def _count_gold(docs: Iterable[Doc], sources: Sequence[ObservedSource], scheme: TagScheme) -> GoldCounts:
    counts = GoldCounts(sources, scheme)
    for doc in docs:
        gold = find_gold(doc)
        if gold is not None and any(weak.weak_group(source.name) in doc.spans for source in sources):
            known = numpy.array([i not in gold.missing for i in range(len(doc))], dtype=bool)
            counts.add(doc, sorted(gold.entities), known)
    return counts
