"""Reads tables from Excel's files."""

import re
import warnings
from pathlib import Path
from typing import Any, Iterator, List, Set, Tuple
from zipfile import BadZipFile

from ..errors import Errors, WeaknerError, require
from ..files import existing

EXCEL = ".xlsx"
# Formats of numbers: as they are, and those with a number of digits ("00123", "10.10").
_AS_IT_IS = ("general", "@")
_AS_TEXT = "Format its column as text, and write it again."
_ZEROS = re.compile(r"(0+)(?:\.(0+))?")


class ChangedCell(str):
    """A cell of which Excel has made another value, such as a date, or which Excel shows in another form, as text. It
    may be in a column that is not read."""

    place: str
    why: str


def read_sheet(path: Path) -> Iterator[Tuple[int, List[str]]]:
    """Stream the rows of the first sheet that are not blank, as shown in Excel, with their numbers."""
    formulas: Set[str] = set()
    try:
        sheet = _open_workbook(path, with_formulas=True).worksheets[0]
        formulas.update(cell.coordinate for row in sheet.iter_rows() for cell in row if cell.data_type == "f")
    except Exception:  # openpyxl cannot parse all formulas; they may be of columns or sheets that are not read
        sheet = None
    if sheet is None or formulas:
        sheet = _open_workbook(path).worksheets[0]
    for row in sheet.iter_rows():
        cells = [_shown(cell, cell.coordinate in formulas) for cell in row]
        if any(cells):
            yield row[0].row or 0, cells


def other_sheets(path: Path) -> List[str]:
    """Return the names of the sheets that are not read and not empty."""
    return [sheet.title for sheet in _open_workbook(path).worksheets[1:] if any(sheet.iter_rows(values_only=True))]


def _open_workbook(path: Path, with_formulas: bool = False) -> Any:
    """Open a workbook, with its formulas or with their results, which only a spreadsheet program computes."""
    require("openpyxl", extra="excel")
    if path.suffix.lower() != EXCEL:
        reason, cure = "a compressed workbook is not supported", "Unpack it (gunzip)"
        raise WeaknerError(Errors.WK206.format(path=path, reason=reason, cure=cure))
    from openpyxl import load_workbook

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of formatting that openpyxl does not support
            # Not `read_only`, in which rows differ in length and the file stays open.
            return load_workbook(existing(path), data_only=not with_formulas)
    except (BadZipFile, KeyError, ValueError, EOFError) as error:
        cure = "Save it again as an Excel workbook (.xlsx), or as CSV in UTF-8"
        raise WeaknerError(Errors.WK206.format(path=path, reason=error, cure=cure)) from error


def _shown(cell: Any, is_formula: bool) -> str:
    value, shown_as = cell.value, cell.number_format
    if value is None and is_formula and cell.data_type != "str":  # which are results without characters
        return _changed(cell, "no program has computed this formula. Save the file in Excel, or write the result.")
    if value is None or isinstance(value, (str, bool)):
        return "" if value is None else str(value).strip()
    if not isinstance(value, (int, float)):
        return _changed(cell, f"Excel has made a {type(value).__name__} of this cell. {_AS_TEXT}")
    text, zeros = str(value), _ZEROS.fullmatch(shown_as)
    if zeros is not None:
        text = f"{value:0{len(shown_as) + (value < 0)}.{len(zeros[2] or '')}f}"
    # Excel shows fewer digits than a number has, and not all digits of a long one.
    if (
        (zeros is None and shown_as.lower() not in _AS_IT_IS)
        or float(text) != value
        or "e" in text
        or abs(value) >= 1e15
    ):
        return _changed(cell, f"Excel may not show this number as {value} (its format is {shown_as}). {_AS_TEXT}")
    return text


def _changed(cell: Any, why: str) -> ChangedCell:
    changed = ChangedCell(cell.value)
    changed.place = f"cell {cell.coordinate}"
    changed.why = why
    return changed
