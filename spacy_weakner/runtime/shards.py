"""Runs a stage shard by shard, so that an interrupted run continues where it stopped.

Beside each finished shard `x.spacy` is a receipt `x.spacy.json`, with its inputs, settings and counts. A shard is
skipped if its receipt matches the input, the settings and the version, and its contents match the receipt. It is
overwritten or removed only if its receipt shows that the same stage made it at this path. From its first new shard on,
a folder is marked as unfinished, so that no part of it is read as a corpus, until a run has found all shards.
"""

import re
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set

from spacy.tokens import Doc

from ..code_version import code_version
from ..corpus.counts import RowCounts
from ..corpus.docbin import SUFFIX, UNFINISHED, found_files, receipt_path, write_docs
from ..corpus.language import record_language, recorded_language
from ..errors import Errors, WeaknerError
from ..files import atomic_path, check_output
from ..progress import Progress
from .hashes import hash_file, hash_settings, hash_text
from .inputs import ShardInput, spacy_inputs
from .receipts import Receipt
from .stage import R, Stage, memory_zones


class ShardShare(NamedTuple):
    """The share of one process in the shards: every `of`-th, starting with number `first`."""

    first: int
    of: int

    @classmethod
    def parse(cls, text: str) -> "ShardShare":
        """Parse "i/n", where i counts from 1."""
        found = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text)
        if found is None or not 1 <= int(found[1]) <= int(found[2]):
            expected = "i/n with i from 1 to n, like 2/8"
            raise WeaknerError(Errors.WK005.format(setting="shard", value=text, expected=expected))
        return cls(int(found[1]) - 1, int(found[2]))

    def split(self, n: int) -> List["ShardShare"]:
        """Split the part into n parts that together hold the same shards."""
        return [ShardShare(self.first + self.of * i, self.of * n) for i in range(n)]


WHOLE = ShardShare(0, 1)


class _ShardJob(NamedTuple):
    inputs: Sequence[ShardInput]
    output: Path
    shard: Optional[str]  # its name within the output folder; None: the output is a single file

    def key(self) -> str:
        keys = [input_.key() for input_ in self.inputs]
        return keys[0] if len(keys) == 1 else hash_text("\n".join(keys))


class Shards:
    """The shards of a stage's output, and the input of each: `inputs`, one per shard, or the `.spacy` files of the
    input. Shards of other parts are neither checked nor changed."""

    def __init__(
        self,
        stage: str,
        input_path: Path,
        output_path: Path,
        inputs: Optional[Sequence[ShardInput]] = None,
        part: ShardShare = WHOLE,
    ) -> None:
        self.stage = stage
        self.input_path, self.output_path = Path(input_path), Path(output_path)
        self.part = part
        if self.output_path.suffix not in ("", SUFFIX) and not self.output_path.is_dir():
            expected = "a .spacy file, or a folder (a name without suffix); 'convert' converts it to other formats"
            raise WeaknerError(Errors.WK305.format(path=output_path, expected=expected))
        if self.is_file and part != WHOLE:
            raise WeaknerError(Errors.WK312.format(path=output_path))
        inputs = spacy_inputs(self.input_path) if inputs is None else inputs
        if self.is_file:
            self._jobs = [_ShardJob(inputs, self.output_path, None)]
        else:
            jobs = [_ShardJob([input_], self.output_path / input_.name, input_.name) for input_ in inputs]
            self._jobs = jobs[part.first :: part.of]
        self._replaced: Set[Path] = set()
        read = {input_.path for input_ in inputs}
        check_output([self.input_path, *read], [self.output_path, *(job.output for job in self._jobs)])
        self._check_there()

    @property
    def is_file(self) -> bool:
        """True if the output is a single file."""
        return self.output_path.suffix == SUFFIX

    def pending(self, stage: Stage[Any]) -> Dict[int, Path]:
        """Return the paths of the shards that are still to be made, by their index among the shards of this part."""
        return {i: job.output for i, job in enumerate(self._jobs) if self._finished(job, stage) is None}

    def run(self, stage: Stage[R], *, progress: bool = False) -> R:
        """Make the shards that are not finished; the stage is opened if there are any."""
        stale = self._stale()
        total = stage.report()
        # If there are many shards, each is short.
        many = len(self._jobs) > 1
        try:
            for job in Progress(self._jobs, desc=self.stage, unit="shard", enabled=progress and many):
                receipt = self._finished(job, stage)
                report = None if receipt is None else _read_report(stage, receipt)
                if report is not None:
                    total.add(report)
                    total.skipped += 1
                    continue
                if not total.written:
                    stage.open()
                # The words of the first shard are kept: within a memory zone a tokenizer is slow, since it caches only
                # words that it has met before.
                with memory_zones(stage.zones() if total.written else ()):
                    self._make(job, stage, progress and not many)
                total.add(stage.stats)
                total.written += 1
        finally:
            stage.close()
        empty = not total.docs_in and self.part == WHOLE
        # Shards of an earlier run with more shards would otherwise remain part of the corpus.
        for path in {*stale, *(job.output for job in self._jobs if empty)}:
            path.unlink()
            receipt_path(path).unlink()
        if self.part == WHOLE and not self.is_file:
            (self.output_path / UNFINISHED).unlink(missing_ok=True)
        if empty:
            raise WeaknerError(Errors.WK101.format(path=self.input_path))
        record_language(self.output_path, stage.language or recorded_language(self.input_path))
        self._replaced.update(stale)
        total.replaced = len(self._replaced)
        return total

    def remove(self) -> None:
        """Remove the shards of earlier runs."""
        for path in {*self._stale(), *(job.output for job in self._jobs if job.output.exists())}:
            path.unlink()
            receipt_path(path).unlink()
        (self.output_path / UNFINISHED).unlink(missing_ok=True)
        record_language(self.output_path, None)

    def _make(self, job: _ShardJob, stage: Stage[Any], progress: bool) -> None:
        stage.stats = stats = stage.report()
        made_from = self._made_from(job, stage)

        def read() -> Iterator[Doc]:
            for input_ in job.inputs:
                docs, total = input_.read(stage.vocab, stats if isinstance(stats, RowCounts) else None)
                for doc in Progress(
                    docs, total=total, desc=f"{self.stage} {input_.name}", unit="doc", enabled=progress
                ):
                    stats.docs_in += 1
                    yield doc

        with atomic_path(job.output) as temporary:
            stats.docs = write_docs(temporary, stage(read()))
            # The receipt is written first: an interrupt between the two leaves a receipt that matches no shard, but
            # never a shard without a receipt.
            receipt = Receipt(made_from, {job.output.name: hash_file(temporary)}, stats.to_json())
            if not self.is_file:
                (self.output_path / UNFINISHED).touch()
            receipt.write(receipt_path(job.output))

    def _check_there(self) -> None:
        """Refuse an output that holds files of other runs."""
        stale = self._stale()
        for path in [*(job.output for job in self._jobs if job.output.exists()), *sorted(stale)]:
            # A file without a receipt is not ours: it may be a gold corpus given as the output by mistake. Results of
            # other runs, in a subfolder or as a single file, have another name in their receipts.
            receipt = Receipt.read(receipt_path(path))
            shard = None if self.is_file else path.relative_to(self.output_path).as_posix()
            owner = {"stage": self.stage, "shard": shard}
            if receipt is not None and path not in stale:
                # Values missing in a damaged receipt do not indicate another owner: the shard is made again.
                receipt = Receipt({**owner, **receipt.made_from})
            if receipt is None or receipt.differences(owner):
                raise WeaknerError(Errors.WK300.format(path=path))

    def _stale(self) -> Set[Path]:
        """Return the shards in the output that this run does not make again."""
        if self.part != WHOLE or not self.output_path.is_dir():
            return set()
        return set(found_files(self.output_path)) - {job.output for job in self._jobs}

    def _made_from(self, job: _ShardJob, stage: Stage[Any]) -> Dict[str, Any]:
        found = {"stage": self.stage, "code": code_version(), "settings": hash_settings(stage.settings)}
        return {**found, "shard": job.shard, "input": job.key()}

    def _finished(self, job: _ShardJob, stage: Stage[Any]) -> Optional[Receipt]:
        """Return the receipt of a shard that need not be made again. A shard that an earlier run made differently is
        counted as replaced."""
        receipt = Receipt.read(receipt_path(job.output))
        if receipt is None or not receipt.made_from or not job.output.exists():
            return None
        # The input is read only now.
        if receipt.differences(self._made_from(job, stage)):
            self._replaced.add(job.output)
            return None
        return receipt if receipt.is_intact(job.output.parent) else None


def _read_report(stage: Stage[R], receipt: Receipt) -> Optional[R]:
    """Return the report in a receipt; None if it is damaged, so that the shard has to be made again."""
    try:
        return stage.report.from_json(receipt.report)
    except ValueError:
        return None
