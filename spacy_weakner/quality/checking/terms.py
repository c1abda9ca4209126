"""Term lists: what will match nearly everything, nothing, or under several labels."""

import csv
import json
import re
import shlex
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import AbstractSet, Dict, List, Sequence, Set

from ...errors import WeaknerError
from ...files import read_lines
from ...gazetteer_ruler.terms import Term, read_terms
from ...stages.labelling.sources import Source
from .findings import Findings, listed, plural
from .language import stop_words

LIMIT = 100_000  # terms that are looked at
_SHOWN = 5
_LETTER = re.compile(r"[^\W\d_]")
_DIGIT = re.compile(r"[^\W_]")
_LABELS = 0.2  # share of different values below which a column is one of labels


def check_terms(source: Source, where: str, lang: str, longest: int, findings: Findings) -> Dict[str, int]:
    """Check a term list.

    source (Source): The list, and how it will be used.
    where (str): Option and file, or the section of the source.
    lang (str): Language, for its stop words.
    longest (int): Words of the longest text; 0: not known.
    findings (Findings): Takes what is wrong.
    RETURNS (Dict[str, int]): Terms per label.
    """
    labels: Counter[str] = Counter()
    terms: List[Term] = []
    try:
        reader = read_terms(Path(source.path), source.term_label)
        terms.extend(islice(reader, LIMIT))
        if next(reader, None) is not None:
            findings.info(where, f"Large, so it was sampled: looked at the first {LIMIT:,} terms.")
    except WeaknerError as error:
        findings.error(where, str(error), _guess_columns(Path(source.path)))
    labels.update(term.label for term in terms)
    stop = {_folded(term) for term in source.stop}
    used = [t for t in terms if len(t.text) >= source.min_length and _folded(t.text) not in stop]
    _check_kinds(used, where, stop_words(lang), lang, longest, findings)
    _check_repeated(used, where, source.ambiguity, findings)
    return dict(labels)


def _check_kinds(
    terms: Sequence[Term], where: str, stops: AbstractSet[str], lang: str, longest: int, findings: Findings
) -> None:
    kinds: Dict[str, List[str]] = {}
    for term in terms:
        kind = _kind(term.text, stops, longest)
        if kind:
            kinds.setdefault(kind, []).append(term.text)
    if kinds.get("symbols"):
        _report(
            findings, where, kinds["symbols"], "without any letter or digit, which match wherever such a mark stands"
        )
    if kinds.get("digits"):
        _report(findings, where, kinds["digits"], "without any letter, which match every such number")
    if kinds.get("letter"):
        message = f"{plural(len(kinds['letter']), 'term')} of one character: {_shown(kinds['letter'])}."
        findings.warning(where, message, "Set min_length = 2 (label --min-length 2), if they match too much.")
    if kinds.get("stop"):
        _report(findings, where, kinds["stop"], f"that are stop words of '{lang}'")
    if kinds.get("long"):
        message = f"{plural(len(kinds['long']), 'term')} with more words than any text: {_shown(kinds['long'])}."
        findings.warning(where, message, "They never match; descriptions in place of names? Shorten or remove them.")


def _kind(text: str, stops: AbstractSet[str], longest: int) -> str:
    if not _LETTER.search(text):
        return "digits" if _DIGIT.search(text) else "symbols"
    # One ideogram may well be a name.
    if len(text) == 1 and text < "\u2e80":
        return "letter"
    if text.casefold() in stops:
        return "stop"
    return "long" if longest and len(text.split()) > longest else ""


def _report(findings: Findings, where: str, found: List[str], what: str) -> None:
    few = ", ".join(json.dumps(text, ensure_ascii=False) for text in dict.fromkeys(found[:_SHOWN]))
    message = f"{plural(len(found), 'term')} {what}: {_shown(found)}."
    findings.warning(where, message, f"Remove them, or set stop = [{few}{', ...' if len(found) > _SHOWN else ''}].")


def _check_repeated(terms: Sequence[Term], where: str, ambiguity: str, findings: Findings) -> None:
    by_text: Dict[str, Set[str]] = {}
    for term in terms:
        by_text.setdefault(_folded(term.text), set()).add(term.label)
    several = [f"{text} ({', '.join(sorted(found))})" for text, found in by_text.items() if len(found) > 1]
    if several and ambiguity == "all":
        message = f"{plural(len(several), 'term')} with several labels: {_shown(several)}."
        cure = 'Decide for one, or set ambiguity = "first" (the order of the list) or "drop" (none).'
        findings.warning(where, message, cure)
    repeated = len(terms) - sum(map(len, by_text.values()))
    if repeated:
        findings.info(where, f"{plural(repeated, 'term')} more than once (whatever the case); each counts once.")


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


def _shown(found: Sequence[str]) -> str:
    return listed([text if len(text) <= 60 else f"{text[:57]}..." for text in found], _SHOWN)


# A list whose columns have no names, or others


def _guess_columns(path: Path) -> str:
    """The first row that a CSV or TSV file probably needs; empty if its own are right."""
    name = path.name.lower().removesuffix(".gz")
    delimiter = {".csv": ",", ".tsv": "\t"}.get(Path(name).suffix)
    try:
        lines = list(islice(read_lines(path), 1000)) if delimiter else []
        rows = [row for row in csv.reader(lines, delimiter=delimiter or ",") if row]
        if delimiter and rows and len(rows[0]) == 1:  # perhaps the other separator
            other = next((d for d in ";\t,|" if d in lines[0]), None)
            if other is not None:
                return f"The columns seem to be separated by {other!r}: replace it by {delimiter!r}."
    except (WeaknerError, OSError, csv.Error):
        return ""
    if len(rows) < 2 or len(rows[0]) < 2 or {"label", "term"} <= {cell.strip().lower() for cell in rows[0]}:
        return ""
    width = len(rows[0])
    body = [row for row in rows[1:] if len(row) == width]
    different = [len({row[i] for row in body}) for i in range(width)]
    label = min(range(width), key=different.__getitem__)
    term = max((i for i in range(width) if i != label), key=different.__getitem__)
    if not body or (different[label] > max(2, _LABELS * len(body))):
        return ""
    header = ["label" if i == label else "term" if i == term else f"other{i}" for i in range(width)]
    # A header names its column, so its label is nobody else's.
    is_header = rows[0][label] not in {row[label] for row in body} and not re.search(r"\d", "".join(rows[0]))
    first = (delimiter or ",").join(header)
    shown = first.replace("\t", "<tab>")
    if is_header:
        return f"'{rows[0][label]}' seems to be the label and '{rows[0][term]}' the term: make the first row '{shown}'."
    command = f"sed -i '1i {first}' {shlex.quote(str(path))}"
    return f"There seems to be no header: put '{shown}' before the first row, for example: {command}"
