"""`spacy weakner sweep`"""

from pathlib import Path
from typing import Annotated, Any, Dict, List

import typer
from wasabi import msg

from ..errors import Errors, WeaknerError
from ..files import parse_json
from ._util import Processes, TrainingGpu, TrainingRay, config_overrides, reporting


def sweep_cli(
    ctx: typer.Context,
    config: Annotated[Path, typer.Argument(help="Config of the training")],
    output: Annotated[Path, typer.Argument(help="Folder for the pipelines; the best one becomes 'model-best'")],
    grid: Annotated[
        List[str], typer.Option(help="SETTING=VALUE,VALUE,... of the config (repeatable: all combinations are trained)")
    ],
    processes: Processes = 1,
    gpu_id: TrainingGpu = -1,
    ray: TrainingRay = None,
) -> None:
    """Train every combination of some settings, and keep what is best on dev. Further options override the config, as
    for 'spacy train'."""
    with reporting():
        from ..stages.sweep import sweep

        report = sweep(
            config,
            output,
            dict(_parse(part) for part in grid),
            overrides=config_overrides(ctx),
            processes=processes,
            gpu_id=gpu_id,
            ray=ray,
            progress=True,
        )
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
