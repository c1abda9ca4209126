"""`spacy weakner compare`"""

from pathlib import Path
from typing import Annotated, Dict, List, Optional

import typer
from wasabi import msg

from ..errors import Errors, WeaknerError
from ._util import reporting


def compare_cli(
    test: Annotated[Path, typer.Argument(help="Gold corpus: a .spacy file or a folder of them")],
    candidates: Annotated[
        List[str], typer.Argument(help="NAME=PATH: a pipeline, or a .spacy corpus of the test sentences with labels")
    ],
    output: Annotated[Optional[Path], typer.Option(help="Write the scores to this JSON file")] = None,
) -> None:
    """Score pipelines and label sets on one test set, in one table."""
    with reporting():
        import srsly

        from ..files import write_text
        from ..quality.compare import compare, format_table

        rows = compare(test, _parse(candidates), progress=True)
        header, cells = format_table(rows)
        msg.table(cells, header=header, divider=True, aligns=("l", *"r" * (len(header) - 1)))
        if output is not None:
            write_text(output, srsly.json_dumps([row.to_json() for row in rows], indent=2) + "\n")
            msg.good("Scores", output)


def _parse(candidates: List[str]) -> Dict[str, Path]:
    parsed = {}
    for candidate in candidates:
        name, separator, path = candidate.partition("=")
        if not (name and separator and path):
            raise WeaknerError(Errors.WK401.format(value=candidate))
        if name in parsed:
            raise WeaknerError(Errors.WK404.format(name=name))
        parsed[name] = Path(path)
    return parsed
