"""Runs a stage shard by shard, so that an interrupted one continues where it stopped.

Beside every finished shard `x.spacy` stands a receipt `x.spacy.json`: what it was made from, with which
settings, and what was counted. A shard is skipped if its receipt fits the input, the settings and the version, and
its contents fit the receipt. It is overwritten or removed only if its receipt says that the same stage made it in
this place.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any, Callable, ContextManager, Dict, Iterable, Iterator, List, NamedTuple, Optional

from spacy.tokens import Doc
from spacy.vocab import Vocab
from tqdm import tqdm

from ..about import __version__
from ..annotations.corpus import SUFFIX, corpus_files, read_bin, write_docs
from ..errors import Errors, WeaknerError
from ..files import atomic_path, check_output, write_text
from .hashes import hash_file, hash_files, hash_settings

Transform = Callable[[Iterable[Doc]], Iterable[Doc]]
Receipt = Dict[str, Any]


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
    shard: Optional[str]  # its name within the output folder; None: the output is one file


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
    """Run a stage over every `.spacy` file of a corpus.

    input_path (Path): A `.spacy` file or a folder of them.
    output_path (Path): A folder, where every shard keeps its name; or a `.spacy` file, which takes all.
    stage (str): Name of the stage.
    transform (Transform): Called once per shard with its Docs; gives the Docs to write.
    settings (Dict[str, Any]): What the result depends on besides the input. JSON must be able to hold it.
    vocab (Vocab): The vocabulary of the Docs.
    memory_zone (Optional[Callable[[], ContextManager[Any]]]): Opened around each shard, so that the vocabulary does
        not grow from shard to shard: `nlp.memory_zone` if the transform runs a pipeline; None: that of `vocab`.
    progress (bool): Show a bar, if the output is a terminal.
    counts (Optional[Counter[str]]): What the transform counts into. It is emptied before each shard; its
        values are kept in the receipts.
    RETURNS (ShardReport): What was done.
    RAISES (WeaknerError): If there is no input, or the output would overwrite the input or foreign files.
    """
    input_path, output_path = Path(input_path), Path(output_path)
    if output_path.suffix not in ("", SUFFIX) and not output_path.is_dir():
        expected = "a .spacy file, or a folder (a name without suffix); 'convert' makes other formats of it"
        raise WeaknerError(Errors.WK305.format(path=output_path, expected=expected))
    jobs = _make_jobs(input_path, output_path)
    check_output([input_path, *(f for job in jobs for f in job.inputs)], [output_path, *(job.output for job in jobs)])
    stale = _check_there(jobs, output_path, stage)
    tally: Counter[str] = Counter() if counts is None else counts
    fixed = {"stage": stage, "version": __version__, "settings": hash_settings(settings)}
    total: Counter[str] = Counter()
    written = docs_in = docs_out = 0
    for job in jobs:
        made_from = {**fixed, "shard": job.shard, "input": hash_files(job.inputs)}
        receipt = _finished(job, made_from)
        if receipt is None:
            tally.clear()
            with (memory_zone or vocab.memory_zone)():
                receipt = _run_job(job, transform, vocab, progress, tally, made_from)
            written += 1
        docs_in += receipt["docs_in"]
        docs_out += receipt["docs_out"]
        total.update(receipt["counts"])
    if not docs_in:
        raise WeaknerError(Errors.WK101.format(path=input_path))
    # Shards of an earlier run that had more of them would otherwise stay part of the corpus.
    for path in stale:
        path.unlink()
        receipt_path(path).unlink()
    return ShardReport(written, len(jobs) - written, docs_in, docs_out, total)


def _make_jobs(input_path: Path, output_path: Path) -> List[_Job]:
    files = corpus_files(input_path)
    if output_path.suffix == SUFFIX:
        return [_Job(files, output_path, None)]
    root = input_path if input_path.is_dir() else input_path.parent
    names = [f.relative_to(root) for f in files]
    return [_Job([f], output_path / name, name.as_posix()) for f, name in zip(files, names, strict=True)]


def _check_there(jobs: List[_Job], output_path: Path, stage: str) -> List[Path]:
    """Refuse an output where files of others are, and find the shards that this run does not make anew."""
    for job in jobs:
        # Without a receipt a file is not ours: perhaps a gold corpus, given as the output by mistake.
        if job.output.exists():
            receipt = _read_receipt(job.output)
            owner = _owner(stage, job.shard)
            # A damaged receipt does not speak of another owner: its shard is made anew.
            if receipt is None or any(receipt.get(key, value) != value for key, value in owner.items()):
                raise WeaknerError(Errors.WK300.format(path=job.output))
    if not output_path.is_dir() or not any(output_path.rglob(f"*{SUFFIX}")):
        return []
    stale = sorted(set(corpus_files(output_path)) - {job.output for job in jobs})
    for path in stale:
        owner = _owner(stage, path.relative_to(output_path).as_posix())
        receipt = _read_receipt(path)
        # Results of other runs, in a subfolder or as a single file, bear another name in their receipts.
        if receipt is None or any(receipt.get(key) != value for key, value in owner.items()):
            raise WeaknerError(Errors.WK300.format(path=path))
    return stale


def _owner(stage: str, shard: Optional[str]) -> Receipt:
    return {"stage": stage, "shard": shard}


def _read_receipt(shard: Path) -> Optional[Receipt]:
    """The receipt of a shard: None if there is none, empty if it is damaged."""
    try:
        receipt = json.loads(receipt_path(shard).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError:
        return {}
    return receipt if isinstance(receipt, dict) else {}


def _finished(job: _Job, made_from: Receipt) -> Optional[Receipt]:
    """The receipt of a shard that need not be made again."""
    receipt = _read_receipt(job.output)
    if not receipt or not job.output.exists():
        return None
    # A missing key differs from the shard None.
    if any(key not in receipt or receipt[key] != value for key, value in made_from.items()):
        return None
    return receipt if receipt.get("output") == hash_file(job.output) else None


def _run_job(
    job: _Job,
    transform: Transform,
    vocab: Vocab,
    progress: bool,
    tally: "Counter[str]",
    made_from: Receipt,
) -> Receipt:
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
            **made_from,
            "output": hash_file(temporary),
            "docs_in": n_in,
            "docs_out": n_out,
            "counts": dict(tally),
        }
        write_text(receipt_path(job.output), json.dumps(receipt, indent=2, sort_keys=True) + "\n")
    return receipt
