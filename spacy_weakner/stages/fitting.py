"""What the methods of `aggregate` must learn from a corpus before they can label it."""

from pathlib import Path
from typing import Callable, List, NamedTuple, Optional, Sequence, Tuple

import numpy
from spacy.tokens import Doc

from ..aggregation.label_model import fit
from ..aggregation.methods import SCHEME, Fitted, Majority, Method, Weighted
from ..aggregation.observations import Source, SourceSurvey, all_labels
from ..aggregation.sample import Sample
from ..aggregation.votes import GoldCounts
from ..annotations import weak
from ..annotations.corpus import stream_docs
from ..annotations.gold import find_gold
from ..annotations.tags import TagScheme, make_scheme
from ..errors import Errors, WeaknerError

MAX_DOCS = 50_000


class Prepared(NamedTuple):
    """A method that is ready to label.

    method (Method): The method.
    names (Tuple[str, ...]): The sources, the most trusted first.
    scheme (TagScheme): The tag scheme.
    docs (int): Docs that something was learned from.
    iterations (int): Iterations of EM.
    converged (bool): Whether they were enough.
    """

    method: Method
    names: Tuple[str, ...]
    scheme: TagScheme
    docs: int = 0
    iterations: int = 0
    converged: bool = True


def prepare(
    path: Path, method: str, names: Optional[Sequence[str]], gold: Optional[Path], max_docs: int, seed: int
) -> Prepared:
    """Read a corpus, and learn what a method needs to know.

    path (Path): The corpus.
    method, names, gold, max_docs, seed: See `aggregate.aggregate`.
    RETURNS (Prepared): The method.
    RAISES (WeaknerError): If the sources propose nothing; for the method "weighted", if nothing tells how good a source
        is.
    """
    survey = SourceSurvey(names)
    sample = Sample(max_docs, seed, names or ())
    readers: List[Callable[[Doc], None]] = [survey.add]
    if method == "label_model":
        readers.append(sample.add)
    for doc in stream_docs(path):
        for read in readers:
            read(doc)
    sources = survey.sources()
    labels = all_labels(sources)
    used = tuple(source.name for source in sources)
    if not labels:
        raise WeaknerError(Errors.WK333.format(path=path, sources=", ".join(used)))
    scheme = make_scheme(SCHEME, labels)
    if method == "majority":
        return Prepared(Majority(scheme, tuple(sources)), used, scheme)
    if method == "weighted":
        counts = _count_gold(gold, sources, scheme)
        if gold is not None and not counts.votes.any():
            raise WeaknerError(Errors.WK332.format(path=gold, sources=", ".join(used)))
        accuracies = tuple(tuple(of_source) for of_source in counts.accuracies())
        return Prepared(
            Weighted(scheme, tuple(sources), accuracies, counts.quiet_accuracy()), used, scheme, counts.docs
        )
    model, how = fit(sample.observations(used, scheme), sources, labels)
    return Prepared(Fitted(model, how), used, scheme, how.docs, how.iterations, how.converged)


def _count_gold(path: Optional[Path], sources: Sequence[Source], scheme: TagScheme) -> GoldCounts:
    counts = GoldCounts(sources, scheme)
    for doc in () if path is None else stream_docs(path):
        gold = find_gold(doc)
        if gold is not None and any(weak.weak_group(source.name) in doc.spans for source in sources):
            known = numpy.array([i not in gold.missing for i in range(len(doc))], dtype=bool)
            counts.add(doc, sorted(gold.entities), known)
    return counts
