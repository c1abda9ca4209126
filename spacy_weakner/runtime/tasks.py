"""What processes that make a part of the shards are told: neither objects nor Docs, but JSON."""

import json
from importlib import import_module
from pathlib import Path
from typing import Any, Dict, NamedTuple, Protocol, Sequence

from .shards import Part

# Stages whose shards other processes can make: each module has a function `run_worker(settings, part)`.
STAGES = {
    "aggregate": "..labeling.aggregate",
    "augment": "..relabel.augment",
    "complete": "..relabel.complete",
    "convert": "..conversion.in_parts",
    "label": "..labeling.label",
    "pick": "..relabel.pick",
}


class Task(NamedTuple):
    """What one process does.

    stage (str): The stage, one of `STAGES`.
    part (Part): Its share of the shards.
    settings (Dict[str, Any]): What else the stage wants to know. JSON must be able to hold it.
    pending (Sequence[Path]): The shards that it will make, in their order.
    """

    stage: str
    part: Part
    settings: Dict[str, Any]
    pending: Sequence[Path]

    def to_json(self) -> str:
        """RETURNS (str): What `do_task` takes."""
        return json.dumps({"stage": self.stage, "part": self.part, "settings": self.settings})


class Engine(Protocol):
    """What does tasks in other processes."""

    @property
    def parts(self) -> int:
        """RETURNS (int): Into how many parts work is cut."""

    def run(self, tasks: Sequence[Task], folder: Path, *, progress: bool = False) -> None:
        """Do tasks, and wait for all of them.

        tasks (Sequence[Task]): What to do.
        folder (Path): For files of this run, beside the output; the caller removes it.
        progress (bool): Show how far they have come.
        RAISES (WeaknerError): If one fails, with its message.
        """


def do_task(text: str) -> None:
    """Make the shards of a task.

    text (str): What `Task.to_json` has made.
    RAISES (WeaknerError): Whatever the stage has to say.
    """
    task = json.loads(text)
    # Loaded by a fixed name, and only now: it takes seconds.
    import_module(STAGES[task["stage"]], __package__).run_worker(task["settings"], Part(*task["part"]))
