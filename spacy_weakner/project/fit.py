"""Trains candidates, compares them on one corpus, and selects the best."""

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Callable, Dict, Optional, Union

from ..code_version import code_version
from ..corpus.language import corpus_language
from ..errors import Errors, WeaknerError, check_choice, check_range
from ..evaluation.terms.collected import LeakedLabel, SourceLabel, find_collected
from ..files import existing
from ..runtime.hashes import hash_path
from ..runtime.lock import holding
from ..training.augmenting import CaseCopies
from .context import TrainingContext, student_size, used_recipes
from .facts import find_facts, read_analysis
from .inputs import hash_inputs
from .layout import Corpora, has_docs, has_vectors
from .lists import hidden_note, hide, make_lists, term_sources
from .mistakes import MISTAKES, set_aside
from .prepare import read_preparation
from .previous import keep_previous
from .recommendations import recommend
from .rules import (
    F1,
    LINEAR,
    LINEAR_STATIC,
    SIZES,
    SPEED,
    TERM_LIST,
    WEAK_ALONE,
    Facts,
    choose_candidates,
    choose_settings,
    trains_student,
)
from .selection import PREVIOUS, SELECTION, Selection, TrainedCandidate
from .with_gold import compare_with_gold
from .without_gold import compare_without_gold


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
        a linear CRF that learns from it, perhaps combined with the lists; else the best list or single head. With
        fewer than 200 gold sentences and a Transformer, the combination has such a CRF as well; with fewer than 75,
        it is selected as for speed.
    precision (Optional[float]): The wanted precision of the package, in (0, 1). The combination is then selected, with
        a threshold for each label that is fitted on gold it was not trained on; see `calibrate`. Needs gold. None: the
        thresholds with the best F1.
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
    check_range("processes", processes, 1, None)
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
    student = None
    if trains_student(facts, for_speed=prefer == SPEED):
        context = replace(context, embeds=context.transformer(has_gold=bool(facts.gold)))
        student = student_size(context.embeds)
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
        result = compare_with_gold(context, gold, facts, lists, learns_weak, prefer, previous)
    else:
        result = compare_without_gold(context, facts, lists, learns_weak, prefer, previous)
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
        contents={name: hash_path(path) for name, path in result.pipelines.items()},
        reason=result.reason,
        sentences=language.sentences,
        abbreviations=language.abbreviations,
        corpus=str(result.corpus) if result.corpus else None,
    )
    selection.save(output / SELECTION)
    return selection


def _suggest_command(corpora: Corpora, facts: Facts, pipeline: Path, is_list: bool) -> str:
    """Return the command that suggests sentences to annotate, or "". A list alone has no uncertainty to select by."""
    if not facts.text or is_list:
        return ""
    command = ["spacy", "weakner", "suggest", str(corpora.text), "next.html", "--model", str(pipeline)]
    return shlex.join([*command, *(["--exclude", str(corpora.annotated)] if has_docs(corpora.annotated) else [])])
