"""Trains and compares candidates in projects with gold: by cross-validation, or on dev."""

from dataclasses import replace
from pathlib import Path
from typing import List, Optional, Sequence, Tuple

from spacy.vocab import Vocab

from ..calibration.seen import remember
from ..corpus.docbin import read_docs
from ..evaluation.compare import CandidateScores
from ..progress import Progress
from ..runs.groups import FoldFiles
from ..runtime.devices import on_device
from .assembling import list_and_head
from .combine import DECIDED, TrainedHead, plan_head
from .comparing import Comparison
from .context import ALONE, TrainingContext, pipeline_of
from .encoding import Encoded, encode, read_stored
from .folds import make_folds
from .layout import has_docs
from .lists import TermList, label_with, matched_docs
from .mistakes import MISTAKES, find_mistakes, write_mistakes
from .outcome import Outcome
from .overruled import find_overruled
from .precision import require_folds
from .prepare import DEV
from .previous import compare_previous
from .recommendations import DRAWS, CurvePart, measure_curve, plan_curve
from .rules import (
    COMBINED,
    FOLDS,
    FROZEN,
    GOLD_ALONE,
    LINEARS,
    LIST_AND_HEAD,
    SPEED,
    STUDENT,
    STUDENT_AND_LIST,
    TOO_FEW,
    TRAINED,
    WEAK,
    WEAK_ALONE,
    Facts,
    Rule,
    combines_gold_alone,
    gold_size,
    has_student,
    head_with_lists,
    selects_for_speed,
    trains_student,
    weak_size,
)
from .selection import PREVIOUS, Selection, choose_best, cost_of_speed, gain_of_speed
from .students import train_student


def compare_with_gold(
    context: TrainingContext,
    gold: Path,
    facts: Facts,
    lists: List[TermList],
    learns_weak: bool,
    prefer: str,
    previous: Optional[Selection],
) -> Outcome:
    """Train the candidates, compare them with the lists and the previous package, and select the best. For the
    settings see `fit`.

    context (TrainingContext): The settings of the trainings.
    gold (Path): The gold, with the matches of the lists.
    facts (Facts): What the project has.
    lists (List[TermList]): The term lists.
    learns_weak (bool): Train a head on the weak labels of the text.
    prefer (str): "f1" or "speed".
    previous (Optional[Selection]): The selection of the last run.
    RETURNS (Outcome): The candidates, and what was found.
    """
    models, by_dev = context.models, facts.chosen_by == DEV
    for_speed = selects_for_speed(facts, prefer, context.precision)
    folds = make_folds(gold, models / "folds", FOLDS, seed=context.seed, needed=not by_dev)
    require_folds(context.precision, bool(folds))
    dev = label_with(lists, context.corpora.dev, models / "dev.spacy") if by_dev else None
    sources = {term_list.source: term_list.pipeline for term_list in lists}

    # Train the head on weak labels first: its Transformer, frozen, is part of the encoder of the heads on gold.
    weak = None
    if learns_weak:
        on_weak = context.on_weak(models / WEAK, dev)
        context.train([on_weak], desc="fit 1/4: train on text")
        weak = pipeline_of(on_weak)
    if gold_size(context.size) == FROZEN:
        context, weak = _encode(context, gold, dev, weak)

    heads, parts, draws = _train_heads(context, gold, dev, folds, facts, weak)

    # Predict with every head, once per fold and once on dev; combine, compare, select.
    compared = Comparison(context, sources, folds, dev)
    with on_device(context.gpu_id):
        for term_list in lists:
            matched = matched_docs(term_list, read_docs(compared.corpus, Vocab())) if facts.collected else None
            compared.add(term_list.title, term_list.pipeline, matched)
        for head in Progress(heads, desc="fit 3/4: predict gold", unit="head", enabled=context.progress):
            compared.add_head(head)
        if lists and weak is not None:
            # The candidate that is selected in projects without gold.
            output = context.folder_of(LIST_AND_HEAD)
            compared.add(LIST_AND_HEAD, list_and_head(sources, weak, output, context.language))
    rules = _combine(compared, heads, gold, facts, for_speed)
    # Number of gold sentences that each compared candidate was trained on.
    n_gold = facts.gold if dev else round(facts.gold * (len(folds) - 1) / len(folds))
    whole = compared.scored[heads[0].name] * (DRAWS if dev else 1)
    curve = measure_curve(parts, whole, n_gold, draws, context)

    best, rows, reason = _select(compared, heads, facts, for_speed)
    if for_speed and reason and prefer != SPEED:
        reason += f" (With fewer than {TOO_FEW} gold sentences, it was no better on other data.)"
    old, whys = compare_previous(compared, previous, best)
    rows, rules = [*rows, *old], [*rules, *whys]
    with on_device(context.gpu_id):
        measured = {best, COMBINED, STUDENT} if facts.size not in LINEARS else set()
        costs = {name: compared.cost(name) for name in compared.pipelines if name in measured}
        overruled = []
        titles = [term_list.title for term_list in lists]
        if facts.weak and best not in titles and has_docs(context.corpora.gold_labeled):
            overruled = find_overruled(compared.pipelines[best], context.corpora.gold_labeled, context.corpora.weak)
    mistakes = find_mistakes(compared.judged, DECIDED)
    described = write_mistakes(models / MISTAKES, compared.judged, mistakes) if mistakes else []
    known, chosen = ([] if path is None else list(read_docs(path, Vocab())) for path in (gold, dev))
    for name, path in compared.pipelines.items():
        if name in (WEAK_ALONE, LIST_AND_HEAD):  # compared, but not trained on gold
            remember(path, (), [*known, *chosen])
        elif name not in (*titles, PREVIOUS):
            remember(path, known, chosen)
    tradeoff = compared.tradeoff if best == COMBINED else ()
    return Outcome(
        pipelines=compared.pipelines,
        best=best,
        rows=rows,
        reason=reason,
        rules=rules,
        curve=curve,
        costs=costs,
        corpus=compared.corpus,
        predicted=compared.predicted,
        mistakes=described,
        overruled=overruled,
        precision=compared.precision,
        tradeoff=tradeoff,
    )


def _train_heads(
    context: TrainingContext,
    gold: Path,
    dev: Optional[Path],
    folds: Sequence[FoldFiles],
    facts: Facts,
    weak: Optional[Path],
) -> Tuple[List[TrainedHead], List[CurvePart], Sequence[FoldFiles]]:
    """Train all heads, without each fold and on all gold, and on parts of the gold for the learning curve, which is
    measured on the last result."""
    size = gold_size(facts.size)
    wanted = [TrainedHead("gold", GOLD_ALONE, size, reads_lists=False, is_combined=combines_gold_alone(facts))]
    if facts.lists:
        wanted.append(TrainedHead(size, head_with_lists(facts.size), size))
    heads, trainings = [], []
    for head in wanted:
        planned, more = plan_head(context, head, gold, dev, folds if head.is_combined or dev is None else [])
        heads.append(planned)
        trainings += more
    if weak is not None:
        heads.append(TrainedHead(WEAK, WEAK_ALONE, weak_size(facts.size), weak, [weak] * len(folds), reads_lists=False))
    draws = folds if dev is None else [FoldFiles(dev, context.corpora.gold)] * DRAWS
    parts = plan_curve(context, draws, dev)
    context.train([*trainings, *(training for part in parts for training in part.trainings)])
    return heads, parts, draws


def _combine(
    compared: Comparison, heads: Sequence[TrainedHead], gold: Path, facts: Facts, for_speed: bool
) -> List[Rule]:
    """Add the combination of lists and heads as a candidate; with a student that it has taught, if gold is little. For
    speed, add the student combined with the lists, too."""
    if not compared.folds:
        return [Rule(name=COMBINED, trained=False, why="there is too little gold to hold out part of it")]
    context, rules, student = compared.context, [], None
    parts = [head for head in heads if head.is_combined]
    combination = compared.combine(parts)
    if trains_student(facts, for_speed=for_speed):
        why = "a linear CRF, trained on the gold, and on the text as lists and heads together label it"
        rules.append(Rule(name=STUDENT, trained=True, why=why))
        context.say(f"{STUDENT}: {why}")
        text = context.corpora.weak if facts.weak else context.corpora.text
        # To be combined, or scored without dev, it has to predict the folds.
        needs_folds = bool(compared.sources) or combination.has_little_gold or compared.dev is None
        student, taught = train_student(context, combination, text, gold, compared.folds if needs_folds else [])
        if taught.note:
            context.say(taught.note)
    with on_device(context.gpu_id):
        if student is not None:
            compared.add_head(student)
            if combination.has_little_gold:
                combination = compared.combine([*parts, student])
        compared.add_combination(combination)
        if student is not None and compared.sources and for_speed:
            linear = [head for head in parts if head.size in LINEARS]
            compared.add_combination(compared.combine([student, *linear]), STUDENT_AND_LIST)
            rules.append(Rule(name=STUDENT_AND_LIST, trained=True, why="decides between the lists and linear CRFs"))
    why = f"decides between {', '.join(head.title for head in combination.heads)}"
    return [*rules, Rule(name=COMBINED, trained=True, why=why)]


def _select(
    compared: Comparison, heads: Sequence[TrainedHead], facts: Facts, for_speed: bool
) -> Tuple[str, List[CandidateScores], str]:
    """Select the best candidate. Return also the scores of all, with their differences from it, and the reason if it
    was not selected for its F1 alone."""
    if for_speed:
        best, rows = compared.select_fast({head.title for head in heads if head.size not in LINEARS})
        return best, rows, cost_of_speed(rows, best)
    precision, usual = compared.context.precision, COMBINED if compared.folds else None
    rows, reason = compared.score(usual), ""
    if precision is not None:
        best, reason = COMBINED, f"It was selected for a precision of {100 * precision:g} % (--precision)."
    else:
        best = choose_best(rows, COMBINED)
        reason = gain_of_speed(rows) if best == COMBINED and has_student(facts) else ""
    if best != usual:
        rows = compared.score(best)
    return best, rows, reason


def _encode(
    context: TrainingContext, gold: Path, dev: Optional[Path], weak: Optional[Path]
) -> Tuple[TrainingContext, Optional[Path]]:
    """Encode the gold and dev. If the head on weak labels has trained the Transformer, return a copy of it that reads
    the result as well."""
    encoded, trained = Encoded(context.models / "encoder"), weak if context.size in TRAINED else None
    corpora = [gold] if dev is None else [gold, dev]
    sample = [gold, *([context.corpora.text] if has_docs(context.corpora.text) else [])]
    with on_device(context.gpu_id):
        config = context.config(ALONE, FROZEN)
        encode(
            encoded,
            config,
            corpora,
            sample,
            context.cases,
            context.language,
            trained=trained,
            progress=context.progress,
        )
        if trained is not None:
            weak = context.models / f"{WEAK}-frozen"
            read_stored(trained, encoded, weak)
    return replace(context, encoded=encoded), weak
