"""`spacy weakner train`"""

from pathlib import Path
from typing import Annotated, Any, Dict, Iterable, List, Optional, Union

import typer

from ..errors import Errors, WeaknerError
from ..files import parse_value
from ..runs.config import CORPORA, corpus_path, train_corpus
from ..runs.train import Fold, train, train_folds, train_grid, train_members
from ..runs.training import BEST, LAST, Trained
from ._command import Command
from ._util import SEED_RANGE, config_overrides, new_app, only_with, reporting, say, shared, show_remarks, show_table

app = new_app()
_AUTO = "auto"
# Unknown options override the config, as with `spacy train`.
_OVERRIDES = {"allow_extra_args": True, "ignore_unknown_options": True}


@app.command("train", cls=Command, context_settings=_OVERRIDES)
def train_cli(
    ctx: typer.Context,
    config: Annotated[Path, typer.Argument(help="Config of the training")],
    output: Annotated[Path, typer.Argument(help="Folder for the pipelines")],
    folds: Annotated[
        Optional[int],
        typer.Option(help="Number of folds of the corpus --paths.train; a pipeline is trained without each of them"),
    ] = None,
    members: Annotated[
        Optional[int], typer.Option(help="Number of pipelines to train with different seeds, for 'relabel soften'")
    ] = None,
    grid: Annotated[
        Optional[List[str]],
        typer.Option(
            help="SETTING=VALUE,VALUE,... of the config (repeatable): train all combinations, and copy the best "
            "pipeline on dev to 'model-best'"
        ),
    ] = None,
    passes: Annotated[
        str,
        typer.Option(
            help="Number of passes over the corpus --paths.train: sets the updates, the interval of renewals and the "
            "warm-up; auto: as set in the config"
        ),
    ] = _AUTO,
    seed: Annotated[
        int,
        typer.Option(help="Seed of the split into folds, or of the first member", min=SEED_RANGE[0], max=SEED_RANGE[1]),
    ] = 0,
    processes: Annotated[int, shared("processes")] = 1,
    gpu_id: Annotated[int, shared("gpu_id")] = -1,
    ray: Annotated[Optional[str], shared("ray")] = None,
) -> None:
    """Train one pipeline as 'spacy train' does, or several with one config. Finished trainings are skipped. Other
    options override the config, for example --training.max_steps 100."""
    with reporting():
        several = {"folds": ["seed"], "members": ["seed", "passes"], "grid": []}
        modes = {name: [*options, "processes"] for name, options in several.items()}
        mode = only_with(ctx, {**modes, "": ["passes"]})
        overrides = config_overrides(ctx)
        how: Dict[str, Any] = {"gpu_id": gpu_id, "ray": ray, "progress": True}
        if mode == "folds":
            _train_folds(config, output, overrides, folds=folds, seed=seed, processes=processes, **how)
        elif mode == "members":
            how.update(members=members, passes=_passes(passes), seed=seed, processes=processes)
            _show(train_members(config, output, overrides=overrides, **how))
        elif mode == "grid":
            values: Dict[str, List[Any]] = {}
            for key, more in map(_parse, grid or ()):
                values.setdefault(key, []).extend(more)
            _train_grid(config, output, values, overrides, processes=processes, **how)
        else:
            _show([train(config, output, passes=_passes(passes), overrides=overrides, **how)])


def _passes(text: str) -> Optional[float]:
    if text == _AUTO:
        return None
    try:
        return float(text)
    except ValueError:
        expected = f"a number, or '{_AUTO}'"
        raise WeaknerError(Errors.WK005.format(setting="passes", value=repr(text), expected=expected)) from None


def _show(results: List[Trained]) -> None:
    _show_warnings(results)
    for trained in results:
        if trained.score is not None:
            say("info", f"{BEST} has the score {100 * trained.score:.2f} on dev")
        say("good", f"Pipeline{' (already finished)' if trained.skipped else ''}", trained.output / LAST)


def _show_warnings(results: Iterable[Union[Trained, Fold]]) -> None:
    show_remarks(dict.fromkeys(text for result in results for text in result.warnings))


def _train_folds(config: Path, output: Path, overrides: Dict[str, Any], **how: Any) -> None:
    gold, how["dev"] = train_corpus(config, overrides), corpus_path(config, overrides, "paths.dev")
    others = {key: value for key, value in overrides.items() if key not in CORPORA}
    found = train_folds(config, gold, output, overrides=others, **how)
    _show_warnings(found)
    for fold in found:
        done = " (already finished)" if fold.skipped else ""
        say("good", f"{fold.model}={fold.corpus}: {fold.docs} sentences{done}")


def _train_grid(config: Path, output: Path, grid: Dict[str, Any], overrides: Dict[str, Any], **how: Any) -> None:
    report = train_grid(config, output, grid, overrides=overrides, **how)
    _show_warnings(trial.trained for trial in report.trials)
    rows = []
    for trial in report.trials:
        settings = ", ".join(f"{key} = {value}" for key, value in trial.settings.items())
        score = "-" if trial.trained.score is None else f"{100 * trial.trained.score:.2f}"
        rows.append((settings, score, "best" if trial is report.best else ""))
    show_table(("settings", "dev", ""), rows)
    say("good", "Best pipeline", report.model)


def _parse(text: str) -> "tuple[str, List[Any]]":
    """Parse a setting and its values; values that are not JSON are text."""
    key, _, values = text.partition("=")
    whole = parse_value(values)
    if isinstance(whole, list):
        return key, whole
    # A comma may be part of a JSON object or string.
    is_one = isinstance(whole, dict) or (isinstance(whole, str) and whole != values)
    parts = [values] if is_one else [part for part in values.split(",") if part]
    if not key or not parts:
        raise WeaknerError(Errors.WK005.format(setting="grid", value=repr(text), expected="SETTING=VALUE,VALUE,..."))
    return key, [parse_value(part) for part in parts]
