"""`spacy weakner label`"""

from typing import Any, Iterator

from ..labeling.label import label
from ..labeling.report import LabelReport
from ..labeling.sources import TABLE_SETTINGS, PipelineSource, TermSource
from ..pipelines import NO_SENTENCES
from ._command import command
from ._util import listing, new_app, say, show_remarks, show_shards

app = new_app()
# Settings of the source that --terms or --pipeline makes. A sources file sets the others.
_SETTINGS = {TermSource: ["stop", "abbreviations", *TABLE_SETTINGS], PipelineSource: ["spans_key"]}


@command(app, label, settings=_SETTINGS)
def show(report: LabelReport, given: Any) -> None:
    say("good", f"{report.docs} documents", given.output_path)
    for source_report in report.sources:
        counts = filter(None, (listing(source_report.spans), source_report.details()))
        say("info", f"Spans of '{source_report.name}': {'; '.join(counts)}")
    say("info", f"Documents without a match: {report.unmatched}; excluded: {report.excluded}")
    show_remarks(report.remarks)
    show_shards(report.skipped, report.replaced)
    for warning in _warnings(report, given.sentences != NO_SENTENCES):
        say("warning", warning)


def _warnings(report: LabelReport, sentences: bool) -> Iterator[str]:
    """Yield warnings about results that are probably unintended."""
    if report.excluded and not report.docs and not report.unmatched:
        yield "No document was written: the excluded corpora contain all of them"
    for source in report.sources:
        if source.met_no_doc and not source.rows:
            yield f"The file of '{source.name}' has no rows with labels"
        elif source.met_no_doc:
            why = "Compare their ids and texts with the corpus"
            if sentences:
                why = (
                    "Texts are split into sentences unless --sentences none is given (to 'label', or to 'convert' "
                    "before it; in a project: vars.sentences). Answers for whole texts need that option"
                )
            yield f"No row of '{source.name}' belongs to a document. {why}"
        if source.kind == "corpus" and source.docs_without_row == report.docs_in - report.excluded > 0:
            others = f"; the corpus has labels of {', '.join(sorted(source.groups))}" if source.groups else ""
            yield f"No document has labels named '{source.name}'{others}"
        if source.kind == "terms" and report.docs and not (source.spans or source.left_out):
            compare = "'spacy weakner check' compares list and text (--terms or --sources, --text)"
            yield f"No term of '{source.name}' occurs in these documents: {compare}"
        if source.left_out and not source.spans:
            yield (
                f"'{source.name}' wrote no spans, because its setting 'labels' does not contain the labels that it "
                f"found: {', '.join(source.left_out)}"
            )
