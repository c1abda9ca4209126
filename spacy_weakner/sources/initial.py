"""What the features of sources weigh at the start: how far they are right, measured on gold."""

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
from ..losses import Array
from ..ty import Entity
from .features import SourceFeatureSettings, n_token_features
from .matches import BoolMask, read_matches

# Gold sentences to measure on, at most.
SAMPLE = 2000
# What a label's precision is worth beside that of the whole source, in matches.
PRIOR = 4.0

# A Doc with what the sources say, its gold entities, and which of its tokens are annotated, shape (n_tokens,).
GoldDoc = Tuple[Doc, List[Entity], BoolMask]


class InitialWeight(NamedTuple):
    """How much a source's features weigh at the start."""

    matches: Array  # shape (n_labels,): a match, towards its label
    silence: float  # no match, towards "O"


def starting_weights(scheme: TagScheme, initial: Sequence[InitialWeight]) -> Array:
    """Weights towards the tags that the sources' own reading has, shape (n_features, n_tags)."""
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
    """What the features of the sources weigh at the start. One source alone has the full strength, so that its own
    reading is the start. Of several, weights add up as in naive Bayes. With K sources, the odds o of a token to be "O"
    in gold,

        match of label l:   logit p_l + (1 - 1 / K) log o
        no match:           -log u    +      1 / K  log o

    each within 0 and `strength`. p_l is the share of right ones (borders and label) among the matches of label l in the
    source's own reading, smoothed towards the precision of the whole source; u is the share of tokens of gold entities
    which it leaves without a match. A source that has looked at none of the examples has the full strength.
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
        entities = {entity[:2]: entity[2] for entity in gold}
        for start, end, label, is_longest in zip(
            *(matches.starts, matches.ends, matches.labels, matches.longest), strict=True
        ):
            if is_longest and label >= 0 and known[start:end].all():
                found[label] += 1
                right[label] += entities.get((int(start), int(end))) == labels[label]
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
    """Gold sentences and what sources say of them, which stands in the predicted or in the annotated Doc, or is written
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
