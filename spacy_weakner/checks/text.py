"""Checks of unlabeled text: whether it can be read, and its size."""

import re
import shlex
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import List, NamedTuple, Optional, Tuple

import spacy
from spacy.language import Language
from spacy.tokens import Doc

from ..corpus.conll import COLUMNS
from ..corpus.formats.reading import Reading, input_files
from ..corpus.sampling import LIMIT
from ..corpus.sentences import LONGEST_RUN, SentenceSplitter, longest_run
from ..corpus.weak import is_weak
from .corpora import collect
from .findings import Findings, listed, plural

_TOKENIZED = 300  # texts that are tokenized to estimate the number of words
_BATCH_WORDS = 500  # approximate number of words per step
_MARK = "\ufeff"
# An HTML entity or tag, any pair of tags such as <PER>...</PER>, but not "<user>" or "<a@b.org>", or [...](PER).
_TAGS = "a|b|br|div|em|font|h[1-6]|i|img|li|p|small|span|strong|su[bp]|table|t[dhr]|u|ul"
MARKUP = re.compile(
    rf"&(#\d+|#x[\da-f]+|[a-z]\w+);|</?({_TAGS})(\s[^<>]*=[^<>]*|\s*)/?>|<([a-z]\w*)(\s[^<>]*)?>[^<>]*</\4>|\[[^\[\]]+\]\([^()\s]+\)",
    re.IGNORECASE,
)
# The end of a sentence, and the beginning of the next one.
_END = re.compile(r"\w[.?!] +[^\W\d_a-z]")
_WRAPPED, _INNER = 0.3, 0.1  # shares of lines
_ABBREVIATED, _SHORT_WORD = 3, 10  # least number of sentences that end after an abbreviation; most characters of one
_COLUMNS = re.compile(r"\S+(\s+\S+)*[ \t]+(O|[BIESLU]-\S+)")  # not W-2, M-16


class CheckedText(NamedTuple):
    """Unlabeled text: the texts that were read; their total number, possibly estimated; the mean number of tokens; the
    number of words of the longest text, split at white space; and whether all texts were read."""

    where: str
    texts: List[str]
    total: int
    words: float
    longest: int
    exact: bool


def read_text(
    path: Path, nlp: Language, findings: Findings, limit: int = LIMIT, columns: Tuple[int, int] = COLUMNS
) -> Optional[CheckedText]:
    """Read about `limit` texts, with words counted by the tokenizer of `nlp`; return None if there are no texts."""
    where, texts = f"--text {path}", []
    total, exact = 0, True
    plain = spacy.blank("xx")
    plain.tokenizer = lambda text: Doc(plain.vocab, words=[text], spaces=[False])  # fast, and keeps all white space
    reading = Reading(sentences=False, misaligned="drop", columns=columns)
    with findings.guard(where):
        files = input_files(path)
        for file_, format_ in files:
            n = max(100, limit // len(files))
            docs, counts = collect(file_, format_, plain, reading, where, findings, n)
            if counts.annotated:  # spans, and their overlaps, are found only in tokens
                docs, counts = collect(file_, format_, nlp, reading, where, findings, n)
            _check_annotations(file_, docs, where, findings)
            found = [doc.text.strip() for _, doc in docs]
            _check_marks(file_, [place for place, doc in docs if _MARK in doc.text], where, findings)
            if format_ == "text":
                _check_content(file_, found, where, findings)
                _check_lines(file_, found, where, findings)
            is_long = [longest_run(text, nlp) > 0 for text in found]
            _check_long(file_, [place for (place, _), long in zip(docs, is_long, strict=True) if long], where, findings)
            texts += [text for text, long in zip(found, is_long, strict=True) if not long]
            total += counts.total
            exact = exact and not counts.sampled
            if counts.sampled:
                findings.info(where, f"Large file, so only a sample was checked ({counts.sampled} of {file_}).")
        if not texts and not any(finding.where == where for finding in findings.sorted()):
            cure = 'Give one text a line (.txt), or rows with "text" (.jsonl).'
            findings.error(where, f"{path} contains no text.", cure)
    if not texts:
        return None
    _check_abbreviations(texts, nlp, where, findings)
    longest = max(len(text.split()) for text in texts)
    return CheckedText(where, texts, max(total, len(texts)), _mean_words(texts, nlp), longest, exact)


def _check_annotations(path: Path, docs: List[Tuple[str, Doc]], where: str, findings: Findings) -> None:
    n = sum(bool(doc.ents) and not is_weak(doc) for _, doc in docs)
    if n:
        message = f"{path}: texts with entities, which are not read from --text: {n:,} of {len(docs):,}."
        findings.warning(where, message, "To learn from them, give these texts as --gold.")


def _check_marks(path: Path, places: List[str], where: str, findings: Findings) -> None:
    if places:
        message = f"{path}: byte order marks within the text ({places[0]}, {plural(len(places), 'line')} in all)."
        cure = f"Files were probably joined. Remove the marks: sed -i 's/\\xEF\\xBB\\xBF/ /g' {shlex.quote(str(path))}"
        findings.warning(where, message, cure)


def _check_long(path: Path, places: List[str], where: str, findings: Findings) -> None:
    if places:
        signs = f"more than {LONGEST_RUN:,} characters without white space"
        message = f"{path}: {plural(len(places), 'text')} with {signs} ({listed(places)}) will be left out."
        findings.warning(where, message, "If these texts are needed, insert spaces.")


def _check_content(path: Path, texts: List[str], where: str, findings: Findings) -> None:
    first = texts[:50]
    if first and all(text.lstrip().startswith("{") and text.rstrip().endswith("}") for text in first):
        findings.error(where, f"{path} seems to contain JSON rows.", "Rename it to .jsonl.")
    elif len(first) > 4 and sum(_COLUMNS.fullmatch(text.strip()) is not None for text in first) > 0.8 * len(first):
        findings.error(where, f"{path} seems to contain columns of tokens and tags.", "Rename it to .conll.")


def _check_lines(path: Path, texts: List[str], where: str, findings: Findings) -> None:
    """Report lines that are parts of paragraphs."""
    n = len(texts)
    continued = sum(a[-1:] not in ".?!:" and b[:1].islower() for a, b in pairwise(texts))
    # Texts in lower case, such as queries, rarely hold the end of a sentence before a capital.
    if n > 4 and continued > _WRAPPED * n and sum(map(bool, map(_END.search, texts))) > _INNER * n:
        message = f"{path}: {continued:,} of {n:,} lines seem to continue in the next line, but each line is one text."
        findings.warning(where, message, "Join the lines of each paragraph, and words that are divided by hyphens.")


def _check_abbreviations(texts: List[str], nlp: Language, where: str, findings: Findings) -> None:
    """Report short words with a period after which sentences end although the next one begins in lower case."""
    splitter, ended, words = SentenceSplitter(nlp), Counter[str](), Counter[str]()
    for text in _some(texts):
        text, place = " ".join(text.split()), 0
        words.update(text.split())
        sentences = [sentence.text for sentence in splitter.split(text)]
        for sentence, following in pairwise(sentences):
            found_at = text.find(sentence, place)
            if found_at < 0:  # a tokenizer that changes the text
                break
            place = found_at + len(sentence)
            if sentence.endswith(".") and following[:1].islower():
                start = text.rfind(" ", 0, place) + 1
                inside = text[place] != " "  # as in "Z.n."
                ended[text[start:].split()[0] if inside else text[start:place]] += 1
    found = [
        word
        for word, n in ended.most_common()
        if n >= _ABBREVIATED and word.endswith(".") and len(word) <= _SHORT_WORD and words[word[:-1]] < n
    ]
    if found:
        message = f"Sentences end after words that may be abbreviations ({len(found)}): {listed(found)}."
        cure = f"Name those that are: --abbreviations '{', '.join(found)}' (in a project: vars.abbreviations)."
        findings.warning(where, message, cure)


def _some(texts: List[str]) -> List[str]:
    return [text for text in texts[:: max(1, len(texts) // _TOKENIZED)] if len(text) < 10_000][:_TOKENIZED]


def _mean_words(texts: List[str], nlp: Language) -> float:
    mean = sum(len(text.split()) for text in texts) / len(texts)
    some = _some(texts)
    words = sum(len(text.split()) for text in some)
    if not words:
        return mean
    return mean * sum(len(nlp.tokenizer(" ".join(text.split()))) for text in some) / words


def tell_size(text: CheckedText, findings: Findings) -> None:
    """Report the size of the text."""
    words = round(text.total * text.words)
    about, steps = "" if text.exact else "about ", plural(-(-words // _BATCH_WORDS), "step")
    message = f"{about}{text.total:,} texts with about {words:,} words; one pass over them takes about {steps} of "
    findings.info(text.where, f"{message}{_BATCH_WORDS:,} words.")
