"""Runs a stage shard by shard, so that an interrupted one continues where it stopped.

Beside every finished shard `x.spacy` stands a receipt `x.spacy.json`: what it was made from, with which
settings, and what was counted. A shard is skipped if its receipt fits the input, the settings and the version, and
its contents fit the receipt. It is overwritten or removed only if its receipt says that the same stage made it in
this place.
"""

import json
import re
from collections import Counter
from pathlib import Path
from typing import (
    Any,
    Callable,
    ContextManager,
    Dict,
    Iterable,
    Iterator,
    List,
    NamedTuple,
    Optional,
    Protocol,
    Sequence,
    Set,
    Tuple,
)

from spacy.tokens import Doc
from spacy.vocab import Vocab

from ...annotations.corpus import SUFFIX, bin_docs, corpus_files, read_bin, write_docs
from ...code_version import code_version
from ...errors import Errors, WeaknerError
from ...files import atomic_path, check_output, write_text
from ...progress import progress as show
from .hashes import hash_file, hash_settings, hash_text

Transform = Callable[[Iterable[Doc]], Iterable[Doc]]
Receipt = Dict[str, Any]
# What `atomic_path` leaves behind if its process is killed.
_TEMPORARY = re.compile(r"\.(.+)\.[0-9a-f]{8}\.tmp")


class Part(NamedTuple):
    """The share of one process in the shards: every `of`-th, from number `first` on.

    first (int): From 0.
    of (int): Number of parts.
    """

    first: int
    of: int

    @classmethod
    def parse(cls, text: str) -> "Part":
        """Read "i/n", where i counts from 1.

        text (str): The text.
        RETURNS (Part): The part.
        RAISES (WeaknerError): If it is something else.
        """
        found = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text)
        if found is None or not 1 <= int(found[1]) <= int(found[2]):
            expected = "i/n with i from 1 to n, like 2/8"
            raise WeaknerError(Errors.WK005.format(setting="shard", value=text, expected=expected))
        return cls(int(found[1]) - 1, int(found[2]))

    def split(self, n: int) -> List["Part"]:
        """Split it into parts of their own, which together hold the same shards."""
        return [Part(self.first + self.of * i, self.of * n) for i in range(n)]


WHOLE = Part(0, 1)


class ShardInput(Protocol):
    """What one shard is made from.

    name (str): Name of the shard within the output folder, which ends in `.spacy`.
    path (Path): The file that is read.
    """

    name: str
    path: Path

    def key(self) -> str:
        """Hash of the contents."""

    def read(self, vocab: Vocab) -> Tuple[Iterable[Doc], Optional[int]]:
        """Stream the Docs; and how many there are, if that is known."""


class SpacyFile:
    """A `.spacy` file as the input of one shard.

    path (Path): The file.
    name (str): Name of the shard.
    """

    def __init__(self, path: Path, name: str) -> None:
        self.name = name
        self.path = path

    def key(self) -> str:
        return hash_file(self.path)

    def read(self, vocab: Vocab) -> Tuple[Iterable[Doc], Optional[int]]:
        bin_ = read_bin(self.path)
        return bin_docs(bin_, vocab), len(bin_)


def spacy_inputs(path: Path) -> List[ShardInput]:
    """The `.spacy` files of a corpus, each as the input of one shard of the same name.

    path (Path): A `.spacy` file or a folder of them.
    RETURNS (List[ShardInput]): The inputs.
    RAISES (WeaknerError): If there are none.
    """
    root = path if path.is_dir() else path.parent
    return [SpacyFile(file_, file_.relative_to(root).as_posix()) for file_ in corpus_files(path)]


class ShardReport(NamedTuple):
    """What a run over shards did.

    written (int): Shards made now.
    skipped (int): Shards that were finished already.
    docs_in (int): Docs read, also those of skipped shards.
    docs_out (int): Docs written, also those of skipped shards.
    counts (Counter[str]): What the transform counted, also in skipped shards.
    replaced (int): Shards of an earlier run, made from another input or with other settings, that were made anew or
        removed.
    """

    written: int
    skipped: int
    docs_in: int
    docs_out: int
    counts: "Counter[str]"
    replaced: int = 0


class _Job(NamedTuple):
    inputs: Sequence[ShardInput]
    output: Path
    shard: Optional[str]  # its name within the output folder; None: the output is one file

    def key(self) -> str:
        keys = [input_.key() for input_ in self.inputs]
        return keys[0] if len(keys) == 1 else hash_text("\n".join(keys))


def receipt_path(shard: Path) -> Path:
    """The receipt of a shard."""
    return shard.with_name(f"{shard.name}.json")


def run_shards(
    input_path: Path,
    output_path: Path,
    stage: str,
    transform: Transform,
    settings: Dict[str, Any],
    vocab: Vocab,
    *,
    memory_zone: Optional[Callable[[], ContextManager[Any]]] = None,
    progress: bool = False,
    counts: Optional["Counter[str]"] = None,
) -> ShardReport:
    """Run a stage over every `.spacy` file of a corpus, in this process.

    input_path (Path): A `.spacy` file or a folder of them.
    output_path (Path): A folder, where every shard keeps its name; or a `.spacy` file, which takes all.
    stage (str): Name of the stage.
    settings (Dict[str, Any]): What the result depends on besides the input. JSON must be able to hold it.
    transform, vocab, memory_zone, progress, counts: See `Shards.run`.
    RETURNS (ShardReport): What was done.
    RAISES (WeaknerError): If there is no input, or the output would overwrite the input or foreign files.
    """
    inputs = spacy_inputs(Path(input_path))
    shards = Shards(input_path, output_path, stage, settings, inputs)
    return shards.run(transform, vocab, memory_zone=memory_zone, progress=progress, counts=counts)


class Shards:
    """The shards of a stage's output, and what each is made from.

    input_path (Path): The input as its user gave it.
    output_path (Path): A folder, or a `.spacy` file that takes all.
    stage (str): Name of the stage.
    settings (Dict[str, Any]): What the result depends on besides the input. JSON must be able to hold it.
    inputs (Sequence[ShardInput]): One per shard.
    part (Part): The share of this process. Other shards in the output are neither looked at nor touched.
    """

    def __init__(
        self,
        input_path: Path,
        output_path: Path,
        stage: str,
        settings: Dict[str, Any],
        inputs: Sequence[ShardInput],
        part: Part = WHOLE,
    ) -> None:
        """Check the output.

        RAISES (WeaknerError): If it would overwrite the input or foreign files, or is one file where a part is wanted.
        """
        self.input_path, self.output_path = Path(input_path), Path(output_path)
        self.stage = stage
        self.part = part
        self._fixed = {"stage": stage, "code": code_version(), "settings": hash_settings(settings)}
        if self.output_path.suffix not in ("", SUFFIX) and not self.output_path.is_dir():
            expected = "a .spacy file, or a folder (a name without suffix); 'convert' makes other formats of it"
            raise WeaknerError(Errors.WK305.format(path=output_path, expected=expected))
        if self.is_file and part != WHOLE:
            raise WeaknerError(Errors.WK312.format(path=output_path))
        if self.is_file:
            self._jobs = [_Job(inputs, self.output_path, None)]
        else:
            jobs = [_Job([input_], self.output_path / input_.name, input_.name) for input_ in inputs]
            self._jobs = jobs[part.first :: part.of]
        self._replaced: Set[Path] = set()
        read = {input_.path for input_ in inputs}
        check_output([self.input_path, *read], [self.output_path, *(job.output for job in self._jobs)])
        self._check_there()

    @property
    def is_file(self) -> bool:
        """Whether the output is one file."""
        return self.output_path.suffix == SUFFIX

    def pending(self) -> Dict[int, Path]:
        """Shards that are still to be made.

        RETURNS (Dict[int, Path]): Where they will be, by their number among the shards here, in the order in which they
            are made.
        """
        return {i: job.output for i, job in enumerate(self._jobs) if self._finished(job) is None}

    def run(
        self,
        transform: Transform,
        vocab: Vocab,
        *,
        prepare: Optional[Callable[[], None]] = None,
        memory_zone: Optional[Callable[[], ContextManager[Any]]] = None,
        progress: bool = False,
        counts: Optional["Counter[str]"] = None,
    ) -> ShardReport:
        """Make the shards that are not finished.

        transform (Transform): Called once per shard with its Docs; gives the Docs to write.
        vocab (Vocab): The vocabulary of the Docs.
        prepare (Optional[Callable[[], None]]): Called once before the first shard that has to be made, outside of any
            memory zone.
        memory_zone (Optional[Callable[[], ContextManager[Any]]]): Opened around each shard, so that the vocabulary
            does not grow from shard to shard: `nlp.memory_zone` if the transform runs a pipeline; None: that of
            `vocab`.
        progress (bool): Show how far it has come.
        counts (Optional[Counter[str]]): What the transform counts into. It is emptied before each shard; its
            values are kept in the receipts.
        RETURNS (ShardReport): What was done.
        RAISES (WeaknerError): If there is no input.
        """
        self._remove_leftovers()
        stale = self._stale()
        tally: Counter[str] = Counter() if counts is None else counts
        total: Counter[str] = Counter()
        written = docs_in = docs_out = 0
        # Of many shards each is short.
        many = len(self._jobs) > 1
        for job in show(self._jobs, desc=self.stage, unit="shard", enabled=progress and many):
            receipt = self._finished(job)
            if receipt is None:
                if prepare is not None and not written:
                    prepare()
                tally.clear()
                with (memory_zone or vocab.memory_zone)():
                    receipt = self._run_job(job, transform, vocab, progress and not many, tally)
                written += 1
            docs_in += receipt["docs_in"]
            docs_out += receipt["docs_out"]
            total.update(receipt["counts"])
        if not docs_in and self.part == WHOLE:
            raise WeaknerError(Errors.WK101.format(path=self.input_path))
        # Shards of an earlier run that had more of them would otherwise stay part of the corpus.
        for path in stale:
            path.unlink()
            receipt_path(path).unlink()
        self._replaced.update(stale)
        return ShardReport(written, len(self._jobs) - written, docs_in, docs_out, total, len(self._replaced))

    def _check_there(self) -> None:
        """Refuse an output where files of others are."""
        for job in self._jobs:
            # Without a receipt a file is not ours: perhaps a gold corpus, given as the output by mistake.
            if job.output.exists():
                receipt = _read_receipt(job.output)
                owner = self._owner(job.shard)
                # A damaged receipt does not speak of another owner: its shard is made anew.
                if receipt is None or any(receipt.get(key, value) != value for key, value in owner.items()):
                    raise WeaknerError(Errors.WK300.format(path=job.output))
        for path in self._stale():
            owner = self._owner(path.relative_to(self.output_path).as_posix())
            receipt = _read_receipt(path)
            # Results of other runs, in a subfolder or as a single file, bear another name in their receipts.
            if receipt is None or any(receipt.get(key) != value for key, value in owner.items()):
                raise WeaknerError(Errors.WK300.format(path=path))

    def _stale(self) -> List[Path]:
        """Shards in the output that this run does not make anew."""
        if self.part != WHOLE or not self.output_path.is_dir() or not any(self.output_path.rglob(f"*{SUFFIX}")):
            return []
        return sorted(set(corpus_files(self.output_path)) - {job.output for job in self._jobs})

    def _remove_leftovers(self) -> None:
        """Remove what a killed process has left of the shards here."""
        ours = {path for job in self._jobs for path in (job.output, receipt_path(job.output))}
        folder = self.output_path.parent if self.is_file else self.output_path
        for path in list(folder.glob(".*.tmp") if self.is_file else folder.rglob(".*.tmp")):
            name = path.name
            # The file may have been written by way of a temporary one itself.
            while found := _TEMPORARY.fullmatch(name):
                name = found[1]
            if path.with_name(name) in ours and path.is_file():
                path.unlink(missing_ok=True)

    def _owner(self, shard: Optional[str]) -> Receipt:
        return {"stage": self.stage, "shard": shard}

    def _made_from(self, job: _Job) -> Receipt:
        return {**self._fixed, "shard": job.shard, "input": job.key()}

    def _finished(self, job: _Job) -> Optional[Receipt]:
        """The receipt of a shard that need not be made again. One of an earlier run is noted."""
        receipt = _read_receipt(job.output)
        if not receipt or not job.output.exists():
            return None
        # A missing key differs from the shard None.
        if any(key not in receipt or receipt[key] != value for key, value in self._made_from(job).items()):
            self._replaced.add(job.output)
            return None
        return receipt if receipt.get("output") == hash_file(job.output) else None

    def _run_job(self, job: _Job, transform: Transform, vocab: Vocab, progress: bool, tally: "Counter[str]") -> Receipt:
        n_in = 0

        def read() -> Iterator[Doc]:
            nonlocal n_in
            for input_ in job.inputs:
                docs, total = input_.read(vocab)
                for doc in show(docs, total=total, desc=input_.name, unit="doc", enabled=progress):
                    n_in += 1
                    yield doc

        made_from = self._made_from(job)
        with atomic_path(job.output) as temporary:
            n_out = write_docs(temporary, transform(read()))
            # The receipt comes first: an interrupt between the two leaves a receipt that fits no shard, and
            # never a shard that nobody knows.
            receipt = {
                **made_from,
                "output": hash_file(temporary),
                "docs_in": n_in,
                "docs_out": n_out,
                "counts": dict(tally),
            }
            write_text(receipt_path(job.output), json.dumps(receipt, indent=2, sort_keys=True) + "\n")
        return receipt


def _read_receipt(shard: Path) -> Optional[Receipt]:
    """The receipt of a shard: None if there is none, empty if it is damaged."""
    try:
        receipt = json.loads(receipt_path(shard).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError:
        return {}
    return receipt if isinstance(receipt, dict) else {}
