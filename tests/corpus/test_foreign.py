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
        ({"tokens": TEXT.split(), "labels": ["O", "O", "W-DRUG"]}, "huggingface"),
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
        ({"tokens": ["a", "b"], "ner_tags": [1, None]}, "huggingface"),
        ({"tokens": ["a", "b"], "ner_tags": ["PERSON", "O"]}, "huggingface"),
        ({"tokens": ["a", "b"], "ner_tags": ["news", "sports"]}, "huggingface"),
        ({"tokens": ["a", "b"], "ner_tags": ["O"]}, "huggingface"),
        ({"tokens": ["a", "b"], "ner": ["b-per", "o"]}, "huggingface"),
        ({"tokens": ["a", "b"], "labels": ["B_PER", "O"]}, "huggingface"),
        ({"tokens": ["a", "b"], "ner_tags": [1, 0], "gold": True}, "huggingface"),
        ({"tokens": ["a", "b"], "tags": [1.0, None]}, "huggingface"),
        ({"text": "a b", "ner_tags": ["B-PER", "O"]}, "huggingface"),
        (["a b", {"entities": []}], "spacy-json"),
        ({"text": "a b", "tokens": [{"id": 0, "start": 0, "end": 1}]}, "spacy-json"),
        ({"text": "a", "tokens": [{"text": "a", "start": 0, "end": 1}], "ents": []}, "spacy-json"),
        ({"text": "a", "tokens": [{"text": "a", "start": 0, "end": 1}]}, "prodigy"),
        ({"text": "a", "tokens": [{"id": 0, "start": 0, "end": 1}], "ents": [], "_input_hash": 1}, "prodigy"),
        ({"text": "a", "tokens": [{"id": 0, "start": 0, "end": 1}], "answer": "accept"}, "prodigy"),
        ({"text": "a", "tokens": [{"id": 0, "start": 0, "end": 1}], "spans": []}, "prodigy"),
        ({"text": "a", "tokens": [{"id": 0, "start": 0, "end": 1}], "spans": {}}, "spacy-json"),
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
        {"tokens": ["a", "b"], "tags": [0.5, 1.0]},
        {"text": "a b", "ner": ["Anna", "Bob"]},
        {"text": "a b", "labels": ["O", "O"]},
        {"tokens": ["a", "b"], "labels": [1]},
        {"tokens": ["a", "b"], "labels": ["O"]},
        {"tokens": ["a", "b"], "ner": [[0, 1, "X"]]},
        {"tokens": ["a", "b"], "ents": [[0, 1, "X"]], "ner_tags": [1, 0]},
        {"text": "a b", "ents": None, "entities": [[0, 1, "X"]]},
        {"text": "a b", "spans": [[0, 1, "X"]], "answer": "accept"},
    ],
)
def test_what_only_looks_like_them_is_read(tmp_path, row):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(row) + "\n")
    assert len(list(read_corpus(path, NLP, format="jsonl"))) == 1


OWN = {"text": TEXT, "ents": [[0, 4, "PER"]]}
DOC = {"text": TEXT, "ents": [{"start": 0, "end": 4, "label": "PER"}], "tokens": [{"id": 0, "start": 0, "end": 4}]}
DOCCANO = {"text": TEXT, "label": [[0, 4, "PER"]]}
PRODIGY = {"text": TEXT, "_input_hash": 7, "spans": [], "answer": "accept", "_view_id": "ner_manual"}


@pytest.mark.parametrize(
    "rows",
    [
        (DOCCANO, OWN),
        (DOC, OWN),
        (OWN, DOC),
        (PRODIGY, OWN),
        (PRODIGY, {"text": TEXT, "ents": []}),
        (PRODIGY, {"text": TEXT, "weak_ents": {"list": [[0, 4, "PER"]]}}),
        (PRODIGY, DOCCANO),
        (DOCCANO, {"text": TEXT, "spans": [[0, 4, "PER"]]}),
        ({"tokens": ["Anna"], "ner_tags": ["O"]}, {"tokens": ["Anna"], "ents": [[0, 1, "PER"]]}),
    ],
)
def test_rows_of_two_formats_in_one_file(tmp_path, rows):
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(WeaknerError, match=r"WK103.*a.jsonl, line \d.*spacy weakner convert"):
        list(read_corpus(path, NLP))
    for n, row in enumerate(rows):
        folder = tmp_path / "folder"
        folder.mkdir(exist_ok=True)
        (folder / f"{n}.jsonl").write_text(json.dumps(row) + "\n")
    assert all(doc.has_annotation("ENT_IOB") or doc.spans for doc in read_corpus(folder, NLP))


@pytest.mark.parametrize(
    "format, row",
    [
        ("doccano", {**DOCCANO, "_task_hash": 7, "answer": "accept"}),
        ("doccano", {**DOCCANO, "answer": "reject"}),
        ("doccano", {"text": "Anna", "label": [], "_task_hash": 7}),
        ("huggingface", {"tokens": ["Anna"], "ner_tags": ["B-PER"], "gold": True}),
        ("huggingface", {"tokens": ["Anna"], "ner_tags": ["B-PER"], "_task_hash": 7}),
    ],
)
def test_keys_of_other_tools_are_metadata_if_the_format_is_given(tmp_path, format, row):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(row) + "\n")
    (doc,) = read_corpus(path, NLP, format=format)
    assert doc.has_annotation("ENT_IOB") and len(doc.ents) == (row.get("label") != [])


def test_faults_of_rows_with_such_keys_are_named(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"tokens": ["Anna"], "ner_tags": [1], "_task_hash": 7}) + "\n")
    with pytest.raises(WeaknerError, match=r"WK103.*line 1.*'huggingface': tags are numbers without names"):
        list(read_corpus(path, NLP, format="huggingface"))


@pytest.mark.parametrize("other", [{"text": TEXT}, {"text": TEXT, "ents": None}, {"text": TEXT, "spans": []}])
def test_rows_without_annotation_may_stand_among_others(tmp_path, other):
    path = tmp_path / "a.jsonl"
    path.write_text(f"{json.dumps(PRODIGY)}\n{json.dumps(other)}\n")
    assert len(list(read_corpus(path, NLP))) == 2
