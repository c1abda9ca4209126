"""Tables of word pieces: the fit, what a Transformer says of words, and the stage."""

import json
import shutil

import numpy
import pytest

from spacy_weakner.encoder_tools import subword_vectors
from spacy_weakner.encoder_tools.distill import LoneWords, distill
from spacy_weakner.encoder_tools.subword_vectors import fit_pieces, means, principal, products, similarity, solve
from spacy_weakner.errors import WeaknerError
from spacy_weakner.linear.pieces import cut, half, load_tokenizer, read_pieces

WORDS = [(0, 1), (1, 2, 2), (4, 0, 5), (1, 4), (5, 5)]


def matrix(n_pieces):
    """What `averaging` is, written out."""
    A = numpy.zeros((len(WORDS), n_pieces), dtype="float32")
    for row, word in zip(A, WORDS, strict=True):
        for piece in word:
            row[piece] += 1 / len(word)
    return A


@pytest.fixture
def rng():
    return numpy.random.RandomState(0)


def random(rng, *shape):
    return rng.normal(size=shape).astype("float32")


@pytest.mark.parametrize("strength", [0.01, 0.3, 10.0])
def test_the_fit_is_ridge_regression(rng, strength):
    vectors, targets, A = random(rng, 7, 4), random(rng, len(WORDS), 4), matrix(7)
    fitted = fit_pieces(vectors, WORDS, targets, strength)
    change = numpy.linalg.solve(A.T @ A + strength * numpy.eye(7), A.T @ (targets - A @ vectors))
    assert fitted == pytest.approx(vectors + change, abs=2e-3)
    assert (fitted[[3, 6]] == vectors[[3, 6]]).all()  # of no word
    before, after = (similarity(means(each, WORDS), targets) for each in (vectors, fitted))
    assert after > before


def test_nothing_to_fit(rng):
    vectors = random(rng, 3, 2)
    assert (fit_pieces(vectors, [], vectors[:0], 0.3) == vectors).all()
    # Where the means are the targets already.
    assert fit_pieces(vectors, [(0, 1)], means(vectors, [(0, 1)]), 0.3) == pytest.approx(vectors)
    assert similarity(vectors[:0], vectors[:0]) == 1.0 and means(vectors, []).shape == (0, 2)


def test_solving_ends(monkeypatch, rng):
    monkeypatch.setattr(subword_vectors, "_ITERATIONS", 1)
    wanted = random(rng, 3, 2)
    assert solve(lambda x: 2 * x, wanted) == pytest.approx(wanted / 2)


def test_products_are_added_up(monkeypatch, rng):
    monkeypatch.setattr(subword_vectors, "_CHUNK", 2)
    vectors = random(rng, 6, 3)
    words = matrix(6) @ vectors
    assert products(vectors, WORDS) == pytest.approx(words.T @ words, abs=1e-5)


def test_principal_directions(rng):
    vectors = random(rng, 50, 5) * [1, 4, 2, 0.1, 3]
    vectors -= vectors.mean(axis=0)
    found = principal(vectors.T @ vectors, 3)
    assert found.T @ found == pytest.approx(numpy.eye(3), abs=1e-5)
    assert list(numpy.abs(found).argmax(axis=0)) == [1, 4, 2] and (found.max(axis=0) >= -found.min(axis=0)).all()
    assert principal(vectors.T @ vectors, 9).shape == (5, 5)


@pytest.fixture
def text(tmp_path):
    words = ["anna", "bob", "paris", "newer", "smiths", "yorker", "annab", "xyz", "Bobs", "parisx"]
    rows = [{"tokens": [*words[i:], *words[:i]]} for i in range(len(words))]
    (tmp_path / "text.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path / "text.jsonl"


def test_words_are_read_alone(tiny_bert):
    import torch
    from transformers import AutoModel, AutoTokenizer

    read, tokenizer = LoneWords(tiny_bert), AutoTokenizer.from_pretrained(str(tiny_bert))
    words = [tokenizer(word, add_special_tokens=False)["input_ids"] for word in ("anna", "newer", "xyz", "bob")]
    found, model = read(words), AutoModel.from_pretrained(str(tiny_bert)).eval()
    for own, word in zip(found, words, strict=True):
        ids = torch.tensor([[tokenizer.cls_token_id, *word, tokenizer.sep_token_id]])
        with torch.no_grad():
            expected = model(ids).last_hidden_state[0, 1 : 1 + len(word)].mean(dim=0).numpy()
        assert own == pytest.approx(expected, abs=1e-5)
    assert read.longest == 30 and read([[5] * read.longest]).shape == (1, 16)
    assert read([]).shape == (0, 16)


def test_a_tokenizer_that_was_stored_with_padding(tiny_bert, tmp_path):
    from transformers import AutoTokenizer

    folder = shutil.copytree(tiny_bert, tmp_path / "bert")
    tokenizer = AutoTokenizer.from_pretrained(str(folder))
    tokenizer.backend_tokenizer.enable_padding(length=16)
    tokenizer.backend_tokenizer.enable_truncation(4)
    tokenizer.save_pretrained(str(folder))
    assert json.loads((folder / "tokenizer.json").read_text())["padding"]["strategy"] == {"Fixed": 16}
    read, usual = LoneWords(folder), LoneWords(tiny_bert)
    assert read.longest == usual.longest and (read([[5, 6], [7]]) == usual([[5, 6], [7]])).all()


def test_a_table_is_made(tiny_bert, text, tmp_path):
    report = distill([text], tmp_path / "pieces", tiny_bert)
    table = read_pieces(tmp_path / "pieces")
    n_pieces = len((tiny_bert / "vocab.txt").read_text().split())
    assert (report.pieces, report.width) == table.vectors.shape == (n_pieces, 16)
    assert (report.words, report.cut, report.held_out) == (10, 6, 1)
    read = LoneWords(tiny_bert)
    words = [cut(load_tokenizer(table.tokenizer), word) for word in ("newer", "smiths", "yorker")]
    said = read(words)
    # They differ by the mean that was taken off, and by what could not be fitted.
    own = numpy.stack([table.vectors[word].mean(axis=0) for word in words])
    assert similarity(own - own.mean(axis=0), said - said.mean(axis=0)) > 0.9
    again = distill([text], tmp_path / "again", tiny_bert)
    assert again == report
    files = [sorted(folder.iterdir()) for folder in (tmp_path / "pieces", tmp_path / "again")]
    first, second = ([path.read_bytes() for path in own] for own in files)
    assert first == second
    narrow = distill([text], tmp_path / "narrow", tiny_bert, width=4)
    assert narrow.width == 4 and read_pieces(tmp_path / "narrow").vectors.shape == (n_pieces, 4)
    assert {path.name for path in tmp_path.iterdir()} == {"text.jsonl", "pieces", "again", "narrow"}


def test_each_word_is_cut_once(tiny_bert, tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr("spacy_weakner.encoder_tools.distill.cut", lambda *args: seen.append(args[1]) or cut(*args))
    (tmp_path / "a.txt").write_text("anna likes anna\n" * 3 + "\u200b\n")
    assert distill([tmp_path / "a.txt"], tmp_path / "pieces", tiny_bert, width=4).words == 3
    assert sorted(seen) == ["anna", "likes", "\u200b"]


def test_words_of_one_piece_alone(tiny_bert, tmp_path):
    (tmp_path / "a.txt").write_text("anna likes paris\n")
    report = distill([tmp_path / "a.txt"], tmp_path / "pieces", tiny_bert)
    assert (report.words, report.cut, report.held_out, report.after) == (3, 0, 0, 1.0)


def test_vectors_that_half_precision_cannot_hold(tiny_bert, text, tmp_path, monkeypatch):
    monkeypatch.setattr("spacy_weakner.encoder_tools.embeddings.half", lambda vectors: half(vectors * 1e9))
    with pytest.raises(WeaknerError, match=r"WK353.*half precision"):
        distill([text], tmp_path / "pieces", tiny_bert)
    assert not (tmp_path / "pieces").exists()


def test_errors(tiny_bert, text, tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "thesis.txt").touch()
    (tmp_path / "empty.txt").write_text("\n")
    for inputs, output, settings, message in (
        ([text], "there", {}, "WK300"),
        ([text], "out", {"width": 0}, r"WK005.*width"),
        ([text], "out", {"gpu_id": -2}, r"WK005.*gpu_id"),
        ([text], "out", {"gpu_id": 99}, r"WK432.*99"),
        ([tmp_path / "empty.txt"], "out", {}, "WK101"),
        ([tmp_path / "no.txt"], "out", {}, "no.txt"),
    ):
        with pytest.raises(WeaknerError, match=message):
            distill(inputs, tmp_path / output, tiny_bert, **settings)
    with pytest.raises(WeaknerError, match="nothere"):
        distill([text], tmp_path / "out", tmp_path / "nothere")
    (tmp_path / "zero.txt").write_text("\u200b\n")
    with pytest.raises(WeaknerError, match="WK101"):
        distill([tmp_path / "zero.txt"], tmp_path / "out", tiny_bert)
    # The Transformer itself is never written over.
    files = sorted(path.name for path in tiny_bert.iterdir())
    for output in (tiny_bert, tiny_bert.parent, tiny_bert / "pieces"):
        with pytest.raises(WeaknerError, match="WK304"):
            distill([text], output, tiny_bert, overwrite=True)
    assert sorted(path.name for path in tiny_bert.iterdir()) == files
    assert not (tmp_path / "out").exists() and len(list((tmp_path / "there").iterdir())) == 1
    assert distill([text], tmp_path / "out", tiny_bert).words == 10
