"""What users of spaCy's rulers know: terms in the config, patterns, ids, removal."""

import json
import pickle

import pytest
import spacy

from spacy_weakner.errors import WeaknerError
from spacy_weakner.gazetteer_ruler.component import GazetteerRuler
from spacy_weakner.gazetteer_ruler.terms import Term

PATTERNS = [
    {"label": "DRUG", "pattern": "aspirin", "id": "D1"},
    {"label": "ORG", "pattern": [{"ORTH": "Foo"}, {"ORTH": "Bar"}], "id": "O1"},
    {"label": "DRUG", "pattern": "tamol"},
]
TERMS = [
    ("DRUG", "aspirin", "D1"),
    {"label": "ORG", "pattern": [{"ORTH": "Foo"}, {"ORTH": "Bar"}], "id": "O1"},
    "tamol",
]
TEXT = "Aspirin of Foo Bar, foo bar, tamol"
FOUND = [("Aspirin", "DRUG", "D1"), ("Foo Bar", "ORG", "O1"), ("tamol", "DRUG", "")]


def pipeline(**settings):
    nlp = spacy.blank("xx")
    return nlp, nlp.add_pipe("gazetteer_ruler", config={"annotate_ents": True, **settings})


def found(nlp):
    doc = nlp(TEXT)
    for spans in (doc.spans["weak:gazetteer"], doc.ents):
        assert all(span.ent_id_ == span.kb_id_ for span in spans)
    assert [token.ent_id_ for ent in doc.ents for token in ent[:1]] == [ent.kb_id_ for ent in doc.ents]
    return [(ent.text, ent.label_, ent.ent_id_) for ent in doc.ents]


def test_terms_in_the_config():
    nlp, ruler = pipeline(terms=TERMS, label="DRUG")
    assert found(nlp) == FOUND and ruler.labels == ("DRUG", "ORG") and ruler.patterns == PATTERNS
    assert spacy.blank("xx").from_config(nlp.config).get_pipe("gazetteer_ruler").patterns == PATTERNS


def test_labels_before_the_first_use(tmp_path):
    nlp, ruler = pipeline(terms=[*TERMS, {"label": "X", "term": "x", "binding": "never"}], label="DRUG")
    # spaCy reads them before it loads the tokenizer of a stored pipeline.
    tokenizer, nlp.tokenizer = nlp.tokenizer, lambda text: pytest.fail("not loaded yet")
    assert nlp.meta["labels"] == {"gazetteer_ruler": ["DRUG", "ORG"]} and ruler.labels == ("DRUG", "ORG")
    nlp.tokenizer = tokenizer
    nlp.to_disk(tmp_path)
    assert json.loads((tmp_path / "meta.json").read_text())["labels"] == {"gazetteer_ruler": ["DRUG", "ORG"]}
    assert found(spacy.load(tmp_path)) == FOUND
    alone = GazetteerRuler(nlp.vocab, terms=iter(TERMS), label="DRUG", label_names={"ORG": "O"}, nlp=nlp)
    assert alone.labels == ("O",) and alone.patterns == PATTERNS and alone.labels == ("O",)


@pytest.mark.parametrize("labels", [False, True])
def test_a_file_is_read_once_it_is_needed_and_not_for_a_stored_pipeline(tmp_path, labels):
    path = tmp_path / "terms.csv"
    nlp, ruler = pipeline(path=str(path))
    assert "gazetteer_ruler" not in nlp.meta["labels"]
    with pytest.raises(WeaknerError, match=r"WK100.*terms\.csv"):
        nlp(TEXT)
    path.write_text("label,term,id\nDRUG,aspirin,D1\n")
    assert not labels or ruler.labels == ("DRUG",)
    nlp.to_disk(tmp_path / "stored")
    data = nlp.to_bytes()
    path.unlink()
    loaded = [spacy.load(tmp_path / "stored"), spacy.blank("xx").from_config(nlp.config).from_bytes(data)]
    assert all(found(nlp) == FOUND[:1] for nlp in loaded)


def test_terms_of_the_training_replace_those_of_the_config():
    nlp, ruler = pipeline(terms=["nothing"], label="X")
    nlp.initialize()
    assert ruler.terms == [Term("X", "nothing")]
    ruler.initialize(terms=TERMS, label="DRUG")
    assert ruler.patterns == PATTERNS


def test_a_copy_has_them_without_its_pipeline():
    _, ruler = pipeline(terms=TERMS, label="DRUG")
    assert pickle.loads(pickle.dumps(ruler)).patterns == PATTERNS


def test_not_both(tmp_path):
    with pytest.raises(WeaknerError, match="WK331"):
        pipeline(path=str(tmp_path / "terms.csv"), terms=["a"])


def test_patterns_are_added_counted_and_removed():
    nlp, ruler = pipeline()
    assert len(ruler) == 0 and ruler and ruler.patterns == [] and "DRUG" not in ruler
    ruler.add_patterns(PATTERNS)
    assert (len(ruler), "DRUG" in ruler, "X" in ruler, ruler.patterns) == (3, True, False, PATTERNS)
    assert found(nlp) == FOUND
    ruler.remove_by_id("O1")
    assert found(nlp) == [FOUND[0], FOUND[2]] and ruler.patterns == [PATTERNS[0], PATTERNS[2]]
    for remove, key in ((ruler.remove, "ORG"), (ruler.remove_by_id, "O1"), (ruler.remove, "D1")):
        with pytest.raises(WeaknerError, match=f"WK012.*{key}"):
            remove(key)
    ruler.remove("DRUG")
    assert len(ruler) == 0 and ruler.labels == ()
    ruler.add_patterns(PATTERNS)
    loaded = spacy.blank("xx").from_config(nlp.config).from_bytes(nlp.to_bytes())
    assert loaded.get_pipe("gazetteer_ruler").patterns == PATTERNS and found(loaded) == FOUND


@pytest.mark.parametrize("triple", [("DRUG", "aspirin", 7), ["DRUG", "aspirin", "7"], Term("DRUG", "aspirin", id="7")])
def test_triples(triple):
    _, ruler = pipeline(terms=[triple])
    assert ruler.terms == [Term("DRUG", "aspirin", id="7")]
