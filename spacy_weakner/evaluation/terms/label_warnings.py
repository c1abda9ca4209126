"""Warnings about weak labels, from their scores on gold, before models are trained on them."""

from difflib import get_close_matches
from typing import Dict, Iterator, List

from ...scores import Counts
from .collected import LeakedLabel, SourceLabel
from .results import IntervalScores, LabelWarning, TermAnalysis

# Sources of these numbers: docs/evidence (weak-labels.md, foundation.md, needle.md and roster.md).
# Models gained from labels with P 90.0, 82.4 and 78.7, or came near gold. Models of labels with P 42.7 (UniNER on
# CoNLL-2003, F1 47.5) had F1 38.6, those of labels with P 33.1 (ChatGPT on BC5CDR, F1 43.1) F1 38.3, below that of 250
# gold sentences alone (57.8). Adding a list with P 15.8 to gold cost 19 points of F1 against that gold alone.
HARMFUL_PRECISION = 30.0
DOUBTFUL_PRECISION = 50.0
# If half of the entities are taken as "O", F1 drops by 20 points (`naive_half`); if nearly all, only "O" is learned.
LOW_RECALL = 10.0
# Fewer labels or matches are too few for a warning.
MIN_SEEN = 5
# Labels with a smaller percentage of the gold entities get no warning.
RARE = 1.0
# Term lists find 30 to 75 % of the entities of new text; lists that were collected from the gold find nearly all of its
# entities. (BC5CDR: F1 99.4 in cross-validation with a list of the gold's own entities, 45.1 on test.)
KNOWN_RECALL = 93.0
# A wider interval of F1 allows no decision: most differences between methods are smaller.
WIDE_INTERVAL = 20.0


def find_warnings(
    analysis: TermAnalysis,
    *,
    better: Dict[str, float],
    unanswered: Dict[str, int],
    found: Dict[str, float],
    collected: Dict[SourceLabel, LeakedLabel],
) -> List[LabelWarning]:
    """Find problems that will probably do harm, with a warning for each.

    analysis (TermAnalysis): The scores.
    better (Dict[str, float]): Sources that alone are significantly better, and by how many points of F1.
    unanswered (Dict[str, int]): Number of gold Docs that a source has not labeled, for sources with such Docs.
    found (Dict[str, float]): Per term list: percentage of the gold entities that are among its matches.
    collected (Dict[SourceLabel, LeakedLabel]): Lists and labels that match in the gold more often than in the text.
    """
    total, interval, docs = analysis.scores.counts, analysis.scores.interval, analysis.docs
    warnings = [LabelWarning("unanswered", _unanswered(source, n, docs)) for source, n in unanswered.items()]
    warnings += [LabelWarning("known", text) for text in _known(analysis.per_source, found, collected)]
    n_gold = total.tp + total.fn
    if total.tp + total.fp:
        warnings += _total(total)
        width = interval.high - interval.low
        if width > WIDE_INTERVAL:
            text = f"The 95 % interval of F1 is {width:.0f} points wide, with {docs} documents and {n_gold} gold "
            warnings.append(LabelWarning("gold", f"{text}entities: annotate more before you rely on these scores"))
        warnings += _labels(total, {label: scores.counts for label, scores in analysis.per_label.items()})
        if len(analysis.per_source) > 1:
            warnings += _labels_of_sources(analysis.per_source_label)
    elif analysis.unlabeled < docs:
        text = (
            f"The sources have no match, but gold has {n_gold} entities: a model of these labels would find nothing. "
        )
        text += "Compare terms and texts: language, case ('attr'), tokenizer, spelling"
        warnings.append(LabelWarning("nothing", text))
    if better:
        source = max(better, key=lambda name: (better[name], name))
        text = (
            f"'{source}' alone is better than all sources together by {better[source]:.1f} points of F1: use it alone "
        )
        text += f"(--source {source}), or give it priority (--policy priority --source {source} ...)"
        warnings.append(LabelWarning("combination", text))
    return warnings


def _unanswered(source: str, n: int, docs: int) -> str:
    if n < docs:
        return f"'{source}' has not labeled {n} of {docs} gold documents: its scores are measured on the others"
    return (
        f"'{source}' has labeled none of the {n} gold documents, so its quality is unknown. Let it label the gold, or "
        "leave it out of all labels that are scored on gold, dev and test"
    )


def _known(
    per_source: Dict[str, IntervalScores], found: Dict[str, float], collected: Dict[SourceLabel, LeakedLabel]
) -> Iterator[str]:
    for (source, label), matches in collected.items():
        yield (
            f"With the label {label}, '{source}' matches {matches.ratio:.1f} times as often in the gold as in the "
            "text: its terms seem to have been collected from these sentences, and its scores here are far too high"
        )
    for source, share in found.items():
        is_collected = any(source == name for name, _ in collected)
        if not is_collected and share >= KNOWN_RECALL and per_source[source].counts.tp >= 10 * MIN_SEEN:
            yield (
                f"'{source}' has {share:.0f} % of the gold entities among its terms. If the terms were collected from "
                "these sentences, its scores here are far too high: compare on dev and test sets that the terms were "
                "not collected from"
            )


def _total(total: Counts) -> Iterator[LabelWarning]:
    if total.precision < HARMFUL_PRECISION:
        yield LabelWarning(
            "precision",
            f"Precision is {total.precision:.1f}: most of these labels are wrong, and training on them will probably "
            f"do more harm than good (as measured for a precision below {HARMFUL_PRECISION:.0f}). Train on gold alone, "
            "or clean the list first: see the worst terms",
        )
    elif total.precision < DOUBTFUL_PRECISION:
        yield LabelWarning(
            "precision",
            f"Precision is {total.precision:.1f}: more than half of the labels are wrong. Models of such labels "
            "were worse than the labels. Clean the list, and compare with gold alone on dev",
        )
    if total.recall < LOW_RECALL:
        yield LabelWarning(
            "recall",
            f"Recall is {total.recall:.1f}: these labels find almost no entities. Do not treat the other tokens "
            "as 'O' (use --unmatched missing); a longer list helps more than any training",
        )


def _labels(total: Counts, per_label: Dict[str, Counts]) -> Iterator[LabelWarning]:
    in_gold = {label: counts for label, counts in per_label.items() if counts.tp + counts.fn}
    given = {label: counts for label, counts in per_label.items() if counts.tp + counts.fp}
    never = {label: counts.fn for label, counts in in_gold.items() if label not in given}
    missed = sum(never.values())
    if never and 100 * missed >= RARE * (total.tp + total.fn):
        yield LabelWarning(
            "never_given",
            f"Labels of gold that no source assigns: {_list(never)}, {missed} gold entities in total. A model of weak "
            "labels alone cannot find them: add terms, or treat unmatched tokens as missing (--unmatched missing)",
        )
    foreign = {label: counts.fp for label, counts in given.items() if label not in in_gold}
    near = {label: get_close_matches(label, list(never) or list(in_gold), n=1, cutoff=0.7) for label in foreign}
    hints = ", ".join(f"'{label}' for '{close[0]}'" for label, close in near.items() if close)
    if hints or sum(foreign.values()) >= MIN_SEEN:
        yield LabelWarning(
            "never_right",
            f"Labels that do not occur in gold: {_list(foreign)}. "
            + (f"Possible misspellings: {hints}. " if hints else "")
            + "Map them ('labels' in the sources file) or remove them",
        )
    wrong = {x: counts.fp for x, counts in in_gold.items() if not counts.tp and counts.fp >= MIN_SEEN}
    if wrong:
        yield LabelWarning(
            "never_right",
            f"Labels that are never right: {_list(wrong)}. Remove them from the list, or check their terms above",
        )
    bad = _harmful({label: counts for label, counts in given.items() if counts.tp})
    if bad and total.precision >= HARMFUL_PRECISION:
        yield LabelWarning(
            "precision",
            f"Labels with a precision below {HARMFUL_PRECISION:.0f}: {bad}. They will probably do harm: "
            "clean their terms, or leave these labels out ('labels' in the sources file)",
        )


def _labels_of_sources(per_source_label: Dict[str, Dict[str, Counts]]) -> Iterator[LabelWarning]:
    """Yield warnings about labels that one source assigns wrongly, which others may hide in the labels of all."""
    for source, labels in per_source_label.items():
        if bad := _harmful(labels):
            yield LabelWarning(
                "precision",
                f"Labels of '{source}' with a precision below {HARMFUL_PRECISION:.0f}: {bad}. Check its "
                "terms, and the names of these labels ('labels' in the sources file)",
            )


def _harmful(labels: Dict[str, Counts]) -> str:
    return ", ".join(
        f"{label} {counts.precision:.1f} ({counts.fp} of {counts.tp + counts.fp} wrong)"
        for label, counts in labels.items()
        if counts.tp + counts.fp >= MIN_SEEN and counts.precision < HARMFUL_PRECISION
    )


def _list(counts: Dict[str, int], top: int = 10) -> str:
    ranked = sorted(counts, key=lambda label: (-counts[label], label))
    more = f" and {len(ranked) - top} more" if len(ranked) > top else ""
    return ", ".join(f"{label} ({counts[label]})" for label in ranked[:top]) + more
