"""Reading questions."""

import json

import pytest

from spacy_weakner.errors import WeaknerError
from spacy_weakner.mrc_ner.queries import check_queries, make_queries

QUERIES = {"PER": "Who is it?", "LOC": "Wo liegt Köln? 在哪里"}
TOML = 'PER = "Who is it?"\nLOC = """Wo liegt Köln? 在哪里"""\n'


def write(folder, name, text):
    path = folder / name
    path.write_bytes(text.encode("utf-8") if isinstance(text, str) else text)
    return path


@pytest.mark.parametrize(
    "name, text",
    [
        ("q.json", json.dumps(QUERIES)),
        ("q.json", json.dumps(QUERIES, ensure_ascii=False, indent=2)),
        ("q.toml", TOML),
        ("q.toml", TOML.replace("\n", "\r\n")),
        # Of editors that write a byte-order mark.
        ("q.json", b"\xef\xbb\xbf" + json.dumps(QUERIES).encode()),
    ],
)
def test_files(tmp_path, name, text):
    path = write(tmp_path, name, text)
    for given in (path, str(path)):
        found = make_queries(given)
        assert found == QUERIES and list(found) == ["PER", "LOC"]


def test_inline():
    assert make_queries(queries=QUERIES) == QUERIES


@pytest.mark.parametrize("both", [True, False])
def test_exactly_one_of_both(tmp_path, both):
    given = {"path": write(tmp_path, "q.json", json.dumps(QUERIES)), "queries": QUERIES} if both else {}
    with pytest.raises(ValueError, match="WK331" if both else "WK010.*paths.queries"):
        make_queries(**given)


NO_QUERIES = [
    ({" ": "Who?"}, " "),
    ({"PER": ""}, "PER"),
    ({"PER": "Who?", "LOC": " \n\t"}, "LOC"),
    ({"PER": None}, "PER"),
    ({"PER": ["Who?"]}, "PER"),
    ({"PER": {"query": "Who?"}}, "PER"),
    ({"PER": 1}, "PER"),
]


@pytest.mark.parametrize("queries, label", NO_QUERIES)
def test_what_are_no_questions(tmp_path, queries, label):
    path = write(tmp_path, "q.json", json.dumps(queries))
    with pytest.raises(WeaknerError, match=rf"\[WK036\] .*q\.json: .*labels {label}\."):
        make_queries(path)
    with pytest.raises(WeaknerError, match=r"\[WK036\] here: "):
        check_queries(queries, "here")


@pytest.mark.parametrize("queries", [{}, [], ["PER"], "PER", None])
def test_what_is_no_object(tmp_path, queries):
    with pytest.raises(WeaknerError, match=r"\[WK206\] .*q\.json.*no questions"):
        make_queries(write(tmp_path, "q.json", json.dumps(queries)))


def test_other_files_and_labels_that_stand_there_twice(tmp_path):
    with pytest.raises(WeaknerError, match=r"\[WK206\].*q\.yaml.*\.json or \.toml"):
        make_queries(write(tmp_path, "q.yaml", "PER: who"))
    with pytest.raises(WeaknerError, match=r"\[WK206\].*twice among PER, LOC, PER"):
        make_queries(write(tmp_path, "q.json", '{"PER": "Who?", "LOC": "Where?", "PER": "Which?"}'))


@pytest.mark.parametrize(
    "name, text",
    [("q.json", "{"), ("q.json", ""), ("q.json", TOML), ("q.toml", "PER = "), ("q.toml", '{"PER": "Who?"}')],
)
def test_damaged_files(tmp_path, name, text):
    with pytest.raises(WeaknerError, match=rf"\[WK206\] .*{name}") as error:
        make_queries(write(tmp_path, name, text))
    assert "\n" not in str(error.value)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(WeaknerError, match=r"\[WK100\].*none\.json"):
        make_queries(tmp_path / "none.json")
    with pytest.raises(WeaknerError, match="WK109"):
        make_queries(tmp_path)
    with pytest.raises(WeaknerError, match=r"\[WK104\].*q\.json"):
        make_queries(write(tmp_path, "q.json", '{"LOC": "Köln"}'.encode("latin-1")))


def test_labels_are_texts():
    with pytest.raises(WeaknerError, match=r"\[WK036\].*labels 1\."):
        make_queries(queries={1: "Who?"})
