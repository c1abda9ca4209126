import pytest
import spacy
import srsly
from spacy.tokens import Doc, Span
from typer.testing import CliRunner

from spacy_weakner.cli.app import app
from spacy_weakner.corpus.docbin import read_docs, write_docs
from spacy_weakner.corpus.weak import doc_entities, set_source, set_weak
from spacy_weakner.errors import WeaknerError
from spacy_weakner.evaluation.compare import compare, format_table

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
    assert ruler.per_label["PER"] == (1, 1, 0)
    header, cells = format_table(rows)
    assert cells[0] == ("weak", "100.0", "66.7", "80.0", *cells[0][4:6], "-") and len(header) == len(cells[0])
    assert weak.accuracy.sentences == 3 and weak.accuracy.right_sentences == 2
    assert weak.interval is None and weak.difference is None and weak.ece is ruler.ece is None
    assert weak.scores().p == round(weak.counts.precision, 2) and weak.scores().per_label


def test_calibration_stands_beside_where_there_are_scores(files):
    docs = list(read_docs(files / "test.spacy", spacy.blank("xx").vocab))
    for doc in docs:
        found = doc_entities(doc)
        set_source(doc, "llm", [*found, (0, 1, "X")], [*([0.75] * len(found)), 0.25])
    write_docs(files / "answers.spacy", docs)
    candidates = {"llm": f"{files / 'answers.spacy'}#llm", "weak": files / "weak.spacy"}
    rows = compare(files / "test.spacy", candidates, bootstrap=0)
    assert rows[0].ece == pytest.approx(0.25) and rows[1].ece is None
    header, cells = format_table(rows)
    # The best first.
    assert header[4] == "ECE" and [(line[0], line[4]) for line in cells] == [("weak", "-"), ("llm", "0.250")]
    assert rows[0].scores().ece == 0.25 and rows[1].scores().ece is None


def test_confidence_intervals_and_differences_to_the_best(files):
    candidates = {"ruler": files / "pipeline", "weak": files / "weak.spacy"}
    ruler, weak = compare(files / "test.spacy", candidates, bootstrap=200)
    assert weak.interval.low <= weak.counts.f1 <= weak.interval.high
    assert weak.difference is None
    assert ruler.difference.baseline == "weak"
    assert ruler.difference.f1 == pytest.approx(ruler.counts.f1 - weak.counts.f1)
    assert ruler.difference.low <= ruler.difference.f1 <= ruler.difference.high
    header, cells = format_table([ruler, weak])
    assert header == ["", "P", "R", "F1", "F1 95 %", "vs weak", "p", "tokens", "sentences", "words/s"]
    assert cells[0][5:7] == ("-", "-") and "(" in cells[1][5]
    assert ruler.scores().difference.baseline == "weak"


def test_baseline_is_chosen_by_name(files):
    candidates = {"ruler": files / "pipeline", "weak": files / "weak.spacy"}
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


def test_the_span_group_of_a_pipeline_is_a_candidate(files):
    nlp = spacy.blank("xx")
    ruler = nlp.add_pipe("span_ruler", config={"spans_key": "weak:rules"})
    ruler.add_patterns([{"label": "LOC", "pattern": "Oslo"}])
    nlp.to_disk(files / "ruler")
    (row,) = compare(files / "test.spacy", {"rules": f"{files / 'ruler'}#rules"}, bootstrap=0)
    assert row.counts == (2, 0, 1) and row.words_per_second > 0


def test_a_source_that_has_not_looked_at_all_sentences_is_refused(files):
    docs = make_docs(spacy.blank("xx").vocab)
    set_source(docs[0], "terms", [])
    write_docs(files / "some.spacy", docs)
    with pytest.raises(WeaknerError, match=r"WK409.*'terms'.*document 2 of .*some\.spacy.*none"):
        compare(files / "test.spacy", {"x": f"{files / 'some.spacy'}#terms"})


def test_every_sentence_is_observed(files):
    seen = []
    compare(
        files / "test.spacy",
        {"ruler": files / "pipeline", "weak": files / "weak.spacy"},
        bootstrap=0,
        observe=lambda candidate, gold, doc: seen.append((candidate.name, gold.text, len(candidate.entities(doc)))),
    )
    assert seen[:3] == [("ruler", "Ann lives in Oslo ", 1), ("ruler", "Rain again ", 1), ("ruler", "Oslo ", 0)]
    assert [name for name, _, _ in seen[3:]] == ["weak"] * 3


def test_nothing_to_compare_and_bad_settings_are_refused(files):
    with pytest.raises(WeaknerError, match="WK401"):
        compare(files / "test.spacy", {})
    with pytest.raises(WeaknerError, match=r"WK005.*bootstrap"):
        compare(files / "test.spacy", {"weak": files / "weak.spacy"}, bootstrap=-1)
    write_docs(files / "none.spacy", [])
    with pytest.raises(WeaknerError, match="WK101"):
        compare(files / "none.spacy", {"weak": files / "none.spacy"})


def test_other_sentences_are_refused_with_their_number(files):
    other = make_docs(spacy.blank("xx").vocab)
    write_docs(files / "other.spacy", [other[0], other[2]])
    with pytest.raises(WeaknerError, match="from document 2 on"):
        compare(files / "test.spacy", {"other": files / "other.spacy"})
    write_docs(files / "longer.spacy", [*other, other[0]])
    with pytest.raises(WeaknerError, match="from document 4 on"):
        compare(files / "test.spacy", {"longer": files / "longer.spacy"})


@pytest.mark.parametrize("known", [0, 2])
def test_test_set_without_complete_gold_is_refused(files, known):
    docs = make_docs(spacy.blank("xx").vocab)
    docs[1].set_ents([], missing=[docs[1][known:]] if known < len(docs[1]) else [], default="outside")
    docs[2].set_ents([], missing=[docs[2][:]])
    write_docs(files / "some.spacy", docs)
    number = 2 if known == 0 else 3
    with pytest.raises(WeaknerError, match=rf"WK402.*Document {number} of .*some\.spacy.*complete gold"):
        compare(files / "some.spacy", {"weak": files / "weak.spacy"})


def test_weak_labels_are_no_test_set(files):
    docs = make_docs(spacy.blank("xx").vocab)
    set_weak(docs[1])
    write_docs(files / "weakly.spacy", docs)
    with pytest.raises(WeaknerError, match=r"WK402.*Document 2 of .*weakly\.spacy"):
        compare(files / "weakly.spacy", {"weak": files / "weak.spacy"})


def test_folder_that_is_no_candidate_is_refused(files):
    (files / "empty").mkdir()
    with pytest.raises(WeaknerError, match=r"WK403.*empty is neither a pipeline"):
        compare(files / "test.spacy", {"x": files / "empty"})


def test_missing_candidate_names_the_path(files):
    with pytest.raises(WeaknerError, match="nowhere"):
        compare(files / "test.spacy", {"x": files / "nowhere"})


def test_command_prints_a_table_and_writes_scores(files):
    arguments = ["evaluate", str(files / "test.spacy"), f"term list={files / 'weak.spacy'}"]
    result = CliRunner().invoke(app, [*arguments, "--output", str(files / "scores.json")])
    assert result.exit_code == 0, result.output
    assert "term list" in result.output and "80.0" in result.output
    assert srsly.read_json(files / "scores.json")[0]["f1"] == 80.0


def test_command_refuses_two_candidates_of_one_name(files):
    candidate = f"x={files / 'weak.spacy'}"
    result = CliRunner().invoke(app, ["evaluate", str(files / "test.spacy"), candidate, candidate])
    assert result.exit_code == 1 and "'x'" in result.output


@pytest.mark.parametrize("candidate", ["no-equals", "=path", "name="])
def test_command_refuses_candidates_without_name_or_path(files, candidate):
    result = CliRunner().invoke(app, ["evaluate", str(files / "test.spacy"), candidate])
    assert result.exit_code == 1 and "NAME=PATH" in result.output


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
    assert row.links == (1, 3, 2, 2, 0, 0) and ruler.links == (0, 0, 2, 1, 0, 0)
    scores = {"p": 33.33, "r": 50.0, "f1": 40.0, "accuracy": 50.0}
    assert row.scores().links == {**scores, "accuracy_known": None, "accuracy_unknown": 50.0}
    header, cells = format_table([row, ruler])
    assert len(header) == len(cells[0]) and dict(zip(header, cells[0], strict=True))["F1 with ids"] == "40.0"
    (plain,) = compare(files / "test.spacy", {"a": files / "labels.spacy"}, bootstrap=0)
    assert plain.links is None and "F1 with ids" not in format_table([plain])[0]


@pytest.mark.parametrize("component", ["gazetteer_ruler", "term_linker"])
def test_right_ids_by_what_the_list_knows(files, component):
    nlp = spacy.blank("xx")
    patterns = [{"label": "LOC", "pattern": text, "id": "Q2"} for text in ("Romes", "Nowhere")]
    if component == "term_linker":
        nlp.add_pipe("entity_ruler").add_patterns([{**row, "id": ""} for row in patterns])
    terms = [
        {"label": "LOC", "term": "Romes", "id": "Q1", "name": "Rome"},
        {"label": "LOC", "term": "Nowheres to go", "id": "Q2"},
    ]
    pipe = nlp.add_pipe(component, config={"annotate_ents": True} if component == "gazetteer_ruler" else {})
    pipe.initialize(lambda: [], nlp=nlp, terms=terms)
    nlp.to_disk(files / "linked")
    gold = nlp.make_doc("Romes Nowhere")
    gold.ents = [Span(gold, 0, 1, "LOC", kb_id="Q1"), Span(gold, 1, 2, "LOC", kb_id="Q2")]
    write_docs(files / "gold.spacy", [gold])
    (row,) = compare(files / "gold.spacy", {"a": files / "linked"}, bootstrap=0)
    is_linker = component == "term_linker"
    assert (row.links.found, row.links.known, row.links.known_right) == (1 + is_linker, 1, 1)
    assert row.names == {"Q1": "Rome", "Q2": "Nowheres to go"}
