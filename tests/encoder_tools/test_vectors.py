"""Vectors of the words of a text."""

import json
import math
from collections import Counter
from itertools import product

import numpy
import pytest
import spacy
from spacy.tokens import Doc

from spacy_weakner.corpus.counts import RowCounts
from spacy_weakner.corpus.docbin import write_docs
from spacy_weakner.encoder_tools import cooccurrence, reading
from spacy_weakner.encoder_tools import vectors as vectors_module
from spacy_weakner.encoder_tools.cooccurrence import OFFSETS, SentenceSample, count_neighbors, decompose, information
from spacy_weakner.encoder_tools.reading import stream_text
from spacy_weakner.encoder_tools.vectors import vectors
from spacy_weakner.errors import WeaknerError

SENTENCES = [
    "The cat sat on the mat",
    "a Cat ate 12 mice",
    "the dog ate 7 cats",
    "Cat",
    "",
    "the mat and the 99 mice",
] * 3
LETTERS = ["".join(own) for own in product("abcdefghij", repeat=3)]


def sample(sentences=SENTENCES, limit=1000):
    nlp, found = spacy.blank("xx"), SentenceSample(limit, 0)
    for sentence in sentences:
        found.add(Doc(nlp.vocab, words=sentence.split() or [" "]))
    return found


def slow_information(sentences, words, contexts):
    """Positive pointwise mutual information by its definition, one pair after the other."""
    pairs = Counter()
    for sentence in sentences:
        for i, word in enumerate(sentence):
            for offset in OFFSETS:
                if 0 <= i + offset < len(sentence) and word in words and sentence[i + offset] in words[:contexts]:
                    pairs[word, offset, sentence[i + offset]] += 1
    total, rows, columns = sum(pairs.values()), Counter(), Counter()
    for (word, *column), n in pairs.items():
        rows[word] += n
        columns[tuple(column)] += n
    return [
        [
            max(0.0, math.log(n * total / (rows[word] * columns[offset, other]))) if n else 0.0
            for offset in OFFSETS
            for other in words[:contexts]
            for n in [pairs[word, offset, other]]
        ]
        for word in words
    ]


@pytest.mark.parametrize("chunk", [1, 1000])
def test_information_is_that_of_the_twin(monkeypatch, chunk):
    monkeypatch.setattr(cooccurrence, "_CHUNK", chunk)
    found = sample()
    frequent = found.frequent(3)
    words = [found.words[i] for i in frequent]
    assert words[:2] == ["the", "cat"] and "00" in words and "0" in words and " " not in found.words
    folded = [[word.lower() for word in sentence.split()] for sentence in SENTENCES]
    folded = [["".join("0" if c.isdigit() else c for c in word) for word in sentence] for sentence in folded]
    expected = slow_information(folded, words, 4)
    assert information(count_neighbors(found.sentences, frequent, 4)).toarray() == pytest.approx(
        numpy.asarray(expected), abs=1e-5
    )


def test_vectors_are_singular_vectors():
    found = sample()
    matrix = information(count_neighbors(found.sentences, found.frequent(1), 10))
    made = decompose(matrix, 3, 0)
    left, values, _ = numpy.linalg.svd(matrix.toarray())
    expected = left[:, :3] * values[:3]
    assert numpy.abs(made) == pytest.approx(numpy.abs(expected), abs=1e-3)


def test_of_many_sentences_some_are_drawn():
    found = [sample(LETTERS, limit=100) for _ in range(2)]
    kept = [[own.words[sentence[0]] for sentence in own.sentences] for own in found]
    assert kept[0] == kept[1] and 25 <= len(kept[0]) <= 100 and found[0].read == 1000
    assert any(LETTERS.index(word) > 900 for word in kept[0])


@pytest.fixture
def text(tmp_path):
    (tmp_path / "a.txt").write_text("\n".join(SENTENCES) + "\n")
    rows = [{"tokens": sentence.split()} for sentence in SENTENCES if sentence]
    (tmp_path / "b.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return [tmp_path / "a.txt", tmp_path / "b.jsonl"]


def test_spacy_finds_them(text, tmp_path, monkeypatch):
    monkeypatch.setattr(vectors_module, "_WIDTH", 5)
    report = vectors(text, tmp_path / "out")
    assert report.width == 5 and report.read == report.sentences and report.words > 5
    nlp = spacy.load(tmp_path / "out")
    doc = nlp("Cat cat 12 99 unseen")
    assert [token.has_vector for token in doc] == [True] * 4 + [False]
    assert doc[0].vector.any() and all((doc[i].vector == doc[i + 1].vector).all() for i in (0, 2))
    assert vectors(text, tmp_path / "again") == report
    again = spacy.load(tmp_path / "again")
    assert (again.vocab.vectors.data == nlp.vocab.vectors.data).all()


def test_the_vocabulary_does_not_grow_with_the_text(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "_BLOCK", 2)
    (tmp_path / "a.txt").write_text("".join(f"word{i} is here. And x{i}.\n" for i in range(5)))
    nlp = spacy.blank("xx")
    found = [doc.text for doc in stream_text(tmp_path / "a.txt", nlp, RowCounts())]
    assert found == [text for i in range(5) for text in (f"word{i} is here.", f"And x{i}.")]
    assert not any(f"word{i}" in nlp.vocab.strings for i in range(5))


def test_what_is_remarkable_of_the_text_is_told(tmp_path):
    (tmp_path / "a.txt").write_text("Anna\tB-PER\nleft\tO\n\n" * 60)
    rows = [{"text": "The cat sat on the mat", "abstract": "What matters."}] * 9
    (tmp_path / "b.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    remarks = vectors([tmp_path / "a.txt", tmp_path / "b.jsonl"], tmp_path / "out").remarks
    assert any(".conll" in remark for remark in remarks) and any("abstract (9 rows)" in remark for remark in remarks)


def test_span_groups_of_a_text_are_not_told_of(tmp_path):
    doc = Doc(spacy.blank("xx").vocab, words=["The", "cat", "sat", "on", "the", "mat"])
    doc.spans["sc"] = [doc[1:2]]
    write_docs(tmp_path / "a.spacy", [doc] * 9)
    assert not vectors([tmp_path / "a.spacy"], tmp_path / "out").remarks


def test_a_text_of_characters(tmp_path):
    (tmp_path / "zh.txt").write_text("我喜欢北京的天气\n" * 3)
    report = vectors([tmp_path / "zh.txt"], tmp_path / "out", lang="zh")
    assert report.words == 8 and spacy.load(tmp_path / "out")("北京")[0].has_vector


def test_too_little_text(tmp_path, monkeypatch):
    (tmp_path / "one.txt").write_text("word\n")
    assert vectors([tmp_path / "one.txt"], tmp_path / "out").words == 0
    assert not spacy.load(tmp_path / "out")("word")[0].has_vector
    # It has no neighbor, however often it is there.
    monkeypatch.setattr(vectors_module, "_LEAST", 1)
    assert vectors([tmp_path / "one.txt"], tmp_path / "out").words == 0
    (tmp_path / "empty.txt").write_text("\n")
    with pytest.raises(WeaknerError, match="WK101"):
        vectors([tmp_path / "empty.txt"], tmp_path / "no")
    assert not (tmp_path / "no").exists()


def test_refused(text, tmp_path):
    with pytest.raises(WeaknerError, match="WK304"):
        vectors(text, tmp_path, overwrite=True)


def test_a_folder_of_others_is_not_replaced(tmp_path):
    (tmp_path / "t.txt").write_text("a b c\n" * 5)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").touch()
    for overwrite in (False, True):
        with pytest.raises(WeaknerError, match="WK300"):
            vectors([tmp_path / "t.txt"], tmp_path / "mine", overwrite=overwrite)
    vectors([tmp_path / "t.txt"], tmp_path / "out")
    assert (tmp_path / "mine" / "thesis.txt").exists() and (tmp_path / "out" / "vocab").exists()
    (tmp_path / "out" / "thesis.txt").touch()
    with pytest.raises(WeaknerError, match=r"WK300.*thesis\.txt"):
        vectors([tmp_path / "t.txt"], tmp_path / "out", overwrite=True)


def test_excluded_sentences_are_left_out_of_annotated_texts_too(tmp_path):
    first, second = "The cat sat on the red mat .", "Then the dog came to the mat , too ."
    rows = [{"text": f"{first} {second}"}, {"text": f"{first} {second}", "ents": [[4, 7, "PET"]]}]
    (tmp_path / "text.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "gold.jsonl").write_text(json.dumps({"text": first, "ents": []}) + "\n")
    report = vectors([tmp_path / "text.jsonl"], tmp_path / "vectors", exclude=[tmp_path / "gold.jsonl"])
    assert report.excluded == 2 and report.read == 2
