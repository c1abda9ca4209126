"""Damages files and looks at what the commands make of them: an error of this package, on one line, or success.

    python -m tools.fuzz.inputs --n 10000 --seed 0
    python -m tools.fuzz.inputs --only jsonl --replay fuzz-findings/jsonl-17/a.jsonl

Nothing else counts: no other exception, no warning, no run longer than 20 seconds, no output that is not whole. What
failed is kept in a folder, with the traceback.
"""

import argparse
import io
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Dict, NamedTuple, Optional

import spacy
import typer
from spacy.tokenizer import Tokenizer

from spacy_weakner.corpus.counts import RowCounts
from spacy_weakner.corpus.docbin import read_docs
from spacy_weakner.corpus.formats.reading import Reading, read_corpus
from spacy_weakner.errors import LONGEST

from .kind import OUT, Files, Kind
from .kinds import KINDS

SECONDS = 20
GOOD, REFUSED = "success", "error of ours"


class Outcome(NamedTuple):
    """What came of an input."""

    result: str
    details: str = ""

    @property
    def is_finding(self) -> bool:
        """RETURNS (bool): Whether this must not happen."""
        return self.result not in (GOOD, REFUSED)


class _TooLong(BaseException):
    pass


def try_files(kind: Kind, files: Files) -> Outcome:
    """Write files, run what reads them, and judge what comes of it."""
    with TemporaryDirectory(prefix="fuzz") as name:
        folder = Path(name)
        for path, data in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(data)
        return _run(kind, folder)


def _run(kind: Kind, folder: Path) -> Outcome:
    printed, errors = io.StringIO(), io.StringIO()
    code: Any = 0
    before = signal.getsignal(signal.SIGTERM)
    signal.signal(signal.SIGALRM, _alarm)
    signal.alarm(SECONDS)
    try:
        with redirect_stdout(printed), redirect_stderr(errors), warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                code = kind.run(folder) or 0
            except typer.Exit as error:
                code = error.exit_code
    except _TooLong:
        return Outcome("too long", traceback.format_exc())
    except Exception as error:
        return Outcome(type(error).__name__, traceback.format_exc())
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGTERM, before)
    return _judge(kind, folder, int(code), errors.getvalue())


def _alarm(*_: object) -> None:
    raise _TooLong


def _judge(kind: Kind, folder: Path, code: int, errors: str) -> Outcome:
    # A check of files that says what is wrong with them has done its work, and printed it elsewhere.
    message = errors.strip("\n")
    leftovers = [str(path) for path in folder.rglob("*.tmp")]
    if leftovers:
        return Outcome("leftovers", "\n".join([*leftovers, message]))
    if code == 0:
        return _whole(kind, folder)
    if code != 1 or (not message and kind.run.__name__ != "run"):
        return Outcome(f"exit code {code}", message)
    if message and (message.count("✘") != 1 or len(message.splitlines()) > 1 or len(message) > LONGEST + 20):
        return Outcome("message", message)
    reports = () if kind.to else (".json",)
    if not kind.kept and [path for path in folder.glob(f"{OUT}*") if path.suffix not in reports and not _is_bare(path)]:
        return Outcome("output after an error", message)
    return Outcome(REFUSED, message)


def _is_bare(path: Path) -> bool:
    return path.is_dir() and not any(inner.suffix == ".spacy" for inner in path.rglob("*"))


def _whole(kind: Kind, folder: Path) -> Outcome:
    nlp = spacy.blank("xx")
    nlp.tokenizer = Tokenizer(nlp.vocab)  # only of white space, so that it can take any text
    for path in folder.glob(f"{OUT}*"):
        try:
            if kind.to:
                docs = read_corpus(path, nlp, Reading(misaligned="drop"), format=kind.to, counts=RowCounts())
            elif path.suffix == ".spacy" or path.is_dir():
                docs = read_docs(path, nlp.vocab)
            else:
                continue
            for _ in docs:
                pass
        except Exception:
            return Outcome("output that cannot be read", traceback.format_exc())
    return Outcome(GOOD)


def damaged(kind: Kind, seed: int) -> Files:
    """The files of a kind, one of them damaged."""
    files = kind.files()
    return {**files, kind.target: kind.mutator(Random(f"{kind.name} {seed}"), files[kind.target])}


def fuzz(n: int, seed: int, only: Optional[str] = None, findings: Optional[Path] = None) -> Dict[str, Counter[str]]:
    """Try inputs of all kinds in turn."""
    kinds = [KINDS[only]] if only else list(KINDS.values())
    results: Dict[str, Counter[str]] = {kind.name: Counter() for kind in kinds}
    for i in range(n):
        kind, number = kinds[i % len(kinds)], seed * 1_000_000 + i // len(kinds)
        files = damaged(kind, number)
        outcome = try_files(kind, files)
        results[kind.name][outcome.result] += 1
        if outcome.is_finding and findings is not None:
            where = findings / f"{kind.name}-{number}"
            where.mkdir(parents=True, exist_ok=True)
            (where / Path(kind.target).name).write_bytes(files[kind.target])
            (where / "outcome.txt").write_text(
                f"{outcome.result}\n{outcome.details}", encoding="utf-8", errors="replace"
            )
            shown = outcome.details.strip().splitlines()[-1:] or [""]
            _say(f"{where}: {outcome.result}: {shown[0][:200]}")
    return results


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=1000, help="how many inputs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=sorted(KINDS), help="a single kind")
    parser.add_argument("--replay", type=Path, help="a damaged file of the kind, to try again")
    parser.add_argument("--findings", type=Path, default=Path("fuzz-findings"), help="folder for what fails")
    options = parser.parse_args()
    spacy.blank("xx")  # loads all plugins, which takes its time
    if options.replay is not None:
        if options.only is None:
            parser.error("--replay needs --only")
        kind = KINDS[options.only]
        outcome = try_files(kind, {**kind.files(), kind.target: options.replay.read_bytes()})
        _say(f"{outcome.result}\n{outcome.details}")
        raise SystemExit(outcome.is_finding)
    begun = time.monotonic()
    results = fuzz(options.n, options.seed, options.only, options.findings)
    for name, found in results.items():
        _say(f"{name:18} {sum(found.values()):7} {dict(found)}")
    bad = sum(n for found in results.values() for result, n in found.items() if result not in (GOOD, REFUSED))
    _say(f"{options.n} inputs, {bad} findings, {time.monotonic() - begun:.0f} s")
    raise SystemExit(bad > 0)


if __name__ == "__main__":
    main()
