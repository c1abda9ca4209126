"""Trains one config: once, for each fold of the gold, with several seeds, or for each point of a grid."""

import itertools
import json
import shutil
from pathlib import Path
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from spacy.vocab import Vocab

from ..corpus.docbin import read_docs
from ..corpus.language import record_language, recorded_language
from ..errors import Errors, WeaknerError, check_range
from ..files import atomic_path, check_output, existing, parse_json, reading_made, write_text
from ..runtime.hashes import hash_file, hash_text
from ..runtime.lock import holding
from .config import CORPORA, SEEDS, check_passes, check_setting, flat_config, resolved_config, train_corpus, updates_of
from .groups import ONE_LEARNABLE, learnable, split_folds, write_folds
from .provenance import with_provenance
from .training import BEST, LAST, Trained, Training, check_trainings, train_all

FOLDS, MEMBERS, GRID = "folds.json", "members.json", "grid.json"
_LONGEST_NAME = 100


class Fold(NamedTuple):
    """A fold of the gold, and the pipeline that was trained without it."""

    model: Path  # the pipeline that was trained without the fold
    corpus: Path  # the fold
    docs: int
    skipped: bool
    warnings: Tuple[str, ...] = ()  # see `Trained`


class Trial(NamedTuple):
    """One point of a grid: its settings, and the training with them."""

    settings: Dict[str, Any]
    trained: Trained


class GridReport(NamedTuple):
    """Results of a grid."""

    trials: List[Trial]
    best: Trial  # the one with the highest score on dev; if equal, the first
    model: Path  # copy of its pipeline


def train(
    config: Path,
    output: Path,
    *,
    passes: Optional[float] = None,
    overrides: Optional[Mapping[str, Any]] = None,
    gpu_id: int = -1,
    ray: Optional[str] = None,
    progress: bool = False,
) -> Trained:
    """Train a pipeline as `spacy train` does, in a separate process. A finished pipeline is not trained again, and an
    interrupted training leaves no files.

    config (Path): Config of the training.
    output (Path): Folder for `model-best` and `model-last`.
    passes (Optional[float]): Number of passes over the corpus `paths.train`, from which the number of updates follows.
        The pipeline is evaluated once, at the end, unless `training.eval_frequency` is given. The interval of renewals
        and the schedule of the learning rate change in proportion, unless they are given. `training.patience` is 0 if
        there is only that evaluation. None: as in the config.
    overrides (Optional[Mapping[str, Any]]): Values of the config by dotted name.
    gpu_id, ray, progress: See `train_all`.
    RETURNS (Trained): The result.
    RAISES (WeaknerError): For missing input and invalid settings, and if the training fails.
    """
    values: Dict[str, Any] = dict(overrides or {})
    if passes is not None:
        check_passes(passes, values)
        values.update(updates_of(config, train_corpus(config, values), passes, values))
    (trained,) = train_all([Training(Path(config), Path(output), values)], gpu_id=gpu_id, ray=ray, progress=progress)
    return trained


# Folds


@holding("output")
def train_folds(
    config: Path,
    gold: Path,
    output: Path,
    *,
    folds: int = 5,
    dev: Optional[Path] = None,
    overrides: Optional[Mapping[str, Any]] = None,
    seed: int = 0,
    processes: int = 1,
    gpu_id: int = -1,
    ray: Optional[str] = None,
    progress: bool = False,
) -> List[Fold]:
    """Split gold into folds, by document if identifiers show it, and train one pipeline per fold on all others.

    If there is too little gold to hold some out, `relabel complete` and `relabel clean` use these folds. They must be
    as unknown to the pipelines as new text, so no checkpoint is chosen on them: without `dev`, it is the last one.

    config (Path): Config of the training, which must train on `paths.train` and nothing else.
    gold (Path): A `.spacy` file or a folder of them.
    output (Path): Folder for `fold-<n>.spacy`, the rest of the gold, and the pipeline of each fold.
    folds (int): Number of folds.
    dev (Optional[Path]): Other gold, used to choose a checkpoint.
    overrides (Optional[Mapping[str, Any]]): Values of the config by dotted name.
    seed (int): Seed of the split, which depends on identifiers and texts, but not on their order.
    processes, gpu_id, ray, progress: See `train_all`.
    RETURNS (List[Fold]): The folds.
    RAISES (WeaknerError): If there are fewer sentences than folds, only one of them has labels, the config trains on
        other files, dev is the gold, or a training fails.
    """
    gold, output = Path(gold), Path(output)
    _check_held_out(config, gold, dev, overrides or {})
    check_range("folds", folds, 2, None)
    check_trainings(processes, ray, gpu_id)
    check_output([gold, *([] if dev is None else [Path(dev)])], [output])
    docs = [doc for doc in read_docs(gold, Vocab()) if len(doc)]
    parts = split_folds(docs, folds, seed) if len(docs) >= folds else []
    if len(parts) < folds:
        reason = f"{len(parts) or len(docs)} sentences are too few for {folds} folds"
        raise WeaknerError(Errors.WK361.format(path=gold, reason=reason, instead=", or fewer folds"))
    if not learnable(parts):
        raise WeaknerError(Errors.WK361.format(path=gold, reason=ONE_LEARNABLE, instead=""))
    # Until all trainings are done, there are no folds: pipelines and corpora of two runs do not belong together.
    (output / FOLDS).unlink(missing_ok=True)
    trainings = []
    files = write_folds(parts, output)
    for n, (held_out, rest) in enumerate(files, start=1):
        for path in (held_out, rest):
            record_language(path, recorded_language(gold))
        values: Dict[str, Any] = {"paths.train": str(rest), "paths.dev": str(rest if dev is None else dev)}
        if dev is None:
            # Nor may the end of the training be chosen on its own training data.
            values["training.patience"] = 0
        trainings.append(Training(config, output / f"model-{n}", {**values, **(overrides or {})}))
    results = train_all(trainings, processes=processes, gpu_id=gpu_id, ray=ray, desc="folds", progress=progress)
    found, rows = [], []
    for part, (held_out, _), trained in zip(parts, files, results, strict=True):
        model = trained.output / (LAST if dev is None else BEST)
        fold = Fold(model, held_out, len(part.held_out), trained.skipped, trained.warnings)
        found.append(fold)
        hashes = {"corpus_hash": hash_file(held_out), "made_from": trained.made_from}
        rows.append({"model": model.relative_to(output).as_posix(), "corpus": held_out.name, **hashes})
    write_text(output / FOLDS, json.dumps(rows, indent=2) + "\n")
    return found


def read_folds(folder: Path) -> List[Tuple[str, Path]]:
    """Return the pipelines in an output of `train_folds`, each with the corpus that it was not trained on."""
    folder = Path(folder)
    index = existing(folder / FOLDS, "create folds with 'spacy weakner train --folds'")
    with reading_made(index, "train --folds"):
        rows = parse_json(index.read_bytes())
        folds = [(str(folder / str(row["model"])), folder / str(row["corpus"]), row["corpus_hash"]) for row in rows]
    for _, corpus, key in folds:
        if hash_file(existing(corpus)) != key:
            raise WeaknerError(Errors.WK367.format(path=corpus))
    return [(model, corpus) for model, corpus, _ in folds]


def _check_held_out(config: Path, gold: Path, dev: Optional[Path], overrides: Mapping[str, Any]) -> None:
    """Check that trainings read the gold only as `paths.train`: gold read in another way is not held out."""
    values = flat_config(config, overrides)
    reads = any(isinstance(value, str) and "${paths.train}" in value for value in values.values())
    # Both are set for each fold.
    replaced = {key: f"<{key}>" for key in CORPORA if key in values and key not in overrides}
    others = resolved_config(config, {**replaced, **overrides})
    if not reads or "paths.train" in overrides or any(_reads(*item, gold.resolve()) for item in others.items()):
        reason = "another training corpus than '${paths.train}', so no fold can be held out. Train on paths.train only"
        raise WeaknerError(Errors.WK364.format(config=config, reason=reason))
    if dev is not None and _reads("dev.path", dev, gold.resolve()):
        reason = "the gold as paths.dev, so held-out folds would choose checkpoints. Leave it out, or give other gold"
        raise WeaknerError(Errors.WK364.format(config=config, reason=reason))


def _reads(key: str, value: object, gold: Path) -> bool:
    """Return True if a value of the config is the path of the gold, of a file in it, or of a corpus around it."""
    path = Path(value).resolve() if isinstance(value, (str, Path)) and value else None
    is_corpus = key.endswith(".path")  # with the values of its variables
    return path is not None and (path == gold or gold in path.parents or (is_corpus and path in gold.parents))


# Members


@holding("output")
def train_members(
    config: Path,
    output: Path,
    *,
    members: int = 5,
    passes: Optional[float] = None,
    processes: int = 1,
    overrides: Optional[Mapping[str, Any]] = None,
    seed: int = 0,
    gpu_id: int = -1,
    ray: Optional[str] = None,
    progress: bool = False,
) -> List[Trained]:
    """Train the members of an ensemble (RoSTER): pipelines that differ only in their seed. `relabel soften` averages
    their predictions.

    Since gold is not required, no checkpoint is chosen: the last one is used, and trainings do not end early. If the
    config has no `paths.dev`, pipelines are evaluated on the training corpus, which is not informative; a high
    `training.eval_frequency` saves this time.

    config (Path): Config of the training.
    output (Path): Folder for one folder `member-<n>` per pipeline. Finished pipelines are skipped.
    members (int): Number of pipelines.
    passes (Optional[float]): See `train`. Weak labels are overfitted if a small corpus is read as often as a large one
        requires.
    overrides (Optional[Mapping[str, Any]]): Values of the config by dotted name.
    seed (int): Seed of the first pipeline; the next ones get the following numbers.
    processes, gpu_id, ray, progress: See `train_all`.
    RETURNS (List[Trained]): The pipelines.
    RAISES (WeaknerError): For missing input and invalid settings, or if a training fails.
    """
    check_range("members", members, 1, None)
    check_trainings(processes, ray, gpu_id)
    values = dict(overrides or {})
    for key in SEEDS:
        if key in values:
            where, instead = "without members, which differ in it", ", and set the first seed: 'seed' (--seed)"
            raise WeaknerError(Errors.WK331.format(setting=key, where=where, instead=instead))
    if passes is not None:
        check_passes(passes, values)
    output, corpus = Path(output), train_corpus(config, values)
    check_output([corpus], [output])
    if not flat_config(config, values).get("paths.dev"):
        values["paths.dev"] = str(corpus)
    # The end of a training is not chosen on dev either: all members train for the same time.
    values = {"training.patience": 0, **values}
    if passes is not None:
        values.update(updates_of(config, corpus, passes, values))
    # Until all trainings are done, there are no members: those of two runs do not belong together.
    (output / MEMBERS).unlink(missing_ok=True)
    trainings = [
        Training(config, output / f"member-{n}", {**values, **dict.fromkeys(SEEDS, seed + n)}) for n in range(members)
    ]
    results = train_all(trainings, processes=processes, gpu_id=gpu_id, ray=ray, desc="members", progress=progress)
    names = [(trained.output / LAST).relative_to(output).as_posix() for trained in results]
    write_text(output / MEMBERS, json.dumps(names, indent=2) + "\n")
    return results


def find_members(model: Union[str, Path]) -> List[Union[str, Path]]:
    """Return the members in an output of `train_members`; for any other pipeline, the pipeline itself."""
    index = Path(model) / MEMBERS
    if not index.is_file():
        return [model]
    with reading_made(index, "train --members"):
        names = [str(name) for name in parse_json(index.read_bytes())]
    return [existing(index.parent / name, "run 'spacy weakner train --members' again") for name in names]


# Grids


@holding("output")
def train_grid(
    config: Path,
    output: Path,
    grid: Mapping[str, Sequence[Any]],
    *,
    overrides: Optional[Mapping[str, Any]] = None,
    processes: int = 1,
    gpu_id: int = -1,
    ray: Optional[str] = None,
    progress: bool = False,
) -> GridReport:
    """Train each combination of some settings, and copy the best pipeline on dev; finished trainings are skipped.

    config (Path): Config of the trainings.
    output (Path): Folder for one folder per combination, the results as `grid.json`, and a copy of the best pipeline as
        `model-best`.
    grid (Mapping[str, Sequence[Any]]): Values to try, by dotted name in the config.
    overrides (Optional[Mapping[str, Any]]): Values of the config that are the same for all combinations.
    processes, gpu_id, ray, progress: See `train_all`.
    RETURNS (GridReport): The results.
    RAISES (WeaknerError): If the grid is empty or has settings that the config lacks, the output holds other results, a
        training fails, or none was ever evaluated on dev.
    """
    output = Path(output)
    if not grid or not all(grid.values()):
        raise WeaknerError(Errors.WK005.format(setting="grid", value=dict(grid), expected="SETTING=VALUE,VALUE,..."))
    if (output / BEST).exists() and not (output / GRID).exists():
        raise WeaknerError(Errors.WK300.format(path=output / BEST))
    known = flat_config(config, {})
    for key in grid:
        check_setting(config, known, key)
    points: List[Dict[str, Any]] = []
    for values in itertools.product(*grid.values()):
        point = dict(zip(grid, values, strict=True))
        if point not in points:  # a value may be given twice
            points.append(point)
    trainings = [Training(config, output / _folder_name(point), {**(overrides or {}), **point}) for point in points]
    results = train_all(trainings, processes=processes, gpu_id=gpu_id, ray=ray, desc="grid", progress=progress)
    trials = [Trial(point, trained) for point, trained in zip(points, results, strict=True)]
    scored = [trial for trial in trials if trial.trained.score is not None]
    if not scored:
        raise WeaknerError(Errors.WK362.format(output=output))
    best = max(scored, key=lambda trial: trial.trained.score or 0.0)
    rows = [
        {"name": t.trained.output.name, "settings": t.settings, "score": t.trained.score, "best": t is best}
        for t in trials
    ]
    written = with_provenance(rows, {t.trained.output.name: t.trained.output / BEST for t in trials})
    write_text(output / GRID, json.dumps(written, indent=2) + "\n")  # first, since it names the origin of the copy
    with atomic_path(output / BEST) as temporary:
        shutil.copytree(best.trained.output / BEST, temporary)
    return GridReport(trials, best, output / BEST)


def _folder_name(settings: Mapping[str, Any]) -> str:
    # The last parts of the names are enough if they differ.
    short = {key: key.rsplit(".", 1)[-1] for key in settings}
    names = short if len(set(short.values())) == len(short) else {key: key for key in settings}
    text = ",".join(f"{names[key]}={value}" for key, value in settings.items())
    name = "".join(c if c.isalnum() or c in "=,._-" else "_" for c in text)
    # Different settings never share a folder.
    return name if name == text and len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}-{hash_text(text)[:8]}"
