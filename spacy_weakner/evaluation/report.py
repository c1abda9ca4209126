"""A report as a self-contained HTML file: it needs no network, no script and no other file."""

from pathlib import Path
from types import MappingProxyType
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..calibration.reliability import CalibrationCounter, Reliability
from ..corpus.case import CASES, has_case
from ..corpus.docbin import read_docs
from ..corpus.gold import Gold
from ..corpus.weak import doc_entities, doc_ids
from ..errors import Errors, WeaknerError, check_choice, check_range
from ..files import check_output, write_text
from ..pipelines import load_pipeline
from ..runtime.devices import on_device
from ..scores import count_matches
from .analyze import Analysis, analyze
from .candidates import Candidate, Predictions, make_candidates
from .compare import SAMPLES, CandidateScores, compare, label_remarks, ranked
from .evaluate import Evaluation
from .examples import Example, FirstSentences, WorstSentences, label_colors, render_example
from .links import WrongLink, WrongLinks, preferred_names
from .plots import Plot, f1_plot, reliability_plot
from .tables import (
    Table,
    analysis_tables,
    calibration_tables,
    comparison_table,
    evaluation_tables,
    link_tables,
    name_tables,
    printable,
    shorten_line,
)
from .tradeoff import Tradeoff, tradeoff_table

TEMPLATE = "report.html.jinja"
_CANDIDATE = "Candidate"
SHOWN = 5  # sentences with entities
F1 = (
    "F1 is the harmonic mean of P (precision: the percentage of the found entities that are right) and R (recall: the "
    "percentage of the gold entities that are found). Right means the same words and the same label."
)


class Section(NamedTuple):
    """A section of the report."""

    title: str
    key: str  # anchor
    lines: Sequence[str] = ()
    plots: Sequence[Plot] = ()
    tables: Sequence[Table] = ()
    folded: Sequence[Table] = ()  # of other candidates, shown on request
    examples: Sequence[Example] = ()


class ReportParts(NamedTuple):
    """The sections that `report` makes; without a test set, only the last ones."""

    rows: List[CandidateScores] = []
    selected: Sequence[Section] = ()  # the selected candidate: example sentences, scores and errors
    candidates: Sequence[Section] = ()  # the comparison of all candidates
    labels: Sequence[Section] = ()  # weak labels
    errors: Sequence[Section] = ()  # sentences with errors of the selected candidate


class ReportPage(NamedTuple):
    """What a report shows, in this order."""

    answer: Sequence[Tuple[str, str]] = ()  # the most important facts, each with a heading
    notes: Sequence[str] = ()
    sections: Sequence[Section] = ()


def report(
    output: Path,
    *,
    test: Optional[Path] = None,
    candidates: Optional[Mapping[str, Union[Path, str]]] = None,
    labels: Optional[Path] = None,
    compose: Optional[Callable[[ReportParts], ReportPage]] = None,
    title: str = "Report",
    examples: int = 30,
    top: int = 10,
    bootstrap: int = SAMPLES,
    baseline: Optional[str] = None,
    names: Mapping[str, str] = MappingProxyType({}),
    selected: Optional[str] = None,
    gpu_id: int = -1,
    progress: bool = False,
) -> List[CandidateScores]:
    """Write a comparison of candidates on a test set, an analysis of weak labels, or both. Sentences and errors are
    those of one candidate.

    output (Path): The HTML file.
    test, candidates, bootstrap, baseline, names, gpu_id: See `compare`.
    labels (Optional[Path]): A corpus of weak labels; see `analyze`.
    compose (Optional[Callable[[ReportParts], ReportPage]]): Composes the page; None: without further sections.
    selected (Optional[str]): The candidate that is shown first, and in detail; None: the one with the best F1.
    title (str): Title of the report.
    top (int): Number of phrases in the lists of frequent errors.
    examples (int): Number of sentences with errors to show.
    progress (bool): Show progress.
    RETURNS (List[CandidateScores]): The comparison; empty without a test set.
    RAISES (WeaknerError): If `compare` or `analyze` raises it, the output is a folder or belongs to an input, or there
        is nothing to report on.
    """
    output = Path(output)
    candidates = candidates or {}
    # Check the arguments before hours of predictions.
    if test is None and candidates:
        raise WeaknerError(Errors.WK411.format(what="There are candidates, but no test set"))
    if test is None and labels is None and compose is None:
        raise WeaknerError(Errors.WK411.format(what="There is nothing to report on"))
    check_range("examples", examples, 0, None)
    if output.is_dir():
        raise WeaknerError(Errors.WK109.format(path=output))
    inputs = [Path(path) for path in (test, labels) if path is not None]
    parsed = {candidate.name: candidate for candidate in make_candidates(candidates, names)} if test is not None else {}
    if test is not None and selected is not None:
        check_choice("selected", selected, parsed)
    check_output([*inputs, *(candidate.path for candidate in parsed.values())], [output])
    parts = ReportParts()
    if test is not None:
        observers = {name: _Observer(candidate, examples) for name, candidate in parsed.items()}
        rows = compare(
            test,
            candidates,
            bootstrap=bootstrap,
            baseline=baseline,
            names=names,
            observe=lambda candidate, gold_doc, doc: observers[candidate.name].add(gold_doc, doc),
            gpu_id=gpu_id,
            progress=progress,
        )
        shown = ranked(rows, selected)
        observers = {row.name: observers[row.name] for row in shown}
        with on_device(gpu_id):
            of_selected = _selected_sections(Path(test), shown[0], parsed[shown[0].name], observers, top)
        parts = ReportParts(rows, of_selected, [_comparison_section(Path(test), shown, observers, top)])
        if worst := observers[shown[0].name].worst.result():
            lines = [f"Those sentences in which '{shown[0].name}' makes the most errors."]
            parts = parts._replace(errors=[Section("Sentences with errors", "examples", lines, examples=worst)])
    if labels is not None:
        analysis = analyze(labels, top=top, progress=progress)
        parts = parts._replace(labels=[_analysis_section(Path(labels), analysis)])
    sections = [*parts.candidates, *parts.selected, *parts.labels, *parts.errors]
    write_text(output, _render(title, compose(parts) if compose else ReportPage(sections=sections)))
    return parts.rows


class _Observer:
    """A collector of a candidate's sentences and errors during the comparison."""

    def __init__(self, candidate: Candidate, examples: int) -> None:
        self.first = FirstSentences(SHOWN)
        self.worst = WorstSentences(examples)
        self.links = WrongLinks()
        self.evaluation = Evaluation()
        self.calibration = CalibrationCounter()
        self.tradeoff = Tradeoff()
        self._candidate = candidate

    def add(self, gold_doc: Doc, doc: Doc) -> None:
        gold = Gold(frozenset(doc_entities(gold_doc)))
        entities, ids = self._candidate.entities(doc), self._candidate.ids(doc)
        shown = [{entity: listed[0] for entity, listed in every.items()} for every in (doc_ids(gold_doc), ids)]
        for sentences in (self.first, self.worst):
            sentences.add(gold_doc, sorted(gold.entities), entities, shown)
        self.links.add(gold_doc, ids, entities)
        self.evaluation.add(gold_doc, entities, gold)
        for counter in (self.calibration, self.tradeoff):
            counter.add(entities, self._candidate.scores(doc), gold)


def _selected_sections(
    test: Path, row: CandidateScores, candidate: Candidate, observers: Mapping[str, _Observer], top: int
) -> List[Section]:
    """Return the sections of one candidate: example sentences, scores and errors."""
    observer = observers[row.name]
    found = observer.tradeoff.rows()
    tables = [tradeoff_table(shorten_line(row.name), found)] if found else []
    tables = [*_tables({row.name: observer}, top), *tables, *_case_tables(test, candidate, row)]
    tables += _name_tables(candidate, [link for each in observers.values() for link in each.links.most_frequent(top)])
    # The name is in the title.
    tables = [table.without_first() if table.header[0] == _CANDIDATE else table for table in tables]
    errors = "A cross and a dashed line mark missed gold entities and wrong predicted entities."
    below = "Spans that overlap other spans are shown below the sentence."
    sections = [
        Section("Example sentences", "sentences", [f"{errors} {below}"], examples=observer.first.result()),
        Section(f"Scores and errors of '{row.name}'", "selected", tables=tables),
    ]
    return [section for section in sections if section.examples or section.tables]


def _comparison_section(
    test: Path, rows: List[CandidateScores], observers: Mapping[str, _Observer], top: int
) -> Section:
    """Return the section of all candidates, the selected one first."""
    lines = [f"Scored on {test}.", *label_remarks(rows)]
    plots = [f1_plot(rows), *_plots(_calibration(observers))]
    others = dict([*observers.items()][1:])
    tables = [comparison_table(rows, rows[0].name)]
    return Section("Comparison of candidates", "candidates", lines, plots, tables, _tables(others, top))


def _tables(observers: Mapping[str, _Observer], top: int) -> List[Table]:
    evaluations = {name: observer.evaluation.result(top) for name, observer in observers.items()}
    # All candidates are scored on the same gold.
    lengths = next((result.lengths for result in evaluations.values()), [])
    return [
        *evaluation_tables(_CANDIDATE, evaluations, lengths),
        *link_tables({name: observer.links.most_frequent(top) for name, observer in observers.items()}),
        *calibration_tables(_calibration(observers)),
    ]


def _calibration(observers: Mapping[str, _Observer]) -> Dict[str, Reliability]:
    measured = {name: observer.calibration.result() for name, observer in observers.items()}
    return {name: reliability for name, reliability in measured.items() if reliability is not None}


def _case_tables(test: Path, candidate: Candidate, row: CandidateScores) -> List[Table]:
    """Return a table with the F1 of a pipeline on the test set as it is, in lower case and in upper case; no table for
    label sets, nor for text without case."""
    if not candidate.is_pipeline or not any(has_case(doc.text) for doc in read_docs(test, Vocab())):
        return []
    cells = [f"{row.f1:.1f}"]
    for case in CASES:
        pairs = ((doc_entities(gold), candidate.entities(doc)) for gold, doc in Predictions(candidate, test, case))
        cells.append(f"{count_matches(pairs)[0].f1:.1f}")
    header = ["as it is", "in lower case", "in capitals"]
    return [Table("F1 on text without case", header, [cells], names=0)]


def _name_tables(candidate: Candidate, wrong: Sequence[WrongLink]) -> List[Table]:
    """Return a table with the preferred names of the ids in wrong links, from the term lists of a pipeline."""
    found = [id_ for link in wrong for id_ in (*link.gold.split("|"), link.given)]
    if not found or not candidate.is_pipeline:
        return []
    return name_tables(preferred_names(load_pipeline(candidate.path), sorted({*found} - {""})))


def _analysis_section(labels: Path, analysis: Analysis) -> Section:
    lines = [f"Corpus: {labels}", f"{analysis.docs:,} documents with {analysis.tokens:,} tokens."]
    if analysis.unlabeled:
        lines.append(f"Documents that no source has labeled: {analysis.unlabeled:,}.")
    if analysis.gold is None:
        lines.append("The corpus has no gold, so it is unknown how often the labels are right.")
    return Section("Weak labels", "sources", lines, _plots(analysis.calibration), analysis_tables(analysis))


def _plots(calibration: Dict[str, Reliability]) -> List[Plot]:
    return [reliability_plot(calibration)] if calibration else []


def _render(title: str, page: ReportPage) -> str:
    import jinja2
    from markupsafe import Markup

    every = [example for section in page.sections for example in section.examples]
    colors = label_colors(label for example in every for _, _, label in (*example.gold, *example.predicted))

    def clean(value: Any) -> Any:
        return printable(value) if type(value) is str else value

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        finalize=clean,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    template = environment.get_template(TEMPLATE)
    return template.render(
        title=title, page=page, colors=colors, draw=render_example, shorten_line=shorten_line, markup=Markup
    )
