"""Texts that are too long to be read with a question at once."""

import numpy
import pytest
from spacy.tokens import Doc

from spacy_weakner.encoders.queried import Queried
from spacy_weakner.encoders.windows import WindowSettings, read_windows
from spacy_weakner.errors import WeaknerError

from ..util import needs_transformers
from .questions import NLP, QUERIES, TEXT, make, make_docs, transformers_of
from .sequences import module_of

pytestmark = needs_transformers


def naive_windows(path, query, words, max_length, stride):
    """Vectors of words: every window on its own, and each word off the one in which it has most pieces and stands
    farthest from an edge."""
    import torch

    tokenizer, model = transformers_of(path)
    question = tokenizer(query, add_special_tokens=False)["input_ids"]
    text = tokenizer(words, is_split_into_words=True, add_special_tokens=False)
    pieces, owners = text["input_ids"], text.word_ids()
    room = max_length - 3 - len(question)
    step = room - min(stride, room // 2)
    best = {}
    for low in range(0, len(pieces), step):
        own = pieces[low : low + room]
        ids = [tokenizer.cls_token_id, *question, tokenizer.sep_token_id, *own, tokenizer.sep_token_id]
        types = [0] * (len(question) + 2) + [1] * (len(own) + 1)
        with torch.no_grad():
            output = model(input_ids=torch.tensor([ids]), token_type_ids=torch.tensor([types]))
        hidden = output.last_hidden_state[0].numpy()[len(question) + 2 :]
        here = owners[low : low + room]
        for word in sorted(set(here)):
            positions = [i for i, other in enumerate(here) if other == word]
            margin = min(positions[0], len(own) - 1 - positions[-1])
            vector = numpy.concatenate([hidden[positions[0]], hidden[positions[-1]]])
            if word not in best or (len(positions), margin) > best[word][:2]:
                best[word] = (len(positions), margin, vector)
        if low + room >= len(pieces):
            break
    return numpy.asarray([best[word][2] for word in range(len(words))]), step


@pytest.mark.parametrize("max_length", [16, 20, 32])
@pytest.mark.parametrize("stride", [0, 3, 8])
def test_long_texts_are_read_in_windows(still_bert, max_length, stride):
    model = make(still_bert, max_length=max_length, stride=stride)
    for text in (TEXT, "annas new-york smiths " * 5, "bob " + "xyz" * 15 + " anna"):
        (found,) = model.predict(Queried(make_docs([text.strip()]), ["who"]))
        expected, _ = naive_windows(still_bert, "who", text.split(), max_length, stride)
        numpy.testing.assert_allclose(found[:, 0], expected, atol=1e-5)


@pytest.mark.parametrize("n", [1, 7, 10, 11, 40])
@pytest.mark.parametrize("max_length, stride", [(16, 0), (16, 8), (24, 5)])
def test_every_word_is_read_once(still_bert, n, max_length, stride):
    words = [["bob", "annas", "xyz", "\n"][i % 4] for i in range(n)]
    doc = Doc(NLP.vocab, words=words)
    (parts,) = read_windows(module_of(make(still_bert)).tokenizer, [doc], "who", WindowSettings(max_length, stride))
    read = sorted(word for part in parts for word in part.words.tolist())
    assert read == [i for i, word in enumerate(words) if word != "\n"]
    assert all(len(part.ids) <= max_length and len(part.words) for part in parts)
    # What is read off stands in the text, not in the question.
    for part in parts:
        assert all(part.types[i] == 1 for i in [*part.first.tolist(), *part.last.tolist()])


def test_windows_overlap_as_far_as_the_question_leaves_room(still_bert):
    # 3 special pieces, 5 of the question: there is room for 8, and overlaps of 4.
    (found,) = make(still_bert, max_length=16, stride=8).predict(Queried(make_docs([TEXT]), ["a b c d e"]))
    expected, step = naive_windows(still_bert, "a b c d e", TEXT.split(), 16, 8)
    assert step == 4
    numpy.testing.assert_allclose(found[:, 0], expected, atol=1e-5)


@pytest.mark.parametrize("texts", [[TEXT], ["bob"], ["", "\n"]])
@pytest.mark.parametrize("query", ["a b c d e f", "a " * 40])
def test_a_question_that_leaves_no_room(still_bert, texts, query):
    """Whatever the texts are, so that it does not show in the midst of a training."""
    model = make(still_bert, max_length=16)
    with pytest.raises(WeaknerError, match=r"\[WK032\] The question 'a .*16 pieces"):
        model.predict(Queried(make_docs(texts), ["who", query]))


def test_more_pieces_than_the_transformer_has_positions_for(still_bert):
    model = make(still_bert, max_length=33)
    with pytest.raises(WeaknerError, match=r"\[WK005\].*'max_length' = 33.*16 and 32"):
        model.predict(Queried(make_docs(["bob"]), QUERIES))


@pytest.mark.parametrize(
    "settings, name", [({"max_length": 15}, "max_length"), ({"stride": 17}, "stride"), ({"batch_pieces": 0}, "batch")]
)
def test_settings_that_cannot_be(still_bert, settings, name):
    with pytest.raises(WeaknerError, match=rf"\[WK005\].*'{name}"):
        make(still_bert, **settings)
