"""Augmented forms of sentences. The models are tiny and made on the fly."""

import inspect
import random
import shutil
from importlib.util import find_spec

import numpy
import pytest
import spacy
from spacy.tokens import Doc
from typer.testing import CliRunner

from spacy_weakner.annotations import weak
from spacy_weakner.annotations.corpus import read_docs, write_docs
from spacy_weakner.cli.app import app
from spacy_weakner.encoders.transformer import MaskedLM, load_masked_lm, load_tokenizer
from spacy_weakner.errors import WeaknerError
from spacy_weakner.stages import augment as augment_module
from spacy_weakner.stages.augment import AugmentReport, augment
from spacy_weakner.stages.augmenting import Predictor, Reader

from ..util import SENTENCES, make_doc

pytestmark = [pytest.mark.skipif(not find_spec("transformers"), reason="needs 'transformers'")]
NLP = spacy.blank("xx")
WORDS = ["anna", "bob", "paris", "new", "york", "smith", "went", "to", "likes", "nothing", "here", "at", "all", "zoe"]


def make_model(tiny_bert, path, favourites=(), tokenizer=None):
    """A masked language model that predicts some pieces with the same probability in every place, or any at random."""
    import torch
    import transformers

    tokenizer = tokenizer or load_tokenizer(tiny_bert)
    config = transformers.AutoConfig.from_pretrained(tiny_bert, vocab_size=len(tokenizer))
    transformers.set_seed(0)
    model = transformers.BertForMaskedLM(config)
    with torch.no_grad():
        if not favourites:
            # Else what it predicts would hardly depend on what it reads.
            model.bert.embeddings.word_embeddings.weight.normal_()
        for word in favourites:
            model.cls.predictions.bias[tokenizer.vocab[word]] = 50.0
    model.save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def model(tiny_bert, tmp_path_factory):
    """A random one."""
    return make_model(tiny_bert, tmp_path_factory.mktemp("random"))


@pytest.fixture(scope="module")
def to_here(tiny_bert, tmp_path_factory):
    """One that predicts "here" everywhere."""
    return make_model(tiny_bert, tmp_path_factory.mktemp("here"), ["here"])


def many(n=60):
    draw = random.Random(0)
    return [make_doc(NLP, " ".join(draw.choices(WORDS, k=draw.randrange(1, 12)))) for _ in range(n)]


def run(tmp_path, docs, model, name="out", **settings):
    write_docs(tmp_path / "in.spacy", docs)
    before = (tmp_path / "in.spacy").read_bytes()
    report = augment(tmp_path / "in.spacy", tmp_path / f"{name}.spacy", model, **settings)
    assert (tmp_path / "in.spacy").read_bytes() == before
    found = list(read_docs(tmp_path / f"{name}.spacy", NLP.vocab))
    assert [doc.text for doc in found] == [doc.text for doc in docs]
    return report, found


def texts(docs):
    return [" ".join(weak.get_augmented(doc)) for doc in docs]


# What is written


def test_every_word_has_one(tmp_path, model):
    docs = [make_doc(NLP, text, entities) for text, entities in SENTENCES] + many()
    report, found = run(tmp_path, docs, model, progress=True)
    assert [len(weak.get_augmented(doc)) for doc in found] == [len(doc) for doc in docs]
    changed = [w != t.text for doc in found for t, w in zip(doc, weak.get_augmented(doc), strict=True)]
    assert (report.docs, report.words, report.replaced) == (64, len(changed), sum(changed))
    assert report.replaced > 0 and report.refused > 0 and report.seconds > 0
    assert (report.cut, report.skipped, report.augmented) == (0, 0, True)


def test_predictions_take_the_case_of_the_words(tmp_path, to_here):
    docs = [make_doc(NLP, "Anna went to NEW York Zoe I U.S. here Here")]
    _, found = run(tmp_path, docs, to_here)
    # "Zoe" is "z ##o ##e": its first piece alone is replaced.
    assert texts(found) == ["Here here here HERE Here Hereoe Here HERE.S. here Here"]


def test_everything_else_stays(tmp_path, to_here):
    doc = make_doc(NLP, "Anna went to York", [(0, 1, "PER")], missing=[3])
    weak.set_group(doc, weak.GOLD_GROUP, [(3, 4, "LOC")])
    weak.set_source(doc, "terms", [(0, 1, "PER")], [0.7], reliability=0.9)
    weak.set_weak(doc)
    weak.set_id(doc, "a1")
    weak.set_confidence(doc, 0.5, "token")
    weak.set_tags(doc, ["B-PER", "O", "O", None])
    weak.set_soft_labels(doc, weak.SoftLabels(("O", "B-PER"), "BIO", numpy.full((4, 2), 0.5, dtype="float32")))
    doc.cats = {"travel": 1.0}
    _, (found,) = run(tmp_path, [doc], to_here)
    assert weak.get_augmented(found) == ["Here", "here", "here", "Here"]
    assert [(token.text, token.ent_iob_, token.ent_type_) for token in found] == [
        (token.text, token.ent_iob_, token.ent_type_) for token in doc
    ]
    assert found.cats == doc.cats
    for name in (weak.GOLD_GROUP, "weak:terms"):
        assert weak.group_entities(found, name) == weak.group_entities(doc, name)
    assert weak.get_reliability(found, "terms") == 0.9 and weak.group_scores(found, "weak:terms") == [0.7]
    soft = weak.get_soft_labels(found)
    assert soft[:2] == (("O", "B-PER"), "BIO") and (soft.probabilities == 0.5).all()
    assert (weak.is_weak(found), weak.get_id(found), weak.get_confidence(found)) == (True, "a1", 0.5)
    assert (weak.get_confidence_unit(found), weak.get_tags(found)) == ("token", ["B-PER", "O", "O", None])


def test_an_earlier_form_is_replaced(tmp_path, to_here):
    doc = make_doc(NLP, "Anna went")
    weak.set_augmented(doc, ["Bob", "came"])
    assert texts(run(tmp_path, [doc], to_here)[1]) == ["Here here"]


@pytest.mark.parametrize("favourite, share", [("##a", 0.0), ("[SEP]", 0.0), ("[UNK]", 0.0), ("here", 1.0)])
def test_words_stay_where_predictions_are_refused(tmp_path, tiny_bert, favourite, share):
    path = make_model(tiny_bert, tmp_path / "model", [favourite])
    report, found = run(tmp_path, [make_doc(NLP, "Anna went to York")] * 3, path)
    assert report.replaced == 12 * share and report.refused == 12 - report.replaced
    assert all(text == ("Here here here Here" if share else "Anna went to York") for text in texts(found))


@pytest.mark.parametrize("top_k, expected", [(1, {"here"}), (3, {"here", "at", "all"}), (1000, {"here", "at", "all"})])
def test_only_the_best_are_drawn(tmp_path, tiny_bert, top_k, expected):
    import torch

    path = make_model(tiny_bert, tmp_path / "model", ["here", "at", "all"])
    masked_lm = load_masked_lm(path)
    with torch.no_grad():
        masked_lm.model.cls.predictions.bias[masked_lm.tokenizer.vocab["here"]] += 1
    masked_lm.model.save_pretrained(path)
    _, found = run(tmp_path, many(), path, top_k=top_k)
    words = [word for doc in found for word in weak.get_augmented(doc)]
    # Words like "zoe" keep their inner pieces.
    drawn = [word for word in words if not word.endswith("oe")]
    assert set(drawn) == expected
    if top_k > 1:
        odds = numpy.exp(1) / (numpy.exp(1) + 2)
        assert numpy.mean([word == "here" for word in drawn]) == pytest.approx(odds, abs=0.1)


# Masks and draws


def test_masks(tmp_path, model, monkeypatch):
    seen = []
    call = Predictor.__call__

    def watch(self, windows):
        seen.extend(windows)
        return call(self, windows)

    monkeypatch.setattr(Predictor, "__call__", watch)
    tokenizer = load_tokenizer(model)
    docs = [make_doc(NLP, f"{a} {b} zoe went to {c}") for a in WORDS for b in WORDS for c in WORDS[:3]]
    run(tmp_path, docs, model, mask_rate=0.15)
    firsts = {(i, place.position) for i, window in enumerate(seen) for place in window.places}
    masked = {(i, j) for i, window in enumerate(seen) for j, id_ in enumerate(window.ids) if id_ == 4}
    assert tokenizer.mask_token_id == 4 and masked < firsts
    assert len(firsts) == 6 * len(docs) and len(masked) / len(firsts) == pytest.approx(0.15, abs=0.02)
    seen.clear()
    report, _ = run(tmp_path, docs, model, "masked", mask_rate=0.15, masked_only=True)
    places = {(i, place.position) for i, window in enumerate(seen) for place in window.places}
    assert places == {(i, j) for i, window in enumerate(seen) for j, id_ in enumerate(window.ids) if id_ == 4}
    assert len(places) == len(masked) and 0 < report.replaced <= len(masked)


@pytest.mark.parametrize("mask_rate, share", [(0.0, 0.0), (0.3, 0.3), (1.0, 1.0)])
def test_masked_only(tmp_path, to_here, mask_rate, share):
    docs = [make_doc(NLP, "anna went to new york")] + [
        make_doc(NLP, f"anna went {a} {b}") for a in WORDS for b in WORDS
    ]
    report, _ = run(tmp_path, docs, to_here, mask_rate=mask_rate, masked_only=True)
    n = sum(token.text != "here" for doc in docs for token in doc)
    assert report.replaced == pytest.approx(share * n, abs=4 * (n * share * (1 - share)) ** 0.5)


def test_draws_depend_on_seed_and_sentence_only(tmp_path, model):
    def forms(name, docs, **settings):
        found = run(tmp_path, docs, model, name, **{"seed": 0, **settings})[1]
        return {doc.text: weak.get_augmented(doc) for doc in found}

    first = forms("a", many())
    assert forms("b", many()[::-1]) == first
    assert forms("c", many()[:20], batch_size=7).items() <= first.items()
    assert forms("d", many(), batch_size=1) == first
    others = [forms("e", many(), seed=1), forms("f", many(), mask_rate=0.5), forms("g", many(), masked_only=True)]
    assert all(other != first for other in others)


def test_shards_do_not_matter(tmp_path, model):
    _, whole = run(tmp_path, many(), model)
    (tmp_path / "many").mkdir()
    for i in range(3):
        write_docs(tmp_path / "many" / f"{i}.spacy", many()[20 * i : 20 * i + 20])
    report = augment(tmp_path / "many", tmp_path / "parts", model)
    assert texts(read_docs(tmp_path / "parts", NLP.vocab)) == texts(whole)
    assert (report.docs, report.words) == (60, sum(map(len, whole)))


# Unusual sentences


def test_empty_and_short_sentences(tmp_path, to_here):
    docs = [Doc(NLP.vocab), make_doc(NLP, "Bob"), Doc(NLP.vocab), make_doc(NLP, "☃"), make_doc(NLP, "\u200d")]
    report, found = run(tmp_path, docs, to_here)
    assert [weak.get_augmented(doc) for doc in found] == [[], ["Here"], [], ["☃"], ["\u200d"]]
    assert report.words == 3 and report.replaced == 1
    # A corpus without any word.
    assert run(tmp_path, [Doc(NLP.vocab)], to_here, "empty")[0].words == 0


def test_white_space_stays(tmp_path, to_here):
    doc = Doc(
        NLP.vocab, words=["\n", "Anna", "  ", "went", "\t\n", "."], spaces=[False, True, False, False, True, False]
    )
    blank = Doc(NLP.vocab, words=[" ", "\n"])
    _, found = run(tmp_path, [doc, blank], to_here)
    assert [weak.get_augmented(d) for d in found] == [["\n", "Here", "  ", "here", "\t\n", "."], [" ", "\n"]]


def test_special_pieces_in_the_text_stay(tmp_path, to_here):
    _, found = run(tmp_path, [make_doc(NLP, "anna [SEP] bob [MASK] [PAD]")], to_here, mask_rate=1.0)
    assert texts(found) == ["here [SEP] here [MASK] [PAD]"]


@pytest.mark.parametrize("n, cut", [(30, False), (31, True), (200, True)])
def test_long_sentences_are_read_in_parts(tmp_path, to_here, n, cut):
    # The model reads 32 pieces with [CLS] and [SEP].
    report, found = run(tmp_path, [make_doc(NLP, "anna " * n), make_doc(NLP, "bob")], to_here)
    assert texts(found) == [" ".join(["here"] * n), "here"]
    assert report.cut == cut and report.replaced == n + 1


def test_a_word_longer_than_the_model(tmp_path, to_here):
    report, found = run(tmp_path, [make_doc(NLP, f"bob {'x' * 99} went {'y' * 28}")], to_here)
    assert texts(found) == [f"here here{'x' * 98} here here{'y' * 27}"]
    assert report.cut == 1


def test_parts_are_of_similar_length(model):
    reader = Reader(load_masked_lm(model), 12)
    (read,) = reader([make_doc(NLP, "anna " * 21)])
    assert [len(window.ids) - 2 for window in read.windows] == [7, 7, 7] and read.cut
    assert [place.token for window in read.windows for place in window.places] == [*range(21)]
    assert all(window.ids[0] == 2 and window.ids[-1] == 3 for window in read.windows)


def test_memory_is_bounded(tmp_path, model, monkeypatch):
    sizes = []
    call = Predictor.__call__

    def watch(self, windows):
        sizes.append(sum(len(window.places) for window in windows))
        return call(self, windows)

    monkeypatch.setattr(Predictor, "__call__", watch)
    first = texts(run(tmp_path, many(), model)[1])
    assert max(sizes) > 20
    monkeypatch.setattr(augment_module, "_MAX_SCORES", 20 * 71)
    sizes.clear()
    assert texts(run(tmp_path, many(), model, "again")[1]) == first
    assert 10 < max(sizes) <= 20


# Tokenizers and models of other kinds


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
    reader = Reader(MaskedLM(None, tokenizer, False), 40)
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
    tokenizer = load_tokenizer(tiny_bert)
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
    assert texts(found) == ["Here went Here"] and (report.replaced, report.refused) == (2, 1)


@pytest.mark.parametrize(
    "kind", ["Bert", "Roberta", "XLMRoberta", "DistilBert", "Electra", "Albert", "DebertaV2", "MPNet", "ModernBert"]
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of their own modules
def test_the_predictions_are_those_of_the_model(kind, tiny_bert):
    import torch
    import transformers

    tokenizer = load_tokenizer(tiny_bert)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    if kind == "DistilBert":
        sizes = {"dim": 16, "n_layers": 1, "n_heads": 2, "hidden_dim": 16}
    if kind in ("Albert", "Electra"):
        sizes["embedding_size"] = 8
    special = {"cls_token_id": 2, "sep_token_id": 3, "bos_token_id": 2, "eos_token_id": 3}
    config = getattr(transformers, f"{kind}Config")(vocab_size=len(tokenizer), pad_token_id=0, **special, **sizes)
    model = getattr(transformers, f"{kind}ForMaskedLM")(config).eval()
    masked_lm = MaskedLM(model, tokenizer, False)
    docs = [make_doc(NLP, "anna likes zoe"), make_doc(NLP, "bob")]
    windows = [window for read in Reader(masked_lm, 32)(docs) for window in read.windows]
    with torch.no_grad():
        expected = [
            model(input_ids=torch.tensor([window.ids])).logits[0, place.position].topk(5)
            for window in windows
            for place in window.places
        ]
    ids, scores = Predictor(masked_lm, 5, -1)(windows)
    assert ids.tolist() == [best.indices.tolist() for best in expected]
    numpy.testing.assert_allclose(scores, [best.values.tolist() for best in expected], rtol=1e-4, atol=1e-5)


# Runs


def test_what_is_finished_is_skipped(tmp_path, model, monkeypatch):
    first, found = run(tmp_path, many(), model)
    with monkeypatch.context() as patch:
        patch.setattr(augment_module, "load_masked_lm", lambda name: pytest.fail("is not needed"))
        report, again = run(tmp_path, many(), model, batch_size=3)
    assert report == first._replace(skipped=1, seconds=report.seconds) and texts(again) == texts(found)
    assert run(tmp_path, many(), model, seed=1)[0].skipped == 0
    assert run(tmp_path, many(), model, seed=1)[0].skipped == 1


def test_another_model_makes_it_anew(tmp_path, model, to_here):
    shutil.copytree(model, tmp_path / "model")
    run(tmp_path, many(), tmp_path / "model")
    shutil.rmtree(tmp_path / "model")
    shutil.copytree(to_here, tmp_path / "model")
    assert run(tmp_path, many(), tmp_path / "model")[0].skipped == 0


def test_without_a_model(tmp_path, monkeypatch):
    monkeypatch.setattr(augment_module, "load_masked_lm", lambda name: pytest.fail("is not needed"))
    docs = many(5)
    weak.set_augmented(docs[0], [token.text for token in docs[0]])
    report, found = run(tmp_path, docs, "none")
    assert [weak.get_augmented(doc) for doc in found] == [None] * 5
    assert report._replace(seconds=0) == AugmentReport(5, sum(map(len, docs)), 0, 0, 0, 0, 0, False)


def test_without_a_head(tmp_path, tiny_bert):
    with pytest.raises(WeaknerError, match=r"WK354.*--train-head"):
        run(tmp_path, many(3), tiny_bert)
    assert [path.name for path in tmp_path.iterdir()] == ["in.spacy"]


def test_predictions_that_are_no_numbers(tmp_path, tiny_bert):
    path = make_model(tiny_bert, tmp_path / "model")
    masked_lm = load_masked_lm(path)
    masked_lm.model.cls.predictions.bias.data.fill_(float("nan"))
    masked_lm.model.save_pretrained(path)
    with pytest.raises(WeaknerError, match=r"WK420.*'bob'"):
        run(tmp_path, [make_doc(NLP, "bob")], path)
    assert not (tmp_path / "out.spacy").exists()


def test_input_that_is_none(tmp_path, model):
    (tmp_path / "in.spacy").write_bytes(b"damaged")
    with pytest.raises(WeaknerError, match="WK102"):
        augment(tmp_path / "in.spacy", tmp_path / "out.spacy", model)
    with pytest.raises(WeaknerError, match="WK100"):
        augment(tmp_path / "nothing", tmp_path / "out.spacy", model)
    write_docs(tmp_path / "in.spacy", [])
    with pytest.raises(WeaknerError, match="WK101"):
        augment(tmp_path / "in.spacy", tmp_path / "out.spacy", model)
    with pytest.raises(WeaknerError, match="WK304"):
        augment(tmp_path / "in.spacy", tmp_path / "in.spacy", model)
    with pytest.raises(WeaknerError, match="WK100"):
        run(tmp_path, many(1), tmp_path / "nothing")


@pytest.mark.parametrize(
    "setting, value, code",
    [
        ("mask_rate", -0.1, "WK005"),
        ("mask_rate", 1.1, "WK005"),
        ("mask_rate", float("nan"), "WK005"),
        ("top_k", 0, "WK005"),
        ("batch_size", 0, "WK005"),
        ("gpu_id", -2, "WK005"),
        ("gpu_id", 99, "WK357"),
    ],
)
def test_unusable_settings(tmp_path, model, setting, value, code):
    with pytest.raises(WeaknerError, match=code):
        run(tmp_path, many(1), model, **{setting: value})
    assert not (tmp_path / "out.spacy").exists()


# The command line


def invoke(*args):
    return CliRunner().invoke(app, ["augment", *map(str, args)])


def test_what_the_command_says(tmp_path, to_here):
    write_docs(tmp_path / "in.spacy", [make_doc(NLP, "Anna went here"), make_doc(NLP, "bob " * 40)])
    for message in ("replaced: 42 (97.7 %)", "refused, so that the word stays: 0", "read in parts: 1"):
        result = invoke(tmp_path / "in.spacy", tmp_path / "out.spacy", "--model", to_here)
        assert result.exit_code == 0 and message in " ".join(result.output.split()), result.output
    assert "finished already: 1" in result.output
    result = invoke(tmp_path / "in.spacy", tmp_path / "copy.spacy", "--model", "none")
    assert "No masked language model: nothing is augmented" in result.output and "replaced" not in result.output


def test_defaults_are_those_of_the_stage(monkeypatch):
    seen = {}

    def fake(*args, **settings):
        seen.update(settings)
        raise KeyboardInterrupt

    defaults = {
        name: p.default for name, p in inspect.signature(augment).parameters.items() if p.kind is p.KEYWORD_ONLY
    }
    monkeypatch.setattr("spacy_weakner.stages.augment.augment", fake)
    assert invoke("in", "out", "--model", "m").exit_code == 130
    assert seen == {**defaults, "progress": True}
