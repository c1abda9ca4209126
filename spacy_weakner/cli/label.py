"""`spacy weakner label`"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Iterator, List, Optional

import typer
from wasabi import msg

from ._util import Format, Gpu, Lang, Ray, Sentences, Tokenizer, Workers, listing, reporting, show_shards

if TYPE_CHECKING:
    from ..labeling.report import LabelReport, SourceReport


def label_cli(
    input_path: Annotated[
        Path, typer.Argument(help="Corpus: file or folder; .spacy .jsonl .conll .iob .bio .tsv .txt (or .gz)")
    ],
    output_path: Annotated[Path, typer.Argument(help="A .spacy file, or a folder for shards")],
    sources: Annotated[Optional[Path], typer.Option(help="File that declares the weak sources")] = None,
    terms: Annotated[Optional[Path], typer.Option(help="A single source instead: a term list")] = None,
    pipeline: Annotated[
        Optional[str], typer.Option(help="A single source instead: the entities of a pipeline (folder or name)")
    ] = None,
    source: Annotated[
        Optional[str], typer.Option(help="Name of the single source (default: gazetteer, or the pipeline's name)")
    ] = None,
    spans_key: Annotated[
        Optional[str], typer.Option(help="Span group of the pipeline to take instead of its entities")
    ] = None,
    attr: Annotated[
        str,
        typer.Option(help="How terms are compared: FORM (variants of a character are alike), ORTH, LOWER, NORM"),
    ] = "FORM",
    acronym_length: Annotated[
        int, typer.Option(help="Terms up to this length with inner upper case match in exact case")
    ] = 5,
    stop: Annotated[Optional[List[str]], typer.Option(help="Term to leave out (repeatable)")] = None,
    min_length: Annotated[int, typer.Option(help="Leave out terms with fewer characters")] = 1,
    ambiguity: Annotated[
        str, typer.Option(help="Labels of a term that has several: all, first (of the list), or drop (none)")
    ] = "all",
    term_label: Annotated[Optional[str], typer.Option(help="Label of terms that come without one")] = None,
    reliability: Annotated[
        Optional[float], typer.Option(help="Probability that a span of the single source is right, if you know it")
    ] = None,
    lang: Lang = "en",
    tokenizer: Tokenizer = None,
    format: Format = None,
    sentences: Sentences = True,
    exclude: Annotated[
        Optional[List[Path]], typer.Option(help="Corpus whose sentences are left out (repeatable)")
    ] = None,
    only_matched: Annotated[bool, typer.Option("--only-matched", help="Leave out documents without a match")] = False,
    shard_size: Annotated[int, typer.Option(help="Lines per shard, where the input is no .spacy file")] = 5000,
    shard: Annotated[
        Optional[str], typer.Option(help="i/n: make only this share of the shards; run once without it at the end")
    ] = None,
    workers: Workers = 1,
    ray: Ray = None,
    gpu_id: Gpu = -1,
) -> None:
    """Label a corpus with weak sources: each writes a span group 'weak:<source>'."""
    options = dict(locals())  # what the command takes is what the function takes
    with reporting():
        from ..labeling.label import label

        report = label(**{**options, "stop": stop or (), "exclude": exclude or ()}, progress=True)
        msg.good(f"{report.docs} documents", output_path)
        for source_report in report.sources:
            msg.info(f"Spans of '{source_report.name}': {listing(source_report.spans)}{_details(source_report)}")
        msg.info(f"Documents without a match: {report.unmatched}; excluded: {report.excluded}")
        show_shards(report.skipped, report.replaced)
        for warning in _warnings(report, sentences):
            msg.warn(warning)


def _details(report: "SourceReport") -> str:
    """All that was counted beside the spans."""
    counts = {
        "labels left out": sum(report.left_out.values()),
        "scores too low": report.low_scores,
        "misaligned": report.misaligned,
        "phrases not found": report.not_found,
        "documents without a row": report.docs_without_row,
        "rows of the same id with another text": report.other_text,
        "rows without a document": report.rows_without_doc or 0,
        "repeated rows": report.repeated_rows,
    }
    named = {"labels left out": f" ({', '.join(f'{label} {n}' for label, n in report.left_out.items())})"}
    return "".join(f"; {what}: {n}{named.get(what, '')}" for what, n in counts.items() if n)


def _warnings(report: "LabelReport", sentences: bool) -> Iterator[str]:
    """What is probably not meant."""
    if report.excluded and not report.docs and not report.unmatched:
        yield "No document was written: the excluded corpora hold all of them"
    for source in report.sources:
        if source.met_no_doc:
            why = "Compare their ids and texts with the corpus"
            if sentences:
                why = (
                    "Texts are split into sentences unless --no-sentences is given (here, or to 'convert' before): "
                    "answers for whole texts need that option"
                )
            yield f"No row of '{source.name}' belongs to a document. {why}"
        if source.kind == "corpus" and source.docs_without_row == report.docs_in - report.excluded > 0:
            others = f"; it has labels of {', '.join(sorted(source.groups))}" if source.groups else ""
            yield f"No document brings labels along that are called '{source.name}'{others}"
        if source.left_out and not source.spans:
            yield (
                f"'{source.name}' wrote no spans, since its setting 'labels' does not name what it found: "
                f"{', '.join(source.left_out)}"
            )
