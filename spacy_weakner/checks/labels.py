"""Comparison of the labels of all files: different spellings would silently be learned as separate labels."""

import re
import shlex
from difflib import get_close_matches
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from .findings import Findings, listed, plural

_EVALUATED = ("gold", "dev", "test")
FEW = 5  # entities of a label below which it can hardly be learned
_CLOSE = 0.85
_SHORTEST = 3  # letters of an abbreviation
_OUTSIDE = {"o", "0", "none", "null", "outside", "no_entity", "not_an_entity", "-", "_"}
_PREFIX = re.compile(r"^[BIESLU]-(?=.)")


class Column(NamedTuple):
    """The labels of one file ("gold", "dev", "test", "terms" or the name of a source), and how often each occurs; None
    if it is declared but was not counted. If only a part of the file was read, some labels may be missing."""

    name: str
    where: str
    counts: Mapping[str, Optional[int]]
    unit: str = "entity"
    is_part: bool = False


def label_table(columns: Sequence[Column]) -> Tuple[List[str], List[List[str]]]:
    """Return the labels as a table: header and rows."""
    labels = sorted({label for column in columns for label in column.counts})
    rows = []
    for label in labels:
        cells = (column.counts.get(label, 0) for column in columns)
        rows.append([label, *("yes" if n is None else f"{n:,}" if n else "-" for n in cells)])
    return ["Label", *(column.name for column in columns)], rows


def check_labels(columns: Sequence[Column], findings: Findings) -> None:
    for column in columns:
        _check_spellings(column, findings)
    known = next((c for name in _EVALUATED for c in columns if c.name == name and c.counts), None)
    if known is None:
        return
    for column in columns:
        if column is not known and column.name in _EVALUATED:
            _check_evaluated(column, known, findings)
        elif column is not known and column.counts:
            _check_against(column, known, findings)
    _check_coverage(columns, known, findings)


def nearest(label: str, others: Sequence[str]) -> Optional[str]:
    """Return the label that another one probably refers to, or None."""
    folded = {_folded(other): other for other in reversed(others)}
    key = _folded(label)
    if key in folded:
        return folded[key]
    near = get_close_matches(key, list(folded), n=1, cutoff=_CLOSE)
    if near:
        return folded[near[0]]
    return next((other for other in others if _is_short_for(other, label) or _is_short_for(label, other)), None)


def _is_short_for(short: str, label: str) -> bool:
    """Return True for "PER" and "Person", but not for "Age" and "Age_range", which is another label."""
    a, b = (_PREFIX.sub("", text).casefold() for text in (short, label))
    return _SHORTEST <= len(a) < len(b) and b.startswith(a) and b[len(a)].isalpha()


def _folded(label: str) -> str:
    text = re.sub(r"[\W_]+", "", _PREFIX.sub("", label).casefold())
    if len(text) > 3 and text.endswith("ies"):
        return f"{text[:-3]}y"
    return text[:-1] if len(text) > 3 and text.endswith("s") and not text.endswith("ss") else text


def _check_spellings(column: Column, findings: Findings) -> None:
    seen: Dict[str, str] = {}
    for label in sorted(column.counts, key=lambda label: -(column.counts[label] or 0)):
        other = seen.setdefault(_folded(label), label)
        if other != label:
            message = f"The labels {_counted(column, label)} and {_counted(column, other)} differ only in spelling."
            findings.warning(column.where, message, "If they mean the same, use one spelling.")
    outside = [_counted(column, label) for label in column.counts if label.casefold() in _OUTSIDE]
    if outside:
        message = f"Labels that seem to mean 'no entity', and would be learned like others: {listed(outside)}."
        findings.warning(column.where, message, "Remove these spans: what is not annotated is no entity.")
    prefixed = [label for label in column.counts if _PREFIX.match(label)]
    if prefixed:
        message = f"Labels with a tag prefix: {listed(prefixed)}."
        findings.warning(column.where, message, "Labels of spans have no prefix: write 'PER', not 'B-PER'.")


def _unlike(column: Column, known: Column) -> Tuple[Dict[str, str], List[str]]:
    """Return labels that probably have another name in a second file, with that name, and others that it lacks."""
    unknown = [label for label in column.counts if label not in known.counts]
    near = {label: nearest(label, list(known.counts)) for label in unknown}
    renamed = {label: other for label, other in near.items() if other is not None and other not in column.counts}
    return renamed, [label for label in unknown if label not in renamed]


def _check_renamed(
    column: Column, known: Column, renamed: Mapping[str, str], findings: Findings, effect: str = ""
) -> None:
    """Report labels that probably have another name. Unless the files share no label, a similar name may be right."""
    share_labels = not known.counts.keys().isdisjoint(column.counts)
    for label, near in renamed.items():
        message = f"The label {_counted(column, label)} does not occur in {known.name}; the nearest label there is "
        cure, is_guess = _mapping(column, label, near), _folded(label) != _folded(near)
        report = findings.warning if known.is_part or (is_guess and share_labels) else findings.error
        cure = f"If they mean the same: {cure}" if is_guess else cure
        report(column.where, f"{message}{_counted(known, near)}{effect}.", cure)


def _check_evaluated(column: Column, known: Column, findings: Findings) -> None:
    renamed, others = _unlike(column, known)
    _check_renamed(column, known, renamed, findings, ": all these entities would count as missed")
    if others:
        shown = listed([_counted(column, label) for label in others])
        message = f"Labels that do not occur in {known.name}, so they cannot be learned from it: {shown}."
        findings.warning(column.where, message, f"Add examples to {known.name}, or leave these labels out.")
    absent = [label for label in known.counts if label not in column.counts]
    if absent and column.counts:
        message = f"Labels of {known.name} that do not occur here, so they are not scored: {listed(absent)}."
        findings.info(column.where, message)


def _check_against(column: Column, known: Column, findings: Findings) -> None:
    """Check labels of sources against known ones."""
    problem = findings.warning if known.is_part else findings.error
    renamed, others = _unlike(column, known)
    _check_renamed(column, known, renamed, findings)
    shown = listed([_counted(column, label) for label in others])
    if others and len(others) == len(column.counts):
        message = f"None of its labels occurs in {known.name}: {shown}. {known.name} has: {listed(list(known.counts))}."
        problem(column.where, message, _mapping(column, others[0], f"NAME IN {known.name.upper()}"))
    elif others:
        message = f"Labels that do not occur in {known.name}, so the packaged pipeline will hardly ever predict them: "
        cure = f"If you need them, annotate some in {known.name}; a term list alone still assigns them."
        findings.warning(column.where, f"{message}{shown}.", cure)


def _mapping(column: Column, label: str, other: str) -> str:
    """Return advice for a label that must be renamed."""
    if column.name in _EVALUATED:
        mapping = shlex.quote(f"{label}={other}")
        return f"Spell it '{other}' in {column.name} as well: 'spacy weakner convert' renames it with --map {mapping}"
    if column.name == "terms":
        declared = f'declare the list in a sources file (--sources) with labels = {{"{label}": "{other}"}}'
        return f"Write '{other}' in the list, or {declared}"
    return (
        f'In [sources.{column.name}]: labels = {{"{label}": "{other}", ...}} (labels that are not listed are left out)'
    )


def _check_coverage(columns: Sequence[Column], known: Column, findings: Findings) -> None:
    weak = [column for column in columns if column.name not in _EVALUATED]
    alone = [label for label in known.counts if not any(label in column.counts for column in weak)]
    if any(column.counts for column in weak) and alone and len(alone) < len(known.counts):
        message = f"Labels that no term or source assigns, so they are learned from gold alone: {listed(alone)}."
        findings.info(known.where, message)
    few = sorted(label for label, n in known.counts.items() if n is not None and n < FEW)
    if few and known.name == "gold":
        shown = listed([_counted(known, label) for label in few])
        message = f"Labels with fewer than {FEW} entities, which will hardly be learned: {shown}."
        findings.warning(known.where, message, "Annotate more of them, or leave them out.")


def _counted(column: Column, label: str) -> str:
    """Return a label with its count: "'PER' (9 entities)"."""
    n, many = column.counts[label], "entities" if column.unit == "entity" else f"{column.unit}s"
    return f"'{label}' ({plural(n, column.unit, many)})" if n is not None else f"'{label}' (declared)"
