"""Checks of the labels of declared sources, without running any of them."""

from collections import Counter
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional

from spacy.util import get_package_path

from ..corpus.counts import RowError, at_line
from ..corpus.formats.reading import file_format
from ..corpus.jsonl import DEFAULT_SOURCE, Row, read_rows, weak_lists
from ..corpus.sampling import SampledLines
from ..corpus.sentences import INNER_END, SENTENCIZER, SentenceSplitter, sentence_key
from ..errors import Errors, WeaknerError
from ..files import read_object
from ..gazetteer_ruler.name_sentencizer import NameSentencizer
from ..labeling.alignment import find_weak_name, read_mentions
from ..labeling.sources import (
    CorpusSource,
    PatternSource,
    PipelineSource,
    Source,
    TermSource,
    declared_source,
    read_sections,
)
from .findings import Findings, RowProblems, listed, plural
from .labels import Column, nearest
from .matching import MatchedTexts
from .terms import check_terms

_UNITS = {TermSource: "term", PatternSource: "pattern"}
# Components whose labels are not entities.
_NO_ENTITIES = ("tagger", "morphologizer", "parser", "senter", "lemmatizer", "textcat", "textcat_multilabel")


def check_sources(
    path: Path, lang: str, seen: MatchedTexts, findings: Findings, text: Optional[Path] = None
) -> List[Column]:
    """Check a sources file, and collect the labels of its sources."""
    columns = []
    declared: Dict[str, Source] = {}
    place, sections, folder = read_sections(path)
    for name, settings in sections.items():
        where = f"--sources {path}, [sources.{name}]"
        with findings.guard(where):
            declared[where] = declared_source(place, name, settings, folder)
    of_rows = [where for where, source in declared.items() if source.kind in ("file", "answers")]
    if of_rows and seen.texts and seen.nlp.has_pipe(SENTENCIZER):
        _keep_names_whole(declared.values(), seen)
        for where in of_rows:
            with findings.guard(where):
                _check_whole(Path(declared[where].path), seen, where, findings)
    for where, source in declared.items():
        with findings.guard(where):
            counts = _labels(source, where, lang, seen, findings, text)
            if counts is not None:
                unit = _UNITS.get(type(source), "entity")
                columns.append(Column(source.name, where, _renamed(source, counts, where, findings), unit))
    return columns


def _labels(
    source: Source, where: str, lang: str, seen: MatchedTexts, findings: Findings, text: Optional[Path]
) -> Optional[Dict[str, Optional[int]]]:
    if isinstance(source, TermSource):
        return dict(check_terms(source, where, lang, seen, findings))
    if isinstance(source, PipelineSource):
        return _pipeline_labels(source)
    if isinstance(source, CorpusSource):
        is_json = text is not None and file_format(text) == "jsonl"
        return _labels_in_text(source, text, where, findings) if text is not None and is_json else None
    return _labels_in_file(source, where, findings)


def _renamed(
    source: Source, counts: Dict[str, Optional[int]], where: str, findings: Findings
) -> Dict[str, Optional[int]]:
    if source.labels is None:
        return counts
    for label in source.labels:
        if label not in counts:
            near = nearest(label, list(counts))
            hint = f"did you mean '{near}'? " if near else ""
            given = f"{hint}it has: {listed(list(counts))}"
            message = f"'labels' renames '{label}', but the source has no such label ({given})."
            cure = "Correct the name in 'labels'; labels that are not listed there are left out."
            findings.warning(where, message, cure)
    left_out = [label for label in counts if label not in source.labels]
    if left_out:
        findings.info(where, f"Labels that are not listed in 'labels', so they are left out: {listed(left_out)}.")
    renamed: Dict[str, Optional[int]] = {}
    for label, n in counts.items():
        name = source.labels.get(label)
        if name is not None:
            renamed[name] = None if n is None else n + (renamed.get(name) or 0)
    if not renamed:
        message = f"'labels' lists none of the labels of the source ({listed(list(counts))}), so no label is left."
        findings.error(where, message, "Correct 'labels'.")
    return renamed


def _pipeline_labels(source: Source) -> Optional[Dict[str, Optional[int]]]:
    path = Path(source.path)
    folder = path if path.is_dir() else Path(get_package_path(source.path))
    found = next(iter(sorted(folder.glob("**/meta.json"), key=lambda p: len(p.parts))), None)
    if found is None:
        return None
    meta = read_object(found, "a pipeline's meta data")
    by_pipe = meta.get("labels", {}) if isinstance(meta, dict) else None
    if not isinstance(by_pipe, dict) or not all(map(_are_labels, by_pipe.values())):
        reason = "'labels' does not have a list of labels for each component"
        raise WeaknerError(Errors.WK206.format(path=found, reason=reason, cure="Save or download the pipeline again"))
    labels = {label for pipe, given in by_pipe.items() if pipe not in _NO_ENTITIES for label in given}
    return dict.fromkeys(sorted(labels), None) or None


def _are_labels(given: Any) -> bool:
    return isinstance(given, list) and all(isinstance(label, str) for label in given)


class _Counted(NamedTuple):
    labels: Dict[str, Optional[int]]
    rows: int  # rows that are not None
    sampled: str
    rejected: RowProblems


def _count(path: Path, labels_of: Callable[[Row], Optional[Iterable[str]]]) -> _Counted:
    """Count the labels in the rows of a file; None means that a row has no answer."""
    labels: Counter[str] = Counter()
    n, counts, lines = 0, RowProblems(), SampledLines(path)
    for place, row in read_rows(path, lines, counts):
        with at_line(path, place, counts):
            found = labels_of(row)
            n += found is not None
            labels.update(found or ())
    return _Counted(dict(labels), n, lines.note, counts)


def _mentioned(row: Row, weak_name: Optional[str]) -> Optional[List[str]]:
    mentions = read_mentions(row, weak_name)
    return None if mentions is None else [mention.label for mention in mentions]


def _pattern_label(row: Row) -> List[str]:
    if not isinstance(row.get("label"), str) or "pattern" not in row:
        raise RowError("a pattern needs 'label' (a string) and 'pattern'")
    return [row["label"]]


def _labels_in_file(source: Source, where: str, findings: Findings) -> Dict[str, Optional[int]]:
    """Return the labels of patterns or of imported labels."""
    path, are_patterns = Path(source.path), isinstance(source, PatternSource)
    labels_of: Callable[[Row], Optional[List[str]]] = _pattern_label
    if not are_patterns:
        with at_line(path, "weak_ents"):
            rows = (row for _, row in read_rows(path, SampledLines(path), RowProblems()))
            labels_of = partial(_mentioned, weak_name=find_weak_name(rows, source.name))
    counted = _count(path, labels_of)
    counted.rejected.report(where, findings)
    if counted.sampled:
        findings.info(where, f"Large file, so only a sample was checked ({counted.sampled}).")
    if not (counted.labels or counted.rejected.places or are_patterns):
        nothing = f"None of the {counted.rows:,} rows of {path} contains an entity."
        message = nothing if counted.rows else f"{path} contains no answers."
        cure = "Check how the file was made: docs/guides/sources.md describes the format of its rows."
        findings.error(where, message, cure)
    return counted.labels


def _keep_names_whole(sources: Iterable[Source], seen: MatchedTexts) -> None:
    """Let no sentence end inside terms and entities, as where a project splits texts."""
    names = [" ".join(s.words[start:end]) for s in seen.gold for start, end, _ in s.entities]
    for source in sources:
        if isinstance(source, TermSource):
            with suppress(WeaknerError):  # which is reported with the source
                names += [term.text for term in source.read() if INNER_END.search(term.text)]
    sentencizer: Any = seen.nlp.get_pipe(SENTENCIZER)
    if isinstance(sentencizer, NameSentencizer):
        sentencizer.add_names(names, seen.nlp)


def _check_whole(path: Path, seen: MatchedTexts, where: str, findings: Findings) -> None:
    """Report labels of whole texts that are split into sentences: they belong to no sentence."""
    splitter, whole = SentenceSplitter(seen.nlp), set(map(sentence_key, seen.texts))
    found = (row.get("text") for _, row in read_rows(path, SampledLines(path), RowProblems()))
    texts = [text for text in found if isinstance(text, str) and sentence_key(text) in whole]
    n = sum(len([*splitter.split(text)]) > 1 for text in texts)
    if n:
        message = f"{plural(n, 'row')} of {path} label whole texts, which are split into sentences: they will be lost."
        cure = "Keep whole texts: --sentences none (in a project: vars.sentences); or label their sentences."
        findings.warning(where, message, cure)


def _labels_in_text(source: Source, text: Path, where: str, findings: Findings) -> Dict[str, Optional[int]]:
    """Return the labels in the rows of the text. Errors in the rows are found when the text is checked."""

    def labels_of(row: Row) -> Optional[List[str]]:
        spans = dict(weak_lists(row.get("weak_ents"), DEFAULT_SOURCE)).get(source.name)
        return _mentioned({**row, "weak_ents": spans}, source.name)

    counted = _count(text, labels_of)
    if not counted.rows and not counted.sampled:
        message = f"{text} has no labels named '{source.name}'."
        cure = "Name the section after a key of its 'weak_ents', or 'imported' if these are plain lists."
        findings.error(where, message, cure)
    elif not counted.labels:
        findings.info(where, f"The checked part of {text} has no labels of this source.")
    return counted.labels
