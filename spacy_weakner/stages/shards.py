"""Runs a stage shard by shard, so that an interrupted one continues where it stopped.

Beside every finished shard `x.spacy` stands a receipt `x.spacy.json`: what it was made from, with which
settings, and what was counted. A shard is skipped if its receipt fits the input and the settings, and its
contents fit the receipt.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional

from spacy.tokens import Doc
from spacy.vocab import Vocab
from tqdm import tqdm

from ..about import __version__
from ..annotations.corpus import SUFFIX, corpus_files, read_bin, write_docs
from ..errors import Errors, WeaknerError
from ..files import atomic_path, write_text
from .hashes import hash_file, hash_files, hash_settings

Transform = Callable[[Iterable[Doc]], Iterable[Doc]]


class ShardReport(NamedTuple):
    """What a run over shards did.

    written (int): Shards made now.
    skipped (int): Shards that were finished already.
    docs_in (int): Docs read, also those of skipped shards.
    docs_out (int): Docs written, also those of skipped shards.
    counts (Counter[str]): What the transform counted, also in skipped shards.
    """

    written: int
    skipped: int
    docs_in: int
    docs_out: int
    counts: "Counter[str]"


class _Job(NamedTuple):
    inputs: List[Path]
    output: Path

    @property
    def receipt(self) -> Path:
        return receipt_path(self.output)


def receipt_path(shard: Path) -> Path:
    """The receipt of a shard."""
    return shard.with_name(f"{shard.name}.json")


def run_shards(
    input_path: Path,
    output_path: Path,
    transform: Transform,
    settings: Dict[str, Any],
    vocab: Vocab,
    progress: bool = False,
    counts: Optional["Counter[str]"] = None,
) -> ShardReport:
    """Run a stage over every `.spacy` file of a corpus.

    input_path (Path): A `.spacy` file or a folder of them.
    output_path (Path): A folder, where every shard keeps its name; or a `.spacy` file, which takes all.
    transform (Transform): Called once per shard with its Docs; gives the Docs to write.
    settings (Dict[str, Any]): What the result depends on besides the input. JSON must be able to hold it.
    vocab (Vocab): The vocabulary of the Docs.
    progress (bool): Show a bar, if the output is a terminal.
    counts (Optional[Counter[str]]): What the transform counts into. It is emptied before each shard; its
        values are kept in the receipts.
    RETURNS (ShardReport): What was done.
    RAISES (WeaknerError): If there is no input, or the output would overwrite the input or foreign files.
    """
    jobs = _make_jobs(Path(input_path), Path(output_path))
    _check_output(jobs, Path(input_path), Path(output_path))
    tally: Counter[str] = Counter() if counts is None else counts
    settings_hash = hash_settings(settings)
    total: Counter[str] = Counter()
    written = docs_in = docs_out = 0
    for job in jobs:
        expected = {"input": hash_files(job.inputs), "settings": settings_hash}
        receipt = _read_receipt(job)
        if receipt is None or any(receipt.get(key) != value for key, value in expected.items()):
            tally.clear()
            n_in, n_out = _run_job(job, transform, vocab, progress, tally, expected)
            receipt = {"docs_in": n_in, "docs_out": n_out, "counts": dict(tally)}
            written += 1
        docs_in += receipt["docs_in"]
        docs_out += receipt["docs_out"]
        total.update(receipt["counts"])
    if not docs_in:
        raise WeaknerError(Errors.WK101.format(path=input_path))
    return ShardReport(written, len(jobs) - written, docs_in, docs_out, total)


def _make_jobs(input_path: Path, output_path: Path) -> List[_Job]:
    files = corpus_files(input_path)
    if output_path.suffix == SUFFIX:
        return [_Job(files, output_path)]
    root = input_path if input_path.is_dir() else input_path.parent
    return [_Job([f], output_path / f.relative_to(root)) for f in files]


def _check_output(jobs: List[_Job], input_path: Path, output_path: Path) -> None:
    source, target = input_path.resolve(), output_path.resolve()
    inputs = {f.resolve() for job in jobs for f in job.inputs}
    if target == source or source in target.parents or any(job.output.resolve() in inputs for job in jobs):
        raise WeaknerError(Errors.WK304.format(path=output_path))
    # Without a receipt a file is not ours: perhaps a gold corpus, given as the output by mistake.
    outputs = {job.output for job in jobs}
    there = corpus_files(output_path) if output_path.is_dir() and any(output_path.rglob(f"*{SUFFIX}")) else outputs
    for path in sorted({*there, *outputs}):
        if path.exists() and not receipt_path(path).exists():
            raise WeaknerError(Errors.WK300.format(path=path))
    # Shards of an earlier run that had more of them would otherwise stay part of the corpus.
    for path in sorted(set(there) - outputs):
        path.unlink()
        receipt_path(path).unlink()


def _read_receipt(job: _Job) -> Optional[Dict[str, Any]]:
    if not job.receipt.exists() or not job.output.exists():
        return None
    try:
        receipt: Dict[str, Any] = json.loads(job.receipt.read_text(encoding="utf-8"))
    except ValueError:
        return None
    return receipt if receipt.get("output") == hash_file(job.output) else None


def _run_job(
    job: _Job,
    transform: Transform,
    vocab: Vocab,
    progress: bool,
    tally: "Counter[str]",
    expected: Dict[str, str],
) -> "tuple[int, int]":
    n_in = 0

    def read() -> Iterator[Doc]:
        nonlocal n_in
        for path in job.inputs:
            bin_ = read_bin(path)
            # disable=None: no bar where the output is not a terminal.
            bar = tqdm(
                bin_.get_docs(vocab),
                total=len(bin_),
                desc=path.name,
                unit="doc",
                leave=False,
                disable=None if progress else True,
            )
            for doc in bar:
                n_in += 1
                yield doc

    with atomic_path(job.output) as temporary:
        n_out = write_docs(temporary, transform(read()))
        # The receipt comes first: an interrupt between the two leaves a receipt that fits no shard, and
        # never a shard that nobody knows.
        receipt = {
            **expected,
            "output": hash_file(temporary),
            "version": __version__,
            "docs_in": n_in,
            "docs_out": n_out,
            "counts": dict(tally),
        }
        write_text(job.receipt, json.dumps(receipt, indent=2, sort_keys=True) + "\n")
    return n_in, n_out
