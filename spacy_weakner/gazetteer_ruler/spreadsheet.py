"""Reads tables from Excel's files."""

import warnings
from pathlib import Path
from typing import Any, Iterator, List, Tuple
from zipfile import BadZipFile

from ..errors import Errors, WeaknerError, require
from ..files import existing

EXCEL = ".xlsx"


class ChangedCell(str):
    """A cell of which Excel has made another value, such as a date, as text. It may be in a column that is not read."""

    place: str
    why: str


def read_sheet(path: Path) -> Iterator[Tuple[int, List[str]]]:
    """Stream the rows of the first sheet that are not blank, as shown in Excel, with their numbers."""
    for row in _open_workbook(path).worksheets[0].iter_rows():
        cells = [_shown(cell) for cell in row]
        if any(cells):
            yield row[0].row or 0, cells


def other_sheets(path: Path) -> List[str]:
    """Return the names of the sheets that are not read and not empty."""
    return [sheet.title for sheet in _open_workbook(path).worksheets[1:] if any(sheet.iter_rows(values_only=True))]


def _open_workbook(path: Path) -> Any:
    require("openpyxl", extra="excel")
    if path.suffix.lower() != EXCEL:
        reason, cure = "a compressed workbook is not supported", "Unpack it (gunzip)"
        raise WeaknerError(Errors.WK206.format(path=path, reason=reason, cure=cure))
    from openpyxl import load_workbook

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of formatting that openpyxl does not support
            # Not `read_only`, in which rows differ in length and the file stays open.
            return load_workbook(existing(path), data_only=True)
    except (BadZipFile, KeyError, ValueError, EOFError) as error:
        cure = "Save it again as an Excel workbook (.xlsx), or as CSV in UTF-8"
        raise WeaknerError(Errors.WK206.format(path=path, reason=error, cure=cure)) from error


def _shown(cell: Any) -> str:
    value = cell.value
    if isinstance(value, int) and {*cell.number_format} == {"0"}:  # "00123"
        return f"{value:0{len(cell.number_format)}d}"
    if value is not None and not isinstance(value, (str, int, float)):
        changed = ChangedCell(value)
        changed.place = f"cell {cell.coordinate}"
        changed.why = (
            f"Excel has made a {type(value).__name__} of this cell. Format its column as text, and write it again."
        )
        return changed
    return "" if value is None else str(value).strip()
