"""Rows of other annotation tools are refused, with a way to read them; what only looks like them is not."""

import json
import shutil
import subprocess

import pytest
import spacy

from spacy_weakner.annotations.conll import read_conll
from spacy_weakner.annotations.jsonl import read_jsonl
from spacy_weakner.annotations.weak import doc_entities
from spacy_weakner.errors import WeaknerError

NLP = spacy.blank("en")
TEXT = "Anna took aspirin"


@pytest.mark.parametrize(
    "row, tool",
    [
        ({"text": TEXT, "label": [[10, 17, "DRUG"]]}, "doccano"),
        ({"text": TEXT, "labels": [[10, 17, "DRUG"]], "Comments": []}, "doccano"),
        ({"text": TEXT, "entities": [{"id": 1, "label": "DRUG", "start_offset": 10, "end_offset": 17}]}, "doccano"),
        ({"text": TEXT, "label": [{"start": 10, "end": 17, "text": "aspirin", "labels": ["DRUG"]}]}, "Label Studio"),
        ({"tokens": TEXT.split(), "ner_tags": ["O", "O", "B-DRUG"]}, "Hugging Face"),
        ({"tokens": TEXT.split(), "tags": ["O", "O", "B-DRUG"]}, "Hugging Face"),
        ({"tokenized_text": TEXT.split(), "ner": [[2, 2, "DRUG"]]}, "GLiNER"),
        (
            {
                "text": TEXT,
                "tokens": [{"text": "Anna", "start": 0, "end": 4, "id": 0}],
                "spans": [{"start": 10, "end": 17, "token_start": 2, "token_end": 2, "label": "DRUG"}],
                "answer": "accept",
            },
            "Prodigy",
        ),
    ],
)
def test_the_command_in_the_message_makes_readable_rows(tmp_path, row, tool):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(row) + "\n")
    with pytest.raises(WeaknerError, match=rf"WK103.*line 1.*{tool}") as error:
        list(read_jsonl(path, NLP))
    if shutil.which("jq") is None:
        pytest.skip("jq is not installed")
    command = str(error.value)[str(error.value).index("jq ") :]
    new = tmp_path / ("a-new.conll" if "a-new.conll" in command else "a-new.jsonl")
    subprocess.run(command.split(". If these")[0], shell=True, check=True)
    read = read_conll if new.suffix == ".conll" else read_jsonl
    (doc,) = read(new, NLP)
    assert doc_entities(doc) == [(2, 3, "DRUG")]


@pytest.mark.parametrize(
    "row, expected",
    [
        ({"tokens": ["a", "b"], "ner_tags": [0, 3]}, r"numbers by their names.*'ner_tags'"),
        ({"id": 1, "data": {"text": "a"}, "annotations": [{"result": []}]}, "Label Studio"),
        ({"text": "a b", "spans": [[0, 1, "X"]], "answer": "reject"}, r"Prodigy.*grep -v"),
        ({"text": "a b", "spans": [], "answer": "ignore"}, r"Prodigy.*grep -v"),
    ],
)
def test_without_a_command(tmp_path, row, expected):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(row) + "\n")
    with pytest.raises(WeaknerError, match=rf"WK103.*line 1.*{expected}"):
        list(read_jsonl(path, NLP))


@pytest.mark.parametrize(
    "row",
    [
        {"text": "a b", "label": "positive"},
        {"text": "a b", "label": []},
        {"text": "a b", "tags": ["news", "sports"]},
        {"tokens": ["a", "b"], "tags": ["news", "sports"]},
        {"tokens": ["a", "b"], "labels": [1]},
        {"tokens": ["a", "b"], "ents": [[0, 1, "X"]], "ner_tags": [1, 0]},
        {"text": "a b", "ents": None, "entities": [[0, 1, "X"]]},
        {"text": "a b", "spans": [[0, 1, "X"]], "answer": "accept"},
    ],
)
def test_what_only_looks_like_them_is_read(tmp_path, row):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(row) + "\n")
    assert len(list(read_jsonl(path, NLP))) == 1
