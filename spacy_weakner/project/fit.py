"""Trains what the rules say, compares everything on one set, and chooses."""

import json
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Union

from ..code_version import code_version
from ..errors import Errors, WeaknerError, check_choice, check_range
from ..files import existing
from ..quality.compare import SAMPLES, Comparison, compare
from . import curve
from .advice import advise
from .completed import train_needle
from .folds import make_folds, predict_folds, trainings_of
from .layout import Corpora, has_docs, reading
from .lists import make_lists, term_sources
from .prepare import CROSS_VALIDATION, DEV, NOTHING, Preparation, read_preparation
from .rules import PACES, Facts, Rule, choose_candidates, choose_settings, needle_pays
from .verdict import Contender, Verdict, choose
from .workshop import GOLD, Workshop, pipeline_of, words_per_update

VERDICT = "verdict.json"
GOLD_ALONE, BOTH, WEAK_ALONE, NEEDLE = "gold alone", "weak and gold", "weak alone", "NEEDLE"
Say = Callable[[str], None]


class _Result(NamedTuple):
    """What was trained and measured: pipelines by name, scores, decisions made on the way, the learning curve."""

    pipelines: Dict[str, Path]
    rows: List[Comparison]
    rules: List[Rule]
    points: List[curve.Point]


def fit(
    corpora: Path,
    output: Path,
    *,
    configs: Path,
    terms: Optional[Path] = None,
    sources: Optional[Union[Path, str]] = None,
    size: str = "cnn",
    lang: str = "en",
    tokenizer: Optional[str] = None,
    minutes: float = 10.0,
    max_steps: Optional[int] = None,
    strong_share: Optional[float] = None,
    negative_rate: Optional[float] = None,
    seed: int = 0,
    processes: int = 1,
    gpu_id: int = -1,
    progress: bool = False,
    say: Say = lambda text: None,
) -> Verdict:
    """Train the candidates that make sense for what there is, compare them, the term list among them, and choose the
    best. Test is not looked at.

    corpora (Path): Folder that `prepare`, `label`, `judge` and `aggregate` have filled.
    output (Path): Folder for the pipelines and for `verdict.json`. Finished trainings are skipped.
    configs (Path): Folder of the configs, `<recipe>.cfg` each.
    terms (Optional[Path]): The term list that has labelled the corpora.
    sources (Optional[Union[Path, str]]): Or the file that declares the sources.
    size (str): Size of the encoder in the configs.
    lang, tokenizer: See `convert`.
    minutes (float): No training takes longer than about this.
    max_steps, strong_share, negative_rate: See `choose_settings`; None: from what was found.
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
    folders = Corpora(existing(Path(corpora), "'spacy weakner prepare' makes it"))
    output = Path(output)
    (output / VERDICT).unlink(missing_ok=True)
    prepared = read_preparation(folders)
    judgement = _read_judgement(folders) if prepared.gold else None
    listed = make_lists(term_sources(terms, sources), output / "lists", lang=lang, tokenizer=tokenizer)
    facts = _facts(folders, prepared, judgement, len(listed), size)
    rules = choose_candidates(facts)
    settings, notes = choose_settings(
        facts,
        words_per_update(existing(Path(configs) / f"{GOLD}.cfg")),
        minutes,
        max_steps=max_steps,
        strong_share=strong_share,
        negative_rate=negative_rate,
    )
    for note in (*prepared.notes, *notes, *(f"{rule.name}: {rule.why}" for rule in rules if rule.trained)):
        say(note)
    workshop = Workshop(
        folders, output, Path(configs), settings, size, lang, tokenizer, seed, processes, gpu_id, progress
    )
    wanted = {rule.name for rule in rules if rule.trained}
    if not listed and not wanted:
        raise WeaknerError(Errors.WK684.format(path=folders.folder))
    result = _STRATEGIES[facts.chosen_by](workshop, facts, listed, wanted)
    rules += result.rules
    whys = {rule.name: rule.why for rule in rules}
    scores = {row.name: row.to_json() for row in result.rows}
    contenders = [
        Contender(name, str(path), whys.get(name, whys.get("term list", "")), scores.get(name))
        for name, path in result.pipelines.items()
    ]
    # Where nothing can be compared it is the list, if there is one: what was trained on its labels alone was never
    # better than a good list on public data (docs/evidence/foundation.md: 72 and 79).
    winner = choose(result.rows) if result.rows else contenders[0].name
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
            facts, result.points, None if judgement is None else judgement.get("proposal"), of_lists, trained
        ),
        code=code_version(),
    )
    verdict.save(output / VERDICT)
    return verdict


def _on_dev(workshop: Workshop, facts: Facts, listed: Dict[str, Path], wanted: set) -> _Result:
    corpora, models = workshop.corpora, workshop.models
    makers = {
        GOLD_ALONE: lambda: workshop.on_gold(corpora.gold, corpora.dev, models / "gold"),
        BOTH: lambda: workshop.on_both(corpora.gold, corpora.dev, models / "weak-gold"),
        WEAK_ALONE: lambda: workshop.on_weak(models / "weak", corpora.dev),
    }
    trainings = {name: make() for name, make in makers.items() if name in wanted}
    parts = curve.make_parts(workshop, corpora.dev, workshop.seed) if facts.gold else []
    workshop.train([*trainings.values(), *(part.training for part in parts)])
    pipelines = {**listed, **{name: pipeline_of(training) for name, training in trainings.items()}}

    def score() -> List[Comparison]:
        return compare(corpora.dev, pipelines, bootstrap=SAMPLES, seed=workshop.seed, gpu_id=workshop.gpu_id)

    rows, rules = score(), []
    if GOLD_ALONE in wanted:
        f1 = {row.name: row.counts.f1 for row in rows}
        rules.append(needle_pays(facts, f1[GOLD_ALONE], max((f1[name] for name in listed), default=facts.f1)))
        if rules[0].trained:
            pipelines[NEEDLE] = train_needle(workshop, pipelines[GOLD_ALONE], facts)
            rows = score()
    whole = next(((facts.gold, row.counts.f1) for row in rows if row.name == GOLD_ALONE), None)
    return _Result(pipelines, rows, rules, curve.measure(parts, whole, workshop.gpu_id))


def _cross_validated(workshop: Workshop, facts: Facts, listed: Dict[str, Path], wanted: set) -> _Result:
    corpora, models = workshop.corpora, workshop.models
    folder = models / "folds"
    folds = make_folds(corpora.gold, folder, seed=workshop.seed)
    if len(folds) < 2:
        raise WeaknerError(Errors.WK685.format(path=corpora.gold, docs=facts.gold))
    makers = {
        GOLD_ALONE: ("gold", workshop.on_gold),
        BOTH: ("weak-gold", workshop.on_both),
    }
    makers = {name: maker for name, maker in makers.items() if name in wanted}
    held_out = {name: trainings_of(folds, folder / short, make) for name, (short, make) in makers.items()}
    # What is packaged is trained on all gold.
    final = {name: make(corpora.gold, corpora.gold, models / short) for name, (short, make) in makers.items()}
    parts = curve.make_parts(workshop, None, workshop.seed)
    every = [*final.values(), *(part.training for part in parts)]
    workshop.train([training for trainings in held_out.values() for training in trainings] + every)
    found: Dict[str, Path] = dict(listed)
    for name, trainings in held_out.items():
        found[name] = predict_folds(folds, trainings, folder / f"{makers[name][0]}.spacy")
    rows = compare(folder / "all.spacy", found, bootstrap=SAMPLES, seed=workshop.seed, gpu_id=workshop.gpu_id)
    pipelines = {**listed, **{name: pipeline_of(training, select=False) for name, training in final.items()}}
    f1 = {row.name: row.counts.f1 for row in rows}
    trained_on = round(facts.gold * (len(folds) - 1) / len(folds))
    points = curve.measure(parts, (trained_on, f1[GOLD_ALONE]), workshop.gpu_id)
    rule = needle_pays(facts, f1[GOLD_ALONE], facts.f1)
    return _Result(pipelines, rows, [rule], points)


def _without_gold(workshop: Workshop, facts: Facts, listed: Dict[str, Path], wanted: set) -> _Result:
    pipelines = dict(listed)
    if WEAK_ALONE in wanted:
        training = workshop.on_weak(workshop.models / "weak")
        workshop.train([training])
        pipelines[WEAK_ALONE] = pipeline_of(training, select=False)
    return _Result(pipelines, [], [], [])


_STRATEGIES = {DEV: _on_dev, CROSS_VALIDATION: _cross_validated, NOTHING: _without_gold}


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


def _read_judgement(corpora: Corpora) -> Optional[Dict[str, Any]]:
    if not corpora.labels.exists():
        return None
    with reading(corpora.labels, "judge"):
        judgement = json.loads(corpora.labels.read_text(encoding="utf-8"))
        _ = judgement["scores"]["f1"]
        return dict(judgement)
