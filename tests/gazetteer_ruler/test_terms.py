"""Reading term lists: formats, and what is said about files that cannot be read."""

import gzip
import json

import pytest
from spacy import registry

from spacy_weakner.errors import WeaknerError
from spacy_weakner.gazetteer_ruler.terms import ID_KEYS, Term, iter_terms, normalized, read_terms, term_row

ASPIRIN = Term("Chemical", "aspirin")
FAILURE = Term("Disease", "heart failure")


@pytest.fixture
def write(tmp_path):
    def _write(name, text):
        path = tmp_path / name
        data = text if isinstance(text, bytes) else text.encode("utf-8")
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return _write


def jsonl(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


FILES = [
    # The header, or Excel's first line, shows the delimiter.
    *[
        (name, text.format(d), None)
        for d in ",;\t|"
        for name in ("a.csv", "a.tsv")
        for text in (
            "label{0}term\nChemical{0}aspirin\nDisease{0}heart failure\n",
            "sep={0}\r\nTerm{0}Label\r\naspirin{0}Chemical\r\nheart failure{0}Disease\r\n",
            '\n"sep={0}"\nTerm{0}Label\naspirin{0}Chemical\nheart failure{0}Disease\n',
            '\ufeffsep={0}\n"label"{0}"note"{0}"term"\n"Chemical"{0}"x"{0}"aspirin"\nDisease{0}{0}heart failure\n',
        )
    ],
    ("a.csv", "label,term\nChemical,aspirin\nDisease,heart failure\n", None),
    ("a.csv", "number,Term,source, Label\n1,aspirin,x,Chemical\n2,heart failure,y,Disease\n", None),
    ("a.csv", "\n\nlabel,term\r\nChemical, aspirin \r\n\r\n , \r\nDisease,heart failure", None),
    ("a.csv", '\ufefflabel,term\n"Chemical","aspirin"\nDisease,"heart failure"\n', None),
    ("a.csv", "label,term\nChemical,aspirin\n,heart failure\n", "Disease"),
    ("a.tsv", "label\tterm\nChemical\taspirin\nDisease\theart failure\n", None),
    ("a.jsonl", jsonl({"label": "Chemical", "term": "aspirin"}, {"label": "Disease", "term": "heart failure"}), None),
    ("a.jsonl", jsonl({"label": "Chemical", "term": "aspirin"}, {"term": "heart failure"}), "Disease"),
    (
        "patterns.jsonl",
        jsonl(
            {"label": "Chemical", "pattern": "aspirin", "id": ""},
            {"label": "Disease", "pattern": [{"LOWER": "heart"}, {"LOWER": "failure"}]},
        ),
        None,
    ),
    (
        "patterns.jsonl",
        jsonl(
            {"label": "Chemical", "pattern": [{"lower": "aspirin"}]},
            {"label": "Disease", "pattern": [{"lower": "heart"}, {"LOWER": "failure"}]},
        ),
        None,
    ),
]


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("name, text, label", FILES)
def test_formats(write, name, text, label, suffix):
    assert list(read_terms(write(name + suffix, text), label)) == [ASPIRIN, FAILURE]


@pytest.mark.parametrize(
    "name, text, texts",
    [
        ("a.txt", "aspirin\n\n  heart failure\t\r\n", ["aspirin", "heart failure"]),
        ("a.txt.gz", "aspirin\nheart failure", ["aspirin", "heart failure"]),
        ("a.TXT", "aspirin\nheart failure\n", ["aspirin", "heart failure"]),
        ("a.csv", "aspirin\nheart failure\n", ["aspirin", "heart failure"]),
        ("a.csv", "term\naspirin\nheart failure\n", ["aspirin", "heart failure"]),
        ("a.tsv", "number\tterm\n1\taspirin\n2\theart failure\n", ["aspirin", "heart failure"]),
        ("a.csv", "t(9;22)(q34;q11)\nlong term; short term\n", ["t(9;22)(q34;q11)", "long term; short term"]),
        ("a.csv", "Term;Note\n1,2-DMH;x\n2,4-D;\n", ["1,2-DMH", "2,4-D"]),
        ("a.csv", "sep=;\nDMH, 1,2-\n2,4-D\n", ["DMH, 1,2-", "2,4-D"]),
        ("a.csv", "label;terms\n", ["label;terms"]),
        ("a.csv", "a;b\nc\n", ["a;b", "c"]),
        ("a.txt", "a;b\nc;d\n", ["a;b", "c;d"]),
        # As often as they stand there.
        ("a.txt", "b\na\nb\n a\n", ["b", "a", "b", "a"]),
        ("a.csv", 'label,term\nX,"1,2-DMH"\nX,"5"" pipe"\nX,5" pipe b\n', ["1,2-DMH", '5" pipe', '5" pipe b']),
        ("a.txt", "x" * 1000, ["x" * 1000]),
        # Lines may end in CR alone.
        ("a.txt", "x\ry\r\rz\r", ["x", "y", "z"]),
        ("a.csv", "term\rx\ry\rz", ["x", "y", "z"]),
    ],
)
def test_one_label_for_the_file(write, name, text, texts):
    assert list(read_terms(write(name, text), "X")) == [Term("X", text) for text in texts]


@pytest.mark.parametrize("key", ID_KEYS)
def test_ids(write, key):
    rows = [{"term": "aspirin", key: 7}, {"term": "ibuprofen", key: ["D1", "D2|D3", "D1"]}, {"term": "x", key: None}]
    expected = [("aspirin", "7"), ("ibuprofen", "D1"), ("ibuprofen", "D2"), ("ibuprofen", "D3"), ("x", "")]
    table = f"term,{key.upper()}\naspirin, 7 \nibuprofen,D1|D2|D3|D1\nx,\n"
    for path in (write("a.jsonl", jsonl(*rows)), write("a.csv", table)):
        assert [(term.text, term.id) for term in read_terms(path, "X")] == expected
    ((first, *_), *_) = [list(iter_terms(rows, "ruler", "X"))]
    assert first == Term("X", "aspirin", False, "7")


def test_ids_of_patterns_and_of_a_named_column(write):
    rows = [{"label": "A", "pattern": "a b", "id": "D1"}, {"label": "A", "pattern": [{"ORTH": "May"}], "id": "D2"}]
    assert [term.id for term in read_terms(write("p.jsonl", jsonl(*rows)))] == ["D1", "D2"]
    path = write("a.tsv", "id\tmesh\tterm\n1\tD1\taspirin\n")
    assert [term.id for term in read_terms(path, "X")] == ["1"]
    assert [term.id for term in read_terms(path, "X", "id=MeSH")] == ["D1"]
    with pytest.raises(WeaknerError, match=r"line 1.*nosuch"):
        list(read_terms(path, "X", "id=nosuch"))


@pytest.mark.parametrize(
    "row",
    [
        *[{"id": bad} for bad in ("x" * 10_000, "a\nb", 1.5, True, {"a": 1}, "\ud800")],
        *[{"id": "1|2", "name": bad} for bad in ("one", "a|b|c", "x" * 10_000, "a|b\nc", 7, ["a", "b"])],
    ],
)
def test_ids_and_names_that_cannot_be(write, row):
    with pytest.raises(WeaknerError, match="line 2"):
        list(read_terms(write("a.jsonl", jsonl({"term": "a", "id": "1"}, {"term": "b", **row})), "X"))


def test_preferred_names(write):
    rows = [
        {"term": "nyc", "id": "Q60", "name": "New York|City"},
        {"term": "york", "id": "Q1|Q2", "name": " York |New York"},
        {"term": "ulm", "id": "Q3", "name": None},
        {"term": "bonn", "name": "without an id"},
    ]
    table = "term,Name,id\nnyc,New York|City,Q60\nyork, York |New York,Q1|Q2\nulm,,Q3\nbonn,without an id,\n"
    for path in (write("a.jsonl", jsonl(*rows)), write("a.csv", table)):
        assert [(term.id, term.name) for term in read_terms(path, "X")] == [
            ("Q60", "New York|City"),
            ("Q1", "York"),
            ("Q2", "New York"),
            ("Q3", ""),
            ("", ""),
        ]


@pytest.mark.parametrize("exact", [False, True])
def test_a_row_comes_back_with_its_id_and_name(exact):
    term = Term("A", "New York", exact, "Q60", "City of New York")
    assert list(iter_terms([term_row(term), tuple(term)], "ruler")) == [term, term]


@pytest.mark.parametrize(
    "cell, term",
    [
        ('"Bonn"', "Bonn"),  # as spreadsheets export a field with a comma or a quote
        ('"Bonn, am Rhein"', "Bonn, am Rhein"),
        ('"5"" pipe"', '5" pipe'),
        ('"Weird" Al', '"Weird" Al'),
        ('"A" and "B"', '"A" and "B"'),
        ('"', '"'),
        ('5"', '5"'),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_quotes_between_tabs(write, cell, term, newline):
    rows = [f"A\t{cell}\tx", 'A\tUttoxeter\t"ksutur,U', 'A\tJena\tj"']
    path = write("a.tsv", newline.join(["label\tterm\talternatenames", *rows]))
    assert list(read_terms(path)) == [Term("A", term), Term("A", "Uttoxeter"), Term("A", "Jena")]


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
@pytest.mark.parametrize("label, term", [("A{}", "x{}y"), ("A{}B", "x")])
def test_no_term_goes_over_a_line_end(write, end, label, term):
    rows = [{"label": "A", "term": f"x{end}"}, {"label": label.format(end), "term": term.format(end)}]
    with pytest.raises(WeaknerError, match=r"WK103.*line 2: .* contains a line break"):
        list(read_terms(write("a.jsonl", jsonl(*rows))))
    with pytest.raises(WeaknerError, match=r"WK103.*entry 2.*contains a line break"):
        list(iter_terms(rows, "ruler"))


@pytest.mark.parametrize(
    "name, text, line, message",
    [
        ("a.csv", "a,b\nc,d\n", 1, "the columns 'label' and 'term', but has: a, b"),
        ("a.csv", "\nterm\naspirin\n", 2, "or give 'label'"),
        ("a.csv", "aspirin\n", 1, "or give 'label' (--term-label; in a sources file: term_label) for the whole list."),
        ("a.csv", "1,aspirin\n", 1, "'term' is enough if you give 'label' (--term-label;"),
        ("a.csv", "name;type\nA;x\n", 1, "has: name;type. Add a first row with the names, separated like"),
        ("a.csv", "Chemical;1,2-DMH\n", 1, "separated like the columns of the other rows"),
        ("a.csv", "sep=;\nChemical;1,2-DMH\n", 2, "has: Chemical, 1,2-DMH"),
        ("a.csv", "label;term\nA;x\nA;1;2-DMH\n", 3, "3 columns here, but 2 in the first row. Put a term with a ';'"),
        ("a.tsv", "label,name\nA,b\n", 1, "the columns 'label' and 'term'"),
        ("a.csv", "label,term\nA,x\nA,1,2-DMH\n", 3, "3 columns here, but 2 in the first row"),
        ("a.csv", "label,term\nA\n", 2, "1 columns here"),
        ("a.csv", 'label,term\nA,x\nA,"open\nA,y\n', 3, "end with one in the same line"),
        ("a.csv", 'term,label\n"ks,A\nb,A\nc",A\nd,A\n', 2, "end with one in the same line"),
        ("a.csv", 'label,term,note\nA,a,"ks\nA,b,x\nA,c,x"\nA,d,x\n', 2, "end with one in the same line"),
        ("a.csv", 'label,term\nA,"x" y\n', 2, "double all others"),
        ("a.tsv", 'label\tterm\nA\t"x\ty"\n', 2, "3 columns here, but 2 in the first row. A term cannot contain a tab"),
        ("a.csv", "label,term\nA,x\n\nA,\n", 4, "the term is empty"),
        ("a.csv", 'label,term\nA,"two\nlines"\n,y\n', 2, "end with one in the same line"),
        ("a.csv", "label,term\r\rA,x\r,y\r", 4, "the label is empty"),
        ("a.jsonl", '{"label": "A", "term": "x"}\r{"label": "A", "term": "y"}\r"z"', 3, "expected an object"),
        ("a.jsonl", '{"label": "A", "term": "x"}\n{"label": "A"\n', 2, "not valid JSON"),
        ("a.jsonl", '["A", "x"]\n', 1, "expected an object"),
        ("a.jsonl", jsonl({"label": "A", "text": "x"}), 1, 'the row has no "term" (or "pattern"), only: label, text'),
        ("a.jsonl", jsonl({"label": "A", "term": "x"}, {"term": "y"}), 2, "the label is empty"),
        ("a.jsonl", jsonl({"label": "A", "term": None}), 1, "the term is empty"),
        ("a.jsonl", jsonl({"label": "A", "term": 5}), 1, "the term 5 is not a string"),
        ("a.jsonl", jsonl({"label": ["A"], "term": "x"}), 1, "is not a string"),
        ("a.jsonl", jsonl({"label": "A", "pattern": []}), 1, "the term is empty"),
        ("a.jsonl", jsonl({"label": "A", "pattern": [{"LEMMA": "go"}]}), 1, '{"LEMMA": "go"} is not a plain word'),
        ("a.jsonl", jsonl({"label": "A", "pattern": [{"LOWER": "a", "OP": "?"}]}), 1, "is not a plain word"),
        ("a.jsonl", jsonl({"label": "A", "pattern": [{"LOWER": {"REGEX": "a"}}]}), 1, "is not a plain word"),
        ("a.jsonl", jsonl({"label": "A", "pattern": [{"LOWER": "a"}, {"ORTH": "B"}]}), 1, "Use one key for all"),
        ("a.jsonl", jsonl({"label": "A", "pattern": ["a"]}), 1, "is not a plain word"),
        ("a.jsonl", '{"label": "A", "term": "\\ud800"}\n', 1, "surrogate"),
        ("a.txt", "\nx\n", 2, "plain text has no labels. Give 'label'"),
        ("a.csv", f"label,term\nA,{'x' * 1001}\n", 2, "1001 characters long (at most 1000)"),
    ],
)
def test_malformed_line(write, name, text, line, message):
    path = write(name, text)
    with pytest.raises(WeaknerError) as error:
        list(read_terms(path))
    assert f"{path}, line {line}: " in str(error.value)
    assert message in str(error.value)


def test_a_line_of_plain_text_has_no_columns(write):
    with pytest.raises(WeaknerError, match=r"WK103.*line 2: a term cannot contain a tab.*\.tsv"):
        list(read_terms(write("a.txt", "\tx\t\ny\tD1\n"), "X"))


@pytest.mark.parametrize(
    "name, text, message",
    [
        *[
            (name, text, "separated like the columns of the other rows")
            for name, text in (("a.csv", "id; Name,\nx"), ("a.csv", "a,name\tid\nx"), ("a.tsv", "x\tname,id"))
        ],
        ("a.csv", "a,b\nc,d", "but has: a, b"),
    ],
)
def test_several_columns_with_a_label_need_a_term_column(write, name, text, message):
    with pytest.raises(WeaknerError, match=rf"WK103.*line 1.*a column 'term'.*{message}"):
        list(read_terms(write(name, f"{text}\n"), "X"))


@pytest.mark.parametrize(
    "name, delimiter, what",
    [("a.csv", ";", "';'"), ("a.csv.gz", "|", r"'\|'"), ("a.csv", "\t", "a tab"), ("a.tsv", ";", "';'")],
)
@pytest.mark.parametrize(
    "rows", ["disease;code\nasthma;J45", "Bezeichnung;Kode\nHusten;R05", "\nlabel;terms;x\n\nA;b;c\nA;;"]
)
def test_a_table_with_an_unknown_header_is_no_list_of_terms(write, name, delimiter, what, rows):
    path, header = write(name, rows.replace(";", delimiter) + "\n"), rows.split()[0].replace(";", ", ")
    with pytest.raises(WeaknerError, match=rf"WK103.*line [12]: {what}.*'term'.*{header}"):
        list(read_terms(path, "X"))


@pytest.mark.parametrize(
    "name, text, code",
    [
        ("a.csv", "label,term\n", "WK200"),
        ("a.jsonl", "\n", "WK200"),
        ("a.txt", "", "WK200"),
        ("a.txt", b"caf\xe9\n", "WK104"),
        ("a.xls", "", "WK105"),
        ("terms", "", "WK105"),
        ("a.gz", "", "WK105"),
    ],
)
def test_unreadable_file(write, name, text, code):
    path = write(name, text)
    with pytest.raises(WeaknerError, match=rf"{code}.*{path}"):
        list(read_terms(path, "X"))


def test_damaged_gzip_and_folders(tmp_path):
    path = tmp_path / "a.txt.gz"
    for data in (gzip.compress(b"aspirin\n" * 1000)[:-12], b"aspirin\n"):
        path.write_bytes(data)
        with pytest.raises(WeaknerError, match="WK206"):
            list(read_terms(path, "X"))
    (tmp_path / "a.csv").mkdir()
    with pytest.raises(WeaknerError, match=r"WK109.*a\.csv is a folder"):
        list(read_terms(tmp_path / "a.csv"))


def test_registered_reader_reads_when_called(write, tmp_path):
    read = registry.readers.get("spacy_weakner.TermList.v1")(tmp_path / "a.jsonl", label="X")
    with pytest.raises(WeaknerError, match="WK100"):
        list(read())
    write("a.jsonl", jsonl({"term": "aspirin"}))
    assert list(read()) == list(read()) == [Term("X", "aspirin")]
    with pytest.raises(WeaknerError, match="line 2"):
        list(read_terms(write("a.jsonl", jsonl({"label": "Chemical", "term": "aspirin"}) + "broken")))


# Terminologies as they are

CATALOG = [
    ["Code", "Bezeichnung", "Synonyme", "Typ"],
    ["I26.9", "Lungenembolie", "LE; Pulmonalembolie ;", "Diagnose"],
    ["R18|R19", "Aszites", "", "Befund, neu"],
]
MAPPING = "term=Bezeichnung, id=Code,synonyms = Synonyme,label=typ"
MAPPED = [
    *(Term("Diagnose", text, id="I26.9") for text in ("Lungenembolie", "LE", "Pulmonalembolie")),
    *(Term("Befund, neu", "Aszites", id=code) for code in ("R18", "R19")),
]


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize(
    "name, delimiter", [("a.csv", ";"), ("a.csv.gz", ","), ("a.tsv", "|"), ("a.csv", "\t"), ("a.jsonl", "")]
)
def test_columns_of_other_names(write, name, delimiter, normalize):
    if delimiter:
        text = "".join(delimiter.join(f'"{cell}"' for cell in row) + "\n" for row in CATALOG)
    else:
        text = jsonl(*(dict(zip(CATALOG[0], row, strict=True)) for row in CATALOG[1:]))
    labels = {"Diagnose": "DIAGNOSE", "Befund, neu": "BEFUND_NEU"} if normalize else {}
    expected = [term._replace(label=labels.get(term.label, term.label)) for term in MAPPED]
    assert list(read_terms(write(name, text), None, MAPPING, ";", normalize)) == expected


@pytest.mark.parametrize(
    "text, columns, terms",
    [
        # Without a mapping, under the usual names, as cell or list, separated by "|".
        ("term,synonyms\na,b|c; d\n", "", ["a", "b", "c; d"]),
        (jsonl({"term": "a", "synonyms": ["b|c", "d"]}), "", ["a", "b|c", "d"]),
        (jsonl({"term": "a", "synonyms": "b|c\nd"}, {"term": "e", "synonyms": None}), "", ["a", "b", "c", "d", "e"]),
        # A mapped column replaces the column of the usual name.
        ("term,Name, deutsch,x\na,b,c,d\n", "term=x", ["d"]),
        ('"Name, deutsch",term\nb,c\n', "term=Name, deutsch", ["b"]),
        # A reviewed list has other columns than those mapped.
        ("label,term,accept\nX,a,yes\n", MAPPING, ["a"]),
    ],
)
def test_synonyms_and_mappings(write, text, columns, terms):
    path = write("a.jsonl" if text[0] == "{" else "a.csv", text)
    assert [term.text for term in read_terms(path, "X", columns)] == terms


def test_synonyms_in_python():
    rows = [{"label": "A", "term": "x", "id": "1", "synonyms": ["y", "z|"]}, {"label": "B", "term": "x"}]
    assert [term[1:4] for term in iter_terms(rows, "r")] == [
        ("x", False, "1"),
        ("y", False, "1"),
        ("z|", False, "1"),
        ("x", False, ""),
    ]


@pytest.mark.parametrize(
    "text, columns, message",
    [
        *[
            ("term\na\n", bad, "WK005.*term_columns")
            for bad in ("Name", "term=", "x=term", "term=a,name=a", "term=a,term=b")
        ],
        ("Code,Begriff\n1,a\n", "term=Bezeichnung", r"line 1: no column 'bezeichnung', only: Code, Begriff"),
        ("term,Code\na,1\n", "synonyms=Synonyme", "line 1: no column 'synonyme'"),
        ("term,synonyms,synonyms\na,b,c\n", None, "line 1: several columns 'synonyms'"),
        ("term,Code,Code\na,1,2\n", "id=Code", "line 1: several columns 'id'"),
        (jsonl({"term": "a"}), "synonyms=Synonyme", "line 1: .*'synonyme'"),
        (jsonl({"term": "a", "synonyms": {"b": 1}}), "", "line 1: the synonyms"),
        (jsonl({"term": "a", "synonyms": [1]}), "", "line 1: the term 1 is not a string"),
        ("term,synonyms\na," + "b" * 1001 + "\n", "", "1001 characters"),
    ],
)
def test_wrong_mappings_and_synonyms(write, text, columns, message):
    with pytest.raises(WeaknerError, match=message):
        list(read_terms(write("a.jsonl" if text[0] == "{" else "a.csv", text), "X", columns))


@pytest.mark.parametrize(
    "label, expected",
    [
        ("Diagnose", "DIAGNOSE"),
        (" Befund (neu)", "BEFUND_NEU"),
        ("größe_2", "GRÖSSE_2"),
        ("++", "++"),
        ("疾病", "疾病"),
    ],
)
def test_normalized_labels(label, expected):
    assert normalized(label) == expected == normalized(expected)


@pytest.mark.parametrize("keys", [("ORTH",), ("TEXT", "text"), ("ORTH", "TEXT", "orth")])
def test_token_patterns_of_orth_are_exact(write, keys):
    words = ["New", "York", "City"][: len(keys)]
    row = {"label": "A", "pattern": [{key: word} for key, word in zip(keys, words, strict=True)]}
    terms = list(read_terms(write("a.jsonl", jsonl(row))))
    assert terms == [Term("A", " ".join(words), exact=True)] == list(iter_terms([row], "ruler"))
    # A config's validation makes tuples of them; a stored list is a term list.
    assert list(iter_terms([tuple(terms[0])], "ruler")) == terms
    assert list(iter_terms([term_row(terms[0])], "ruler")) == terms


@pytest.mark.parametrize("row", [{"label": "A"}, {"label": "", "term": "x"}, ("A", " "), "A x", None, ("A", "x", 1.5)])
def test_entries_in_python(row):
    rows = [{"label": "A", "term": "x"}, {"label": "B", "pattern": [{"LOWER": "y"}]}]
    terms = [Term("A", "x"), Term("B", "y")]
    for source in (terms, [("A", "x"), ["B", "y"]], rows, lambda: iter(terms)):
        assert list(iter_terms(source, "ruler")) == terms
    with pytest.raises(WeaknerError, match=r"'ruler', entry 2"):
        list(iter_terms([Term("A", "x"), row], "ruler"))


def test_an_id_column_that_no_row_has_is_an_error(write):
    rows = [{"label": "A", "term": "x", "cui": "1"}, {"label": "A", "term": "y"}]
    assert [term.id for term in read_terms(write("a.jsonl", jsonl(*rows)), columns="id=cui")] == ["1", ""]
    with pytest.raises(WeaknerError, match=r"WK103.*a\.jsonl, line 2.*'umls'"):
        list(read_terms(write("a.jsonl", jsonl(*rows)), columns="id=UMLS"))
    # A reviewed file has no other ids than those of the list.
    reviewed = write("a.jsonl", jsonl({"label": "A", "term": "x", "accept": "yes"}))
    assert [term.id for term in read_terms(reviewed, columns="id=UMLS")] == [""]
