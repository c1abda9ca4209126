"""`spacy weakner suggest`"""

from pathlib import Path
from typing import Annotated, List, Optional

import typer
from wasabi import msg

from ._util import Format, Gpu, Lang, Overwrite, Seed, Sentences, Tokenizer, check_json, listing, reporting, write_json

_SHOWN = 10


def suggest_cli(
    input_path: Annotated[Path, typer.Argument(help="Text or corpus: a file or a folder, in any format")],
    output_path: Annotated[Path, typer.Argument(help="File for the sentences, such as next.jsonl")],
    n: Annotated[int, typer.Option(help="Number of sentences")] = 50,
    model: Annotated[
        Optional[List[str]], typer.Option(help="Pipeline whose uncertainty counts (folder or name; repeatable)")
    ] = None,
    sources: Annotated[Optional[Path], typer.Option(help="File that declares weak sources, as for 'label'")] = None,
    exclude: Annotated[
        Optional[List[Path]], typer.Option(help="Corpus whose sentences are not suggested, such as gold (repeatable)")
    ] = None,
    to: Annotated[Optional[str], typer.Option(help="Format of the output (default: its ending tells)")] = None,
    lang: Lang = "en",
    tokenizer: Tokenizer = None,
    format: Format = None,
    sentences: Sentences = True,
    seed: Seed = 0,
    overwrite: Overwrite = False,
    gpu_id: Gpu = -1,
    report_output: Annotated[
        Optional[Path], typer.Option("--report", help="Write why each sentence was chosen to this JSON file")
    ] = None,
) -> None:
    """Write the sentences that are most worth annotating next, with suggested labels."""
    options = dict(locals())
    with reporting():
        from ..active_learning.suggest import suggest
        from ..evaluation.tables import shorten

        del options["report_output"]
        options.update(model=model or (), exclude=exclude or ())
        check_json(report_output, [input_path, *([] if sources is None else [sources]), *(exclude or ())])
        report = suggest(**options, progress=True)
        msg.good(f"{len(report.sentences)} sentences of {report.read}", output_path)
        left_out = {
            "annotated": report.annotated,
            "excluded": report.excluded,
            "copies": report.copies,
            "nearly the same as a chosen one": report.near,
            "empty": report.empty,
        }
        msg.info(f"Left out: {listing({what: number for what, number in left_out.items() if number})}")
        msg.info(f"Sentences by uncertain label: {', '.join(f'{k} {v}' for k, v in report.labels.items()) or 'none'}")
        rows = [(f"{each.score:.2f}", shorten(each.why), shorten(each.text)) for each in report.sentences[:_SHOWN]]
        msg.table(rows, header=("score", "uncertain", "sentence"), divider=True)
        if len(report.sentences) < n:
            msg.warn(f"{n} sentences were wanted; there are no more that differ")
        if report.certain:
            msg.warn(f"Sentences without uncertainty, since there were no others: {report.certain}")
        if report.lost:
            msg.warn(f"What the format cannot hold: {', '.join(f'{what} {k}' for what, k in report.lost.items())}")
        if report_output is not None:
            write_json(report_output, report.to_json())
            msg.good("Report", report_output)
