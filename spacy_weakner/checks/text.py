"""Text without labels: can it be read, and how much is it."""

import re
import shlex
from pathlib import Path
from typing import List, NamedTuple, Optional, Tuple

import spacy
from spacy.language import Language
from spacy.tokens import Doc

from ..corpus.conll import COLUMNS
from ..corpus.formats.reading import Reading, input_files, read_corpus
from ..corpus.sampling import LIMIT
from .findings import Collected, Findings, percent, plural

_TOKENIZED = 300  # texts that are tokenized to estimate the number of words
_BATCH_WORDS = 500  # of a step, about
_MARK = "\ufeff"
_COLUMNS = re.compile(r"\S+(\s+\S+)*[ \t]+(O|[BIESLU]-\S+)")


class CheckedText(NamedTuple):
    """Text without labels.

    where (str): Option and file.
    texts (List[str]): Those that were looked at.
    total (int): How many there are, perhaps estimated.
    words (float): Mean number of tokens.
    longest (int): Words of the longest, at white space.
    exact (bool): True if all were looked at.
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
    """Read about `limit` texts, of which the tokenizer of `nlp` counts the words; None if there are none."""
    where, texts = f"--text {path}", []
    total, exact = 0, True
    with findings.guard(where):
        files = input_files(path)
        for file_, format_ in files:
            found, n, note = _read_file(file_, format_, max(100, limit // len(files)), columns, where, findings)
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


def _read_file(
    path: Path, format: str, limit: int, columns: Tuple[int, int], where: str, findings: Findings
) -> Tuple[List[str], int, str]:
    """Texts, about how many there are in all, and how much was looked at."""
    nlp = spacy.blank("xx")
    nlp.tokenizer = lambda text: Doc(nlp.vocab, words=[text], spaces=[False])  # fast, and keeps all white space
    counts, texts, marks = Collected(), [], []
    with findings.guard(where):
        reading = Reading(sentences=False, misaligned="drop", columns=columns)
        for doc in read_corpus(path, nlp, reading, format=format, counts=counts, limit=limit):
            texts.append(doc.text.strip())
            if _MARK in doc.text:
                marks.append(counts.place)
    counts.report(where, findings)
    if marks:
        message = f"{path}: byte order marks within the text ({marks[0]}, {plural(len(marks), 'line')} in all)."
        cure = f"Files were joined. Remove the marks: sed -i 's/\\xEF\\xBB\\xBF//g' {shlex.quote(str(path))}"
        findings.warning(where, message, cure)
    if format == "text":
        _check_content(path, texts, where, findings)
    return texts, counts.total, counts.sampled


def _check_content(path: Path, texts: List[str], where: str, findings: Findings) -> None:
    first = texts[:50]
    if first and all(text.lstrip().startswith("{") and text.rstrip().endswith("}") for text in first):
        findings.error(where, f"{path} seems to hold JSON rows.", "Rename it to .jsonl, so that it is read as such.")
    elif len(first) > 4 and sum(_COLUMNS.fullmatch(text.strip()) is not None for text in first) > 0.8 * len(first):
        findings.error(where, f"{path} seems to hold columns of tokens and tags.", "Rename it to .conll.")


def _mean_words(texts: List[str], nlp: Language) -> float:
    mean = sum(len(text.split()) for text in texts) / len(texts)
    some = [text for text in texts[:: max(1, len(texts) // _TOKENIZED)] if len(text) < 10_000][:_TOKENIZED]
    words = sum(len(text.split()) for text in some)
    if not words:
        return mean
    return mean * sum(len(nlp.tokenizer(" ".join(text.split()))) for text in some) / words


def check_steps(text: CheckedText, max_steps: Optional[int], findings: Findings) -> None:
    """Compare the steps of the training with the size of the text."""
    words = text.total * text.words
    about = "" if text.exact else "about "
    size = f"{about}{text.total:,} texts with about {round(words):,} words"
    one = -(-round(words) // _BATCH_WORDS)
    if max_steps is None or max_steps >= one:
        findings.info(
            text.where, f"{size}; one pass over them takes about {plural(one, 'step')} of {_BATCH_WORDS:,} words."
        )
        return
    findings.warning(
        f"--max-steps {max_steps}",
        f"{plural(max_steps, 'step')} of {_BATCH_WORDS:,} words are less than one pass over the text "
        f"({percent(max_steps, one)} of it: {size}): "
        "most of the labeled text would not be used.",
        f"--max-steps {one} for one pass, {3 * one} for three; or give less text.",
    )
