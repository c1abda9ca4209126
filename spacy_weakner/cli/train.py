"""`spacy weakner train`"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Dict, List, Optional

import typer
from wasabi import msg

from ..errors import Errors, WeaknerError
from ..files import parse_json
from ._util import AUTO, Gpu, Processes, Ray, config_overrides, number, only_with, reporting, say

if TYPE_CHECKING:
    from ..runs.training import Member


def train_cli(
    ctx: typer.Context,
    config: Annotated[Path, typer.Argument(help="Config of the training")],
    output: Annotated[Path, typer.Argument(help="Folder for the pipelines")],
    folds: Annotated[
        Optional[int],
        typer.Option(help="Split the corpus --paths.train into so many folds; train a pipeline without each of them"),
    ] = None,
    members: Annotated[
        Optional[int], typer.Option(help="Train so many pipelines with different seeds, for 'relabel soft'")
    ] = None,
    grid: Annotated[
        Optional[List[str]],
        typer.Option(
            help="SETTING=VALUE,VALUE,... of the config (repeatable): train all combinations, and copy the best one on "
            "dev to 'model-best'"
        ),
    ] = None,
    passes: Annotated[
        str, typer.Option(help="Number of passes over the corpus --paths.train; auto: as the config says")
    ] = AUTO,
    seed: Annotated[int, typer.Option(help="Seed of the split into folds, or of the first member")] = 0,
    processes: Processes = 1,
    gpu_id: Gpu = -1,
    ray: Ray = None,
) -> None:
    """Train one pipeline as 'spacy train' does, or several of one config. Finished trainings are skipped. Further
    options override the config, for example --training.max_steps 100."""
    with reporting():
        mode = only_with(ctx, {"folds": ["seed"], "members": ["seed", "passes"], "grid": [], "": ["passes"]})
        overrides = config_overrides(ctx)
        how: Dict[str, Any] = {"gpu_id": gpu_id, "ray": ray, "progress": True}
        if mode == "folds":
            _train_folds(config, output, overrides, folds=folds, seed=seed, processes=processes, **how)
        elif mode == "members":
            from ..runs.ensemble import ensemble

            length = number("passes", passes, float)
            how.update(members=members, passes=length, seed=seed, processes=processes)
            for member in ensemble(config, output, overrides=overrides, **how):
                _show(member)
        elif mode == "grid":
            _train_grid(config, output, dict(map(_parse, grid or ())), overrides, processes=processes, **how)
        else:
            from ..runs.train import train

            _show(train(config, output, passes=number("passes", passes, float), overrides=overrides, **how))


def _show(member: "Member") -> None:
    from ..runs.training import BEST, LAST

    if member.score is not None:
        say("info", f"{BEST} has the score {100 * member.score:.2f} on dev")
    say("good", f"Pipeline{' (finished already)' if member.skipped else ''}", member.output / LAST)


def _train_folds(config: Path, output: Path, overrides: Dict[str, Any], **how: Any) -> None:
    from ..runs.config_values import corpus_of, flat_config
    from ..runs.crossfit import crossfit

    gold, dev = corpus_of(config, overrides), flat_config(config, overrides).get("paths.dev")
    others = {key: value for key, value in overrides.items() if key not in ("paths.train", "paths.dev")}
    how["dev"] = Path(dev) if dev else None
    for fold in crossfit(config, gold, output, overrides=others, **how):
        done = " (finished already)" if fold.skipped else ""
        msg.good(f"{fold.model}={fold.corpus}: {fold.docs} sentences{done}")


def _train_grid(config: Path, output: Path, grid: Dict[str, Any], overrides: Dict[str, Any], **how: Any) -> None:
    from ..runs.sweep import sweep

    report = sweep(config, output, grid, overrides=overrides, **how)
    rows = []
    for trial in report.trials:
        settings = ", ".join(f"{key} = {value}" for key, value in trial.settings.items())
        score = "-" if trial.member.score is None else f"{100 * trial.member.score:.2f}"
        rows.append((settings, score, "best" if trial is report.best else ""))
    msg.table(rows, header=("settings", "dev", ""), divider=True, aligns=("l", "r", "l"))
    msg.good("The best", report.model)


def _parse(text: str) -> "tuple[str, List[Any]]":
    """A setting and its values, each read as JSON or else as text."""
    key, _, values = text.partition("=")
    whole = _value(values)
    if isinstance(whole, list):
        return key, whole
    # A comma may be part of a JSON object.
    parts = [values] if isinstance(whole, dict) else [part for part in values.split(",") if part]
    if not key or not parts:
        raise WeaknerError(Errors.WK005.format(setting="grid", value=repr(text), expected="SETTING=VALUE,VALUE,..."))
    return key, [_value(part) for part in parts]


def _value(text: str) -> Any:
    try:
        value: Dict[str, Any] = parse_json(text)
    except ValueError:
        return text
    return value
