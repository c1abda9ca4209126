"""Recommends what would help most next, as measured on the gold or, for a Transformer, on public data (best.md)."""

from itertools import accumulate
from pathlib import Path
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy
from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..corpus.docbin import read_docs, write_docs
from ..corpus.weak import doc_entities
from ..evaluation.bootstrap import Bootstrap
from ..evaluation.compare import SAMPLES
from ..runs.groups import FoldFiles, group_docs
from ..runs.training import Training
from ..scores import count_matches
from ..ty import Ints
from .combine import Predicted, TrainedHead
from .context import TrainingContext, pipeline_of
from .rules import LINEAR, Facts, gold_size
from .selection import Point

# Shares of the gold on which "gold alone" is trained for the learning curve. Each share is drawn once from the rest of
# each fold or, with dev, a number of times from the whole gold.
SHARES, DRAWS = (0.25, 0.5), 3
# Smaller parts are left out.
MIN_PART = 10
# Parts consist of sentences if a document is a larger share than this; parts that are off by more are left out.
ROUGH = 0.125
# Gain of the next doubling of the gold, as a share of the gain per doubling so far.
SHRINK = 0.6
TRANSFORMER_GAIN = 2.7
TRANSFORMER_SHARE = 0.25
# Assumed gains of recommendations whose gain is not measured, in points of F1, by which recommendations are sorted.
FIRST_GOLD, LITTLE_GOLD, FIRST_LABELS = 20.0, 5.0, 4.0
_AGAIN = "Run 'spacy weakner init project' again, in a new folder,"
# The possible gain of the best candidate in points of F1, and what to do.
Recommendation = Tuple[float, str]


class CurvePart(NamedTuple):
    """Trainings on parts of the gold of one size."""

    sentences: float  # average over the draws
    trainings: List[Training]  # one per draw


class Curve(NamedTuple):
    """A learning curve."""

    points: List[Point]  # by increasing size; the last has all gold that a candidate is trained on
    gain: Optional[float] = None  # expected from twice as much gold, in points of F1; None: too few points
    low: float = 0.0  # bounds of its 95 % interval
    high: float = 0.0


def plan_curve(context: TrainingContext, draws: Sequence[FoldFiles], dev: Optional[Path]) -> List[CurvePart]:
    """Plan trainings on a quarter and on half of the gold, several draws each, from the rest of a fold. In each draw,
    the larger part contains the smaller one; dev chooses the checkpoint. Parts that would be too small, or have no
    entities, are left out."""
    drawn: Dict[float, List[List[Doc]]] = {}
    for n, draw in enumerate(draws):
        docs = list(read_docs(draw.rest, Vocab()))
        groups = group_docs(docs, f"curve {context.seed} {n}")
        if max(map(len, groups)) > ROUGH * len(docs):
            groups = group_docs(docs, f"curve {context.seed} {n}", least=len(docs) + 1)
        for share in SHARES:
            part = _first(groups, round(share * len(docs)))
            is_near = abs(len(part) - share * len(docs)) <= ROUGH * len(docs)
            if len(part) >= MIN_PART and is_near and any(doc.ents for doc in part):
                drawn.setdefault(share, []).append(part)
    parts: List[CurvePart] = []
    for share, found in drawn.items():
        sentences = float(numpy.mean([len(docs) for docs in found]))
        if len(found) < len(draws) or (parts and sentences <= parts[-1].sentences):
            continue
        trainings = []
        for n, docs in enumerate(found, start=1):
            folder = context.models / "curve" / f"{100 * share:.0f}-{n}"
            corpus = folder.with_suffix(".spacy")
            write_docs(corpus, docs)
            trainings.append(context.on_gold(corpus, folder, dev, size=gold_size(context.size)))
        parts.append(CurvePart(sentences, trainings))
    return parts


def _first(groups: Sequence[List[Doc]], n: int) -> List[Doc]:
    """Return about n sentences from the first groups."""
    sizes = [0, *accumulate(map(len, groups))]
    end = min(range(len(sizes)), key=lambda i: abs(sizes[i] - n))
    return [doc for group in groups[:end] for doc in group]


def measure_curve(
    parts: Sequence[CurvePart],
    whole: Sequence[Predicted],
    sentences: float,
    draws: Sequence[FoldFiles],
    context: TrainingContext,
) -> Curve:
    """Score "gold alone" on the held-out gold of each draw: trained on the parts and, from `whole`, on all gold."""
    counts = []
    for n, draw in enumerate(draws):
        predicted = [
            TrainedHead("part", "part").predict(pipeline_of(part.trainings[n]), draw.held_out, context.language)
            for part in parts
        ]
        rows = [_count_by_sentence(zip(each.gold, each.docs, strict=True)) for each in (*predicted, whole[n])]
        counts.append(numpy.stack(rows))
    # Draws are evaluated on different folds, or all on dev.
    is_split = len({draw.held_out for draw in draws}) > 1
    total = numpy.concatenate(counts, axis=1) if is_split else numpy.sum(counts, axis=0)
    return make_curve([*(part.sentences for part in parts), sentences], total, context.seed)


def make_curve(sizes: Sequence[float], counts: Ints, seed: int = 0) -> Curve:
    """Make a learning curve, and estimate the gain of twice as much gold as a share of the slope over the doublings so
    far, at most what is left to an F1 of 100. `counts` has the shape (n_sizes, n_sentences, 3): tp, fp and fn of every
    sentence."""
    bootstrap = Bootstrap(counts, SAMPLES, seed)
    f1 = bootstrap.observed
    points = [{"sentences": float(n), "f1": round(float(value), 2)} for n, value in zip(sizes, f1, strict=True)]
    if len(sizes) < 3:
        return Curve(points)
    doublings = numpy.log2(numpy.asarray(sizes)) - numpy.log2(numpy.asarray(sizes)).mean()
    weights = SHRINK * doublings / (doublings**2).sum()
    left = 100.0 - float(f1[-1])
    low, high = numpy.percentile(bootstrap.samples @ weights, [2.5, 97.5])
    gain, low, high = (min(left, float(value)) for value in (f1 @ weights, low, high))
    return Curve(points, max(0.0, gain), low, high)


def _count_by_sentence(pairs: Any) -> Ints:
    """Count tp, fp and fn of pairs of gold and predicted Docs: shape (n_sentences, 3)."""
    counts = [count_matches([(doc_entities(gold), doc_entities(doc))])[0] for gold, doc in pairs]
    return numpy.asarray(counts, dtype="int64").reshape(-1, 3)


def recommend(
    facts: Facts, curve: Curve, lists: Mapping[str, float], trained: Mapping[str, float], suggest: str = ""
) -> List[str]:
    """Recommend what to do next, the most helpful first. `lists` and `trained` are the F1 of candidates, and
    `suggest` is the command that suggests sentences to annotate (empty without text)."""
    # Better models improve the best candidate only by the points by which they exceed the list.
    ahead = max(trained.values(), default=0.0)
    behind = max(0.0, max(lists.values(), default=0.0) - ahead)
    found = [_more_gold(facts, curve, ahead, behind, suggest), *_better_labels(facts)]
    if facts.size == LINEAR:
        text = (
            "A frozen Transformer (--transformer NAME, for example sentence-transformers/all-MiniLM-L6-v2): with "
            "MiniLM, F1 was 2.7 points higher on average over eight data sets (-0.3 to 7.1), at up to twice the time; "
            "with a larger one, it was higher still. "
            f"{_AGAIN} with it."
        )
        found.append((min(TRANSFORMER_GAIN, TRANSFORMER_SHARE * (100.0 - ahead)) - behind, text))
    return [text for _, text in sorted(found, key=lambda item: -item[0])]


def _more_gold(facts: Facts, curve: Curve, ahead: float, behind: float, suggest: str) -> Recommendation:
    which = f" To choose sentences: {suggest}" if suggest else ""
    if not facts.gold:
        text = (
            "Gold: about a hundred annotated sentences are enough to choose a candidate and to measure how good it is. "
            f"{_AGAIN} with --gold."
        )
        return FIRST_GOLD, text + which
    if curve.gain is None:
        text = f"More gold: {facts.gold} sentences are too few to estimate the gain from more."
        return LITTLE_GOLD - behind, text + which
    steps = ", ".join(f"{point['f1']:.1f} with {point['sentences']:.0f}" for point in curve.points)
    text = (
        f"More gold: gold alone has F1 {steps} sentences, so twice as much gold may add about {curve.gain:.1f} points "
        f"(95 % interval {curve.low:.1f} to {curve.high:.1f})"
    )
    if curve.gain < behind:
        text += ", which is not enough to exceed the term list"
    elif curve.gain > (room := 100.0 - ahead):
        text += f"; the best candidate, with F1 {ahead:.1f}, can gain at most {room:.1f}"
    return min(curve.gain, 100.0 - ahead) - behind, f"{text}.{which}"


def _better_labels(facts: Facts) -> List[Recommendation]:
    if facts.gold and facts.lists and not facts.text:
        text = (
            f"Text: models learn most from the matches of the term list in text without labels. {_AGAIN} with --text."
        )
        return [(FIRST_LABELS, text)]
    if facts.gold and not facts.weak:
        text = (
            "A term list, or labels of a language model, on more text: there are no weak labels yet. "
            f"{_AGAIN} with --terms or --answers."
        )
        return [(FIRST_LABELS, text)]
    return []
