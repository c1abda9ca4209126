import pytest
import spacy

from spacy_weakner.corpus import conll, overlaps, records, weak
from spacy_weakner.corpus.conll import decode_tags, read_conll
from spacy_weakner.corpus.counts import RowCounts
from spacy_weakner.corpus.docbin import read_docs, write_docs
from spacy_weakner.corpus.formats.writing import write_corpus
from spacy_weakner.errors import WeaknerError

from ..util import doc_from_row, iob

NLP = spacy.blank("xx")


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "tags, expected",
    [
        # One sentence in every scheme: A A | A | B, then O.
        ("I-A I-A B-A I-B O", [(0, 2, "A"), (2, 3, "A"), (3, 4, "B")]),  # IOB1
        ("B-A I-A B-A B-B O", [(0, 2, "A"), (2, 3, "A"), (3, 4, "B")]),  # BIO
        ("B-A E-A S-A S-B O", [(0, 2, "A"), (2, 3, "A"), (3, 4, "B")]),  # IOBES
        ("B-A L-A U-A U-B O", [(0, 2, "A"), (2, 3, "A"), (3, 4, "B")]),  # BILUO
        ("I-A I-A I-A I-B O", [(0, 3, "A"), (3, 4, "B")]),  # IO
        ("B-A E-A B-A E-A S-B", [(0, 2, "A"), (2, 4, "A"), (4, 5, "B")]),  # BMES
        ("B-A M-A M-A E-A W-A", [(0, 4, "A"), (4, 5, "A")]),  # BMEWO
        ("W-A W-A O M-A M-A", [(0, 1, "A"), (1, 2, "A"), (3, 5, "A")]),
        ("B-A I-A E-A O O", [(0, 3, "A")]),
        ("B-A I-A E-A I-A O", [(0, 3, "A"), (3, 4, "A")]),
        ("E-A E-A O L-A B-A", [(0, 1, "A"), (1, 2, "A"), (3, 4, "A"), (4, 5, "A")]),
        ("B-A I-B O - I-B", [(0, 1, "A"), (1, 2, "B"), (4, 5, "B")]),
        ("I-A - I-A O O", [(0, 1, "A"), (2, 3, "A")]),
        ("B-x-y I-x-y O O O", [(0, 2, "x-y")]),
        ("O O O O O", []),
        # Several tags in one cell; a comma within a label is none.
        ("B-A,B-B I-A I-B|O O O", [(0, 1, "B"), (0, 2, "A"), (2, 3, "B")]),
        ("O|O B-A|O O;B-B O O", [(1, 2, "A"), (2, 3, "B")]),
        ("B-A,b I-A,b B-A,b,c O O", [(0, 2, "A,b"), (2, 3, "A,b,c")]),
        # One type twice: which of the two goes on is not said.
        ("B-A B-A|I-A I-A O O", [(0, 3, "A"), (1, 2, "A")]),
    ],
)
def test_one_decoder_reads_all_schemes(tags, expected):
    assert decode_tags([None if tag == "-" else tag for tag in tags.split()]) == expected


@pytest.mark.parametrize(
    "text",
    [
        "New\tB-C\nYork\tI-C\nrocks\tO\n\nYes\tO\n",
        "New B-C\nYork I-C\nrocks O\n\n\n\nYes O",
        "New   NNP  B-C \nYork  NNP  I-C\nrocks  VB O\n \nYes UH O\n",
        "-DOCSTART- O\n\nNew B-C\nYork E-C\nrocks O\n-DOCSTART- O\nYes O\n",
        "# id = 1\nNew\tB-C\nYork\tL-C\nrocks\tO\n# Yes, a comment\nYes\tO\n",
        "\ufeffNew\tI-C\r\nYork\tI-C\r\nrocks\tO\r\n\r\nYes\tO\r\n",
        "New\tI-C\rYork\tI-C\rrocks\tO\r\rYes\tO\r",
        "-DOCSTART- O\r\rNew B-C\rYork E-C\rrocks O\r# a comment\rYes O",
    ],
)
def test_layouts(tmp_path, text):
    docs = list(read_conll(write(tmp_path / "a.conll", text), NLP))
    assert [[t.text for t in doc] for doc in docs] == [["New", "York", "rocks"], ["Yes"]]
    assert [weak.doc_entities(doc) for doc in docs] == [[(0, 2, "C")], []]
    assert [iob(doc) for doc in docs] == ["BIO", "O"]


@pytest.mark.parametrize(
    "text, words",
    [
        ("New York\tB-C\n5\u00a0km\tO\n", [["New York", "5\u00a0km"]]),  # blanks need tabs
        ("\u00a0\tO\n\nYes\tO\n", [["Yes"]]),  # a sentence of white space is none
        ("No O\n# O\n1 O\n", [["No", "#", "1"]]),  # a number sign may be a token
    ],
)
def test_tokens(tmp_path, text, words):
    docs = read_conll(write(tmp_path / "a.conll", text), NLP)
    assert [[t.text for t in doc] for doc in docs] == words


@pytest.mark.parametrize("space", ["\u00a0", "\u202f", "\u3000", "\u2009", "\x85"])
@pytest.mark.parametrize("between", ["  ", "\t"])
def test_other_white_space_belongs_to_tokens(tmp_path, space, between):
    lines = [f"5{space}km", "B-X"], [space, "I-X"], [f"far{space}", "I-X"], ["off", f"O{space}"]
    path = write(tmp_path / "a.conll", "".join(f"{between.join(line)}\n" for line in lines))
    counts = RowCounts()
    (doc,) = read_conll(path, NLP, counts=counts)
    assert [t.text for t in doc] == [f"5{space}km", f"far{space}", "off"]
    assert weak.doc_entities(doc) == [(0, 2, "X")] and counts.notes == {records.BLANK_TOKENS: 1}
    write_corpus(tmp_path / "b.conll", [doc])
    (again,) = read_conll(tmp_path / "b.conll", NLP)
    assert [t.text for t in again] == [t.text for t in doc]


COMMENTS = [
    "#\thttps://a.example/x\t[2009-10-17]",
    "# sent_id = 1",
    "#",
    "## A B-PER",
    "#begin document (a/b); part 000",
    "#end document",
    "#FORMAT=Other TSV 3.3",
    "#Text=Anna O",
    "#sent_id: 7",
]


@pytest.mark.parametrize("comment", COMMENTS)
@pytest.mark.parametrize("columns", [(1, -1), (2, 4)])
def test_comments_of_another_width(tmp_path, comment, columns):
    text = f"{comment}\nAnna\tAnna\tB-PER\tB-PER\n#\t#\tO\tO\n\n{comment}\nYes\tYes\tO\tO\n{comment}\n"
    docs = list(read_conll(write(tmp_path / "a.conll", text), NLP, columns=columns))
    assert [[t.text for t in doc] for doc in docs] == [["Anna", "#"], ["Yes"]]
    assert [weak.doc_entities(doc) for doc in docs] == [[(0, 1, "PER")], []]


@pytest.mark.parametrize("line", ["#love", "#love\tO", "##ing\tO", "#1 O"])
def test_tokens_that_begin_with_a_number_sign_are_no_comments(tmp_path, line):
    with pytest.raises(WeaknerError, match=r"line 2: expected (at least 2|3) columns"):
        list(read_conll(write(tmp_path / "a.conll", f"I\tI\tO\n{line}\n"), NLP))


@pytest.mark.parametrize("mark", ["-DOCSTART- -X- O", "#begin document (a)", "# newdoc id = a", "###MEDLINE:95369245"])
def test_marks_of_documents_name_the_sentences(tmp_path, mark):
    def ids(text):
        return [weak.get_id(doc) for doc in read_conll(write(tmp_path / "a.conll", text), NLP)]

    one, two = f"{mark}\n\nAnna x B-PER\n\nYes x O\n\n", f"{mark}\nNo x O\n"
    assert ids(one + two) == ["a-1.1", "a-1.2", "a-2.1"]
    assert ids(f"Oh x O\n{one}{two}") == ["a-0.1", "a-1.1", "a-1.2", "a-2.1"]
    # A file that is marked as a whole is no document.
    assert ids(one) == [None, None]


# A first column that numbers the tokens

GERMEVAL = (
    "#\tn-tv.example\t[2005-02-26]\n1\tAnna\tB-PER\tO\n2\tlebt\tO\tO\n3\tin\tO\tO\n4\tKiel\tB-LOC\tO\n\n"
    "#\tx.example\t[2009-10-17]\n1\tDer\tO\tO\n2\tFC\tB-ORG\tO\n3\tKiel\tI-ORG\tB-LOC\n4\tsiegt\tO\tO\n"
)
PLAIN = "".join(line for line in GERMEVAL.splitlines(keepends=True) if line[0] != "#")
UNIVERSAL = (
    "# text = Im Haus\n1-2\tIm\t_\t_\t_\n1\tIn\tADP\tO\t-\n2\tdem\tDET\tO\t-\n"
    "3\tHaus\tNOUN\tB-LOC\t-\n3.1\tist\tVERB\t_\t_\n"
)


@pytest.mark.parametrize(
    "text",
    [
        "# webanno.custom.NE | value\n#id=1\n1-1\tAnna\tB-PER\n1-2\tran\tO\n\n#id=2\n2-1\tBob\tB-PER\n2-2\tran\tO\n",
        GERMEVAL,
        PLAIN,
        "0 Anna B-PER O\n1 lebt O O\n",
        # One count for the whole file.
        "1 Anna x O\n2 lebt x O\n\n3 Ja x O\n",
        UNIVERSAL,
        # That many tell enough.
        "1 Anna O\n2 lebt O\n\n" * 100 + "1 Anna no-tag\n",
    ],
)
def test_a_first_column_of_numbers_names_the_option(tmp_path, text):
    with pytest.raises(WeaknerError, match=r"a\.conll, line \d: .*token numbers.*--columns TOKEN TAG"):
        list(read_conll(write(tmp_path / "a.conll", text), NLP))


@pytest.mark.parametrize("text", [GERMEVAL, PLAIN])
def test_columns_behind_the_numbers(tmp_path, text):
    docs = list(read_conll(write(tmp_path / "a.conll", text), NLP, columns=(2, 3)))
    assert [[t.text for t in doc] for doc in docs] == [["Anna", "lebt", "in", "Kiel"], ["Der", "FC", "Kiel", "siegt"]]
    assert [weak.doc_entities(doc) for doc in docs] == [[(0, 1, "PER"), (3, 4, "LOC")], [(1, 3, "ORG")]]


def test_lines_of_universal_dependencies_that_are_no_words(tmp_path):
    counts = RowCounts()
    (doc,) = read_conll(write(tmp_path / "a.conll", UNIVERSAL), NLP, columns=(2, 4), counts=counts)
    assert [t.text for t in doc] == ["In", "dem", "Haus"] and weak.doc_entities(doc) == [(2, 3, "LOC")]
    assert counts.notes == {conll.NO_WORDS: 2}
    # A first column of such numbers alone counts nothing.
    (doc,) = read_conll(write(tmp_path / "a.conll", "1-1 Anna O\n1-2 lebt O\n"), NLP, columns=(2, 3))
    assert [t.text for t in doc] == ["Anna", "lebt"]


@pytest.mark.parametrize(
    "text",
    [
        "1 CD O\n",
        "1 O\n2 O\n",
        "1 x O\n2 x O\n\nYes x O\n",
        "1 x O\n3 x O\n",
        "2019 x O\n\n7 x O\n\n" * 99,
        "¹ x O\n² x O\n",
    ],
)
def test_tokens_may_be_numbers(tmp_path, text):
    docs = read_conll(write(tmp_path / "a.conll", text), NLP)
    lines = [line.split()[0] for line in text.splitlines() if line]
    assert [t.text for doc in docs for t in doc] == lines


def test_words_that_are_the_same_in_columns_that_are_given(tmp_path):
    (doc,) = read_conll(write(tmp_path / "a.conll", "Bo B-A x\nBo O x\n"), NLP, columns=(1, 2))
    assert weak.doc_entities(doc) == [(0, 1, "A")]


@pytest.mark.parametrize("n, counted", [(1000, 0), (1001, 1)])
def test_columns_without_blank_lines_are_named(tmp_path, n, counted):
    counts = RowCounts()
    (doc,) = read_conll(write(tmp_path / "a.conll", "a\tO\n" * n), NLP, counts=counts)
    assert len(doc) == n and counts.notes[conll.LONG] == counted


# CoNLL-2012: the name of the document in the first column, and brackets

ONTONOTES = """#begin document (d_1); part 000
d_1 0 0 Anna NNP (S* - - - - (PERSON) * -
d_1 0 1 met VBD (VP* meet 01 1 - * (V*) -
d_1 0 2 New NNP (NP* - - - - (GPE* (ARG1* (1
d_1 0 3 York NNP * - - - - * * 1)
d_1 0 4 City NNP *)) - - - - *) *) -

d_1 0 0 Yes UH (S*) - - - - * -

#end document
"""


@pytest.mark.parametrize(
    "text",
    [
        ONTONOTES,
        "d_1 0 0 Anna NNP (S* - - - - (PERSON) * -\nd_1 0 1 met VBD *) meet 01 1 - * (V*) -\n",
        "d_1 0 0 Anna NNP * - - - - (PERSON) -\nd_1 0 1 met VBD *) meet 01 1 - * -\n\nd_2 0 0 No UH * - - - - * -\n",
        "doc1 Anna B-PER\ndoc1 met O\n",
    ],
)
def test_a_first_column_that_is_the_same_names_the_option(tmp_path, text):
    with pytest.raises(WeaknerError, match=r"a\.conll, line \d: .*same.*--columns TOKEN TAG"):
        list(read_conll(write(tmp_path / "a.conll", text), NLP))


def test_brackets(tmp_path):
    docs = list(read_conll(write(tmp_path / "a.conll", ONTONOTES), NLP, columns=(4, 11)))
    assert [doc.text.split() for doc in docs] == [["Anna", "met", "New", "York", "City"], ["Yes"]]
    assert [weak.doc_entities(doc) for doc in docs] == [[(0, 1, "PERSON"), (2, 5, "GPE")], []]
    assert [iob(doc) for doc in docs] == ["BOBII", "O"]


@pytest.mark.parametrize(
    "tags, expected",
    [
        ("(A) (A) (A*) *", [(0, 1, "A"), (1, 2, "A"), (2, 3, "A")]),
        ("(A* *) (A* *)", [(0, 2, "A"), (2, 4, "A")]),
        ("* * * *", []),
        ("(A* * * *", [(0, 4, "A")]),
        ("(A* - * *", [(0, 1, "A")]),
        ("(A* *) B-B I-B", [(0, 2, "A"), (2, 4, "B")]),
        ("*) * * *", None),
        ("(A* (B) *) *", None),
        ("(A* (B* *) *", None),
        ("(A*) *) * *", None),
        ("((A*) * * *", None),
        ("() * * *", None),
        ("(A * *) *", None),
    ],
)
def test_brackets_that_fit_each_other(tmp_path, tags, expected):
    path = write(
        tmp_path / "a.conll", "".join(f"{word} {tag}\n" for word, tag in zip("wxyz", tags.split(), strict=True))
    )
    if expected is None:
        with pytest.raises(WeaknerError, match=r"a\.conll, line \d"):
            list(read_conll(path, NLP))
    else:
        (doc,) = read_conll(path, NLP)
        assert weak.doc_entities(doc) == expected


# Several tags in one cell, and tags without a type


@pytest.mark.parametrize(
    "tags, expected, entities, counted",
    [
        ("B-creative-work,B-location O O", "-OO", [], 2),
        ("B-a|B-b I-a|I-b O", "--O", [], 2),
        ("B-a;B-b I-a O", "--O", [], 2),
        ("B-a I-a,B-b B-a", "--B", [(2, 3, "a")], 2),
        ("B-a|O I-a|O O|O", "BIO", [(0, 2, "a")], 0),
        ("B-a,B-a O O", "BOO", [(0, 1, "a")], 0),
        ("B-a,- O O", "-OO", [], 0),
        ("B-a,x O O", "BOO", [(0, 1, "a,x")], 0),
        ("B-a - ?", "B--", [(0, 1, "a")], 0),
    ],
)
def test_several_tags_in_one_cell(tmp_path, tags, expected, entities, counted):
    text = "".join(f"{word}\t{tag}\n" for word, tag in zip("xyz", tags.split(), strict=True))
    counts = RowCounts()
    (doc,) = read_conll(write(tmp_path / "a.conll", text), NLP, counts=counts)
    assert iob(doc) == expected and weak.doc_entities(doc) == entities
    assert counts.notes == ({overlaps.OVERLAPS: counted} if counted else {})


@pytest.mark.parametrize("tags", ["B I O B O", "B- I- O B- O", "B E O S O", "B-X I-X O B O"])
def test_tags_without_a_type(tmp_path, tags):
    path = write(tmp_path / "a.conll", "".join(f"w {tag}\n" for tag in tags.split()))
    for labels in ((), ("O",), ("O", "B-X", "B-Y")):
        with pytest.raises(WeaknerError, match=r"a\.conll, line \d: the tag 'B-?' has no type.*--labels O,B-TYPE"):
            list(read_conll(path, NLP, labels=labels))
    (doc,) = read_conll(path, NLP, labels=("O", "B-X", "I-X"))
    assert weak.doc_entities(doc) == [(0, 2, "X"), (3, 4, "X")]


@pytest.mark.parametrize(
    "line, reason",
    [
        ("word", "expected at least 2 columns, got 1"),
        ("word\t", "expected at least 2 columns, got 1"),
        ("a b O", "expected 2 columns as in the previous lines, got 3"),
        ("\tO", "the token is empty"),
        ("word\tX-PER", "'X-PER' is not a tag"),
        ("word\tB", "the tag 'B' has no type"),
        ("word\tB-", "the tag 'B-' has no type"),
        ("word\tO-PER", "'O-PER' is not a tag"),
        ("word\tPER", "'PER' is not a tag"),
        ("word\tPER,B-PER", "'PER' is not a tag"),
    ],
)
def test_malformed_lines_are_named(tmp_path, line, reason):
    path = write(tmp_path / "bad.conll", f"fine\tO\n\n{line}\n")
    with pytest.raises(WeaknerError, match=rf"WK103.*bad\.conll, line 3: {reason}"):
        list(read_conll(path, NLP))


def test_round_trip(tmp_path):
    rows = [
        {"tokens": ["a", "b", "c", "d"], "ents": [[0, 1, "X"], [1, 3, "X"]], "missing": [[3, 4]]},
        {"tokens": ["我", "在", "北", "京"], "ents": [[2, 4, "城市"]]},
        {"tokens": ["#", "x"], "ents": None},
    ]
    docs = [doc_from_row(row, NLP) for row in rows]
    assert write_corpus(tmp_path / "a.conll", docs).docs == 3
    first = (tmp_path / "a.conll").read_bytes()
    write_docs(tmp_path / "a.spacy", read_conll(tmp_path / "a.conll", NLP))
    stored = list(read_docs(tmp_path / "a.spacy", NLP.vocab))
    assert [iob(doc) for doc in stored] == ["BBI-", "OOBI", "--"]
    assert [weak.doc_entities(doc) for doc in stored] == [weak.doc_entities(doc) for doc in docs]
    write_corpus(tmp_path / "a.conll", stored)
    assert (tmp_path / "a.conll").read_bytes() == first


def test_writer_normalizes_white_space(tmp_path):
    docs = [
        doc_from_row({"text": "New \n York", "ents": [[0, 10, "C"]]}, NLP),
        doc_from_row({"tokens": ["a\tb"], "ents": []}, NLP),
    ]
    write_corpus(tmp_path / "a.conll", docs)
    assert (tmp_path / "a.conll").read_text() == "New\tB-C\nYork\tI-C\n\na b\tO\n\n"
