"""Comparison of candidates on one test set: trained pipelines and sets of weak labels."""

import shlex
from array import array
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

import numpy
from numpy.typing import NDArray
from pydantic import Field
from spacy.language import Language
from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..calibration.reliability import CalibrationCounter
from ..corpus.gold import Gold, missing_tokens
from ..corpus.weak import doc_entities, group_entities, is_weak
from ..errors import Errors, WeaknerError, check_choice, check_range
from ..files import existing
from ..progress import Progress
from ..runtime.devices import on_device
from ..scores import Accuracy, Counts, Strict, as_json, count_matches
from .bootstrap import Bootstrap, Difference, Interval
from .candidates import Candidate, Corpus, Predictions, corpus_name, make_candidates, stream
from .links import LinkCounts, gold_ids

SAMPLES, MOST_SAMPLES = 1000, 1_000_000
# Called with the candidate, a Doc of the test set, and the Doc with the candidate's labels.
Observer = Callable[[Candidate, Doc, Doc], None]


class CandidateScores(Strict):
    """Scores of one candidate, rounded for storage: "p", "r" and "f1" in [0, 100]."""

    name: str
    p: float
    r: float
    f1: float
    # Exact matches over all labels.
    tp: int
    fp: int
    fn: int
    # In [0, 100]; see `scores.Accuracy`.
    token_accuracy: float = 0.0
    sentence_accuracy: float = 0.0
    words_per_second: Optional[int] = None  # speed of prediction; None for label sets
    ece: Optional[float] = None  # expected calibration error of entity scores, in [0, 1]; None without scores
    interval: Optional[Interval] = None  # of F1; None without bootstrap
    difference: Optional[Difference] = None  # in F1 from the baseline; None without bootstrap, and for the baseline
    links: Optional[Dict[str, Optional[float]]] = None  # scores of concept ids, in [0, 100]; None without gold ids
    per_label: Dict[str, Any] = {}  # the same counts and scores per label
    # "tp fp fn;tp fp fn;..." of all sentences of the test set; stored only in files of scores.
    sentences: str = Field("", exclude=True, repr=False, pattern=r"^(\d+ \d+ \d+(;\d+ \d+ \d+)*)?$")

    @property
    def counts(self) -> Counts:
        """RETURNS (Counts): The counts of exact matches."""
        return Counts(self.tp, self.fp, self.fn)

    @property
    def counts_of_sentences(self) -> "NDArray[numpy.int64]":
        """RETURNS (NDArray): tp, fp and fn of every sentence; shape (n_sentences, 3)."""
        return numpy.array([list(map(int, counts.split())) for counts in self.sentences.split(";")], dtype="int64")

    @property
    def bounds(self) -> str:
        """RETURNS (str): The confidence interval of F1, such as "76.0 to 82.5"."""
        return "-" if self.interval is None else self.interval.text()

    def text(self) -> str:
        """Return the scores as text, such as "F1 79.4 (95 % CI 76.0 to 82.5), P 85.8, R 74.0"."""
        bounds = f" (95 % CI {self.bounds})" if self.interval else ""
        return f"F1 {self.f1:.1f}{bounds}, P {self.p:.1f}, R {self.r:.1f}"


def compare(
    test: Union[Path, str, Iterable[Doc]],
    candidates: Mapping[str, Union[Path, str, Language, Iterable[Doc]]],
    *,
    bootstrap: int = SAMPLES,
    baseline: Optional[str] = None,
    names: Mapping[str, str] = MappingProxyType({}),
    spans_key: Optional[str] = None,
    seed: int = 0,
    observe: Optional[Observer] = None,
    gpu_id: int = -1,
    progress: bool = False,
) -> List[CandidateScores]:
    """Score candidates on one test set.

    test (Union[Path, str, Iterable[Doc]]): Corpus with complete gold in `doc.ents`, or its Docs.
    candidates (Mapping[str, Union[Path, str, Language, Iterable[Doc]]]): By name: a pipeline or its folder, or the test
        sentences with labels in `doc.ents`, as Docs or as a `.spacy` corpus (file or folder), perhaps with the gold in
        the span group "gold", as `aggregate` writes it. "PATH#SOURCE" scores the span group `weak:<source>` instead of
        `doc.ents`.
    bootstrap (int): Number of resampled test sets for confidence intervals of F1; 0: none.
    baseline (Optional[str]): Name of the candidate that the others are compared with; None: the one with the best F1.
    names (Mapping[str, str]): The names in the test set of labels that the candidates call otherwise.
    spans_key (Optional[str]): Score this span group of test set and candidates, whose spans may overlap, instead of
        their entities.
    seed (int): Seed of the resampling.
    observe (Optional[Observer]): Called with every candidate and sentence.
    gpu_id (int): GPU for the predictions; -1 is the CPU.
    progress (bool): Show progress.
    RETURNS (List[CandidateScores]): Scores in the order of the candidates.
    RAISES (WeaknerError): If a path is missing, the test set has no complete gold, a candidate is neither a pipeline
        nor a corpus, a label set does not have the test set's sentences, or a setting is invalid.
    """
    check_range("bootstrap", bootstrap, 0, MOST_SAMPLES)
    test = existing(Path(test)) if isinstance(test, (str, Path)) else list(test)
    parsed = make_candidates(candidates, names, spans_key)
    check_choice("baseline", baseline, candidates, optional=True)
    _check_gold(test, spans_key)
    bar = Progress(parsed, desc="compare", unit="candidate", enabled=progress)
    with on_device(gpu_id):
        rows, sentences = zip(*(_compare(candidate, test, spans_key, observe) for candidate in bar), strict=True)
    if not bootstrap:
        return list(rows)
    resampled = Bootstrap(numpy.stack(sentences), bootstrap, seed)
    order = [row.name for row in rows]
    best = max(range(len(rows)), key=lambda i: rows[i].f1) if baseline is None else order.index(baseline)
    found = []
    for i, row in enumerate(rows):
        interval = Interval(**as_json(resampled.interval(i)))
        difference = None if i == best else Difference(**as_json(resampled.difference(i, best, order[best])))
        found.append(row.model_copy(update={"interval": interval, "difference": difference}))
    return found


def ranked(rows: Sequence[CandidateScores], first: Optional[str] = None) -> List[CandidateScores]:
    """Sort candidates as all tables and plots show them: `first`, then the others by F1."""
    return sorted(rows, key=lambda row: (row.name != first, -row.f1))


def label_remarks(rows: Sequence[CandidateScores]) -> List[str]:
    """Return a remark on each candidate that has labels which the test set lacks, and lacks labels of the test set."""
    remarks = []
    for row in rows:
        per_label = {label: Counts(n["tp"], n["fp"], n["fn"]) for label, n in row.per_label.items()}
        remark, (label, name) = other_names(row.name, per_label, "the test set")
        remarks += [f"{remark}--map {shlex.quote(f'{label}={name}')}"] if remark else []
    return remarks


def other_names(what: str, per_label: Mapping[str, Counts], gold: str) -> Tuple[str, Tuple[str, str]]:
    """Return a remark, to be completed by the cure, on labels that the gold lacks, if others of the gold lack; or else
    "". Return also one of the labels, and its probable name in the gold."""
    unknown = [label for label, n in per_label.items() if not n.tp + n.fn]
    absent = [label for label, n in per_label.items() if not n.tp + n.fp]
    if not (unknown and absent):
        return "", ("", "")
    label = next((label for label in unknown if get_close_matches(label, absent)), unknown[0])
    return (
        f"'{what}' has labels that do not occur in {gold}, so these entities count as wrong: {', '.join(unknown)}. It "
        f"lacks these labels of {gold}: {', '.join(absent)}. If only the names differ: "
    ), (label, next(iter(get_close_matches(label, absent)), "NAME"))


def _check_gold(test: Corpus, spans_key: Optional[str]) -> None:
    # Predictions on tokens without annotation would count as wrong.
    number, path = 0, corpus_name(test)
    for number, doc in enumerate(stream(test, Vocab()), start=1):
        if is_weak(doc):
            raise WeaknerError(Errors.WK402.format(path=path, number=number, what="is weakly labeled"))
        if spans_key is not None:
            if spans_key not in doc.spans:
                what = f"has no span group '{spans_key}' (groups there: {', '.join(doc.spans) or 'none'})"
                raise WeaknerError(Errors.WK402.format(path=path, number=number, what=what))
        elif missing_tokens(doc):
            what = "has tokens without annotation (as 'convert --misaligned drop' leaves, and 'expand' does not)"
            raise WeaknerError(Errors.WK402.format(path=path, number=number, what=what))
    if not number:
        raise WeaknerError(Errors.WK101.format(path=path))


def _compare(
    candidate: Candidate, test: Corpus, spans_key: Optional[str], observe: Optional[Observer]
) -> Tuple[CandidateScores, "NDArray[numpy.int64]"]:
    """Return the scores of a candidate, and tp, fp and fn of every sentence."""
    accuracy, calibration, links = Accuracy(), CalibrationCounter(), LinkCounts()
    sentences = array("q")  # numbers only, since a test set may be large
    per_label: Dict[str, Counts] = {}
    predictions = Predictions(candidate, test)
    for gold, doc in predictions:
        wanted = doc_entities(gold) if spans_key is None else group_entities(gold, spans_key)
        found = candidate.entities(doc)
        counts, labels = count_matches([(wanted, found)])
        sentences.extend(counts)
        for label, more in labels.items():
            per_label[label] = Counts(*map(sum, zip(per_label.get(label, Counts()), more, strict=True)))
        accuracy = accuracy.with_sentence(sorted(wanted), sorted(found), len(gold))
        ids = gold_ids(gold) if spans_key is None else {}
        links = links.with_sentence(ids, candidate.ids(doc), found, candidate.known(doc) if ids else set())
        calibration.add(found, candidate.scores(doc), Gold(frozenset(wanted)))
        if observe is not None:
            observe(candidate, gold, doc)
    table = numpy.array(sentences, dtype="int64").reshape(-1, len(Counts._fields))
    reliability, speed = calibration.result(), predictions.words_per_second
    row = CandidateScores(
        name=candidate.name,
        **as_json(Counts(*table.sum(axis=0).tolist())),
        token_accuracy=round(accuracy.of_tokens, 2),
        sentence_accuracy=round(accuracy.of_sentences, 2),
        words_per_second=None if speed is None else round(speed),
        ece=as_json(reliability.error) if reliability is not None and reliability.spans else None,
        links={k: None if v is None else round(v, 2) for k, v in links.scores.items()} if links.gold else None,
        per_label=as_json(dict(sorted(per_label.items()))),
        sentences=";".join(" ".join(map(str, counts)) for counts in table.tolist()),
    )
    return row, table
