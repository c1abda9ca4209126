"""Initial weights of source features, from the precision of the sources on gold."""

from collections import Counter
from itertools import islice
from typing import Any, Callable, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import numpy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from ..corpus.alignment import copy_sources, project, reference_spans, unknown_tokens
from ..corpus.tags import TagScheme
from ..corpus.weak import is_weak, weak_group
from ..ty import Array, BoolMask, Entity
from .features import SourceFeatureSettings, n_token_features
from .matches import read_matches

# Maximum number of gold sentences to measure on.
SAMPLE = 2000
# Weight of the whole source's precision in the smoothed precision of a label, as a number of matches.
PRIOR = 4.0

# A Doc with the labels of sources, its gold entities, and a mask of its annotated tokens, shape (n_tokens,).
GoldDoc = Tuple[Doc, List[Entity], BoolMask]


class InitialWeight(NamedTuple):
    """Initial weights of a source's features."""

    matches: Array  # shape (n_labels,): of a match, towards its label
    silence: float  # of no match, towards "O"


def starting_weights(scheme: TagScheme, initial: Sequence[InitialWeight]) -> Array:
    """Return weights that predict the tags of the sources' labels, shape (n_features, n_tags)."""
    n = len(scheme.labels)
    parts = []
    for weight in initial:
        weights = numpy.zeros((n_token_features(n), len(scheme)))
        for i, label in enumerate(scheme.labels):
            begin, inside, end = scheme.span_tags(label, 3)
            for place, tag in enumerate([begin, inside, end, *scheme.span_tags(label, 1)]):
                weights[4 * i + place, tag] = weight.matches[i]
        weights[5 * n : 5 * n + 2, 0] = weight.silence
        parts.append(weights)
    return numpy.concatenate(parts)


def initial_weights(
    settings: SourceFeatureSettings, labels: Sequence[str], examples: Callable[[], Iterable[GoldDoc]]
) -> List[InitialWeight]:
    """Compute the initial weights of source features. A single source has the full strength, so that the initial model
    predicts its labels. The weights of several sources are combined as in naive Bayes. With K sources, and the odds o
    of a token to be "O" in gold, they are

        match of label l:   logit p_l + (1 - 1 / K) log o
        no match:           -log u    +      1 / K  log o

    clipped to [0, `strength`]. p_l is the precision (exact span and label) of the source's longest matches with label
    l, smoothed towards the precision of the whole source; u is the share of tokens in gold entities without a match. A
    source that has labeled none of the examples has the full strength.
    """
    full = InitialWeight(numpy.full(len(labels), settings.strength), settings.strength)
    if len(settings.sources) == 1:
        return [full]
    given = list(islice(examples(), SAMPLE))
    return [_measure(name, settings, labels, given) or full for name in settings.sources]


def _measure(
    source: str, settings: SourceFeatureSettings, labels: Sequence[str], examples: Sequence[GoldDoc]
) -> Optional[InitialWeight]:
    found, right = numpy.zeros(len(labels)), numpy.zeros(len(labels))
    tokens: Counter[str] = Counter()
    for doc, gold, known in examples:
        matches = read_matches([doc], source, labels, [False])
        if not matches.looked.any():
            continue
        columns = (matches.starts, matches.ends, matches.labels, matches.longest)
        for start, end, label, is_longest in zip(*columns, strict=True):
            if is_longest and label >= 0 and known[start:end].all():
                found[label] += 1
                right[label] += (int(start), int(end), labels[label]) in gold
        inside = numpy.zeros(len(doc), dtype=bool)
        for start, end, _ in gold:
            inside[start:end] = True
        tokens["entity"] += int(inside.sum())
        tokens["unmatched"] += int((inside & ~matches.covered).sum())
        tokens["outside"] += int((known & ~inside).sum())
    if not tokens:
        return None
    overall = (right.sum() + 1.0) / (found.sum() + 2.0)
    precision = (right + PRIOR * overall) / (found + PRIOR)
    unmatched = (tokens["unmatched"] + 1.0) / (tokens["entity"] + 2.0)
    odds = max(0.0, numpy.log((tokens["outside"] + 1.0) / (tokens["entity"] + 1.0)))
    share = 1.0 / len(settings.sources)
    matched = numpy.log(precision) - numpy.log1p(-precision) + (1.0 - share) * odds
    silence = -numpy.log(unmatched) + share * odds
    return InitialWeight(
        numpy.clip(matched, 0.0, settings.strength), float(numpy.clip(silence, 0.0, settings.strength))
    )


def gold_with_sources(
    examples: Iterable[Example], sources: Sequence[str], nlp: Optional[Language]
) -> Iterator[GoldDoc]:
    """Yield gold sentences with the labels of sources, which are in the predicted or the reference Doc, or are written
    by a component of the pipeline."""
    # Components of other pipelines are disabled while a pipeline is initialized.
    pipes: List[Any] = [] if nlp is None else [pipe for _, pipe in nlp.components]
    rulers = [pipe for pipe in pipes if getattr(pipe, "source", None) in sources]
    for example in examples:
        if is_weak(example.reference) or not len(example.predicted):
            continue
        gold = project(example, reference_spans(example.reference, None))
        doc = example.predicted.copy()
        copy_sources(Example(doc, example.reference), sources)
        for ruler in rulers:
            doc = doc if weak_group(ruler.source) in doc.spans else ruler(doc)
        yield doc, gold, ~unknown_tokens(example)
