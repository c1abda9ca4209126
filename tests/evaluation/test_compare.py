import pytest
import spacy
import srsly
from spacy.tokens import Doc, Span

from spacy_weakner.corpus.docbin import read_docs, write_docs
from spacy_weakner.corpus.weak import doc_entities, set_group, set_source, set_weak
from spacy_weakner.errors import WeaknerError
from spacy_weakner.evaluation.candidates import parse_candidates
from spacy_weakner.evaluation.compare import compare, label_remarks
from spacy_weakner.evaluation.tables import comparison_table

from ..cli.util import invoke

SENTENCES = [("Ann lives in Oslo", [(0, 1, "PER"), (3, 4, "LOC")]), ("Rain again", []), ("Oslo", [(0, 1, "LOC")])]


def make_docs(vocab, keep=lambda entity: True):
    docs = []
    for text, entities in SENTENCES:
        doc = Doc(vocab, words=text.split())
        spans = [spacy.tokens.Span(doc, start, end, label) for start, end, label in filter(keep, entities)]
        doc.set_ents(spans, default="outside")
        docs.append(doc)
    return docs


@pytest.fixture
def files(tmp_path):
    nlp = spacy.blank("xx")
    write_docs(tmp_path / "test.spacy", make_docs(nlp.vocab))
    write_docs(tmp_path / "weak.spacy", make_docs(nlp.vocab, lambda entity: entity[2] == "LOC"))
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "PER", "pattern": "Ann"}, {"label": "PER", "pattern": "Rain"}])
    nlp.to_disk(tmp_path / "pipeline")
    return tmp_path


def test_scores_label_sets_and_pipelines(files):
    candidates = {"weak": files / "weak.spacy", "ruler": files / "pipeline"}
    rows = compare(files / "test.spacy", candidates, bootstrap=0)
    weak, ruler = rows
    assert weak.counts == (2, 0, 1) and weak.words_per_second is None
    assert ruler.counts == (1, 1, 2) and ruler.words_per_second > 0
    assert ruler.per_label["PER"] == {"p": 50.0, "r": 100.0, "f1": 66.67, "tp": 1, "fp": 1, "fn": 0}
    table = comparison_table(rows)
    assert table.rows[0] == ["weak", "100.0", "66.7", "80.0", *table.rows[0][4:6], "-"]
    assert len(table.header) == len(table.rows[0])
    assert weak.sentence_accuracy == round(200 / 3, 2)
    assert weak.interval is None and weak.difference is None and weak.ece is ruler.ece is None
    assert weak.p == round(weak.counts.precision, 2)


def test_scores_what_is_in_memory(files):
    nlp = spacy.load(files / "pipeline")
    weak = make_docs(nlp.vocab, lambda entity: entity[2] == "LOC")
    in_memory = compare(iter(make_docs(spacy.blank("xx").vocab)), {"weak": iter(weak), "ruler": nlp}, bootstrap=20)
    on_disk = compare(files / "test.spacy", {"weak": files / "weak.spacy", "ruler": files / "pipeline"}, bootstrap=20)
    speed = {"words_per_second": None}
    assert [row.model_copy(update=speed) for row in in_memory] == [row.model_copy(update=speed) for row in on_disk]
    for labels in (weak[:-1], [*weak, weak[0]], weak[::-1]):
        with pytest.raises(WeaknerError, match=r"WK400.*weak.*the test set"):
            compare(make_docs(nlp.vocab), {"weak": labels})
    with pytest.raises(WeaknerError, match=r"WK101.*the test set"):
        compare([], {"weak": []})


OTHER = {"PER": "PERSON", "LOC": "PLACE"}


def with_other_labels(files, names=OTHER):
    docs = list(read_docs(files / "test.spacy", spacy.blank("xx").vocab))
    for doc in docs:
        found = [(start, end, names.get(label, label)) for start, end, label in doc_entities(doc)]
        doc.set_ents([Span(doc, *entity) for entity in found], default="outside")
        set_source(doc, "llm", found, [0.5] * len(found))
        set_weak(doc)
    write_docs(files / "other.spacy", docs)
    return docs


@pytest.mark.parametrize("source", ["", "#llm"])
def test_other_names_of_labels(files, source):
    with_other_labels(files)
    candidates = {"same": files / "test.spacy", "other": f"{files / 'other.spacy'}{source}"}
    rows = compare(files / "test.spacy", candidates, bootstrap=0)
    assert [row.f1 for row in rows] == [100.0, 0.0]
    (remark,) = label_remarks(rows)
    assert "'other'" in remark and "PERSON, PLACE" in remark and "LOC, PER" in remark and "--map PERSON=PER" in remark
    names = {label: name for name, label in OTHER.items()}
    rows = compare(files / "test.spacy", candidates, bootstrap=0, names=names)
    assert [row.f1 for row in rows] == [100.0, 100.0] and not label_remarks(rows)
    assert set(rows[1].per_label) == {"PER", "LOC"} and (rows[1].ece is not None) == bool(source)
    # Labels that are not listed keep their names.
    assert compare(files / "test.spacy", candidates, bootstrap=0, names={"PERSON": "PER"})[1].counts == (1, 2, 2)


@pytest.mark.parametrize("names, remarks", [({"PER": "PERSON"}, 1), ({}, 0), ({"LOC": "PER"}, 0)])
def test_labels_that_the_candidate_only_lacks_are_no_other_names(files, names, remarks):
    with_other_labels(files, names)
    assert len(label_remarks(compare(files / "test.spacy", {"a": files / "other.spacy"}, bootstrap=0))) == remarks


def test_map_on_the_command_line(files, monkeypatch):
    monkeypatch.chdir(files)
    with_other_labels(files)
    command = ["evaluate", "test.spacy", "a=other.spacy", "--bootstrap", "0", "--html", "r.html"]
    result = invoke(*command)
    assert (
        result.exit_code == 0
        and "--map PERSON=PER" in result.output
        and "--map PERSON=PER" in (files / "r.html").read_text()
    )
    result = invoke(*command, "--map", "PERSON=PER", "--map", "PLACE=LOC")
    assert result.exit_code == 0 and "100.0" in result.output and "--map" not in result.output
    for wrong in ("PERSON", "=PER", "PERSON="):
        result = invoke(*command, "--map", wrong)
        assert result.exit_code == 1 and "WK005" in result.output


def test_calibration_stands_beside_where_there_are_scores(files):
    docs = list(read_docs(files / "test.spacy", spacy.blank("xx").vocab))
    for doc in docs:
        found = doc_entities(doc)
        set_source(doc, "llm", [*found, (0, 1, "X")], [*([0.75] * len(found)), 0.25])
    write_docs(files / "answers.spacy", docs)
    candidates = {"llm": f"{files / 'answers.spacy'}#llm", "weak": files / "weak.spacy"}
    rows = compare(files / "test.spacy", candidates, bootstrap=0)
    assert rows[0].ece == pytest.approx(0.25) and rows[1].ece is None
    table = comparison_table(rows)
    # The best first.
    assert table.header[4] == "ECE" and [(row[0], row[4]) for row in table.rows] == [("weak", "-"), ("llm", "0.250")]


def test_confidence_intervals_and_differences_to_the_best(files):
    candidates = {"ruler": files / "pipeline", "weak": files / "weak.spacy"}
    ruler, weak = compare(files / "test.spacy", candidates, bootstrap=200)
    assert weak.interval.low <= weak.f1 <= weak.interval.high
    assert weak.difference is None
    assert ruler.difference.baseline == "weak"
    assert ruler.difference.f1 == pytest.approx(ruler.f1 - weak.f1, abs=0.02)
    assert ruler.difference.low <= ruler.difference.f1 <= ruler.difference.high
    table = comparison_table([ruler, weak])
    assert table.header == ["Candidate", "P", "R", "F1", "F1 95 %", "vs weak", "p", "tokens", "sentences", "words/s"]
    assert table.rows[0][5:7] == ["-", "-"] and "(" in table.rows[1][5]

    # A baseline is chosen by name.
    ruler, weak = compare(files / "test.spacy", candidates, bootstrap=50, baseline="ruler")
    assert ruler.difference is None and weak.difference.baseline == "ruler"
    with pytest.raises(WeaknerError, match=r"WK005.*'other'.*ruler, weak"):
        compare(files / "test.spacy", candidates, baseline="other")


def test_a_weak_source_is_a_candidate(files):
    docs = make_docs(spacy.blank("xx").vocab)
    for doc in docs:
        set_source(doc, "terms", [(0, 1, "PER"), (0, 1, "LOC")] if len(doc) == 4 else [])
    write_docs(files / "sources#1.spacy", docs)
    candidates = {"terms": f"{files / 'sources#1.spacy'}#terms", "ents": files / "sources#1.spacy"}
    terms, ents = compare(files / "test.spacy", candidates, bootstrap=0)
    assert terms.counts == (1, 1, 2) and ents.counts == (3, 0, 0)
    # Somebody may have forgotten the source.
    for path in candidates.values():
        result = invoke("evaluate", files / "test.spacy", f"mine={path}", "--bootstrap", "0")
        assert result.exit_code == 0 and ("PATH#terms" in result.output) == (path == candidates["ents"])


def test_the_span_group_of_a_pipeline_is_a_candidate(files):
    nlp = spacy.blank("xx")
    ruler = nlp.add_pipe("span_ruler", config={"spans_key": "weak:rules"})
    ruler.add_patterns([{"label": "LOC", "pattern": "Oslo"}])
    nlp.to_disk(files / "ruler")
    (row,) = compare(files / "test.spacy", {"rules": f"{files / 'ruler'}#rules"}, bootstrap=0)
    assert row.counts == (2, 0, 1) and row.words_per_second > 0


def edited(i, edit):
    """Docs of which one is changed."""
    docs = make_docs(spacy.blank("xx").vocab)
    edit(docs[i])
    return docs


def missing(known):
    """Leaves only so many tokens with gold."""
    return lambda doc: doc.set_ents([], missing=[doc[known:]], default="outside")


@pytest.mark.parametrize(
    "docs, message",
    [
        ([], "WK101"),
        (edited(1, missing(0)), r"WK402.*Document 2 of .*x\.spacy.*--misaligned.*complete gold"),
        (edited(2, missing(0)), r"WK402.*Document 3 of .*x\.spacy.*complete gold"),
        (edited(1, set_weak), r"WK402.*Document 2 of .*x\.spacy"),
    ],
)
def test_what_is_no_test_set(files, docs, message):
    write_docs(files / "x.spacy", docs)
    with pytest.raises(WeaknerError, match=message):
        compare(files / "x.spacy", {"weak": files / "weak.spacy"})


@pytest.mark.parametrize(
    "name, docs, message",
    [
        ("x.spacy", lambda docs: [docs[0], docs[2]], "from document 2 on"),
        ("x.spacy", lambda docs: [*docs, docs[0]], "from document 4 on"),
        (
            "x.spacy#terms",
            lambda docs: edited(0, lambda doc: set_source(doc, "terms", [])),
            r"WK409.*'terms'.*document 2",
        ),
        ("empty", None, r"WK403.*empty is neither a pipeline"),
        ("nowhere", None, "nowhere"),
    ],
)
def test_what_is_no_candidate(files, name, docs, message):
    (files / "empty").mkdir()
    if docs is not None:
        write_docs(files / "x.spacy", docs(make_docs(spacy.blank("xx").vocab)))
    with pytest.raises(WeaknerError, match=message):
        compare(files / "test.spacy", {"x": f"{files / name}"})


def test_nothing_to_compare_and_bad_settings_are_refused(files):
    with pytest.raises(WeaknerError, match="WK401"):
        compare(files / "test.spacy", {})
    for bootstrap in (-1, 1_000_001, 2**31):
        with pytest.raises(WeaknerError, match=r"WK005.*bootstrap"):
            compare(files / "test.spacy", {"weak": files / "weak.spacy"}, bootstrap=bootstrap)


GROUPS = {"gold": [(0, 2, "A"), (0, 1, "B"), (1, 2, "A")], "found": [(0, 1, "B"), (0, 2, "A"), (3, 4, "A")]}


@pytest.fixture
def nested(tmp_path):
    vocab = spacy.blank("xx").vocab
    for name, spans in GROUPS.items():
        doc, empty = Doc(vocab, words=["a", "b", "c", "d"]), Doc(vocab, words=["e"])
        for one, some in ((doc, spans), (empty, [])):
            set_group(one, "sc", some, [0.5] * len(some))
            set_source(one, "terms", some)
        write_docs(tmp_path / f"{name}.spacy", [doc, empty])
    nlp = spacy.blank("xx")
    nlp.add_pipe("span_ruler", config={"spans_key": "sc"}).add_patterns([{"label": "B", "pattern": "a"}])
    nlp.to_disk(tmp_path / "ruler")
    return tmp_path


def test_groups_of_overlapping_spans(nested):
    found = f"{nested / 'found.spacy'}"
    candidates = {"found": found, "terms": f"{found}#terms", "gold": nested / "gold.spacy", "ruler": nested / "ruler"}
    rows = compare(nested / "gold.spacy", candidates, bootstrap=0, spans_key="sc")
    assert [row.counts for row in rows] == [(2, 1, 1), (2, 1, 1), (3, 0, 0), (1, 0, 2)]
    assert rows[0].per_label["A"] == {"p": 50.0, "r": 50.0, "f1": 50.0, "tp": 1, "fp": 1, "fn": 1}
    assert (rows[0].sentence_accuracy, rows[2].token_accuracy) == (50.0, 100.0)
    assert rows[0].ece is not None and rows[1].ece is None


@pytest.mark.parametrize("test, candidate, key, message", [
    ("gold.spacy", "gold.spacy", "other", "WK402.*other.*sc"),
    ("gold.spacy", "bare.spacy", "sc", "WK407.*sc.*document 1"),
    ("gold.spacy", "gold.spacy#other", "sc", "WK409"),
])  # fmt: skip
def test_groups_that_are_not_there(nested, test, candidate, key, message):
    vocab = spacy.blank("xx").vocab
    write_docs(nested / "bare.spacy", [Doc(vocab, words=["a", "b", "c", "d"]), Doc(vocab, words=["e"])])
    with pytest.raises(WeaknerError, match=message):
        compare(nested / test, {"x": f"{nested / candidate}"}, spans_key=key)


def test_groups_are_not_reported(nested):
    args = ("evaluate", nested / "gold.spacy", nested / "found.spacy", "--spans-key", "sc")
    assert invoke(*args).exit_code == 0
    refused = invoke(*args, "--html", nested / "x.html")
    assert "WK331" in refused.stderr and not (nested / "x.html").exists()


def test_a_path_alone_is_its_own_name():
    given = ["model/a", "x=b=c", "d.spacy#terms"]
    assert parse_candidates(given) == {"model/a": "model/a", "x": "b=c", "d.spacy#terms": "d.spacy#terms"}


def test_command_prints_a_table_and_writes_scores(files):
    candidate = f"term list={files / 'weak.spacy'}"
    result = invoke("evaluate", files / "test.spacy", candidate, "--output", files / "scores.json")
    assert result.exit_code == 0, result.output
    assert "term list" in result.output and "80.0" in result.output
    assert srsly.read_json(files / "scores.json")["scores"][0]["f1"] == 80.0


@pytest.mark.parametrize("candidates", [["alone", "alone"], ["=path"], ["name="], ["x=a", "x=b"]])
def test_command_refuses_candidates_without_name_or_path_and_two_of_one_name(files, candidates):
    result = invoke("evaluate", files / "test.spacy", *candidates)
    assert result.exit_code == 1 and ("NAME=PATH" in result.output or "two are named" in result.output)


def test_ids_are_scored_where_the_gold_has_them(files):
    vocab = spacy.blank("xx").vocab
    gold, labels = make_docs(vocab), make_docs(vocab)
    for docs, ids in ((gold, ["Q1|Q7", "Q2", ""]), (labels, ["Q7", "Q3", "Q4"])):
        for ent, identifier in zip((ent for doc in docs for ent in doc.ents), ids, strict=True):
            for token in ent:
                token.ent_kb_id_ = identifier
    write_docs(files / "gold.spacy", gold)
    write_docs(files / "labels.spacy", labels)
    (row, ruler) = compare(files / "gold.spacy", {"a": files / "labels.spacy", "b": files / "pipeline"}, bootstrap=0)
    assert ruler.links["f1"] == ruler.links["accuracy"] == 0.0
    scores = {"p": 33.33, "r": 50.0, "f1": 40.0, "accuracy": 50.0}
    assert row.links == {**scores, "accuracy_known": None, "accuracy_unknown": 50.0}
    table = comparison_table([row, ruler])
    assert dict(zip(table.header, table.rows[0], strict=True))["F1 with ids"] == "40.0"
    (plain,) = compare(files / "test.spacy", {"a": files / "labels.spacy"}, bootstrap=0)
    assert plain.links is None and "F1 with ids" not in comparison_table([plain]).header


@pytest.mark.parametrize("component", ["gazetteer_ruler", "term_linker"])
def test_right_ids_by_what_the_list_knows(files, component):
    nlp = spacy.blank("xx")
    patterns = [{"label": "LOC", "pattern": text, "id": "Q2"} for text in ("Romes", "Nowhere")]
    if component == "term_linker":
        nlp.add_pipe("entity_ruler").add_patterns([{**row, "id": ""} for row in patterns])
    terms = [
        {"label": "LOC", "term": "Romes", "id": "Q1"},
        {"label": "LOC", "term": "Nowheres to go", "id": "Q2"},
    ]
    pipe = nlp.add_pipe(component, config={"annotate_ents": True} if component == "gazetteer_ruler" else {})
    pipe.initialize(lambda: [], nlp=nlp, terms=terms)
    nlp.to_disk(files / "linked")
    gold = nlp.make_doc("Romes Nowhere")
    gold.ents = [Span(gold, 0, 1, "LOC", kb_id="Q1"), Span(gold, 1, 2, "LOC", kb_id="Q2")]
    write_docs(files / "gold.spacy", [gold])
    (row,) = compare(files / "gold.spacy", {"a": files / "linked"}, bootstrap=0)
    # The linker's pipeline also finds the other entity, and the nearest of its terms.
    unknown = 100.0 if component == "term_linker" else None
    assert [row.links[f"accuracy{which}"] for which in ("", "_known", "_unknown")] == [100.0, 100.0, unknown]
