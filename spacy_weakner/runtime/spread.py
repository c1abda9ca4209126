"""Lets other processes make the shards of a stage: those of this machine, or of a cluster. This one sums up."""

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, ContextManager, Dict, Optional

from ..errors import Errors, WeaknerError, check_range
from ..scratch import scratch_folder
from .cluster import connected
from .devices import on_device
from .shards import Part, Shards
from .stage import R, Stage
from .tasks import Engine, Task
from .workers import Processes

# Fills a folder that all of them see, and returns the settings of their tasks.
Prepare = Callable[[Path], Dict[str, Any]]


@dataclass(frozen=True)
class Spread:
    """Who makes the shards.

    workers (int): Processes on this machine; 1: this one alone.
    ray (Optional[str]): Or the address of a Ray cluster; see `cluster.connected`. Its machines must see input, models
        and output under the same paths.
    gpu_id (int): The GPU, -1: none. On a cluster each part asks for one.
    RAISES (WeaknerError): If both are given, or one is out of range.
    """

    workers: int = 1
    ray: Optional[str] = None
    gpu_id: int = -1

    def __post_init__(self) -> None:
        check_range("workers", self.workers, 1, None)
        check_range("gpu_id", self.gpu_id, -1, None)
        if self.ray is not None and self.workers > 1:
            raise WeaknerError(Errors.WK724)

    @property
    def gpu_here(self) -> int:
        """RETURNS (int): GPU of this process."""
        return self.gpu_id if self.ray is None else -1

    @property
    def gpu_there(self) -> int:
        """RETURNS (int): GPU of those that make the shards. A part that is given one by a cluster sees that alone."""
        return self.gpu_id if self.ray is None else min(self.gpu_id, 0)

    def check(self, shards: Shards) -> None:
        """Check that others can make an output, if they are to do it.

        shards (Shards): Its shards.
        RAISES (WeaknerError): If it is one file.
        """
        if shards.is_file and (self.ray is not None or self.workers > 1):
            raise WeaknerError(Errors.WK312.format(path=shards.output_path))

    def run(self, shards: Shards, stage: Stage[R], prepare: Prepare, *, progress: bool = False) -> R:
        """Make the shards that are not finished.

        shards (Shards): The shards.
        stage (Stage): The stage; not opened where others do it all.
        prepare (Prepare): Called where others make them.
        progress (bool): Show how far it has come.
        RETURNS (Report): What was done, by whomever.
        RAISES (WeaknerError): If others are to make an output of one file, if one of them fails, or if what a cluster
            has made is not what this process would have made.
        """
        made = self._elsewhere(shards, stage, prepare, progress)
        report = shards.run(stage, progress=progress)
        report.written += made
        report.skipped -= made
        return report

    def _elsewhere(self, shards: Shards, stage: Stage[Any], prepare: Prepare, progress: bool) -> int:
        engine = self._engine()
        if engine is None:
            return 0
        self.check(shards)
        pending = shards.pending(stage.settings)
        if not pending:
            return 0
        with engine as started, scratch_folder(shards.output_path) as folder:
            settings, n = prepare(folder), started.parts
            shares = [[path for i, path in pending.items() if i % n == k] for k in range(n)]
            parts = zip(shards.part.split(n), shares, strict=True)
            tasks = [Task(stage.name, part, settings, share) for part, share in parts if share]
            started.run(tasks, folder, progress=progress)
        if self.ray is not None and shards.pending(stage.settings):
            raise WeaknerError(Errors.WK714.format(path=shards.output_path))
        return len(pending)

    def run_on_corpus(
        self,
        make: Callable[[Any], Stage[R]],
        asked: Any,
        input_path: Path,
        output_path: Path,
        *,
        with_thinc: bool = True,
        progress: bool = False,
    ) -> R:
        """Run a stage over the `.spacy` files of a corpus, where all that it wants to know is JSON.

        make (Callable[[Any], Stage]): Makes the stage of that, here and there.
        asked (Any): What it wants to know.
        input_path (Path): A `.spacy` file or a folder of them.
        output_path (Path): A `.spacy` file, or a folder where every shard keeps its name.
        with_thinc (bool): Whether the GPU is one for Thinc, too.
        progress (bool): Show how far it has come.
        RETURNS (Report): What was done.
        RAISES (WeaknerError): See `run`.
        """
        paths = {"input_path": str(input_path), "output_path": str(output_path)}
        task = {"asked": asked, **paths, "gpu_id": self.gpu_there if with_thinc else -1}
        with on_device(self.gpu_here if with_thinc else -1):
            stage = make(asked)
            shards = Shards(stage.name, input_path, output_path)
            return self.run(shards, stage, lambda _: task, progress=progress)

    def _engine(self) -> Optional[ContextManager[Engine]]:
        if self.ray is not None:
            return connected(self.ray, gpus=int(self.gpu_id >= 0))
        return nullcontext(Processes(self.workers)) if self.workers > 1 else None


def make_part(make: Callable[[Any], Stage[Any]], task: Dict[str, Any], part: Part) -> None:
    """Make one part of what `Spread.run_on_corpus` wants.

    make (Callable[[Any], Stage]): As there.
    task (Dict[str, Any]): What it has said.
    part (Part): The part.
    """
    with on_device(task["gpu_id"]):
        stage = make(task["asked"])
        Shards(stage.name, Path(task["input_path"]), Path(task["output_path"]), part=part).run(stage)
