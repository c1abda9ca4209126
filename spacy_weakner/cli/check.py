"""`spacy weakner check`"""

from pathlib import Path
from typing import Annotated, List, Optional

import typer
from wasabi.util import locale_escape

from ..checks.check import CheckedFiles, CheckedSettings, CheckReport, examine
from ..checks.findings import Finding
from ..checks.labels import label_table
from ..errors import check_range
from ._util import (
    AUTO,
    Columns,
    Gpu,
    JsonOutput,
    Lang,
    Misaligned,
    check_json,
    given_text,
    new_app,
    number,
    reporting,
    say,
    show_table,
    write_json,
)

app = new_app()


@app.command("check")
def check_cli(
    text: Annotated[str, typer.Option(help="Text without labels: .txt (one text a line), .jsonl, or a folder")] = "",
    terms: Annotated[str, typer.Option(help="Term list: .csv .tsv .jsonl .txt")] = "",
    sources: Annotated[str, typer.Option(help="File that declares weak sources")] = "",
    gold: Annotated[str, typer.Option(help="Annotated sentences to train with: .jsonl .conll .spacy")] = "",
    dev: Annotated[str, typer.Option(help="Annotated sentences to choose models by")] = "",
    test: Annotated[str, typer.Option(help="Annotated sentences for the final scores")] = "",
    lang: Lang = "en",
    tokenizer: Annotated[str, typer.Option(help="Name of a registered tokenizer")] = "",
    size: Annotated[
        str, typer.Option(help="Encoder: linear, linear-static, cnn, static, bilstm, transformer or gpu")
    ] = "",
    transformer: Annotated[str, typer.Option(help="Folder or name of the Transformer")] = "",
    gpu_id: Gpu = -1,
    label: Annotated[Optional[List[str]], typer.Option(help="Label to learn (repeatable)")] = None,
    term_label: Annotated[str, typer.Option(help="Label of terms that come without one")] = "",
    max_steps: Annotated[str, typer.Option(help="Steps of the training")] = "",
    misaligned: Misaligned = "error",
    columns: Columns = (1, -1),
    spans_key: Annotated[str, typer.Option(help="Span group of .spacy files that is read as the gold")] = "",
    configs: Annotated[str, typer.Option(help="Folder of the project's configs")] = "",
    output: JsonOutput = None,
) -> None:
    """Check files and settings before a training, all at once. An empty option, or "null", counts as missing."""
    with reporting():
        given = {"text": text, "terms": terms, "sources": sources, "gold": gold, "dev": dev, "test": test}
        files = CheckedFiles(**{name: Path(value) for name, value in given.items() if given_text(value) is not None})
        check_json(output, [path for path in vars(files).values() if path is not None])
        steps = number("max_steps", given_text(max_steps) or AUTO, int)
        if steps is not None:
            check_range("max_steps", steps, 1, None)
        settings = CheckedSettings(
            lang=lang,
            tokenizer=given_text(tokenizer),
            size=given_text(size),
            transformer=given_text(transformer),
            gpu_id=gpu_id,
            labels=tuple(label for label in label or () if given_text(label) is not None),
            term_label=given_text(term_label),
            max_steps=steps,
            misaligned=misaligned,
            columns=columns,
            spans_key=given_text(spans_key),
            configs=Path(configs) if given_text(configs) is not None else None,
        )
        report = examine(files, settings)
        if output is not None:
            write_json(output, report.to_json())
            say("good", "Findings", output)
        show_report(report)


def show_report(report: CheckReport) -> None:
    """Print what was found: errors first, the labels of all files side by side, and the number of errors.

    report (CheckReport): What was found.
    RAISES (typer.Exit): With code 1 if there are errors.
    """
    for finding in report.findings:
        _show(finding)
    header, rows = label_table(report.labels)
    if rows:
        show_table(header, rows)
    warnings = sum(finding.level == "warning" for finding in report.findings)
    if report.errors:
        say("error", f"Errors: {report.errors}, warnings: {warnings}. Correct the errors before anything is trained.")
        raise typer.Exit(1)
    say("good", f"No errors; warnings: {warnings}")


def _show(finding: Finding) -> None:
    # Not wasabi's Printer, which breaks lines: commands are to be copied.
    say(finding.level, finding.where)
    typer.echo(f"  {locale_escape(finding.message)}")
    if finding.cure:
        typer.echo(locale_escape(f"  → {finding.cure}"))
