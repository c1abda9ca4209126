import gzip

import pytest
import spacy

from spacy_weakner.annotations import weak
from spacy_weakner.annotations.conll import decode_tags, read_conll, write_conll
from spacy_weakner.annotations.corpus import read_docs, write_docs
from spacy_weakner.annotations.rows import doc_from_row
from spacy_weakner.errors import WeaknerError

NLP = spacy.blank("en")


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def iob(doc):
    return "".join("-" if t.ent_iob == 0 else t.ent_iob_ for t in doc)


@pytest.mark.parametrize(
    "tags, expected",
    [
        # One sentence in every scheme: A A | A | B, then O.
        ("I-A I-A B-A I-B O", [(0, 2, "A"), (2, 3, "A"), (3, 4, "B")]),  # IOB1
        ("B-A I-A B-A B-B O", [(0, 2, "A"), (2, 3, "A"), (3, 4, "B")]),  # BIO
        ("B-A E-A S-A S-B O", [(0, 2, "A"), (2, 3, "A"), (3, 4, "B")]),  # IOBES
        ("B-A L-A U-A U-B O", [(0, 2, "A"), (2, 3, "A"), (3, 4, "B")]),  # BILUO
        ("I-A I-A I-A I-B O", [(0, 3, "A"), (3, 4, "B")]),  # IO
        ("B-A I-A E-A O O", [(0, 3, "A")]),
        ("B-A I-A E-A I-A O", [(0, 3, "A"), (3, 4, "A")]),
        ("E-A E-A O L-A B-A", [(0, 1, "A"), (1, 2, "A"), (3, 4, "A"), (4, 5, "A")]),
        ("B-A I-B O - I-B", [(0, 1, "A"), (1, 2, "B"), (4, 5, "B")]),
        ("I-A - I-A O O", [(0, 1, "A"), (2, 3, "A")]),
        ("B-x-y I-x-y O O O", [(0, 2, "x-y")]),
        ("O O O O O", []),
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
    ],
)
def test_layouts(tmp_path, text):
    docs = list(read_conll(write(tmp_path / "a.conll", text), NLP))
    assert [[t.text for t in doc] for doc in docs] == [["New", "York", "rocks"], ["Yes"]]
    assert [weak.doc_entities(doc) for doc in docs] == [[(0, 2, "C")], []]
    assert [iob(doc) for doc in docs] == ["BIO", "O"]


def test_missing_tags(tmp_path):
    (doc,) = read_conll(write(tmp_path / "a.conll", "a\t-\nb\tB-X\nc\t?\nd\tO\n"), NLP)
    assert iob(doc) == "-B-O"


def test_columns_between_the_token_and_its_tag_are_passed_over(tmp_path):
    path = write(tmp_path / "a.tsv", "New\t1\tB-X\tO\nYork\t2\tO\tB-C\n")
    (doc,) = read_conll(path, NLP)
    assert [t.text for t in doc] == ["New", "York"]
    assert weak.doc_entities(doc) == [(1, 2, "C")]


def test_tokens_with_blanks_need_tabs(tmp_path):
    (doc,) = read_conll(write(tmp_path / "a.conll", "New York\tB-C\n5\u00a0km\tO\n"), NLP)
    assert [t.text for t in doc] == ["New York", "5\u00a0km"]


def test_number_sign_as_token(tmp_path):
    (doc,) = read_conll(write(tmp_path / "a.conll", "No O\n# O\n1 O\n"), NLP)
    assert [t.text for t in doc] == ["No", "#", "1"]


def test_gzip(tmp_path):
    path = tmp_path / "a.conll.gz"
    path.write_bytes(gzip.compress(b"a\tO\n"))
    assert len(list(read_conll(path, NLP))) == 1


@pytest.mark.parametrize(
    "line, reason",
    [
        ("word", "expected at least 2 columns, got 1"),
        ("word\t", "expected at least 2 columns, got 1"),
        ("a b O", "expected 2 columns as in the lines before, got 3"),
        ("\tO", "the token is empty"),
        ("word\tX-PER", "'X-PER' is no tag"),
        ("word\tB", "'B' is no tag"),
        ("word\tB-", "'B-' is no tag"),
        ("word\tO-PER", "'O-PER' is no tag"),
        ("word\tPER", "'PER' is no tag"),
    ],
)
def test_malformed_lines_are_named(tmp_path, line, reason):
    path = write(tmp_path / "bad.conll", f"fine\tO\n\n{line}\n")
    with pytest.raises(WeaknerError, match=rf"WK103.*bad\.conll, line 3: {reason}"):
        list(read_conll(path, NLP))


def test_missing_and_damaged_files(tmp_path):
    with pytest.raises(WeaknerError, match="WK100"):
        list(read_conll(tmp_path / "none.conll", NLP))
    (tmp_path / "latin.conll").write_bytes(b"caf\xe9\tO\n")
    with pytest.raises(WeaknerError, match="WK104"):
        list(read_conll(tmp_path / "latin.conll", NLP))


def test_round_trip(tmp_path):
    rows = [
        {"tokens": ["a", "b", "c", "d"], "ents": [[0, 1, "X"], [1, 3, "X"]], "missing": [[3, 4]]},
        {"tokens": ["我", "在", "北", "京"], "ents": [[2, 4, "城市"]]},
        {"tokens": ["#", "x"], "ents": None},
    ]
    docs = [doc_from_row(row, NLP) for row in rows]
    assert write_conll(tmp_path / "a.conll", docs) == 3
    first = (tmp_path / "a.conll").read_bytes()
    write_docs(tmp_path / "a.spacy", read_conll(tmp_path / "a.conll", NLP))
    stored = list(read_docs(tmp_path / "a.spacy", NLP.vocab))
    assert [iob(doc) for doc in stored] == ["BBI-", "OOBI", "--"]
    assert [weak.doc_entities(doc) for doc in stored] == [weak.doc_entities(doc) for doc in docs]
    write_conll(tmp_path / "a.conll", stored)
    assert (tmp_path / "a.conll").read_bytes() == first


def test_writer_normalises_white_space(tmp_path):
    docs = [
        doc_from_row({"text": "New \n York", "ents": [[0, 10, "C"]]}, NLP),
        doc_from_row({"tokens": ["a\tb"], "ents": []}, NLP),
    ]
    assert write_conll(tmp_path / "a.conll", docs) == 2
    assert (tmp_path / "a.conll").read_text() == "New\tB-C\nYork\tI-C\n\na b\tO\n\n"
