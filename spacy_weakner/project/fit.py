"""Trains candidates, compares them on one corpus, and selects the best."""

import shlex
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from spacy.vocab import Vocab

from ..calibration.seen import remember
from ..code_version import code_version
from ..corpus.docbin import corpus_files, read_bin, read_docs
from ..corpus.language import corpus_language
from ..errors import Errors, WeaknerError, check_choice, check_range
from ..evaluation.compare import CandidateScores
from ..evaluation.terms.collected import LeakedLabel, SourceLabel, find_collected
from ..files import existing, parse_json, reading_made
from ..progress import Progress
from ..runs.groups import FoldFiles
from ..runtime.devices import on_device
from ..runtime.hashes import hash_path, hash_settings
from ..runtime.lock import holding
from ..scores import Strict
from ..training.augmenting import CaseCopies
from .assembling import ON_PUBLIC_DATA, STUDENT_WITHOUT_GOLD, list_and_head
from .combine import DECIDED, TrainedHead, plan_head
from .comparing import Comparison
from .context import ALONE, TrainingContext, pipeline_of, used_recipes
from .encoding import Encoded, encode, read_stored
from .folds import make_folds
from .inputs import hash_inputs
from .layout import Corpora, has_docs, has_vectors
from .lists import TermList, hidden_note, hide, label_with, make_lists, matched_docs, term_sources
from .mistakes import MISTAKES, Mistake, find_mistakes, set_aside, write_mistakes
from .overruled import Overruled, find_overruled
from .precision import Precision
from .prepare import DEV, Preparation, read_preparation
from .previous import compare_previous, keep_previous
from .recommendations import DRAWS, Curve, measure_curve, plan_curve, recommend
from .rules import (
    COMBINED,
    F1,
    FOLDS,
    FROZEN,
    GOLD_ALONE,
    LINEAR,
    LINEAR_STATIC,
    LINEARS,
    LIST_AND_HEAD,
    SIZES,
    SPEED,
    STUDENT,
    STUDENT_AND_LIST,
    TERM_LIST,
    TRAINED,
    WEAK_ALONE,
    Facts,
    Rule,
    choose_candidates,
    choose_settings,
    combines_gold_alone,
    gold_size,
    has_student,
    head_with_lists,
    weak_size,
)
from .selection import (
    FASTER,
    PREVIOUS,
    SELECTION,
    Cost,
    Selection,
    TrainedCandidate,
    better_student,
    choose_best,
    choose_fast,
    cost_of_speed,
)
from .students import train_student, train_student_without_gold

WEAK = "weak"


class LabelAnalysis(Strict):
    """The scores of weak labels on gold that `fit` uses; see `Facts`."""

    precision: Optional[float]
    recall: Optional[float]
    f1: Optional[float]
    sources: int
    warnings: List[str]  # why the scores of a list may be too high


class _Result(NamedTuple):
    pipelines: Dict[str, Path]
    best: str
    rows: Sequence[CandidateScores] = ()
    reason: str = ""
    rules: Sequence[Rule] = ()
    curve: Curve = Curve([])
    costs: Mapping[str, Cost] = MappingProxyType({})
    corpus: Optional[Path] = None
    predicted: Mapping[str, Path] = MappingProxyType({})
    mistakes: Sequence[Mistake] = ()
    overruled: Sequence[Overruled] = ()
    precision: Optional[Precision] = None
    tradeoff: Sequence[List[str]] = ()


@holding("output")
def fit(
    corpora: Path,
    output: Path,
    *,
    configs: Path,
    terms: Optional[Path] = None,
    sources: Optional[Union[Path, str]] = None,
    size: str = LINEAR,
    prefer: str = F1,
    precision: Optional[float] = None,
    lower_case: float = 0.5,
    upper_case: float = 0.25,
    seed: int = 0,
    processes: int = 1,
    gpu_id: int = -1,
    progress: bool = False,
    say: Callable[[str], None] = lambda text: None,
) -> Selection:
    """Train candidates, compare them with the term list, and select the best. The test set is not read.

    corpora (Path): Folder with the output of `prepare`, `label`, `analyze` and `aggregate`.
    output (Path): Folder for the pipelines, for `selection.json`, and for sentences of the gold that are probably
        annotated wrongly. Finished trainings are skipped.
    configs (Path): Folder of the configs, as `<size>/<recipe>.cfg`.
    terms (Optional[Path]): The term list that labeled the corpora.
    sources (Optional[Union[Path, str]]): File that declares the sources, instead of a term list.
    size (str): Encoder: "linear", "linear-static", "frozen", "transformer" or "gpu".
    prefer (str): "f1": the combination, which nearly always has the best F1; "speed": in a project with a Transformer,
        a linear CRF that learns from it, perhaps combined with the lists; else the best list or single head.
    precision (Optional[float]): The wanted precision of the package, in (0, 1): for each label, a threshold is fitted
        on gold that the combination, which is then selected, was not trained on; see `calibrate`. It needs gold. None:
        the thresholds with the best F1.
    lower_case (float): Share of gold sentences that trainings also read in lower case; for the text, half this share.
    upper_case (float): The same in upper case.
    seed (int): Seed of all trainings and splits.
    processes (int): Number of trainings at a time.
    gpu_id (int): GPU; -1 is the CPU.
    progress (bool): Show progress bars.
    say (Callable[[str], None]): Called with each decision as soon as it is made, and with warnings of the trainings.
    RETURNS (Selection): The selection.
    RAISES (WeaknerError): If a file is missing, there is nothing to train or compare, or a training fails.
    """
    check_choice("size", size, SIZES)
    check_choice("prefer", prefer, (F1, SPEED))
    if precision is not None:
        check_range("precision", precision, 1e-6, 1.0 - 1e-6)
        if prefer == SPEED:
            raise WeaknerError(Errors.WK331.format(setting="precision", where="with prefer = f1", instead=""))
    check_range("lower_case", lower_case, 0.0, 1.0)
    check_range("upper_case", upper_case, 0.0, 1.0)
    folders = Corpora(existing(Path(corpora), "or create it with 'spacy weakner prepare'"))
    if size == LINEAR_STATIC:
        existing(folders.pieces, "or create it with 'spacy weakner encoder distill'")
    output = Path(output)

    # Find what the project has.
    prepared = read_preparation(folders)
    analysis = read_analysis(folders) if prepared.gold else None
    language = corpus_language(folders.annotated if has_docs(folders.annotated) else folders.text)
    declared = term_sources(terms, sources)
    facts = find_facts(folders, prepared, analysis, len(declared), size)
    gold = folders.gold_labeled if has_docs(folders.gold_labeled) else folders.gold
    collected: Dict[SourceLabel, LeakedLabel] = {}
    if facts.gold and facts.weak:
        collected = find_collected(gold, folders.weak, [source.name for source in declared])
    if collected:
        facts = facts.model_copy(update={"collected": True})

    # Decide what is trained, and how.
    rules = choose_candidates(facts)
    settings, notes = choose_settings(facts)
    notes = [*prepared.notes, *notes, *(hidden_note(key, found) for key, found in collected.items())]
    for note in (*notes, *(f"{rule.name}: {rule.why}" for rule in rules if rule.trained)):
        say(note)
    if not any(rule.trained for rule in rules):
        raise WeaknerError(Errors.WK680.format(where=f" in {folders.folder}"))

    learns_weak = any(rule.name == WEAK_ALONE and rule.trained for rule in rules)
    context = TrainingContext(
        folders,
        output,
        Path(configs),
        settings,
        language,
        size=size,
        seed=seed,
        precision=precision,
        processes=processes,
        gpu_id=gpu_id,
        progress=progress,
        vectors=folders.vectors if facts.text and has_vectors(folders.vectors) else None,
        say=say,
    )
    student = prefer == SPEED and has_student(facts)
    for recipe, its_size in sorted(used_recipes(size, gold=bool(facts.gold), weak=learns_weak, student=student)):
        context.config(recipe, its_size)

    # Train, compare, select. This replaces pipelines of an earlier selection.
    shares = {"lower_case": lower_case, "upper_case": upper_case}
    inputs = hash_inputs(
        folders, context.configs, declared, size=size, prefer=prefer, precision=precision, seed=seed, **shares
    )
    previous = keep_previous(output, inputs)
    if previous is not None:
        say(f"the package of the last run stays in {Path(previous.selected.path).parent}")
    (output / SELECTION).unlink(missing_ok=True)
    lists = make_lists(declared, output / "lists", language)
    if collected:
        gold = hide(gold, output / "gold-hidden.spacy", collected, seed)
    # If matches of the gold are hidden, its copies keep the same matches instead of being matched again.
    copies = CaseCopies(lower_case, upper_case, [] if collected else [term_list.pipeline for term_list in lists])
    context = replace(context, lists=tuple(term_list.source for term_list in lists), cases=copies)
    if facts.gold:
        result = _with_gold(context, gold, facts, lists, learns_weak, prefer, previous)
    else:
        result = _without_gold(context, facts, lists, learns_weak, prefer, previous)
    if not result.mistakes:
        set_aside(output / MISTAKES)

    rules += result.rules
    whys = {rule.name: rule.why for rule in rules}
    scores = {row.name: row for row in result.rows}
    titles = [term_list.title for term_list in lists]
    selection = Selection(
        best=result.best,
        chosen_by=facts.chosen_by,
        candidates=[
            TrainedCandidate(
                name=name,
                path=str(path),
                why=whys.get(name, "" if name == PREVIOUS else whys.get(TERM_LIST, "")),
                scores=scores.get(name),
                cost=result.costs.get(name),
                predicted=str(result.predicted[name]) if name in result.predicted else None,
            )
            for name, path in result.pipelines.items()
        ],
        left_out=[rule for rule in rules if not rule.trained],
        facts=facts,
        settings=settings,
        warnings=analysis.warnings if analysis and result.best in titles else [],
        notes=notes,
        curve=result.curve.points,
        recommendations=recommend(
            facts,
            result.curve,
            {name: row.f1 for name, row in scores.items() if name in titles},
            {name: row.f1 for name, row in scores.items() if name not in (*titles, PREVIOUS)},
            _suggest_command(folders, facts, result.pipelines[result.best], result.best in titles),
        ),
        mistakes=list(result.mistakes),
        overruled=list(result.overruled),
        precision=result.precision,
        tradeoff=list(result.tradeoff),
        code=code_version(),
        inputs=inputs,
        contents=hash_settings({name: hash_path(path) for name, path in result.pipelines.items()}),
        reason=result.reason,
        sentences=language.sentences,
        abbreviations=language.abbreviations,
        corpus=str(result.corpus) if result.corpus else None,
    )
    selection.save(output / SELECTION)
    return selection


def _with_gold(
    context: TrainingContext,
    gold: Path,
    facts: Facts,
    lists: List[TermList],
    learns_weak: bool,
    prefer: str,
    previous: Optional[Selection],
) -> _Result:
    models, by_dev = context.models, facts.chosen_by == DEV
    folds = make_folds(gold, models / "folds", FOLDS, seed=context.seed, needed=not by_dev)
    _check_precision(context, bool(folds))
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

    # Train all heads, without each fold and on all gold, and on parts of the gold for the learning curve.
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

    # Predict with every head, once per fold and once on dev; combine, compare, select.
    compared = Comparison(context, sources, folds, dev)
    combined = [head for head in heads if head.is_combined]
    why = "there is too little gold to hold out part of it"
    with on_device(context.gpu_id):
        for term_list in lists:
            matched = matched_docs(term_list, read_docs(compared.corpus, Vocab())) if facts.collected else None
            compared.add(term_list.title, term_list.pipeline, matched)
        for head in Progress(heads, desc="fit 3/4: predict gold", unit="head", enabled=context.progress):
            compared.add_head(head)
        if lists and weak is not None:
            # The candidate that is selected in projects without gold.
            compared.add(
                LIST_AND_HEAD, list_and_head(sources, weak, context.folder_of(LIST_AND_HEAD), context.language)
            )
        if folds:
            combination = compared.combine(combined)
            why = f"decides between {', '.join(head.title for head in combined)}"
    rules = [Rule(name=COMBINED, trained=bool(folds), why=why)]
    if folds and prefer == SPEED and has_student(facts):
        text = context.corpora.weak if facts.weak else context.corpora.text
        taught = train_student(context, combination, text, gold, folds if lists or dev is None else [])
        with on_device(context.gpu_id):
            compared.add_head(taught)
            if lists:
                others = [head for head in heads if head.is_combined and head.size in LINEARS]
                compared.combine([taught, *others], STUDENT_AND_LIST)
        why = f"a linear CRF, trained on the gold, and on the text as '{COMBINED}' labels it"
        rules.append(Rule(name=STUDENT, trained=True, why=why))
        if lists:
            rules.append(Rule(name=STUDENT_AND_LIST, trained=True, why="decides between the lists and linear CRFs"))
    # Number of gold sentences that each compared candidate was trained on.
    n_gold = facts.gold if dev else round(facts.gold * (len(folds) - 1) / len(folds))
    whole = compared.scored[heads[0].name] * (DRAWS if dev else 1)
    curve = measure_curve(parts, whole, n_gold, draws, context)

    usual = COMBINED if folds else None
    rows = compared.score(usual)
    if prefer == SPEED:
        if student := better_student(rows):
            usual, rows = student, compared.score(student)
        best = choose_fast(rows, {head.title for head in heads if head.size not in LINEARS}, usual)
    else:
        best = choose_best(rows, COMBINED) if context.precision is None else COMBINED
    if best != usual:
        rows = compared.score(best)
    old, whys = compare_previous(compared, previous, best)
    rows, rules = [*rows, *old], [*rules, *whys]
    reason = FASTER if best == COMBINED and has_student(facts) else ""
    reason = cost_of_speed(rows, best) if prefer == SPEED else reason
    if context.precision is not None:
        reason = f"It was selected for a precision of {100 * context.precision:g} % (--precision)."
    with on_device(context.gpu_id):
        measured = {best, COMBINED} if facts.size not in LINEARS else set()
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
    return _Result(
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


def _without_gold(
    context: TrainingContext,
    facts: Facts,
    lists: List[TermList],
    learns_weak: bool,
    prefer: str,
    previous: Optional[Selection],
) -> _Result:
    _check_precision(context, False)
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
        if prefer == SPEED and has_student(facts):
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
        rows = compared.score(None)
        slow = {WEAK_ALONE} if facts.size in TRAINED else set()
        best = choose_fast(rows, slow) if prefer == SPEED else choose_best(rows)
        if choose_best(rows) != best:
            rows = compared.score(best)
        old, whys = compare_previous(compared, previous, best)
        return _Result(
            compared.pipelines,
            best,
            [*rows, *old],
            rules=[*rules, *whys],
            corpus=dev,
            predicted=compared.predicted,
        )
    # Without scores, take the one that was best on public data.
    for_speed = "It was selected for speed (--prefer speed)."
    if STUDENT in pipelines:
        reason = f"{for_speed} {STUDENT_WITHOUT_GOLD}" if lists else for_speed
        return _Result(pipelines, STUDENT_AND_LIST if lists else STUDENT, reason=reason, rules=rules)
    if LIST_AND_HEAD in pipelines:
        more = f" {FASTER}" if has_student(facts) else ""
        return _Result(pipelines, LIST_AND_HEAD, reason=f"{ON_PUBLIC_DATA}{more}")
    reason = f"{for_speed} For comparison: {ON_PUBLIC_DATA}" if prefer == SPEED and lists and learns_weak else ""
    return _Result(pipelines, next(iter(pipelines)), reason=reason)


def _check_precision(context: TrainingContext, has_folds: bool) -> None:
    if context.precision is not None and not has_folds:
        expected = "none, since there is too little gold to train a combination and to fit its thresholds"
        raise WeaknerError(Errors.WK005.format(setting="precision", value=context.precision, expected=expected))


def find_facts(
    corpora: Corpora, prepared: Preparation, analysis: Optional[LabelAnalysis], lists: int, size: str
) -> Facts:
    """Return what the project has. Without gold there is no analysis of the labels."""
    sizes = prepared.model_dump(exclude={"test", "notes"})
    scores = analysis.model_dump(include={"precision", "recall", "f1", "sources"}) if analysis else {}
    # Weak labels of an earlier text do not count.
    weak = bool(prepared.text) and has_docs(corpora.weak)
    if weak:  # count the text without the sentences of the gold
        sizes["text"] = sum(len(read_bin(path)) for path in corpus_files(corpora.weak))
        sizes["text_words"] = round(prepared.text_words * sizes["text"] / prepared.text)
    return Facts(size=size, lists=lists, weak=weak, **sizes, **scores)


def read_analysis(corpora: Corpora) -> Optional[LabelAnalysis]:
    """Read the output of `analyze --tune-terms`, or return None if there is none."""
    if not corpora.labels.exists():
        return None
    with reading_made(corpora.labels, "analyze --tune-terms"):
        found = parse_json(corpora.labels.read_bytes())
        scores = found["scores"]
        # If no source has labeled the gold, the quality of the labels is unknown.
        known = scores.get("docs") != 0
        return LabelAnalysis(
            precision=scores.get("p") if known else None,
            recall=scores.get("r") if known else None,
            f1=scores["f1"] if known else None,
            sources=len(found.get("per_source", {})),
            warnings=[warning["text"] for warning in found.get("warnings", []) if warning["kind"] == "known"],
        )


def _suggest_command(corpora: Corpora, facts: Facts, pipeline: Path, is_list: bool) -> str:
    """Return the command that suggests sentences to annotate, or "". A list alone has no uncertainty to select by."""
    if not facts.text or is_list:
        return ""
    command = ["spacy", "weakner", "suggest", str(corpora.text), "next.html", "--model", str(pipeline)]
    return shlex.join([*command, *(["--exclude", str(corpora.annotated)] if has_docs(corpora.annotated) else [])])
