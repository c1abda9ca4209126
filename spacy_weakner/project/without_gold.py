"""Trains candidates in projects without gold, and compares them if there is a dev corpus."""

from typing import List, Optional

from spacy.vocab import Vocab

from ..calibration.seen import remember
from ..corpus.docbin import read_docs
from ..runtime.devices import on_device
from .assembling import ON_PUBLIC_DATA, STUDENT_WITHOUT_GOLD, list_and_head
from .comparing import Comparison
from .context import TrainingContext, pipeline_of
from .lists import TermList
from .outcome import Outcome
from .precision import require_folds
from .prepare import DEV
from .previous import compare_previous
from .rules import (
    LINEARS,
    LIST_AND_HEAD,
    SPEED,
    STUDENT,
    STUDENT_AND_LIST,
    TRAINED,
    WEAK,
    WEAK_ALONE,
    Facts,
    Rule,
    has_student,
    trains_student,
)
from .selection import FASTER, Selection, choose_best
from .students import train_student_without_gold


def compare_without_gold(
    context: TrainingContext,
    facts: Facts,
    lists: List[TermList],
    learns_weak: bool,
    prefer: str,
    previous: Optional[Selection],
) -> Outcome:
    """Train the candidates, compare them on dev if there is one, and select the best, or the one that was best on
    public data. For the arguments see `compare_with_gold`."""
    require_folds(context.precision, False)
    pipelines = {term_list.title: term_list.pipeline for term_list in lists}
    rules: List[Rule] = []
    dev = context.corpora.dev if facts.chosen_by == DEV else None
    if learns_weak:
        training = context.on_weak(context.models / WEAK, dev)
        context.train([training], desc="fit: train")
        teacher = pipelines[WEAK_ALONE] = pipeline_of(training)
        sources = {term_list.source: term_list.pipeline for term_list in lists}
        if lists and not (prefer == SPEED and facts.size in LINEARS):
            output = context.folder_of(LIST_AND_HEAD)
            teacher = pipelines[LIST_AND_HEAD] = list_and_head(sources, teacher, output, context.language)
        if trains_student(facts, for_speed=prefer == SPEED):
            pipelines[STUDENT] = train_student_without_gold(context, teacher, context.corpora.weak)
            rules.append(
                Rule(name=STUDENT, trained=True, why="a linear CRF, trained on the text as the head labels it")
            )
            if lists:
                output = context.folder_of(STUDENT_AND_LIST)
                pipelines[STUDENT_AND_LIST] = list_and_head(sources, pipelines[STUDENT], output, context.language)
                rules.append(Rule(name=STUDENT_AND_LIST, trained=True, why="as 'list and head', with the student"))
    if dev is not None:
        for name in {STUDENT, STUDENT_AND_LIST, LIST_AND_HEAD} & {*pipelines}:  # others have dev in their config
            remember(pipelines[name], (), read_docs(dev, Vocab()))
        compared = Comparison(context, {}, [], dev)
        with on_device(context.gpu_id):
            for name, path in pipelines.items():
                compared.add(name, path)
        if prefer == SPEED:
            best, rows = compared.select_fast({WEAK_ALONE} if facts.size in TRAINED else set())
        else:
            rows = compared.score(None)
            best = choose_best(rows)
        measured = {best, LIST_AND_HEAD} & {*pipelines} if facts.size not in LINEARS else set()
        with on_device(context.gpu_id):
            costs = {name: compared.cost(name) for name in pipelines if name in measured}
        old, whys = compare_previous(compared, previous, best)
        return Outcome(
            compared.pipelines,
            best,
            [*rows, *old],
            rules=[*rules, *whys],
            costs=costs,
            corpus=dev,
            predicted=compared.predicted,
        )
    # Without scores, take the one that was best on public data.
    for_speed = "It was selected for speed (--prefer speed)."
    if STUDENT in pipelines:
        reason = f"{for_speed} {STUDENT_WITHOUT_GOLD}" if lists else for_speed
        return Outcome(pipelines, STUDENT_AND_LIST if lists else STUDENT, reason=reason, rules=rules)
    if LIST_AND_HEAD in pipelines:
        more = f" {FASTER}" if has_student(facts) else ""
        return Outcome(pipelines, LIST_AND_HEAD, reason=f"{ON_PUBLIC_DATA}{more}")
    reason = f"{for_speed} For comparison: {ON_PUBLIC_DATA}" if prefer == SPEED and lists and learns_weak else ""
    return Outcome(pipelines, next(iter(pipelines)), reason=reason)
