"""`spacy weakner label`"""

from pathlib import Path
from typing import Annotated, List, Optional

import typer
from wasabi import msg

from ._util import listing, reporting


def label_cli(
    input_path: Annotated[Path, typer.Argument(help="Corpus: a .spacy file or a folder of them")],
    output_path: Annotated[Path, typer.Argument(help="A .spacy file, or a folder for shards")],
    terms: Annotated[Optional[Path], typer.Option(help="Term list to look up")] = None,
    pipeline: Annotated[
        Optional[str], typer.Option(help="Or a pipeline (folder or name) whose entities are taken")
    ] = None,
    source: Annotated[
        Optional[str], typer.Option(help="Name of this weak source (default: gazetteer, or the pipeline's name)")
    ] = None,
    spans_key: Annotated[
        Optional[str], typer.Option(help="Span group of the pipeline to take instead of its entities")
    ] = None,
    attr: Annotated[
        str, typer.Option(help="Token attribute that terms are compared by: ORTH, LOWER or NORM")
    ] = "LOWER",
    acronym_length: Annotated[
        int, typer.Option(help="Terms up to this length with inner upper case match in exact case")
    ] = 5,
    stop: Annotated[Optional[List[str]], typer.Option(help="Term that is not to be matched (repeatable)")] = None,
    min_length: Annotated[int, typer.Option(help="Shorter terms (in characters) are not matched")] = 1,
    term_label: Annotated[Optional[str], typer.Option(help="Label of terms that come without one")] = None,
    lang: Annotated[str, typer.Option(help="Language of the text")] = "en",
    tokenizer: Annotated[Optional[str], typer.Option(help="Name of the registered tokenizer of the corpus")] = None,
    exclude: Annotated[
        Optional[List[Path]], typer.Option(help="Corpus whose sentences are left out (repeatable)")
    ] = None,
    only_matched: Annotated[bool, typer.Option("--only-matched", help="Leave out documents without a match")] = False,
) -> None:
    """Let a term list or a pipeline label a corpus: writes the span group 'weak:<source>'."""
    with reporting():
        from ..stages.label import label

        report = label(
            input_path,
            output_path,
            terms=terms,
            pipeline=pipeline,
            source=source,
            spans_key=spans_key,
            attr=attr,
            acronym_length=acronym_length,
            stop=stop or (),
            min_length=min_length,
            term_label=term_label,
            lang=lang,
            tokenizer=tokenizer,
            exclude=exclude or (),
            only_matched=only_matched,
            progress=True,
        )
        msg.good(f"{report.docs} documents", output_path)
        msg.info(f"Spans of '{report.source}': {listing(report.spans)}")
        msg.info(f"Documents without a match: {report.unmatched}; excluded: {report.excluded}")
        if report.skipped:
            msg.info(f"Shards that were finished already: {report.skipped}")
