"""Text without labels: can it be read, and how much is it."""

import re
import shlex
from itertools import islice
from pathlib import Path
from typing import Iterator, List, NamedTuple, Optional, Tuple

from spacy.language import Language
from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..corpus.conll import COLUMNS
from ..corpus.docbin import read_docs
from ..corpus.formats.reading import check_lines, input_files, read_corpus
from ..corpus.jsonl import parse_row
from ..corpus.rows import RowError, refuse_foreign, show
from .corpora import Problems
from .findings import Findings, percent, plural
from .sampling import LIMIT, SampledLines

_TOKENISED = 300  # texts that are tokenised to learn how many tokens a character makes
_MARK = "\ufeff"
_READ_IN_PARTS = ("jsonl", "text", "spacy")
_COLUMNS = re.compile(r"\S+(\s+\S+)*[ \t]+(O|[BIESLU]-\S+)")


class CheckedText(NamedTuple):
    """Text without labels.

    where (str): Option and file.
    texts (List[str]): Those that were looked at.
    total (int): How many there are, perhaps estimated.
    words (float): Tokens of one, on average.
    longest (int): Words of the longest, at white space.
    exact (bool): Whether all were looked at.
    """

    where: str
    texts: List[str]
    total: int
    words: float
    longest: int
    exact: bool


def read_text(
    path: Path, nlp: Language, findings: Findings, limit: int = LIMIT, columns: Tuple[int, int] = COLUMNS
) -> Optional[CheckedText]:
    """Read text.

    path (Path): File or folder.
    nlp (Language): Its tokenizer counts words.
    findings (Findings): Takes what is wrong.
    limit (int): How many lines are looked at.
    columns (Tuple[int, int]): Columns of CoNLL files that hold tokens and tags.
    RETURNS (Optional[CheckedText]): What could be read; None if nothing.
    """
    where, texts = f"--text {path}", []
    total, exact = 0, True
    with findings.guard(where):
        files = input_files(path)
        for file_, format_ in files:
            with findings.guard(where):
                some = max(100, limit // len(files))
                if format_ in _READ_IN_PARTS:
                    found, n, note = _read_file(file_, format_, some, where, findings)
                else:
                    docs = read_corpus(file_, nlp, format=format_, misaligned="drop", columns=columns)
                    found, n, note = _some(docs, some)
                texts += found
                total += n
                exact = exact and not note
                if note:
                    findings.info(where, f"Large, so it was sampled: {note} of {file_}.")
        if not texts and not any(finding.where == where for finding in findings.sorted()):
            findings.error(
                where, f"{path} holds no text.", 'Give one text a line (.txt), or rows with "text" (.jsonl).'
            )
    if not texts:
        return None
    longest = max(len(text.split()) for text in texts)
    return CheckedText(where, texts, max(total, len(texts)), _mean_words(texts, nlp), longest, exact)


def _read_file(path: Path, format: str, limit: int, where: str, findings: Findings) -> Tuple[List[str], int, str]:
    """RETURNS (Tuple[List[str], int, str]): Texts, how many there are in all, and how much was looked at."""
    if format == "spacy":
        return _some(read_docs(path, Vocab()), limit)
    check_lines(path, format)
    lines, problems = SampledLines(path, limit), Problems(path)
    texts, marks = [], []
    for line in lines:
        if _MARK in line.text:
            marks.append(line.place)
        try:
            texts.append(_row_text(line.text) if format == "jsonl" and line.text.strip() else line.text)
        except RowError as error:
            problems.add(line.place, str(error))
    problems.report(where, findings)
    if marks:
        message = f"{path}: byte order marks within the text ({marks[0]}, {plural(len(marks), 'line')} in all)."
        cure = f"Files were joined. Remove the marks: sed -i 's/\\xEF\\xBB\\xBF//g' {shlex.quote(str(path))}"
        findings.warning(where, message, cure)
    texts = [text for text in texts if text.strip()]
    if format == "text":
        _check_content(path, texts, where, findings)
    share = len(texts) / max(1, lines.looked_at)
    return texts, round(share * (lines.total or lines.looked_at)), lines.note


def _some(docs: Iterator[Doc], limit: int) -> Tuple[List[str], int, str]:
    texts = [doc.text.strip() for doc in islice(docs, limit)]
    more = sum(1 for _ in docs)
    return texts, len(texts) + more, f"looked at the first {limit:,} documents" if more else ""


def _row_text(line: str) -> str:
    row = parse_row(line)
    refuse_foreign(row)
    if isinstance(row.get("text"), str):
        return str(row["text"])
    tokens = row.get("tokens")
    if isinstance(tokens, list) and all(isinstance(token, str) for token in tokens):
        return " ".join(tokens)
    if "text" in row or "tokens" in row:
        raise RowError(f"'text' must be a string, or 'tokens' a list of strings, got {show(row)}")
    raise RowError(f"neither 'tokens' nor 'text', only: {', '.join(row) or 'nothing'}")


def _check_content(path: Path, texts: List[str], where: str, findings: Findings) -> None:
    first = texts[:50]
    if first and all(text.lstrip().startswith("{") and text.rstrip().endswith("}") for text in first):
        findings.error(where, f"{path} seems to hold JSON rows.", "Rename it to .jsonl, so that it is read as such.")
    elif len(first) > 4 and sum(_COLUMNS.fullmatch(text.strip()) is not None for text in first) > 0.8 * len(first):
        findings.error(where, f"{path} seems to hold columns of tokens and tags.", "Rename it to .conll.")


def _mean_words(texts: List[str], nlp: Language) -> float:
    mean = sum(len(text.split()) for text in texts) / len(texts)
    some = [text for text in texts[:: max(1, len(texts) // _TOKENISED)] if len(text) < 10_000][:_TOKENISED]
    words = sum(len(text.split()) for text in some)
    if not words:
        return mean
    return mean * sum(len(nlp.tokenizer(" ".join(text.split()))) for text in some) / words


def check_steps(text: CheckedText, max_steps: Optional[int], batch_words: int, findings: Findings) -> None:
    """Compare the steps of the training with the size of the text.

    text (CheckedText): The text.
    max_steps (Optional[int]): The steps; None: chosen later.
    batch_words (int): Words of an update.
    findings (Findings): Takes what is wrong.
    """
    words = text.total * text.words
    about = "" if text.exact else "about "
    size = f"{about}{text.total:,} texts with about {round(words):,} words"
    one = -(-round(words) // batch_words)
    if max_steps is None or max_steps >= one:
        findings.info(
            text.where, f"{size}; one pass over them takes about {plural(one, 'step')} of {batch_words:,} words."
        )
        return
    findings.warning(
        f"--max-steps {max_steps}",
        f"{plural(max_steps, 'step')} of {batch_words:,} words are less than one pass over the text "
        f"({percent(max_steps, one)} of it: {size}): "
        "most of what is labelled would never be learned from.",
        f"--max-steps {one} for one pass, {3 * one} for three; or give less text.",
    )
