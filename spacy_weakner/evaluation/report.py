"""A report as a self-contained HTML file: it needs no network, no script and no other file."""

from pathlib import Path
from types import MappingProxyType
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

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
from .compare import SAMPLES, CandidateScores, compare, label_remarks
from .evaluate import Evaluation
from .examples import Example, WorstSentences, label_colors, render
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
    shorten,
)
from .tradeoff import Tradeoff, tradeoff_table

TEMPLATE = "report.html.jinja"


class Section(NamedTuple):
    """A section of the report."""

    title: str
    key: str  # anchor
    lines: List[str]
    plots: List[Plot]
    tables: List[Table]
    # The most important facts, each with a heading. The page begins with those of its first section.
    answer: Sequence[Tuple[str, str]] = ()


def report(
    output: Path,
    *,
    test: Optional[Path] = None,
    candidates: Optional[Mapping[str, Union[Path, str]]] = None,
    labels: Optional[Path] = None,
    first: Sequence[Section] = (),
    title: str = "Report",
    examples: int = 30,
    top: int = 10,
    bootstrap: int = SAMPLES,
    baseline: Optional[str] = None,
    names: Mapping[str, str] = MappingProxyType({}),
    selected: Optional[str] = None,
    seed: int = 0,
    gpu_id: int = -1,
    progress: bool = False,
) -> List[CandidateScores]:
    """Write a comparison of candidates on a test set, an analysis of weak labels, or both.

    output (Path): The HTML file.
    test, candidates, bootstrap, baseline, names, seed, gpu_id: See `compare`.
    labels (Optional[Path]): A corpus of weak labels; see `analyze`.
    first (Sequence[Section]): The first sections of the report.
    selected (Optional[str]): The candidate whose F1 on text without case is shown; None: the one with the best F1.
    title (str): Title of the report.
    top (int): Number of phrases in the lists of frequent errors.
    examples (int): Number of sentences with errors to show for each candidate.
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
    if test is None and labels is None and not first:
        raise WeaknerError(Errors.WK411.format(what="There is nothing to report on"))
    check_range("examples", examples, 0, None)
    if output.is_dir():
        raise WeaknerError(Errors.WK109.format(path=output))
    inputs = [Path(path) for path in (test, labels) if path is not None]
    parsed = {candidate.name: candidate for candidate in make_candidates(candidates, names)} if test is not None else {}
    if test is not None and selected is not None:
        check_choice("selected", selected, parsed)
    check_output([*inputs, *(candidate.path for candidate in parsed.values())], [output])
    sections = list(first)
    rows: List[CandidateScores] = []
    worst: Dict[str, List[Example]] = {}
    if test is not None:
        observers = {name: _Observer(candidate, examples) for name, candidate in parsed.items()}
        rows = compare(
            test,
            candidates,
            bootstrap=bootstrap,
            baseline=baseline,
            names=names,
            seed=seed,
            observe=lambda candidate, gold_doc, doc: observers[candidate.name].add(gold_doc, doc),
            gpu_id=gpu_id,
            progress=progress,
        )
        wrong = {name: observer.links.most_frequent(top) for name, observer in observers.items()}
        section = _comparison_section(Path(test), rows, observers, wrong, top)
        name = selected or max(rows, key=lambda row: row.f1).name
        with on_device(gpu_id):
            found = observers[name].tradeoff.rows()
            tables = [tradeoff_table(shorten(name), found)] if found else []
            section.tables[1:1] = [*tables, *_case_tables(Path(test), parsed[name], rows)]
            section.tables.extend(_name_tables(parsed[name], wrong))
        sections.append(section)
        worst = {name: observer.worst.result() for name, observer in observers.items()}
    if labels is not None:
        analysis = analyze(labels, top=top, progress=progress)
        sections.append(_analysis_section(Path(labels), analysis))
    write_text(output, _render(title, sections, worst))
    return rows


class _Observer:
    """A collector of a candidate's errors during the comparison."""

    def __init__(self, candidate: Candidate, examples: int) -> None:
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
        self.worst.add(gold_doc, sorted(gold.entities), entities, shown)
        self.links.add(gold_doc, ids, entities)
        self.evaluation.add(gold_doc, entities, gold)
        for counter in (self.calibration, self.tradeoff):
            counter.add(entities, self._candidate.scores(doc), gold)


def _comparison_section(
    test: Path,
    rows: List[CandidateScores],
    observers: Mapping[str, _Observer],
    wrong: Mapping[str, Sequence[WrongLink]],
    top: int,
) -> Section:
    evaluations = {name: observer.evaluation.result(top) for name, observer in observers.items()}
    measured = {name: observer.calibration.result() for name, observer in observers.items()}
    calibration = {name: reliability for name, reliability in measured.items() if reliability is not None}
    # All candidates are scored on the same gold.
    first, counts = next(iter(evaluations.values())), rows[0].counts
    evaluated = evaluation_tables("Candidate", evaluations, first.lengths)
    tables = [comparison_table(rows), *evaluated, *link_tables(wrong), *calibration_tables(calibration)]
    lines = [f"Test set: {test}", f"{first.docs:,} documents with {counts.tp + counts.fn:,} gold entities."]
    lines += label_remarks(rows)
    plots = [f1_plot(rows), *_plots(calibration)]
    return Section("Comparison of candidates", "candidates", lines, plots, tables)


def _case_tables(test: Path, candidate: Candidate, rows: List[CandidateScores]) -> List[Table]:
    """Return a table with the F1 of a pipeline on the test set as it is, in lower case and in upper case; no table for
    label sets, nor for text without case."""
    if not candidate.is_pipeline or not any(has_case(doc.text) for doc in read_docs(test, Vocab())):
        return []
    cells = [f"{row.f1:.1f}" for row in rows if row.name == candidate.name]
    for case in CASES:
        pairs = ((doc_entities(gold), candidate.entities(doc)) for gold, doc in Predictions(candidate, test, case))
        cells.append(f"{count_matches(pairs)[0].f1:.1f}")
    header = ["Candidate", "as it is", "in lower case", "in capitals"]
    return [Table("F1 on text without case", header, [[candidate.name, *cells]])]


def _name_tables(candidate: Candidate, wrong: Mapping[str, Sequence[WrongLink]]) -> List[Table]:
    """Return a table with the preferred names of the ids in wrong links, from the term lists of a pipeline."""
    found = [id_ for links in wrong.values() for link in links for id_ in (*link.gold.split("|"), link.given)]
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


def _render(title: str, sections: List[Section], worst: Dict[str, List[Example]]) -> str:
    import jinja2
    from markupsafe import Markup

    every = [example for examples in worst.values() for example in examples]
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
        title=title, sections=sections, worst=worst, colors=colors, draw=render, shorten=shorten, markup=Markup
    )
