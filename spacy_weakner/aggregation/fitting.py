"""What the methods of `aggregate` must learn from a corpus before they can label it."""

from pathlib import Path
from typing import Callable, Iterable, List, NamedTuple, Optional, Sequence, Tuple

import numpy
from spacy.tokens import Doc

from ..corpus import weak
from ..corpus.docbin import stream_docs
from ..corpus.gold import find_gold
from ..corpus.tags import TagScheme, make_scheme
from ..errors import Errors, WeaknerError
from .label_model import fit
from .methods import SCHEME, Majority, Method, Weighted
from .observations import Source, SourceSurvey, all_labels, survey
from .sample import Sample
from .votes import GoldCounts

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
    path: Path,
    method: str,
    names: Optional[Sequence[str]],
    gold: Optional[Path],
    max_docs: int,
    seed: int,
    fit_on: Optional[Path] = None,
) -> Prepared:
    """Read a corpus, and learn what a method needs to know.

    path (Path): The corpus that is to be labelled.
    method, names, gold, max_docs, seed, fit_on: See `aggregate.aggregate`.
    RETURNS (Prepared): The method.
    RAISES (WeaknerError): If the sources propose nothing; for the method "weighted", if nothing tells how good a source
        is.
    """
    place = path if fit_on is None else fit_on
    labels = () if fit_on is None else labels_of(stream_docs(path), names)
    gold_docs: Iterable[Doc] = () if gold is None else stream_docs(gold)
    return learn(
        stream_docs(place), method, names, gold_docs, max_docs, seed, place=place, gold_place=gold, labels=labels
    )


def learn(
    docs: Iterable[Doc],
    method: str,
    names: Optional[Sequence[str]] = None,
    gold: Iterable[Doc] = (),
    max_docs: int = MAX_DOCS,
    seed: int = 0,
    *,
    place: Path = Path(),
    gold_place: Optional[Path] = None,
    labels: Sequence[str] = (),
) -> Prepared:
    """Learn from Docs what a method needs to know.

    docs (Iterable[Doc]): What the sources have labelled.
    method, names, max_docs, seed: See `aggregate.aggregate`.
    gold (Iterable[Doc]): For the method "weighted": Docs with gold.
    place (Path): Where the Docs come from, for errors.
    gold_place (Optional[Path]): Where the gold comes from. With it, gold that teaches nothing is an error.
    labels (Sequence[str]): Labels of the Docs that are to be labelled: those that no source gives here are known, but
        never believed.
    RETURNS (Prepared): The method.
    RAISES (WeaknerError): See `prepare`.
    """
    seen = SourceSurvey(names)
    sample = Sample(max_docs, seed, names or ())
    readers: List[Callable[[Doc], None]] = [seen.add]
    if method == "label_model":
        readers.append(sample.add)
    for doc in docs:
        for read in readers:
            read(doc)
    sources = seen.sources()
    used = tuple(source.name for source in sources)
    proposed = all_labels(sources)
    if not proposed:
        raise WeaknerError(Errors.WK333.format(path=place, sources=", ".join(used)))
    known = tuple(sorted({*proposed, *labels}))
    scheme = make_scheme(SCHEME, known)
    if method == "majority":
        return Prepared(Majority(scheme, tuple(sources)), used, scheme)
    if method == "weighted":
        counts = _count_gold(gold, sources, scheme)
        if gold_place is not None and not counts.votes.any():
            raise WeaknerError(Errors.WK332.format(path=gold_place, sources=", ".join(used)))
        accuracies = tuple(tuple(of_source) for of_source in counts.accuracies())
        weighted = Weighted(scheme, tuple(sources), accuracies, counts.quiet_accuracy())
        return Prepared(weighted, used, scheme, counts.docs)
    fitted = fit(sample.observations(used, scheme), sources, known)
    return Prepared(fitted, used, scheme, fitted.docs, fitted.iterations, fitted.converged)


def labels_of(docs: Iterable[Doc], names: Optional[Sequence[str]]) -> Tuple[str, ...]:
    """RETURNS (Tuple[str, ...]): Labels that sources give to Docs, sorted."""
    return all_labels(survey(docs, names))


def _count_gold(docs: Iterable[Doc], sources: Sequence[Source], scheme: TagScheme) -> GoldCounts:
    counts = GoldCounts(sources, scheme)
    for doc in docs:
        gold = find_gold(doc)
        if gold is not None and any(weak.weak_group(source.name) in doc.spans for source in sources):
            known = numpy.array([i not in gold.missing for i in range(len(doc))], dtype=bool)
            counts.add(doc, sorted(gold.entities), known)
    return counts
