"""What happens in training, as JSON lines."""

import json
from pathlib import Path
from typing import IO, Any, Callable, Dict, Optional, Tuple

from spacy.language import Language

LogStep = Callable[[Optional[Dict[str, Any]]], None]
Setup = Callable[..., Tuple[LogStep, Callable[[], None]]]


def make_statistics_logger(path: Path, logger: Setup) -> Setup:
    """Write a JSON line at each evaluation: step, epoch, score, losses, and what the components have counted since the
    last one (their `training_statistics`). Registered as `spacy_weakner.StatisticsLogger.v1`.

    path (Path): The file; what it held before is replaced.
    logger (Setup): The logger that prints, e.g. `spacy.ConsoleLogger.v1`.
    RETURNS (Setup): A logger for `[training.logger]`.
    """

    def setup(nlp: Language, *streams: IO, **named: IO) -> Tuple[LogStep, Callable[[], None]]:
        log_step, finalize = logger(nlp, *streams, **named)
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        file_ = target.open("w", encoding="utf-8")

        def log(info: Optional[Dict[str, Any]]) -> None:
            log_step(info)
            if info is not None:
                file_.write(json.dumps(_row(nlp, info)) + "\n")
                file_.flush()

        def close() -> None:
            file_.close()
            finalize()

        return log, close

    return setup


def _row(nlp: Language, info: Dict[str, Any]) -> Dict[str, Any]:
    row = {
        "step": info["step"],
        "epoch": info["epoch"],
        "score": info["score"],
        "losses": {name: float(loss) for name, loss in info["losses"].items()},
    }
    for name, pipe in nlp.pipeline:
        if hasattr(pipe, "training_statistics"):
            row[name] = pipe.training_statistics()
    return row
