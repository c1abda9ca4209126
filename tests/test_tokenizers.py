import pytest
import spacy

TOKENIZER = {"nlp": {"tokenizer": {"@tokenizers": "spacy_weakner.WordTokenizer.v1"}}}
TEXTS = [
    ("L-dopa", "L|-|dopa"),
    ("(IL-2).", "(|IL|-|2|)|."),
    ("don't stop", "don|'|t|stop"),
    ("e.g. 3.5%", "e|.|g|.|3|.|5|%"),
    ("snake_case Zürich 東京", "snake_case|Zürich|東京"),
    ("", ""),
    ("...", ".|.|."),
    ("a/b-/-c", "a|/|b|-|/|-|c"),
]


@pytest.fixture(scope="module")
def nlp():
    return spacy.blank("en", config=TOKENIZER)


@pytest.mark.parametrize("text, tokens", TEXTS)
def test_every_punctuation_mark_is_a_token(nlp, text, tokens):
    assert "|".join(token.text for token in nlp.make_doc(text)) == tokens


def test_it_is_saved(nlp, tmp_path):
    nlp.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)
    for text in [*(text for text, _ in TEXTS), " a  b \n- c"]:
        assert [t.text for t in loaded.make_doc(text)] == [t.text for t in nlp.make_doc(text)]
        assert nlp.make_doc(text).text == text


@pytest.mark.parametrize("text", ["हिन्दी", "cafe\u0301", "ก็ได้", "\N{THUMBS UP SIGN}\U0001f3fd"])
def test_marks_stay_with_their_letters(text):
    nlp = spacy.blank("xx", config=TOKENIZER)
    assert [token.text for token in nlp(f"({text}) {text}.")] == ["(", text, ")", text, "."]
