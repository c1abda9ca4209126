import pytest

from spacy_weakner.checks.pieces import check_pieces


@pytest.fixture
def folder(tmp_path):
    """A function that writes a tokenizer which knows the words "a" and "b"."""
    models = pytest.importorskip("tokenizers.models")
    from tokenizers import Tokenizer, pre_tokenizers

    def folder(kind):
        if kind == "wordpiece":
            model = models.WordPiece({"[UNK]": 0, "a": 1, "b": 2}, unk_token="[UNK]")
        else:
            model = models.Unigram([("<unk>", -9.0), ("a", -1.0), ("b", -1.0)], unk_id=0)
        tokenizer = Tokenizer(model)
        tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        tokenizer.save(str(tmp_path / "tokenizer.json"))
        return tmp_path

    return folder


@pytest.mark.parametrize("kind", ["wordpiece", "unigram"])
@pytest.mark.parametrize(
    "text, is_warned", [("a b a b", False), ("a 药", True), ("药 药 店", True), (f"{'a ' * 40}药", False), ("", False)]
)
def test_words_that_a_tokenizer_does_not_know(folder, findings, kind, text, is_warned):
    check_pieces(folder(kind), [text] * 3, "--transformer t", findings)
    assert [(f.level, "药" in f.message) for f in findings.sorted()] == [("warning", True)] * is_warned


def test_no_texts_and_no_tokenizer(folder, findings, tmp_path):
    check_pieces(folder("wordpiece"), [], "--transformer t", findings)
    (tmp_path / "tokenizer.json").write_text("{")
    check_pieces(tmp_path, ["a"], "--transformer t", findings)
    check_pieces(tmp_path / "nowhere", ["a"], "--transformer t", findings)
    assert not findings.sorted()


def test_a_tokenizer_that_cannot_read_the_texts(folder, findings, tmp_path):
    path = folder("wordpiece") / "tokenizer.json"
    path.write_text(path.read_text().replace('"[UNK]":0,', "").replace('"[UNK]": 0,', ""))
    check_pieces(tmp_path, ["a", "c"], "--transformer t", findings)
    assert [finding.level for finding in findings.sorted()] == ["error"]
