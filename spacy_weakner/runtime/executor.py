"""Makes the shards of a stage: in this process, in several on this machine, or on a Ray cluster."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Callable, ContextManager, Optional

from ..corpus.docbin import receipt_path
from ..errors import Errors, WeaknerError, check_range
from ..progress import Progress
from ..scratch import scratch_folder
from .cluster import connected
from .devices import on_device
from .pool import ProcessPool, processes
from .shards import Shards, ShardShare
from .stage import R, Stage

# Makes the shards of a part. It must be picklable: a `functools.partial` of a module-level function.
MakePart = Callable[[ShardShare], None]
# Fills a folder that all processes see, and returns the function that they call.
Prepare = Callable[[Path], MakePart]


@dataclass(frozen=True)
class Executor:
    """Where the shards of a stage are made.

    workers (int): Number of processes on this machine; 1: only the current process.
    ray (Optional[str]): Or the address of a Ray cluster, see `cluster.connected`. Its machines must see input, models
        and output under the same paths.
    gpu_id (int): The GPU; -1 is the CPU. On a cluster, each part requests a GPU.
    RAISES (WeaknerError): If both `workers` and `ray` are given, or a value is out of range.
    """

    workers: int = 1
    ray: Optional[str] = None
    gpu_id: int = -1

    def __post_init__(self) -> None:
        check_range("workers", self.workers, 1, None)
        check_range("gpu_id", self.gpu_id, -1, None)
        if self.ray is not None and self.workers > 1:
            raise WeaknerError(Errors.WK331.format(setting="workers", where="without 'ray'", instead=""))

    @property
    def gpu_here(self) -> int:
        """The GPU of this process."""
        return self.gpu_id if self.ray is None else -1

    @property
    def gpu_there(self) -> int:
        """The GPU of the processes that make shards. On a cluster, each process sees only its assigned GPU."""
        return self.gpu_id if self.ray is None else min(self.gpu_id, 0)

    def check(self, shards: Shards) -> None:
        """Refuse a single file as the output if other processes are to make it."""
        if shards.is_file and (self.ray is not None or self.workers > 1):
            raise WeaknerError(Errors.WK312.format(path=shards.output_path))

    def run(self, shards: Shards, stage: Stage[R], prepare: Prepare, *, progress: bool = False) -> R:
        """Make the shards that are not finished. `prepare` is called if other processes make them. If they make all
        shards, the stage is not opened in this process."""
        self.check(shards)
        made = self._run_elsewhere(shards, stage, prepare, progress)
        report = shards.run(stage, progress=progress)
        report.written += made
        report.skipped -= made
        return report

    def run_on_corpus(
        self,
        make_stage: Callable[[], Stage[R]],
        input_path: Path,
        output_path: Path,
        *,
        with_thinc: bool = True,
        progress: bool = False,
    ) -> R:
        """Run a stage on the `.spacy` files of a corpus. `make_stage` creates the stage, here and in other processes: a
        picklable `functools.partial`. With `with_thinc`, Thinc also uses the GPU."""
        paths = Path(input_path), Path(output_path)
        make = partial(_make_part, make_stage, *paths, self.gpu_there if with_thinc else -1)
        with on_device(self.gpu_here if with_thinc else -1):
            stage = make_stage()
            return self.run(Shards(stage.name, *paths), stage, lambda _: make, progress=progress)

    def _run_elsewhere(self, shards: Shards, stage: Stage[Any], prepare: Prepare, progress: bool) -> int:
        pending = shards.pending(stage) if self.ray is not None or self.workers > 1 else {}
        if not pending:
            return 0
        with scratch_folder(shards.output_path) as folder, self._pool(folder) as pool:
            make, n = prepare(folder), pool.parts
            parts = [part for k, part in enumerate(shards.part.split(n)) if any(i % n == k for i in pending)]
            names = [f"part {part.first + 1} of {part.of}" for part in parts]
            with Progress[None](total=len(pending), desc=stage.name, unit="shard", enabled=progress) as bar:
                receipts = {path: _changed_at(path) for path in map(receipt_path, pending.values())}

                def show_progress() -> None:
                    bar.update(sum(_changed_at(path) != before for path, before in receipts.items()) - bar.done)

                for _ in pool.each(make, parts, names, show_progress):
                    pass
        if self.ray is not None and shards.pending(stage):
            raise WeaknerError(Errors.WK714.format(path=shards.output_path))
        return len(pending)

    def _pool(self, folder: Path) -> ContextManager[ProcessPool]:
        if self.ray is not None:
            return connected(self.ray, folder, gpus=int(self.gpu_id >= 0))
        return processes(self.workers)


def _changed_at(path: Path) -> Optional[int]:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return None


def _make_part(
    make_stage: Callable[[], Stage[Any]], input_path: Path, output_path: Path, gpu_id: int, part: ShardShare
) -> None:
    with on_device(gpu_id):
        stage = make_stage()
        Shards(stage.name, input_path, output_path, part=part).run(stage)
