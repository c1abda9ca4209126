"""Outputs that a command writes as a whole: one file, or a folder."""

import inspect
import json
import os
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import wraps
from itertools import chain, islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, Callable, Iterable, Iterator, List, Mapping, Optional, ParamSpec, Set, TypeVar, cast

from spacy.tokens import Doc

from ..code_version import code_version
from ..corpus.docbin import SUFFIX, UNFINISHED, receipt_path, write_docs
from ..corpus.language import recorded_language
from ..errors import Errors, WeaknerError
from ..files import atomic_path, check_output, replace, visible_files
from ..progress import note
from ..scratch import resolved, scratch_folder
from .hashes import hash_file, hash_model, hash_text
from .lock import locked
from .receipts import Receipt
from .stage import type_adapter

P = ParamSpec("P")
T = TypeVar("T")
SHARD_SIZE = 5000
SHARDS = f"*{SUFFIX}*"  # shards, and the receipts of shards that stages have made
RECEIPT = ".receipt.json"
_made_from: ContextVar[Mapping[str, Any]] = ContextVar("made_from")  # of the output that is being made
_SYSTEM = (".DS_Store", "Thumbs.db", RECEIPT)  # the first two are written by file managers
_SHARD_NAME = "part-{:05d}" + SUFFIX


def is_folder(path: Path) -> bool:
    """Return True if an output is a folder of shards: it is an existing folder, or its name has no suffix."""
    return path.is_dir() or not path.suffix


def making(
    output: str, *reads: str, replaces: str = "*", folder: bool = False, **keys: Callable[[Any], Any]
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Make a function follow the one rule for outputs. What it has made from the same inputs and settings is skipped;
    what it has made from others is replaced; anything else is refused without its argument `overwrite`. The output is
    locked meanwhile.

    output (str): Its argument that is the output: a file, or a folder.
    reads (str): Its arguments that are inputs: a path, the name of a model, or several.
    replaces (str): Pattern of the files in an output folder that it replaces or removes.
    folder (bool): It always makes a folder, which never replaces a file.
    keys (Callable[[Any], Any]): By argument: what of its value the result depends on, instead of the value.
    RETURNS (Callable[[Callable[P, T]], Callable[P, T]]): The decorator of the function. What it returns is stored in a
        receipt.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        signature, keys_ = inspect.signature(function), {**dict.fromkeys(reads, input_keys), **keys}

        @wraps(function)
        def make(*args: P.args, **kwargs: P.kwargs) -> T:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            given = dict(bound.arguments)
            path, overwrite, progress = Path(given.pop(output)), given.pop("overwrite"), given.pop("progress", False)
            inputs = [Path(name) for key in reads for name in _several(given[key]) if Path(name).exists()]
            check_output([file_ for name in inputs for file_ in (name, *visible_files(name))], [path])
            report = type_adapter(signature.return_annotation)
            with locked(path):
                settings = {k: keys_[k](v) if k in keys_ and v is not None else v for k, v in given.items()}
                settings.pop("gpu_id", None)
                key = hash_text(json.dumps(settings, sort_keys=True, default=_plain))
                made_from = {"stage": function.__name__, "code": code_version(), "made_from": key}
                receipt = finished(path, made_from, overwrite, replaces, folder=folder)
                with suppress(ValueError, KeyError):  # else it is made again
                    if receipt is not None and receipt.report["language"] == _language(path):
                        returned = report.validate_python(receipt.report["returned"])
                        note(f"{path} was already finished, so nothing was done", progress)
                        return cast(T, returned)
                is_new = not _files(path, replaces)
                token = _made_from.set(made_from)
                try:
                    made = function(*args, **kwargs)
                finally:
                    _made_from.reset(token)
                returned = {"returned": report.dump_python(made, mode="json"), "language": _language(path)}
                write_receipt(path, made_from, returned, replaces)
                if not is_new:
                    why = "" if overwrite else ", since it had been made from other inputs, with other settings or code"
                    note(f"{path} was replaced{why}", progress)
            return made

        return make

    return decorate


def finished(
    output: Path, made_from: Mapping[str, Any], overwrite: Optional[bool], replaces: str = "*", *, folder: bool = False
) -> Optional[Receipt]:
    """Return the receipt of an output that need not be made again; None: it may be made. Refuse an output that
    something else has made, or that was edited, unless it may be overwritten (None: the command has no such option).
    Files of others in a folder, or where the receipt or a folder belongs, are never overwritten. See `making`."""
    where = _receipt_path(output)
    receipt = Receipt.read(where)
    for path, is_others in ((where, receipt is not None and "stage" not in receipt.made_from), (output, folder)):
        if is_others and path.exists() and not path.is_dir():
            raise WeaknerError(Errors.WK300.format(path=path))
    receipt = receipt or Receipt({})
    ours = receipt.made_from.get("stage") == made_from["stage"]
    known, there = receipt.files if ours else {}, _files(output, replaces)
    shards = {path.name for path in _shards(output)} if replaces != "*" else set()
    if output.is_dir() and there - known.keys() - shards:
        raise WeaknerError(Errors.WK300.format(path=output / min(there - known.keys() - shards)))
    if (output / UNFINISHED).exists():
        there -= shards
    root = output if output.is_dir() else output.parent
    if any(not (root / name).is_file() or hash_file(root / name) != known.get(name) for name in there):
        if not overwrite:
            if overwrite is None:
                raise WeaknerError(Errors.WK300.format(path=output))
            how = "was changed since it was made" if known else "was not made by this command"
            raise WeaknerError(Errors.WK314.format(path=output, exists=how))
    elif there and there == known.keys() and not receipt.differences(dict(made_from)):
        return receipt
    return None


@contextmanager
def made_folder(output: Path) -> Iterator[Path]:
    """Yield a temporary path for a folder. At the end, it gets a receipt, and becomes the output. See `making`."""
    with atomic_path(output) as folder:
        yield folder
        write_receipt(folder, _made_from.get())


def write_receipt(
    output: Path, made_from: Mapping[str, Any], report: Mapping[str, Any] = MappingProxyType({}), replaces: str = "*"
) -> None:
    """Write the receipt of an output that was made."""
    root = output if output.is_dir() else output.parent
    hashes = {name: hash_file(root / name) for name in _files(output, replaces)}
    Receipt(dict(made_from), hashes, dict(report)).write(_receipt_path(output))


def write_shards(docs: Iterable[Doc], folder: Path, shard_size: int) -> int:
    """Write a folder of shards. Shards of an earlier run are replaced after all new ones are written."""
    folder = resolved(folder)
    with scratch_folder(folder) as scratch:
        aside = scratch / folder.name
        names: List[str] = []
        rest = iter(docs)
        for first in rest:
            names.append(_SHARD_NAME.format(len(names)))
            write_docs(aside / names[-1], chain([first], islice(rest, shard_size - 1)))
        if folder.exists():
            _fill(folder, aside, names)
        else:
            os.replace(aside, folder)
        return len(names)


def _fill(folder: Path, aside: Path, names: List[str]) -> None:
    """Move shards into a folder, which may also hold other files. The folder is marked as unfinished meanwhile."""
    (folder / UNFINISHED).touch()
    for path in _shards(folder) - {folder / name for name in names}:
        path.unlink()
    for name in names:
        replace(aside / name, folder / name, aside)
    (folder / UNFINISHED).unlink()


def _shards(folder: Path) -> Set[Path]:
    return set(folder.glob("part-[0-9]*" + SUFFIX))


def _receipt_path(output: Path) -> Path:
    """Return the path of an output's receipt, which is hidden, so that it is no part of a corpus."""
    if output.is_dir():
        return output / RECEIPT
    return receipt_path(output) if output.suffix == SUFFIX else output.with_name(f".{output.name}{RECEIPT}")


def _files(output: Path, pattern: str) -> Set[str]:
    """Return the name of a file that is not empty, or all files in a folder that fit a pattern: without those of file
    managers, and with links even if they lead to folders or nowhere."""
    if not output.is_dir():
        return {output.name} if output.exists() and output.stat().st_size else set()
    found = (path for path in output.rglob(pattern) if path.is_symlink() or not path.is_dir())
    return {path.relative_to(output).as_posix() for path in found if path.name not in _SYSTEM}


def _several(value: Any) -> List[Any]:
    """Return the paths and names in an argument."""
    return [*value] if isinstance(value, (list, tuple)) else [value] if value else []


def input_keys(value: Any) -> List[Any]:
    """Return what a result depends on: the names of inputs, which tell their formats, their contents, and the languages
    that are recorded beside them."""
    return [(Path(name).name, hash_model(name), _language(Path(name))) for name in _several(value)]


def _language(corpus: Path) -> Optional[List[str]]:
    language = recorded_language(corpus) if corpus.exists() else None
    return None if language is None else [*language]


def _plain(value: Any) -> Any:
    """Convert a setting for JSON. Others than paths raise an error, since a hash of them may not tell them apart."""
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value)} is no setting")
