"""The labels of declared sources, without running any of them."""

from collections import Counter
from pathlib import Path
from typing import Any, Dict, Iterable, List, Optional, Tuple

import srsly
from spacy.util import get_package_path

from ..corpus.formats.reading import file_format
from ..corpus.jsonl import parse_row
from ..corpus.rows import DEFAULT_SOURCE, RowError, weak_lists
from ..labeling.alignment import read_mentions
from ..labeling.sources import (
    CorpusSource,
    PatternSource,
    PipelineSource,
    Source,
    TermSource,
    declared_source,
    read_sections,
)
from .corpora import Problems
from .findings import Findings, listed
from .labels import Column, nearest
from .matching import Seen
from .sampling import SampledLines
from .terms import check_terms

# Labels of these are no entities.
_NO_ENTITIES = ("tagger", "morphologizer", "parser", "senter", "lemmatizer", "textcat", "textcat_multilabel")


def check_sources(path: Path, lang: str, seen: Seen, findings: Findings, text: Optional[Path] = None) -> List[Column]:
    """Check a sources file, and collect the labels that its sources give.

    path (Path): The file.
    lang (str): Language of the texts.
    seen (Seen): What is known of the texts.
    findings (Findings): Takes what is wrong.
    text (Optional[Path]): The texts, which may bring labels along.
    RETURNS (List[Column]): The labels of each source, by the names that they have here.
    """
    columns = []
    place, sections, folder = read_sections(path)
    for name, settings in sections.items():
        where = f"--sources {path}, [sources.{name}]"
        with findings.guard(where):
            source = declared_source(place, name, settings, folder)
            counts, unit = _labels(source, where, lang, seen, findings, text)
            if counts is not None:
                columns.append(Column(name, where, _renamed(source, counts, where, findings), unit))
    return columns


def _labels(
    source: Source, where: str, lang: str, seen: Seen, findings: Findings, text: Optional[Path]
) -> Tuple[Optional[Dict[str, Optional[int]]], str]:
    if isinstance(source, TermSource):
        return dict(check_terms(source, where, lang, seen, findings)), "term"
    if isinstance(source, PipelineSource):
        return _pipeline_labels(source), "entity"
    if isinstance(source, PatternSource):
        return _pattern_labels(Path(source.path), where, findings), "pattern"
    if isinstance(source, CorpusSource):
        is_json = text is not None and file_format(text) == "jsonl"
        return _own_labels(source, text, where, findings) if text is not None and is_json else None, "entity"
    return _answer_labels(source, where, findings), "entity"


def _renamed(
    source: Source, counts: Dict[str, Optional[int]], where: str, findings: Findings
) -> Dict[str, Optional[int]]:
    if source.labels is None:
        return counts
    for label in source.labels:
        if label not in counts:
            near = nearest(label, list(counts))
            hint = f"did you mean '{near}'? " if near else ""
            message = (
                f"'labels' renames '{label}', which the source does not give ({hint}it has: {listed(list(counts))})."
            )
            findings.warning(where, message, "Correct the name in 'labels'; labels that it does not name are left out.")
    left_out = [label for label in counts if label not in source.labels]
    if left_out:
        findings.info(where, f"'labels' does not name these, so they are left out: {listed(left_out)}.")
    renamed: Dict[str, Optional[int]] = {}
    for label, n in counts.items():
        name = source.labels.get(label)
        if name is not None:
            renamed[name] = None if n is None else n + (renamed.get(name) or 0)
    if not renamed:
        message = f"'labels' names none of the labels that the source gives ({listed(list(counts))}): nothing is left."
        findings.error(where, message, "Correct 'labels'.")
    return renamed


def _pipeline_labels(source: Source) -> Optional[Dict[str, Optional[int]]]:
    path = Path(source.path)
    folder = path if path.is_dir() else Path(get_package_path(source.path))
    found = next(iter(sorted(folder.glob("**/meta.json"), key=lambda p: len(p.parts))), None)
    if found is None:
        return None
    meta: Dict[str, Any] = srsly.read_json(found)
    by_pipe: Dict[str, Iterable[str]] = meta.get("labels", {})
    labels = {label for pipe, given in by_pipe.items() if pipe not in _NO_ENTITIES for label in given}
    return dict.fromkeys(sorted(labels), None) or None


def _pattern_labels(path: Path, where: str, findings: Findings) -> Dict[str, Optional[int]]:
    counts: Counter[str] = Counter()
    problems = Problems(path)
    for line in SampledLines(path):
        if not line.text.strip():
            continue
        try:
            row = parse_row(line.text)
            if not isinstance(row.get("label"), str) or "pattern" not in row:
                raise RowError("a pattern needs 'label' (a string) and 'pattern'")
            counts[row["label"]] += 1
        except RowError as error:
            problems.add(line.place, str(error))
    problems.report(where, findings)
    return dict(counts)


def _answer_labels(source: Source, where: str, findings: Findings) -> Dict[str, Optional[int]]:
    counts: Counter[str] = Counter()
    path, n = Path(source.path), 0
    lines, problems = SampledLines(path), Problems(path)
    for line in lines:
        if not line.text.strip():
            continue
        try:
            mentions = read_mentions(parse_row(line.text), source.name)
            n += mentions is not None
            counts.update(mention.label for mention in mentions or ())
        except RowError as error:
            problems.add(line.place, str(error))
    problems.report(where, findings)
    if lines.note:
        findings.info(where, f"Large, so it was sampled: {lines.note}.")
    if not counts and not problems.places:
        message = f"None of the {n:,} rows of {path} names anything." if n else f"{path} holds no answers."
        findings.error(where, message, "Check how the file was made: docs/guides/sources.md has the forms of its rows.")
    return dict(counts)


def _own_labels(source: Source, text: Path, where: str, findings: Findings) -> Dict[str, Optional[int]]:
    """Labels that the texts bring along. What is wrong with their rows is found where the texts are checked."""
    counts: Counter[str] = Counter()
    lines, seen = SampledLines(text), False
    for line in lines:
        try:
            row = parse_row(line.text) if line.text.strip() else {}
            own = dict(weak_lists(row.get("weak_ents"), DEFAULT_SOURCE)).get(source.name)
            mentions = read_mentions({**row, "weak_ents": own}, source.name)
        except RowError:
            continue
        seen = seen or mentions is not None
        counts.update(mention.label for mention in mentions or ())
    if not seen and lines.all_seen:
        message = f"{text} brings no labels along that are called '{source.name}'."
        cure = "Name the section after a key of its 'weak_ents', or 'imported' where these are plain lists."
        findings.error(where, message, cure)
    elif not counts:
        findings.info(where, f"{text} brings no labels of it along, as far as it was looked at.")
    return dict(counts)
