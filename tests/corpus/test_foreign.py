"""Rows of other annotation tools are told from ours, and refused where only ours are read, with a way to read them."""

import json
import shlex
from pathlib import Path

import pytest
import spacy

from spacy_weakner.conversion.convert import convert
from spacy_weakner.corpus.docbin import read_docs
from spacy_weakner.corpus.foreign import tool_of
from spacy_weakner.corpus.formats.reading import read_corpus
from spacy_weakner.corpus.weak import doc_entities
from spacy_weakner.errors import WeaknerError

NLP = spacy.blank("xx")
TEXT = "Anna took aspirin"


@pytest.mark.parametrize(
    "row, tool",
    [
        ({"text": TEXT, "label": [[10, 17, "DRUG"]]}, "doccano"),
        ({"text": TEXT, "labels": [[10, 17, "DRUG"]], "Comments": []}, "doccano"),
        ({"text": TEXT, "entities": [{"id": 1, "label": "DRUG", "start_offset": 10, "end_offset": 17}]}, "doccano"),
        ({"text": TEXT, "label": [{"start": 10, "end": 17, "text": "aspirin", "labels": ["DRUG"]}]}, "label-studio"),
        ({"tokens": TEXT.split(), "ner_tags": ["O", "O", "B-DRUG"]}, "huggingface"),
        ({"tokens": TEXT.split(), "tags": ["O", None, "B-DRUG"]}, "huggingface"),
        ({"tokens": TEXT.split(), "ner_tags": ["O", "O", "B-DRUG"], "spans": ["DRUG: aspirin"]}, "huggingface"),
        ({"tokenized_text": TEXT.split(), "ner": [[2, 2, "DRUG"]]}, "gliner"),
        (
            {
                "text": TEXT,
                "tokens": [{"text": "Anna", "start": 0, "end": 4, "id": 0}],
                "spans": [{"start": 10, "end": 17, "token_start": 2, "token_end": 2, "label": "DRUG"}],
                "answer": "accept",
            },
            "prodigy",
        ),
    ],
)
def test_the_command_in_the_message_reads_them(tmp_path, row, tool):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(row) + "\n")
    with pytest.raises(WeaknerError, match=rf"WK103.*line 1.*{tool}") as error:
        list(read_corpus(path, NLP, format="jsonl"))
    command = str(error.value).partition("first: ")[2].partition(". (Or")[0]
    _, _, _, source, new, _, format_ = shlex.split(command)
    convert(Path(source), Path(new), format=format_, lang="xx")
    (doc,) = read_docs(tmp_path / "a-new.spacy", NLP.vocab)
    assert doc_entities(doc) == [(2, 3, "DRUG")]


@pytest.mark.parametrize(
    "row, tool",
    [
        ({"tokens": ["a", "b"], "ner_tags": [0, 3]}, "huggingface"),
        ({"id": 1, "data": {"text": "a"}, "annotations": [{"result": []}]}, "label-studio"),
        ({"text": "a b", "spans": [[0, 1, "X"]], "answer": "reject"}, "prodigy"),
        ({"text": "a b", "spans": [], "answer": "ignore"}, "prodigy"),
        ({"text": "a b", "_input_hash": 7}, "prodigy"),
        (["a b", {"entities": []}], "spacy-json"),
    ],
)
def test_without_a_span_too(row, tool):
    assert tool_of(row) == tool


@pytest.mark.parametrize(
    "row",
    [
        {"text": "a b", "label": "positive"},
        {"text": "a b", "label": []},
        {"text": "a b", "tags": ["news", "sports"]},
        {"tokens": ["a", "b"], "tags": ["news", "sports"]},
        {"tokens": ["a", "b"], "tags": [None, None]},
        {"tokens": ["a", "b"], "labels": [1]},
        {"tokens": ["a", "b"], "ents": [[0, 1, "X"]], "ner_tags": [1, 0]},
        {"text": "a b", "ents": None, "entities": [[0, 1, "X"]]},
        {"text": "a b", "spans": [[0, 1, "X"]], "answer": "accept"},
    ],
)
def test_what_only_looks_like_them_is_read(tmp_path, row):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(row) + "\n")
    assert len(list(read_corpus(path, NLP, format="jsonl"))) == 1
