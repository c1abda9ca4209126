"""What files of scores say about how they were made."""

import json

import pytest
import spacy
from spacy.tokens import Doc

from spacy_weakner.corpus.docbin import write_docs
from spacy_weakner.errors import WeaknerError
from spacy_weakner.runs.provenance import completion_rules, read_variables, with_provenance
from spacy_weakner.runtime.hashes import hash_file

from ..cli.util import invoke

RECORD = {"workflow": "needle", "variables": {"folds": 2, "set": ""}, "changed": ["folds"]}


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    nlp = spacy.blank("en")
    for name, n in (("test", 3), ("train", 5), ("more", 6)):
        docs = [Doc(nlp.vocab, words=["Oslo", str(i)]) for i in range(n)]
        for doc in docs:
            doc.set_ents([], default="outside")
        write_docs(tmp_path / f"{name}.spacy", docs)
    for name, seed, train, dropout in (("a", 0, "train", 0.1), ("b", 1, "more", 0.1), ("c", 1, "train", 0.2)):
        training = {"seed": seed, "dropout": dropout}
        nlp.config.update(
            {
                "paths": {
                    "train": f"{train}.spacy",
                    "dev": None,
                    "vectors": None,
                    "init_tok2vec": None,
                    "transformer": "x/y",
                }
            }
        )
        nlp.config["training"].update(training)
        (tmp_path / name).mkdir()
        nlp.to_disk(tmp_path / name / "model-best")
    (tmp_path / "a" / "trained.json").write_text(
        json.dumps({"files": {}, "report": {"cpu_seconds": 1.5, "device": "cpu"}})
    )
    (tmp_path / "variables.json").write_text(json.dumps(RECORD))
    return tmp_path


def test_what_each_candidate_was_trained_with(files):
    candidates = {name: files / name / "model-best" for name in "abc"} | {"labels": files / "test.spacy"}
    rows = [{"name": name, "f1": 1.0} for name in candidates]
    written = with_provenance(rows, candidates, test=files / "test.spacy", variables=files / "variables.json")
    assert json.loads(json.dumps(written)) == written
    made, scores = written["made"], {row["name"]: row["training"] for row in written["scores"]}
    assert made["workflow"] == "needle" and made["variables"] == RECORD["variables"] and made["packages"]["spacy"]
    assert made["test"]["sentences"] == 3 and made["test"]["sha256"] == hash_file(files / "test.spacy")
    a, b, c = (scores[name] for name in "abc")
    assert (a["seed"], b["seed"], c["seed"], scores["labels"]["seed"]) == (0, 1, 1, None)
    # Neither seeds nor files are part of the config.
    assert a["config"] == b["config"] != c["config"]
    assert a["corpora"]["paths.train"]["sentences"] == 5 and b["corpora"]["paths.train"]["sentences"] == 6
    assert a["corpora"]["paths.transformer"] == {"path": "x/y", "sha256": None}
    assert (a["cpu_seconds"], a["device"], b["cpu_seconds"]) == (1.5, "cpu", None)
    assert scores["labels"]["corpora"]["labels"]["sentences"] == 3 and not completion_rules(written)


def test_rules_of_completion(files):
    (files / "train.spacy.json").write_text(json.dumps({"files": {}, "report": {"rules": {"none": 5}}}))
    written = with_provenance([{"name": "a"}, {"name": "c"}], {name: files / name / "model-best" for name in "ac"})
    assert completion_rules(written) == ["train.spacy was completed with the rule: none"]


def test_corpora_are_those_of_the_training(files):
    corpora = {"paths.train": {"path": "train.spacy", "sha256": "before", "sentences": 9, "rules": ["paper"]}}
    (files / "a" / "trained.json").write_text(json.dumps({"files": {}, "report": {"corpora": corpora}}))
    written = with_provenance([{"name": "a"}], {"a": files / "a" / "model-best"})
    assert written["scores"][0]["training"]["corpora"] == corpora
    assert completion_rules(written) == ["train.spacy was completed with the rule: paper"]


def test_evaluate_writes_them(files):
    options = ["--output", "scores.json", "--variables", "variables.json", "--bootstrap", "0"]
    result = invoke("evaluate", "test.spacy", "a=a/model-best", *options)
    assert result.exit_code == 0, result.output
    written = json.loads((files / "scores.json").read_text())
    (row,) = written["scores"]
    assert row["training"]["seed"] == 0 and row["sentences"] == "0 0 0;0 0 0;0 0 0"
    assert written["made"]["changed"] == ["folds"]
    assert "a" in invoke("table", "scores.json").output


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"workflow": "x", "variables": 3}'])
def test_damaged_variables_are_named(tmp_path, text):
    path = tmp_path / "variables.json"
    path.write_text(text)
    with pytest.raises(WeaknerError, match=r"variables\.json.*weasel run"):
        read_variables(path)
    assert read_variables(None)["variables"] == {}


def test_unknown_variables_stay_unknown(tmp_path):
    path = tmp_path / "variables.json"
    with pytest.raises(WeaknerError, match="WK100"):
        read_variables(path)
    path.write_text('{"workflow": null, "variables": null, "changed": []}')
    assert read_variables(path)["variables"] is None
