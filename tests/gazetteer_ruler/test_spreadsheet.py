"""Term lists in Excel's files."""

import datetime
import gzip
import re
from zipfile import ZipFile

import pytest

from spacy_weakner.checks.findings import Findings
from spacy_weakner.checks.terms import _check_columns
from spacy_weakner.errors import WeaknerError
from spacy_weakner.gazetteer_ruler.terms import Term, read_terms
from spacy_weakner.labeling.sources import TermSource


@pytest.fixture
def write(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")

    def write(rows, formats=(), sheets=()):
        book = openpyxl.Workbook()
        for row in rows:
            book.active.append(row)
        for place, shown in formats:
            book.active[place].number_format = shown
        for title, row in sheets:
            book.create_sheet(title).append(row)
        book.save(tmp_path / "a.xlsx")
        return tmp_path / "a.xlsx"

    return write


def test_cells_are_read_as_excel_shows_them(write):
    rows = [
        [],
        ["Code", " Begriff ", None, "synonyms"],
        [123, "aspirin", None, "ASS|Acetyl\nSalicyl"],
        [],
        [7, 1.5, "x"],
        [None, True, None, ""],
    ]
    assert list(read_terms(write(rows, [("A3", "00000")]), "X", "term=begriff")) == [
        *(Term("X", text, id="00123") for text in ("aspirin", "ASS", "Acetyl", "Salicyl")),
        Term("X", "1.5", id="7"),
        Term("X", "True"),
    ]


@pytest.mark.parametrize(
    "value, shown, text",
    [
        (10.1, "0.00", "10.10"),
        (10, "0.0", "10.0"),
        (7, "00000", "00007"),
        (1.5, "@", "1.5"),
        (12, "GENERAL", "12"),
        (-5, "000", "-005"),
    ],
)
def test_numbers_have_the_digits_that_excel_shows(write, value, shown, text):
    (term,) = read_terms(write([["term", "id"], ["a", value]], [("B2", shown)]), "X")
    assert term.id == text


@pytest.mark.parametrize(
    "value, shown",
    [
        *((45, shown) for shown in ('"D"0000', "0%", "#,##0", "0.00E+00")),
        *((2.5, "0"), (1.005, "0.00"), (0.00001, "General"), (1234567890123456, "0"), (1e18, "General")),
    ],
)
def test_other_numbers_are_refused_in_columns_that_are_read(write, value, shown):
    path = write([["term", "id", "note"], ["a", "D1", value]], [("C2", shown)])
    assert [term.id for term in read_terms(path, "X")] == ["D1"]
    with pytest.raises(WeaknerError, match=r"WK103.*cell C2.*format"):
        list(read_terms(path, "X", "id=note"))


def test_one_column_needs_no_header(write):
    assert [term.text for term in read_terms(write([["a; b"], ["c"]]), "X")] == ["a; b", "c"]


@pytest.mark.parametrize("value", [datetime.date(2026, 9, 2), datetime.time(1, 2)])
def test_dates_are_refused_in_columns_that_are_read(write, value):
    rows = [["name", "term", "since"], ["b", "a", value], [value, "c", None]]
    terms = read_terms(write(rows), "X", "name=since")
    with pytest.raises(WeaknerError, match=r"WK103.*a\.xlsx, cell C2"):
        list(terms)
    with pytest.raises(WeaknerError, match=r"WK103.*a\.xlsx, cell A3"):
        list(read_terms(write([[*row[:2], "x"] for row in rows]), "X"))
    assert [term.text for term in read_terms(write([row[1:] for row in rows]), "X")] == ["a", "c"]


@pytest.mark.parametrize(
    "result, ids", [("", None), ("<v>D1</v>", ["D1"]), ("<v></v>", [""])], ids=["none", "text", "no characters"]
)
def test_formulas_need_their_results(write, result, ids):
    path = write([["term", "id"], ["a", '=UPPER("d1")']])
    if result:  # as Excel and LibreOffice write them
        with ZipFile(path) as file_:
            parts = {name: file_.read(name).decode("utf-8") for name in file_.namelist()}
        sheet = "xl/worksheets/sheet1.xml"
        parts[sheet], n = re.subn(
            r'<c r="B2"([^>]*)>(.*?)<v ?/?>(</v>)?', rf'<c r="B2" t="str"\1>\2{result}', parts[sheet]
        )
        assert n == 1, parts[sheet]
        with ZipFile(path, "w") as file_:
            for name, text in parts.items():
                file_.writestr(name, text)
    if ids:
        assert [term.id for term in read_terms(path, "X")] == ids
    else:
        with pytest.raises(WeaknerError, match=r"WK103.*a\.xlsx, cell B2.*formula"):
            list(read_terms(path, "X"))


@pytest.mark.parametrize(
    "rows, message", [([], "WK200"), ([["name"], ["a"], ["b", "c"]], "line 1"), ([["term"], [" "]], "WK200")]
)
def test_sheets_without_terms(write, rows, message):
    with pytest.raises(WeaknerError, match=message):
        list(read_terms(write(rows), "X"))


def test_compressed(tmp_path):
    pytest.importorskip("openpyxl")
    (tmp_path / "a.xlsx.gz").write_bytes(gzip.compress(b"PK"))
    with pytest.raises(WeaknerError, match=r"WK206.*gunzip"):
        list(read_terms(tmp_path / "a.xlsx.gz", "X"))


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", b"label,term"])
def test_files_that_are_no_workbooks(tmp_path, data):
    pytest.importorskip("openpyxl")
    (tmp_path / "a.xlsx").write_bytes(data)
    with pytest.raises(WeaknerError, match=r"WK206.*a\.xlsx"):
        list(read_terms(tmp_path / "a.xlsx", "X"))
    with pytest.raises(WeaknerError, match="WK100"):
        list(read_terms(tmp_path / "b.xlsx", "X"))


def test_other_sheets_are_named(write):
    findings = Findings()
    source = TermSource(name="t", path=str(write([["term", "note"], ["a"]], sheets=[("More", ["b"]), ("Empty", [])])))
    _check_columns(source.files[0], source, "t", findings)
    columns, sheets = [finding.message for finding in findings.sorted()]
    assert "note" in columns and "More" in sheets and "Empty" not in sheets


def test_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("spacy_weakner.errors.find_spec", lambda name: None)
    with pytest.raises(WeaknerError, match=r"WK350.*\[excel\]"):
        list(read_terms(tmp_path / "a.xlsx", "X"))


def test_formulas_that_cannot_be_parsed_do_not_matter_elsewhere(write):
    path = write([["term", "id"], ["a", "D1"]], sheets=[("more", ["=A1"])])
    with ZipFile(path) as file_:
        parts = {name: file_.read(name).decode("utf-8") for name in file_.namelist()}
    sheet = "xl/worksheets/sheet2.xml"
    shared = '<c r="A1"><f t="shared" ref="A1:A2" si="0">#SPILL!</f><v>1</v></c><c r="A2"><f t="shared" si="0"/></c>'
    parts[sheet] = re.sub(r"<c r=.*</c>", shared, parts[sheet])
    with ZipFile(path, "w") as file_:
        for name, text in parts.items():
            file_.writestr(name, text)
    assert [term.id for term in read_terms(path, "X")] == ["D1"]
