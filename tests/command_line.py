"""spaCy's command line in this process, which has imported all that takes so long."""

import io
import json
import os
import threading
import warnings
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import Any

from spacy.cli import app
from typer.main import get_command

from .util import SEED

_LOCK = threading.Lock()


def spacy_cli(*args: Any, cwd: Any = ".") -> str:
    """Run `python -m spacy` as users do, with the seed of the run where there is none among the arguments."""
    printed = io.StringIO()
    # The working folder and the standard output belong to all threads.
    with _LOCK:
        before = Path.cwd()
        os.chdir(cwd)
        try:
            with redirect_stdout(printed), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                get_command(app)(with_seed(args), standalone_mode=False)
        except SystemExit as error:
            assert not error.code, printed.getvalue()
        finally:
            os.chdir(before)
    return printed.getvalue()


def with_seed(args: Any) -> list[str]:
    """The arguments as texts, with a seed where a training has none."""
    seed = ["--system.seed", str(SEED)] if args[0] == "train" and "--system.seed" not in args else []
    return [*map(str, args), *seed]


class PoolHere:
    """In the place of a pool: calls functions in this process, one after the other."""

    def each(self, function: Any, arguments: Any, names: Any, on_poll: Any) -> Any:
        for i, argument in enumerate(arguments):
            yield i, function(argument)
            on_poll()


def train_here(config: Any, output: Any, overrides: Any, gpu_id: int) -> None:
    """A training in this process."""
    options = [
        part
        for key, value in overrides.items()
        for part in (f"--{key}", value if isinstance(value, str) else json.dumps(value))
    ]
    log = spacy_cli("train", config, "--output", output, "--gpu-id", gpu_id, *options)
    (output / "train.log").write_text(log, encoding="utf-8")


def trainings_by(run: Any, patch: Any) -> None:
    """Let trainings be what a function (config, output, overrides, gpu_id) does in this process, in the output."""
    patch.setattr("spacy_weakner.runs.training.processes", lambda n, **_: nullcontext(PoolHere()))
    patch.setattr("spacy_weakner.runs.training._run", lambda gpu_id, training: (run(*training, gpu_id) or "", {}))
