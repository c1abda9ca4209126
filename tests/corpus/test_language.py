import pytest

from spacy_weakner.conversion.convert import convert
from spacy_weakner.corpus.language import (
    CorpusLanguage,
    corpus_language,
    find_language,
    record_language,
    recorded_language,
)
from spacy_weakner.errors import WeaknerError
from spacy_weakner.labeling.aggregate import aggregate
from spacy_weakner.labeling.label import label

WORDS = "spacy_weakner.WordTokenizer.v1"


@pytest.mark.parametrize("suffix", ["", ".spacy"])
def test_recorded_once_and_passed_on(tmp_path, suffix):
    (tmp_path / "in.txt").write_text("alpha met beta-one\n")
    (tmp_path / "terms.csv").write_text("label,term\nA,alpha\n")
    text, weak, made = (tmp_path / f"{name}{suffix}" for name in ("text", "weak", "made"))
    convert(tmp_path / "in.txt", text, lang="xx", tokenizer=WORDS)
    label(text, weak, terms=tmp_path / "terms.csv")
    aggregate(weak, made)
    assert recorded_language(made) == CorpusLanguage("xx", WORDS)
    assert corpus_language(made, tokenizer=WORDS).blank().lang == "xx"
    convert(made, tmp_path / "again.spacy")
    assert recorded_language(tmp_path / "again.spacy") == CorpusLanguage("xx", WORDS)
    for given, message in (({"lang": "de"}, "expected 'xx'"), ({"tokenizer": "spacy.Tokenizer.v1"}, WORDS)):
        with pytest.raises(WeaknerError, match=message):
            label(text, tmp_path / "other", terms=tmp_path / "terms.csv", **given)


def test_nothing_recorded(tmp_path):
    (tmp_path / "weakner.json").write_text('{"lang": "de"}')
    (tmp_path / "a.txt").write_text("alpha\n")
    assert corpus_language(tmp_path / "a.txt") == CorpusLanguage("en", "spacy.Tokenizer.v1")
    with pytest.raises(WeaknerError, match=r"weakner.json cannot be read .*'tokenizer'"):
        recorded_language(tmp_path)
    (tmp_path / "weakner.json").unlink()
    record_language(tmp_path / "a.spacy", CorpusLanguage("xx", WORDS))
    (tmp_path / "a.spacy").touch()
    assert recorded_language(tmp_path) == CorpusLanguage("xx", WORDS)
    record_language(tmp_path / "a.spacy", None)
    assert recorded_language(tmp_path) is None


def test_a_file_of_a_folder_and_files_of_unlike_languages(tmp_path):
    for name, lang in (("a", "de"), ("b", "xx")):
        (tmp_path / f"{name}.txt").write_text("alpha\n")
        convert(tmp_path / f"{name}.txt", tmp_path / "out" / f"{name}.spacy", lang=lang)
    assert recorded_language(tmp_path / "out" / "b.spacy").lang == "xx"
    with pytest.raises(WeaknerError, match=r"WK005.*'lang' = de with spacy.Tokenizer.v1, xx with spacy.Tokenizer.v1"):
        recorded_language(tmp_path / "out")
    with pytest.raises(WeaknerError, match=r"WK005.*xx with spacy.Tokenizer.v1 of") as caught:
        find_language([tmp_path / "out" / "a.spacy", tmp_path / "out" / "b.spacy"])
    assert "CorpusLanguage" not in str(caught.value)
    convert(tmp_path / "a.txt", tmp_path / "folder", lang="de")
    (shard,) = (tmp_path / "folder").glob("*.spacy")
    assert recorded_language(shard).lang == "de"
