"""Tokenizers and models of other kinds."""

import numpy
import pytest
from spacy.tokens import Doc

from spacy_weakner.encoders.transformer import MaskedLM, load_encoder_tokenizer
from spacy_weakner.relabel.masked_lm import WindowSplitter, WordPredictor

from ...util import MASKED_LMS, make_doc, make_masked_lm, needs_transformers
from .util import NLP, make_model, run, texts

pytestmark = needs_transformers


def byte_level(**settings):
    from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers, processors
    from transformers import RobertaTokenizerFast

    vocab = {
        c: i for i, c in enumerate(["<s>", "</s>", "<pad>", "<unk>", *sorted(pre_tokenizers.ByteLevel.alphabet())])
    }
    merges = [("Ġ", "a"), ("Ġ", "B"), ("Ġ", ","), ("n", "n"), ("o", "b"), ("ĠB", "ob")]
    for a, b in merges:
        vocab[a + b] = len(vocab)
    tokenizer = Tokenizer(models.BPE(vocab, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=settings.get("add_prefix_space", False))
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 1), ("<s>", 0))
    return RobertaTokenizerFast(
        tokenizer_object=tokenizer, mask_token=AddedToken("<mask>", lstrip=True), model_max_length=40, **settings
    )


def sentence_piece():
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import XLMRobertaTokenizerFast

    pieces = ["<s>", "<pad>", "</s>", "<unk>", "▁", "▁Bob", "▁a", "nn", "a", "n", "B", "o", "b", ",", "北", "京"]
    tokenizer = Tokenizer(models.Unigram([(piece, -float(2 * i)) for i, piece in enumerate(pieces)], unk_id=3))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return XLMRobertaTokenizerFast(tokenizer_object=tokenizer, model_max_length=40)


def read(tokenizer, doc):
    reader = WindowSplitter(MaskedLM(None, tokenizer, False), 40)
    (found,) = reader([doc])
    (window,) = found.windows
    slots = [(place.token, tokenizer.convert_ids_to_tokens(window.ids[place.position])) for place in window.places]
    assert all(window.ids[place.position] == place.slot.piece for place in window.places)
    return reader, window, slots


def test_byte_level_tokenizers():
    doc = make_doc(NLP, "Bob , anna é aé", annotated=False)
    reader, window, slots = read(byte_level(), doc)
    # A half of a character cannot be replaced.
    assert slots == [(0, "ĠBob"), (1, "Ġ,"), (2, "Ġa"), (4, "Ġa")] and not reader.vocabulary.uncased
    words = [token.text for token in doc]
    assert window.ids == byte_level(add_prefix_space=True)(words, is_split_into_words=True)["input_ids"]
    # A tokenizer that looks at spaces sees those of the text.
    attached = Doc(NLP.vocab, words=["Bob", ",", "\n", "Bob"], spaces=[False, False, False, False])
    assert read(byte_level(), attached)[2] == [(0, "ĠBob"), (1, ","), (3, "ĠBob")]
    place = window.places[2]
    vocab = reader._tokenizer.get_vocab()
    assert reader.vocabulary.replace("anna", place.slot, vocab["Ġ,"]) == ",nna"
    assert reader.vocabulary.replace("anna", place.slot, vocab["nn"]) is None
    assert reader.vocabulary.replace("anna", place.slot, vocab["ĠBob"]) is None


def test_sentence_piece_tokenizers():
    doc = make_doc(NLP, "Bob anna 北京 a", annotated=False)
    reader, window, slots = read(sentence_piece(), doc)
    assert slots == [(0, "▁Bob"), (1, "▁a"), (2, "北"), (3, "▁a")]
    words = [token.text for token in doc]
    assert window.ids == sentence_piece()(words, is_split_into_words=True)["input_ids"]
    vocab = reader._tokenizer.get_vocab()
    slot = window.places[2].slot
    assert reader.vocabulary.replace("北京", slot, vocab["京"]) == "京京"
    assert reader.vocabulary.replace("北京", slot, vocab["▁a"]) is None


def test_word_piece_tokenizers(tiny_bert):
    tokenizer = load_encoder_tokenizer(tiny_bert)
    doc = make_doc(NLP, "Anna likes Zoë .", annotated=False)
    reader, window, slots = read(tokenizer, doc)
    assert slots == [(0, "anna"), (1, "likes"), (2, "z")] and reader.vocabulary.uncased
    words = [token.text for token in doc]
    assert window.ids == tokenizer(words, is_split_into_words=True)["input_ids"]


def test_cased_models(tmp_path, tiny_bert):
    import transformers

    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "Here", "here", "Anna", "went", "USA"]
    (tmp_path / "vocab.txt").write_text("\n".join(pieces))
    tokenizer = transformers.BertTokenizerFast(str(tmp_path / "vocab.txt"), do_lower_case=False, model_max_length=32)
    path = make_model(tiny_bert, tmp_path / "cased", ["Here"], tokenizer)
    report, found = run(tmp_path, [make_doc(NLP, "Anna went USA")], path)
    assert texts(found) == ["Here went Here"] and (report.substituted, report.refused) == (2, 1)


@pytest.mark.parametrize("kind", MASKED_LMS)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of their own modules
def test_the_predictions_are_those_of_the_model(kind, tiny_bert):
    import torch

    tokenizer = load_encoder_tokenizer(tiny_bert)
    model = make_masked_lm(kind, tokenizer)
    masked_lm = MaskedLM(model, tokenizer, False)
    docs = [make_doc(NLP, "anna likes zoe"), make_doc(NLP, "bob")]
    windows = [window for read in WindowSplitter(masked_lm, 32)(docs) for window in read.windows]
    with torch.no_grad():
        expected = [
            model(input_ids=torch.tensor([window.ids])).logits[0, place.position].topk(5)
            for window in windows
            for place in window.places
        ]
    ids, scores = WordPredictor(masked_lm, 5, -1)(windows)
    assert ids.tolist() == [best.indices.tolist() for best in expected]
    numpy.testing.assert_allclose(scores, [best.values.tolist() for best in expected], rtol=1e-4, atol=1e-5)
