"""Terms that are always entities, or never."""

import json

import pytest
import spacy
from spacy.tokens import Span

from spacy_weakner.errors import WeaknerError
from spacy_weakner.gazetteer_ruler.terms import Term, make_term_list, read_binding, read_lists, read_terms
from spacy_weakner.labeling.sources import TermSource

from .util import matched

ROWS = [
    {"label": "DRUG", "term": "aspirin", "binding": "must"},
    {"label": "DRUG", "term": "light", "binding": "never"},
    {"label": "DRUG", "term": "ibuprofen"},
]


def make(rows=ROWS, **settings):
    nlp = spacy.blank("en")
    rules = nlp.add_pipe("binding_terms", config=settings)
    rules.add_terms(rows)
    return nlp


def enforce(nlp, text, before):
    doc = nlp.make_doc(text)
    doc.set_ents([Span(doc, *entity) for entity in before])
    for _ in range(2):  # a second time changes nothing
        doc = nlp.get_pipe("binding_terms")(doc)
    return [(ent.start, ent.end, ent.label_) for ent in doc.ents]


@pytest.mark.parametrize(
    "before, after",
    [
        # Tokens: take(0) Aspirin(1) or(2) light(3) beer(4)
        ([], [(1, 2, "DRUG")]),
        ([(1, 2, "DRUG")], [(1, 2, "DRUG")]),
        ([(0, 1, "X")], [(0, 1, "X"), (1, 2, "DRUG")]),
        # Another label, another border, a longer entity of another label: it replaces them.
        ([(1, 2, "X")], [(1, 2, "DRUG")]),
        ([(0, 3, "X")], [(1, 2, "DRUG")]),
        # In a longer entity of the same label it is found.
        ([(0, 2, "DRUG")], [(0, 2, "DRUG")]),
        # Never, by itself and with this label.
        ([(3, 4, "DRUG")], [(1, 2, "DRUG")]),
        ([(3, 4, "X")], [(1, 2, "DRUG"), (3, 4, "X")]),
        ([(3, 5, "DRUG")], [(1, 2, "DRUG"), (3, 5, "DRUG")]),
    ],
)
def test_entities(before, after):
    assert enforce(make(), "take Aspirin or light beer", before) == after


def test_of_overlapping_terms_the_longest_is_used():
    nlp = make(
        [{"label": "LOC", "term": "New York", "binding": "must"}, {"label": "X", "term": "York", "binding": "must"}]
    )
    assert enforce(nlp, "in New York", []) == [(1, 3, "LOC")] and enforce(nlp, "in York", []) == [(1, 2, "X")]


def test_entities_get_ids_but_no_score():
    nlp = make([{"label": "DRUG", "term": "aspirin", "binding": "must", "id": "D1"}])
    doc = nlp.make_doc("aspirin")
    (ent,) = [Span(doc, 0, 1, "X")]
    ent._.weakner_score = 0.4
    doc.set_ents([ent])
    (ent,) = nlp.get_pipe("binding_terms")(doc).ents
    assert (ent.label_, ent.kb_id_, ent._.weakner_score) == ("DRUG", "D1", None)


def test_blocked_tokens_stay():
    nlp = make()
    doc = nlp.make_doc("take aspirin")
    doc.set_ents([], blocked=[doc[0:1]])
    doc = nlp.get_pipe("binding_terms")(doc)
    assert [ent.text for ent in doc.ents] == ["aspirin"] and doc[0].ent_iob_ == "B" and not doc[0].ent_type_


def test_it_is_stored(tmp_path):
    nlp = make([{"label": "A B", "term": "AIDS", "binding": "must"}], attr="LOWER", acronym_length=0)
    nlp.to_disk(tmp_path)
    for other in (spacy.load(tmp_path), make().from_bytes(make().to_bytes())):
        assert other.pipe_names == ["binding_terms"]
    assert [(ent.text, ent.label_) for ent in spacy.load(tmp_path)("aids").ents] == [("aids", "A B")]


def test_other_terms_are_ignored_and_some_are_needed():
    assert [ent.text for ent in make()("ibuprofen and aspirin").ents] == ["aspirin"]
    with pytest.raises(WeaknerError, match="WK202"):
        nlp = spacy.blank("en")
        nlp.add_pipe("binding_terms").initialize(nlp=nlp, terms=ROWS[2:])


# Lists


def write(path, rows):
    keys = dict.fromkeys(key for row in rows for key in row)
    lines = [",".join(keys), *(",".join(str(row.get(key, "")) for key in keys) for row in rows)]
    text = "\n".join(lines) if path.suffix == ".csv" else "\n".join(map(json.dumps, rows))
    path.write_text(text + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["terms.csv", "terms.jsonl"])
def test_lists_declare_it(tmp_path, name):
    path = write(tmp_path / name, ROWS)
    assert [(term.text, term.binding) for term in read_terms(path)] == [("aspirin", "must"), ("ibuprofen", "")]
    assert list(read_binding([path])) == [
        Term("DRUG", "aspirin", binding="must"),
        Term("DRUG", "light", binding="never"),
    ]


@pytest.mark.parametrize("value, binding", [(" Must ", "must"), ("NEVER", "never"), ("", ""), (None, "")])
def test_values(tmp_path, value, binding):
    path = write(tmp_path / "terms.jsonl", [{"label": "A", "term": "a", "binding": value}, ROWS[0]])
    assert [term.text for term in read_binding([path])] == (["a"] if binding else []) + ["aspirin"]


@pytest.mark.parametrize(
    "answer, binding, n", [("no", "must", 0), ("", "must", 0), ("yes", "must", 1), ("no", "never", 1)]
)
def test_answers_of_reviewers_come_first(tmp_path, answer, binding, n):
    rows = [{"label": "A", "term": "a", "binding": binding, "accept": answer}, {**ROWS[0], "accept": "yes"}]
    assert len([*read_binding([write(tmp_path / "terms.csv", rows)])]) == n + 1


@pytest.mark.parametrize("value", ["always", "yes", 1])
def test_unknown_values_name_their_line(tmp_path, value):
    path = write(tmp_path / "terms.jsonl", [ROWS[0], {"label": "A", "term": "a", "binding": value}])
    with pytest.raises(WeaknerError, match=r"WK103.*line 2.*must or never"):
        list(read_terms(path))


def test_never_rejects_the_terms_of_other_files(tmp_path):
    terms = write(tmp_path / "terms.csv", [{"label": "DRUG", "term": "Light"}, {"label": "COLOR", "term": "light"}])
    rules = write(tmp_path / "rules.csv", ROWS)
    assert {(term.label, term.text) for term in read_lists([terms, rules])} == {
        ("COLOR", "light"),
        ("DRUG", "aspirin"),
        ("DRUG", "ibuprofen"),
    }


@pytest.mark.parametrize("in_one_file", [True, False])
@pytest.mark.parametrize(
    "must, never", [("aspirin", "aspirin"), ("Aspirin", "aspirin"), ("aspirin", "ASPIRIN"), ("AIDS", "AIDS")]
)
def test_must_and_never_contradict(tmp_path, must, never, in_one_file):
    rows = [ROWS[2], {"label": "DRUG", "term": must, "binding": "must"}]
    rules = [{"label": "X", "term": must, "binding": "never"}, {"label": "DRUG", "term": never, "binding": "never"}]
    files = [rows + rules] if in_one_file else [rows, rules]
    paths = [write(tmp_path / f"{n}.csv", part) for n, part in enumerate(files)]
    message = rf"WK103.*{paths[0]}, line 3.*'must'.*'never' in line {5 if in_one_file else 3} of {paths[-1]}"
    with pytest.raises(WeaknerError, match=message):
        list(read_lists(paths))


@pytest.mark.parametrize("factory", ["gazetteer_ruler", "binding_terms"])
@pytest.mark.parametrize("must, never", [("aspirin", "Aspirin"), ("AIDS", "AIDS")])
def test_must_and_never_contradict_in_rows_without_a_file(factory, must, never):
    rows = [ROWS[2], {"label": "DRUG", "term": never, "binding": "never"}, {"label": "X", "term": must}]
    rows.append({"label": "DRUG", "term": "more", "synonyms": [must], "binding": "must"})
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe(factory)
    for given in (rows, rows[::-1]):
        entries = (given.index(rows[3]) + 1, given.index(rows[1]) + 1)
        with pytest.raises(WeaknerError, match=rf"WK103.*entry {entries[0]}: '{must}'.*'never' in entry {entries[1]}"):
            pipe.add_terms(given)
    pipe.add_terms([row for row in rows if row != rows[1]])


@pytest.mark.parametrize("must, never", [("AIDS", "aids"), ("aspirin", "aspirins")])
def test_no_contradiction(tmp_path, must, never):
    rows = [{"label": "A", "term": must, "binding": "must"}, {"label": "A", "term": never, "binding": "never"}]
    assert [term.text for term in read_lists([write(tmp_path / "a.csv", rows)])] == [must]
    make(rows)


def test_must_and_stop_contradict(tmp_path):
    path = write(tmp_path / "terms.csv", [ROWS[2], ROWS[0]])
    source = TermSource(name="drugs", path=str(path), stop=("ibuprofen",))
    assert [term.text for term in source.read()] == ["ibuprofen", "aspirin"]
    with pytest.raises(WeaknerError, match=rf"WK103.*{path}, line 3.*'must'.*'stop'"):
        list(source.model_copy(update={"stop": ("Aspirin ",)}).read())


def test_never_rejects_rows_of_its_own_file(tmp_path):
    rows = [
        {"label": label, "term": term} for label in ("DRUG", "COLOR") for term in ("Light", "light", "LIGHTS", "IV")
    ]
    path = write(tmp_path / "terms.csv", [*rows, ROWS[1], {"label": "DRUG", "term": "iv", "binding": "never"}])
    found = [(term.label, term.text) for term in read_terms(path)]
    assert found == [
        ("DRUG", "LIGHTS"),
        ("DRUG", "IV"),
        *[("COLOR", term) for term in ("Light", "light", "LIGHTS", "IV")],
    ]


ASPIRIN = {"label": "DRUG", "term": "Aspirin"}
NO_ASPIRIN = {"label": "DRUG", "term": "aspirin", "binding": "never"}


def ruler_by(way, rows, tmp_path):
    nlp = spacy.blank("en")
    write(tmp_path / "terms.jsonl", rows)
    given = {"terms": {"terms": rows}, "path": {"path": str(tmp_path / "terms.jsonl")}}.get(way, {})
    ruler = nlp.add_pipe("gazetteer_ruler", config=given)
    if way == "reader":
        ruler.initialize(nlp=nlp, terms=make_term_list(tmp_path / "terms.jsonl"))
    elif not given:
        ruler.initialize(nlp=nlp, terms=rows)
    return nlp


@pytest.mark.parametrize("kept", ["to_disk", "to_bytes", None])
@pytest.mark.parametrize("way", ["terms", "path", "reader", "initialize"])
@pytest.mark.parametrize("rows", [[NO_ASPIRIN], [ASPIRIN, NO_ASPIRIN]])
def test_never_rejects_whichever_way_terms_are_given(tmp_path, way, rows, kept):
    nlp = ruler_by(way, rows, tmp_path)
    if kept == "to_disk":
        nlp.to_disk(tmp_path / "stored")
        nlp = spacy.load(tmp_path / "stored")
    elif kept == "to_bytes":
        nlp = spacy.blank("en").from_config(nlp.config).from_bytes(nlp.to_bytes())
    ruler = nlp.get_pipe("gazetteer_ruler")
    text = "aspirin, light, Aspirin"
    assert matched(nlp, text) == [] and ruler.terms == []
    ruler.add_terms([ASPIRIN, ("DRUG", "light"), ("X", "aspirin")])
    assert ruler.terms == [Term("DRUG", "light"), Term("X", "aspirin")]
    assert matched(nlp, text) == [("aspirin", "X"), ("light", "DRUG"), ("Aspirin", "X")]
    ruler.add_terms([{**ASPIRIN, "term": "light", "binding": "never"}])
    assert ruler.terms == [Term("X", "aspirin")]
    # Other terms replace all of them.
    ruler.initialize(terms=[ASPIRIN])
    assert matched(nlp, text) == [("aspirin", "DRUG"), ("Aspirin", "DRUG")]
    ruler.remove("DRUG")
    with pytest.raises(WeaknerError, match="WK202"):
        nlp(text)


def test_a_failure_rejects_nothing(tmp_path):
    nlp = ruler_by("terms", [ASPIRIN], tmp_path)
    with pytest.raises(WeaknerError, match=r"WK103.*entry 2"):
        nlp.get_pipe("gazetteer_ruler").add_terms([NO_ASPIRIN, 3])
    assert matched(nlp, "aspirin") == [("aspirin", "DRUG")]


def test_a_reader_of_binding_terms(tmp_path):
    nlp = spacy.blank("en")
    rules = nlp.add_pipe("binding_terms")
    rules.initialize(nlp=nlp, terms=make_term_list(write(tmp_path / "terms.jsonl", ROWS)))
    assert enforce(nlp, "take Aspirin or light beer", [(3, 4, "DRUG")]) == [(1, 2, "DRUG")]


@pytest.mark.parametrize("stored", [True, False])
def test_a_ruler_does_not_match_never(tmp_path, stored):
    nlp = spacy.blank("en")
    ruler = nlp.add_pipe("gazetteer_ruler")
    ruler.initialize(nlp=nlp, terms=[ROWS[1]])
    if stored:
        nlp.to_disk(tmp_path)
        nlp = spacy.load(tmp_path)
    assert [*nlp("some light").spans["weak:gazetteer"]] == []
    with pytest.raises(WeaknerError, match="WK202"):
        spacy.blank("en").add_pipe("gazetteer_ruler").match(nlp.make_doc("light"))
