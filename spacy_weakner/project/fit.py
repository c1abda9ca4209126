"""Trains what the rules say, compares everything on one set, and chooses."""

from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set, Union

from spacy.vocab import Vocab

from ..code_version import code_version
from ..corpus.docbin import read_docs
from ..errors import Errors, WeaknerError, check_choice, check_range
from ..evaluation.compare import SAMPLES, Comparison, compare
from ..evaluation.terms.collected import Collected, Key, find_collected
from ..files import existing, parse_json
from ..runs.config import words_per_update
from ..runtime.devices import on_device
from ..runtime.lock import holding
from . import curve
from .advice import advise
from .arena import Arena, by_name
from .best.blind import ON_PUBLIC_DATA, list_and_head
from .best.hiding import hidden_note, hide
from .best.recipe import Best, Head
from .folds import make_folds
from .layout import Corpora, has_docs, reading
from .lists import TermList, label_with, listed, make_lists, term_sources
from .prepare import DEV, Preparation, read_preparation
from .rules import (
    COMBINED,
    F1,
    GOLD_ALONE,
    LINEAR,
    LINEAR_STATIC,
    LIST_AND_HEAD,
    PACES,
    SPEED,
    TERM_LIST,
    WEAK_ALONE,
    Facts,
    Rule,
    choose_candidates,
    choose_settings,
    head_sizes,
    with_list,
)
from .verdict import Contender, Verdict, choose
from .workshop import GOLD, VOTES, Workshop, config_name, pipeline_of

VERDICT = "verdict.json"
Say = Callable[[str], None]


class _Result(NamedTuple):
    """What was trained and measured: pipelines by name, scores, the winner, decisions made on the way, the learning
    curve, why it is the winner where that was not measured here."""

    pipelines: Dict[str, Path]
    rows: List[Comparison] = []
    winner: Optional[str] = None
    rules: List[Rule] = []
    points: List[curve.Point] = []
    reason: str = ""


@holding("output")
def fit(
    corpora: Path,
    output: Path,
    *,
    configs: Path,
    terms: Optional[Path] = None,
    sources: Optional[Union[Path, str]] = None,
    size: str = LINEAR,
    lang: str = "en",
    tokenizer: Optional[str] = None,
    minutes: float = 10.0,
    max_steps: Optional[int] = None,
    negative_rate: Optional[float] = None,
    prefer: str = F1,
    seed: int = 0,
    processes: int = 1,
    gpu_id: int = -1,
    progress: bool = False,
    say: Say = lambda text: None,
) -> Verdict:
    """Train the candidates that make sense for what there is, compare them, the term list among them, and choose the
    best. Test is not looked at.

    corpora (Path): Folder that `prepare`, `label`, `analyze` and `aggregate` have filled.
    output (Path): Folder for the pipelines and for `verdict.json`. Finished trainings are skipped.
    configs (Path): Folder of the configs, `<size>/<recipe>.cfg` each.
    terms (Optional[Path]): The term list that has labelled the corpora.
    sources (Optional[Union[Path, str]]): Or the file that declares the sources.
    size (str): Size of the encoder in the configs.
    lang, tokenizer: See `convert`.
    minutes (float): No training takes longer than about this.
    max_steps, negative_rate: See `choose_settings`; None: from what was found.
    prefer (str): "f1": the combination, which is the best by F1 nearly always; "speed": the best of lists and single
        heads.
    seed (int): Seed of all trainings and splits.
    processes (int): How many are trained at a time.
    gpu_id (int): -1 is the CPU.
    progress (bool): Show bars.
    say (Callable[[str], None]): Called with each decision as soon as it is made.
    RETURNS (Verdict): The verdict.
    RAISES (WeaknerError): If something is missing, there is nothing to train or compare, or a training fails.
    """
    check_range("minutes", minutes, 0, None)
    check_choice("size", size, tuple(PACES))
    check_choice("prefer", prefer, (F1, SPEED))
    folders = Corpora(existing(Path(corpora), "'spacy weakner prepare' makes it"))
    if size == LINEAR_STATIC:
        existing(folders.pieces, "'spacy weakner encoder distill' makes it")
    output = Path(output)
    (output / VERDICT).unlink(missing_ok=True)
    prepared = read_preparation(folders)
    judgement = _read_judgement(folders) if prepared.gold else None
    lists = make_lists(term_sources(terms, sources), output / "lists", lang=lang, tokenizer=tokenizer)
    listed = {each.title: each.pipeline for each in lists}
    facts = _facts(folders, prepared, judgement, len(listed), size)
    # What the sources say of the gold stands beside it, if there are any.
    gold = folders.gold_labelled if has_docs(folders.gold_labelled) else folders.gold
    collected: Dict[Key, Collected] = {}
    if facts.gold and facts.weak:
        collected = find_collected(gold, folders.weak, [each.source for each in lists])
    if collected:
        facts = facts._replace(collected=True)
        gold = hide(gold, output / "gold-hidden.spacy", collected, seed)
    rules = choose_candidates(facts)
    settings, notes = choose_settings(
        facts,
        words_per_update(existing(Path(configs) / config_name(VOTES if facts.gold else GOLD, size)), {}),
        minutes,
        max_steps=max_steps,
        negative_rate=negative_rate,
    )
    notes += [hidden_note(key, each) for key, each in collected.items()]
    for note in (*prepared.notes, *notes, *(f"{rule.name}: {rule.why}" for rule in rules if rule.trained)):
        say(note)
    workshop = Workshop(
        folders,
        output,
        Path(configs),
        settings,
        size,
        lang,
        tokenizer,
        seed,
        processes,
        gpu_id,
        progress,
        tuple(each.source for each in lists),
    )
    wanted = {rule.name for rule in rules if rule.trained}
    if not listed and not wanted:
        raise WeaknerError(Errors.WK684.format(path=folders.folder))
    if facts.gold:
        result = _with_gold(workshop, gold, facts, lists, wanted, prefer)
    else:
        result = _without_gold(workshop, facts, lists, wanted, prefer)
    rules += result.rules
    whys = {rule.name: rule.why for rule in rules}
    scores = {row.name: row.to_json() for row in result.rows}
    contenders = [
        Contender(name, str(path), whys.get(name, whys.get(TERM_LIST, "")), scores.get(name))
        for name, path in result.pipelines.items()
    ]
    # Where nothing can be compared it is what was the best on public data or, of lists alone, the first.
    winner = result.winner or contenders[0].name
    f1 = {row.name: row.counts.f1 for row in result.rows}
    of_lists = {name: value for name, value in f1.items() if name in listed}
    trained = {name: value for name, value in f1.items() if name not in listed}
    verdict = Verdict(
        winner=winner,
        chosen_by=facts.chosen_by,
        contenders=contenders,
        left_out=[rule for rule in rules if not rule.trained],
        facts=facts,
        settings=settings,
        doubts=_doubts(judgement) if winner in listed else [],
        notes=[*prepared.notes, *notes],
        curve=result.points,
        advice=advise(
            facts,
            result.points,
            # Stop terms of a list that knows the gold were chosen by what it knows.
            None if judgement is None or collected else judgement.get("proposal"),
            of_lists,
            trained,
            _suggestion(folders, facts, result.pipelines[winner], winner in listed),
        ),
        code=code_version(),
        reason=result.reason,
    )
    verdict.save(output / VERDICT)
    return verdict


def _with_gold(
    workshop: Workshop, gold: Path, facts: Facts, lists: List[TermList], wanted: Set[str], prefer: str
) -> _Result:
    corpora, folder = workshop.corpora, workshop.models / "folds"
    by_dev = facts.chosen_by == DEV
    folds = make_folds(gold, folder, PACES[workshop.size].folds, seed=workshop.seed, needed=not by_dev)
    if len(folds) < 2 and not by_dev:
        raise WeaknerError(Errors.WK685.format(path=corpora.gold, docs=facts.gold))
    dev = label_with(lists, corpora.dev, workshop.models / "dev.spacy") if by_dev else None
    arena = Arena(dev, folds if len(folds) > 1 else [], folder, workshop.seed, workshop.gpu_id)
    for each in lists:
        found = listed(each, read_docs(arena.corpus, Vocab())) if facts.collected else None
        arena.enter(each.title, each.pipeline, found)
    parts = curve.make_parts(workshop, dev, workshop.seed)
    best = Best(workshop, arena, gold, dev, lists)
    weak = workshop.on_weak(workshop.models / "weak", dev) if WEAK_ALONE in wanted else None
    with on_device(workshop.gpu_id):
        best.run(_heads(workshop, facts), weak, [part.training for part in parts])
    rows = arena.compare(baseline=COMBINED if COMBINED in arena.pipelines else None)
    if prefer == SPEED:
        winner = choose([row for row in rows if row.name not in (COMBINED, LIST_AND_HEAD)])
    else:
        winner = choose(rows, COMBINED)
    if winner != COMBINED:
        rows = arena.compare(baseline=winner)
    trained_on = facts.gold if dev else round(facts.gold * (len(folds) - 1) / len(folds))
    whole = (trained_on, by_name(rows)[GOLD_ALONE])
    return _Result(arena.pipelines, rows, winner, best.rules, curve.measure(parts, whole, workshop.gpu_id))


def _heads(workshop: Workshop, facts: Facts) -> List[Head]:
    """What is trained on gold. Where a list knows the gold too well, what does not read it has a say."""
    alone = facts.collected or not facts.lists
    heads = [Head("gold", GOLD_ALONE, workshop.on_gold, reads=False, combined=alone)]
    for size in head_sizes(facts):
        heads.append(Head(size, with_list(size, facts), partial(workshop.with_lists, size=size)))
    return heads


def _without_gold(workshop: Workshop, facts: Facts, lists: List[TermList], wanted: Set[str], prefer: str) -> _Result:
    pipelines = {each.title: each.pipeline for each in lists}
    dev = workshop.corpora.dev if facts.chosen_by == DEV else None
    if WEAK_ALONE in wanted:
        training = workshop.on_weak(workshop.models / "weak", dev)
        workshop.train([training])
        pipelines[WEAK_ALONE] = head = pipeline_of(training, select=dev is not None)
        if lists and prefer != SPEED:
            sources = {each.source: each.pipeline for each in lists}
            pipelines[LIST_AND_HEAD] = list_and_head(sources, head, workshop.models / "list-and-head")
    if dev is None:
        known = LIST_AND_HEAD in pipelines
        return _Result(pipelines, winner=LIST_AND_HEAD if known else None, reason=ON_PUBLIC_DATA if known else "")
    rows = compare(dev, pipelines, bootstrap=SAMPLES, seed=workshop.seed, gpu_id=workshop.gpu_id)
    return _Result(pipelines, rows, choose(rows))


def _facts(
    corpora: Corpora, prepared: Preparation, judgement: Optional[Dict[str, Any]], lists: int, size: str
) -> Facts:
    # Of labels that no source has answers for on the gold nothing is known.
    scores = {} if judgement is None or judgement["scores"].get("docs") == 0 else judgement["scores"]
    return Facts(
        size=size,
        gold=prepared.gold,
        dev=prepared.dev,
        text=prepared.text,
        gold_words=prepared.gold_words,
        text_words=prepared.text_words,
        lists=lists,
        precision=scores.get("p"),
        recall=scores.get("r"),
        f1=scores.get("f1"),
        # Labels of text that is gone are nobody's.
        weak=bool(prepared.text) and has_docs(corpora.weak),
        chosen_by=prepared.chosen_by,
        sources=len((judgement or {}).get("per_source", ())),
    )


def _doubts(judgement: Optional[Dict[str, Any]]) -> List[str]:
    """What casts doubt on a list that won."""
    found = [] if judgement is None else judgement.get("warnings", [])
    return [str(warning["text"]) for warning in found if warning.get("kind") == "known"]


def _suggestion(corpora: Corpora, facts: Facts, pipeline: Path, is_list: bool) -> str:
    """The command that tells which sentences to annotate next. A list alone has no doubts."""
    if not facts.text or is_list:
        return ""
    gold = f" --exclude {corpora.annotated}" if has_docs(corpora.annotated) else ""
    return f"spacy weakner suggest {corpora.text} next.jsonl --model {pipeline}{gold}"


def _read_judgement(corpora: Corpora) -> Optional[Dict[str, Any]]:
    if not corpora.labels.exists():
        return None
    with reading(corpora.labels, "analyze --tune-terms"):
        judgement = parse_json(corpora.labels.read_bytes())
        _ = judgement["scores"]["f1"]
        return dict(judgement)
