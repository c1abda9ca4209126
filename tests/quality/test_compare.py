import pytest
import spacy
import srsly
from spacy.tokens import Doc
from typer.testing import CliRunner

from spacy_weakner.annotations.corpus import write_docs
from spacy_weakner.annotations.weak import GOLD_GROUP, set_group
from spacy_weakner.cli.app import app
from spacy_weakner.errors import WeaknerError
from spacy_weakner.quality.compare import compare, format_table, gold_against_weak

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
    nlp = spacy.blank("en")
    write_docs(tmp_path / "test.spacy", make_docs(nlp.vocab))
    write_docs(tmp_path / "weak.spacy", make_docs(nlp.vocab, lambda entity: entity[2] == "LOC"))
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "PER", "pattern": "Ann"}, {"label": "PER", "pattern": "Rain"}])
    nlp.to_disk(tmp_path / "pipeline")
    return tmp_path


def test_scores_label_sets_and_pipelines(files):
    rows = compare(files / "test.spacy", {"weak": files / "weak.spacy", "ruler": files / "pipeline"})
    weak, ruler = rows
    assert weak.counts == (2, 0, 1) and weak.words_per_second is None
    assert ruler.counts == (1, 1, 2) and ruler.words_per_second > 0
    assert ruler.per_label["PER"] == (1, 1, 0)
    header, cells = format_table(rows)
    assert cells[0] == ("weak", "100.0", "66.7", "80.0", "-") and len(header) == len(cells[0])


def test_other_sentences_are_refused_with_their_number(files):
    other = make_docs(spacy.blank("en").vocab)
    write_docs(files / "other.spacy", [other[0], other[2]])
    with pytest.raises(WeaknerError, match="from sentence 2 on"):
        compare(files / "test.spacy", {"other": files / "other.spacy"})
    write_docs(files / "longer.spacy", [*other, other[0]])
    with pytest.raises(WeaknerError, match="from sentence 4 on"):
        compare(files / "test.spacy", {"longer": files / "longer.spacy"})


@pytest.mark.parametrize("known", [0, 2])
def test_test_set_without_complete_gold_is_refused(files, known):
    docs = make_docs(spacy.blank("en").vocab)
    docs[1].set_ents([], missing=[docs[1][known:]] if known < len(docs[1]) else [], default="outside")
    docs[2].set_ents([], missing=[docs[2][:]])
    write_docs(files / "some.spacy", docs)
    number = 2 if known == 0 else 3
    with pytest.raises(WeaknerError, match=rf"WK402.*Document {number} of .*some\.spacy.*complete gold"):
        compare(files / "some.spacy", {"weak": files / "weak.spacy"})


def test_folder_that_is_no_candidate_is_refused(files):
    (files / "empty").mkdir()
    with pytest.raises(WeaknerError, match=r"WK403.*empty is neither a pipeline"):
        compare(files / "test.spacy", {"x": files / "empty"})


def test_missing_candidate_names_the_path(files):
    with pytest.raises(WeaknerError, match="nowhere"):
        compare(files / "test.spacy", {"x": files / "nowhere"})


def test_weak_labels_are_scored_against_the_gold_beside_them(tmp_path):
    docs = make_docs(spacy.blank("en").vocab, lambda entity: entity[2] == "LOC")
    for doc, (_, entities) in zip(docs, SENTENCES, strict=True):
        set_group(doc, GOLD_GROUP, entities)
    write_docs(tmp_path / "labelled.spacy", docs)
    assert gold_against_weak(tmp_path / "labelled.spacy")[0] == (2, 0, 1)


def test_command_prints_a_table_and_writes_scores(files):
    arguments = ["compare", str(files / "test.spacy"), f"term list={files / 'weak.spacy'}"]
    result = CliRunner().invoke(app, [*arguments, "--output", str(files / "scores.json")])
    assert result.exit_code == 0, result.output
    assert "term list" in result.output and "80.0" in result.output
    assert srsly.read_json(files / "scores.json")[0]["f1"] == 80.0


def test_command_refuses_two_candidates_of_one_name(files):
    candidate = f"x={files / 'weak.spacy'}"
    result = CliRunner().invoke(app, ["compare", str(files / "test.spacy"), candidate, candidate])
    assert result.exit_code == 1 and "'x'" in result.output


@pytest.mark.parametrize("candidate", ["no-equals", "=path", "name="])
def test_command_refuses_candidates_without_name_or_path(files, candidate):
    result = CliRunner().invoke(app, ["compare", str(files / "test.spacy"), candidate])
    assert result.exit_code == 1 and "NAME=PATH" in result.output
