import codecs
import csv
import json

import pytest
import spacy

from spacy_weakner.active_learning.suggest import suggest
from spacy_weakner.active_learning.terms import suggest_terms
from spacy_weakner.errors import WeaknerError
from spacy_weakner.gazetteer_ruler.terms import read_lists, read_terms

from ..cli.util import invoke

TEXT = [
    "Ann met Bob Ray in May .",
    "Bob Ray left Kiel in May .",
    "Ann saw Ray and bob ray .",
    "In May Ann went to Ulm .",
    "May we see Ulm , Bob Ray ?",
]


@pytest.fixture
def pipeline(tmp_path):
    """Finds three names and two towns; its list has a name and a town of them, and "May", which it overrules."""
    nlp = spacy.blank("xx")
    ruler = nlp.add_pipe("gazetteer_ruler", config={"source": "list"})
    ruler.initialize(lambda: [], nlp=nlp, terms=[("PER", "Ann"), ("PER", "May"), ("LOC", "Kiel")])
    found = nlp.add_pipe("entity_ruler", config={"phrase_matcher_attr": "LOWER"})
    names = [("PER", "Ann"), ("PER", "Bob Ray"), ("PER", "Ray and"), ("LOC", "Kiel"), ("LOC", "Ulm")]
    found.add_patterns([{"label": label, "pattern": text} for label, text in names])
    nlp.to_disk(tmp_path / "pipeline")
    return str(tmp_path / "pipeline")


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("\n".join(TEXT), encoding="utf-8")
    return path


def rows_of(path):
    assert path.read_bytes().startswith(codecs.BOM_UTF8)  # without it, Excel reads "Zoë" as "ZoÃ«"
    with path.open(encoding="utf-8-sig", newline="") as file_:
        return list(csv.DictReader(file_))


def answer(path, **answers):
    """Fill in answers by term."""
    rows = rows_of(path)
    with path.open("w", encoding="utf-8", newline="") as file_:
        writer = csv.DictWriter(file_, list(rows[0]))
        writer.writeheader()
        writer.writerows({**row, "accept": answers.get(row["term"].replace(" ", "_"), "")} for row in rows)


def test_terms_that_lists_lack_and_terms_that_are_overruled(pipeline, text, tmp_path):
    report = suggest_terms(text, tmp_path / "out.csv", model=pipeline)
    rows = rows_of(tmp_path / "out.csv")
    assert [(row["label"], row["term"], row["mentions"], row["in_list"]) for row in rows] == [
        ("PER", "Bob Ray", "4", "no"),
        ("LOC", "Ulm", "2", "no"),
        ("PER", "Ray and", "1", "no"),
        ("PER", "May", "4", "yes"),
    ]
    assert (report.docs, report.found, report.known, report.refuted) == (5, 5, 2, 0)
    assert rows[3]["against"] == "overruled 4 of 4 times"
    assert all(row["example"] in TEXT for row in rows)
    assert {row["accept"] for row in rows} == {""}
    # So many of both kinds.
    suggest_terms(text, tmp_path / "few.csv", model=pipeline, n=1)
    assert [row["term"] for row in rows_of(tmp_path / "few.csv")] == ["Bob Ray", "May"]


def test_what_speaks_against_a_term(pipeline, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("ulm Ulm\n" * 3 + "Ray and I and Ray\n", encoding="utf-8")
    nlp = spacy.load(pipeline)
    nlp.add_pipe("entity_ruler", name="more", last=True, config={"overwrite_ents": True}).add_patterns(
        [{"label": "ORG", "pattern": "Ulm"}, {"label": "PER", "pattern": [{"TEXT": "Ray"}, {"TEXT": "and"}]}]
    )
    nlp.to_disk(tmp_path / "two")
    suggest_terms(text, tmp_path / "out.csv", model=str(tmp_path / "two"))
    against = {(row["label"], row["term"]): row["against"] for row in rows_of(tmp_path / "out.csv")}
    assert against["LOC", "ulm"] == "ORG in 3 of 6 mentions"
    assert against["ORG", "Ulm"] == "LOC in 3 of 6 mentions"
    assert against["PER", "Ray and"] == ""


def test_what_gold_refutes_is_not_suggested(pipeline, text, tmp_path):
    gold = tmp_path / "gold.jsonl"
    rows = [
        {"text": "We saw Ulm .", "entities": []},
        {"text": "Bob Ray is here , Bob Ray .", "entities": [[0, 7, "PER"], [18, 25, "PER"]]},
        {"text": "Ray and Sons", "entities": [[0, 12, "PER"]]},
    ]
    gold.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    report = suggest_terms(text, tmp_path / "out.csv", model=pipeline, exclude=[gold])
    assert [row["term"] for row in rows_of(tmp_path / "out.csv")] == ["Bob Ray", "Ray and", "May"]
    assert report.refuted == 1


def test_answers_are_read_back(pipeline, text, tmp_path):
    first, out = tmp_path / "terms.csv", tmp_path / "out.csv"
    first.write_text("label,term\nPER,Ann\nPER,May\nLOC,May\nLOC,Kiel\n", encoding="utf-8")
    suggest_terms(text, out, model=pipeline)
    answer(out, Bob_Ray="yes", May="No", Ulm="n")
    assert [(term.label, term.text) for term in read_terms(out)] == [("PER", "Bob Ray")]
    both = [("PER", "Ann"), ("LOC", "May"), ("LOC", "Kiel"), ("PER", "Bob Ray")]
    assert [(term.label, term.text) for term in read_lists([first, out])] == both
    first.write_text("label,term\nA,AIDS\nA,Aids\nA,Heart Failure\n")
    (tmp_path / "no.csv").write_text("label,term,accept\nA,aids,no\nA,heart failure,no\n")
    assert [term.text for term in read_lists([first, tmp_path / "no.csv"])] == ["AIDS"]
    (tmp_path / "no.csv").write_text("label,term,accept\nA,AIDS,no\n")  # a text's spelling of "Aids"
    assert [term.text for term in read_lists([first, tmp_path / "no.csv"])] == ["Heart Failure"]


@pytest.mark.parametrize("given, n", [("null", 0), ('""', 0), ("true", 1), ('"no"', 0), ('"maybe"', None), ("2", None)])
def test_answers_in_rows(tmp_path, given, n):
    path = tmp_path / "out.jsonl"
    path.write_text(f'\n{{"label": "A", "term": "one", "accept": {given}}}\n', encoding="utf-8")
    if n is None:
        with pytest.raises(WeaknerError, match="line 2"):
            list(read_terms(path))
    else:
        assert len(list(read_terms(path))) == n


def test_nothing_to_suggest_leaves_no_file(pipeline, tmp_path):
    (tmp_path / "text.txt").write_text("Nobody is here .\n", encoding="utf-8")
    with pytest.raises(WeaknerError):
        suggest_terms(tmp_path / "text.txt", tmp_path / "out.csv", model=pipeline)
    assert not (tmp_path / "out.csv").exists()


def test_command(pipeline, text, tmp_path):
    out = tmp_path / "out.csv"
    given = ["suggest", text, out, "--review-terms", "--model", pipeline]
    result = invoke(*given)
    assert result.exit_code == 0, result.output
    assert len(rows_of(out)) == 4
    assert invoke(*given).exit_code == 0
    out.write_text(out.read_text().replace(",\n", ",yes\n"))
    assert "WK314" in invoke(*given).stderr
    assert invoke(*given, "--overwrite", "--to", "prodigy").exit_code == 1
    with pytest.raises(WeaknerError, match="one model"):
        suggest(text, out, review_terms=True, overwrite=True)
    with pytest.raises(WeaknerError, match="language"):
        suggest(text, out, review_terms=True, model=[str(pipeline)], lang="de", overwrite=True)


def test_lists_with_labels_and_ids_of_their_own(text, tmp_path):
    """What is suggested has the list's label, and stands beside a list whose ids have a name of their own."""
    (tmp_path / "t.csv").write_text("label,term,MESH\nNAME,Ann,D1\n", encoding="utf-8")
    nlp = spacy.blank("xx")
    nlp.add_pipe("gazetteer_ruler", config={"label_names": {"NAME": "PER"}}).initialize(
        lambda: [], nlp=nlp, terms=lambda: read_terms(tmp_path / "t.csv", columns="id=MESH")
    )
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "PER", "pattern": name} for name in ("Ann", "Bob Ray")])
    nlp.to_disk(tmp_path / "named")
    out = tmp_path / "out.csv"
    suggest_terms(text, out, model=str(tmp_path / "named"))
    assert [(row["label"], row["term"]) for row in rows_of(out)] == [("NAME", "Bob Ray")]
    answer(out, Bob_Ray="yes")
    found = [(term.label, term.text, term.id) for term in read_lists([tmp_path / "t.csv", out], columns="id=MESH")]
    assert found == [("NAME", "Ann", "D1"), ("NAME", "Bob Ray", "")]


def test_white_space_is_no_term(tmp_path):
    (tmp_path / "text.txt").write_text("Ann  is\n", encoding="utf-8")
    nlp = spacy.blank("xx")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "PER", "pattern": text} for text in ("Ann", " ")])
    nlp.to_disk(tmp_path / "blank")
    report = suggest_terms(tmp_path / "text.txt", tmp_path / "out.csv", model=str(tmp_path / "blank"))
    assert [term.term for term in report.terms] == ["Ann"]
