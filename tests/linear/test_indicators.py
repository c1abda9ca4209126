"""Indicator features against a slow twin, and the linear layer on them."""

import os
import pickle
import subprocess
import sys

import numpy
import pytest
import spacy
from spacy.lang.lex_attrs import word_shape
from spacy.strings import get_string_id
from spacy.tokens import Doc
from spacy.vocab import Vocab
from thinc.api import NumpyOps

from spacy_weakner.errors import WeaknerError
from spacy_weakner.linear import sparse
from spacy_weakner.linear import words as words_module
from spacy_weakner.linear.indicators import build_indicator_features, templates
from spacy_weakner.linear.sparse import SparseLinear
from spacy_weakner.linear.words import BEYOND, NO_AFFIX

from ..util import (
    GOLD,
    TEXTS,
    distributions,
    entities_of,
    head_config,
    head_pipeline,
    make_doc,
    make_examples,
    same,
    train,
)

NLP = spacy.blank("xx")
CONFIG = {"@architectures": "spacy_weakner.IndicatorFeatures.v1", "rows": 5000}
TEXT = "The BRCA1-gene , in 1997 İstanbul"


def finalize(x):
    """MurmurHash3's finalizer, on whole numbers."""
    x = (x ^ x >> 33) * 0xFF51AFD7ED558CCD % 2**64
    x = (x ^ x >> 33) * 0xC4CEB9FE1A85EC53 % 2**64
    return x ^ x >> 33


def value(name, word):
    """One feature of one word; None is what lies beyond the ends."""
    if word is None:
        return BEYOND
    lower = word.lower()
    if name.startswith(("prefix", "suffix")):
        n = int(name[6:])
        affix = lower[:n] if name.startswith("prefix") else lower[len(lower) - n :]
        return get_string_id(affix) if len(lower) > n else NO_AFFIX
    collapsed = ""
    for letter in word_shape(word):
        collapsed += letter * (not collapsed.endswith(letter))
    checks = [word.isdigit(), word.isupper(), word.islower(), word.istitle(), word.isalpha(), word.isalnum()]
    checks += [word.isspace(), word.isascii(), any(c.isdigit() for c in word), any(c.isupper() for c in word[1:])]
    flags = "".join(str(int(check)) for check in [*checks, "-" in word])
    own = {"orth": word, "lower": lower, "shape": word_shape(word), "collapsed": collapsed, "flags": flags}
    return get_string_id(own[name])


def case_mode(words):
    """1 for a sentence in capitals, 2 for one in lower case, 0 for all others, as most words without case are."""
    letters = [[letter for letter in word if letter.isalpha()] for word in words]
    upper = sum(any(letter != letter.lower() for letter in word) for word in letters)
    lower = sum(any(letter == letter.lower() != letter.upper() for letter in word) for word in letters)
    uncased = sum(any(letter.lower() == letter.upper() for letter in word) for word in letters)
    return 1 if upper > uncased and not lower else 2 if lower > uncased and not upper else 0


def twin(words, rows, window, affixes):
    """The features of a sentence, one by one."""
    found, mode = [], case_mode(words)
    for i in range(len(words)):
        found.append([])
        for template in templates(window, affixes):
            total = None
            for name, offset in template:
                word = words[i + offset] if 0 <= i + offset < len(words) else None
                is_cased = word is not None and name in ("orth", "shape", "collapsed", "flags")
                hashed = value(name, word) ^ (mode if is_cased else 0)
                total = hashed if total is None else finalize(total) ^ hashed
            found[-1].append(finalize(total ^ get_string_id(repr(template))) % rows)
    return found


@pytest.mark.parametrize("window, affixes", [(2, 5), (1, 0), (0, 3), (3, 1), (0, 0)])
def test_features_are_those_of_the_twin(window, affixes):
    model = build_indicator_features(997, window, affixes)
    texts = ("", TEXT, "one", "", "a a", TEXT, "EU , 7", "中 b 文 中 C", "中 b", "b 中 b", "7 ,", "ß A")
    docs = [make_doc(NLP, text) for text in texts]
    found = model.predict(docs)
    for doc, ids in zip(docs, found, strict=True):
        assert ids.tolist() == twin([token.text for token in doc], 997, window, affixes)
        assert ids.shape == (len(doc), len(templates(window, affixes))) and ids.dtype == "int32"
        assert same(model.predict([doc]), [ids])


def test_processes_can_be_started_with_it():
    model = pickle.loads(pickle.dumps(build_indicator_features()))
    assert same(model.predict([make_doc(NLP, TEXT)]), build_indicator_features().predict([make_doc(NLP, TEXT)]))


def test_docs_without_tokens():
    model = build_indicator_features()
    assert [len(ids) for ids in model.predict([Doc(NLP.vocab), Doc(NLP.vocab)])] == [0, 0]
    assert model.predict([]) == []


@pytest.mark.parametrize("settings", [{"rows": 0}, {"rows": 2**31}, {"window": -1}, {"affixes": -1}])
def test_settings_out_of_range(settings):
    with pytest.raises(WeaknerError, match="WK005"):
        build_indicator_features(**settings)


def test_what_is_remembered_is_bounded(monkeypatch):
    monkeypatch.setattr(words_module, "CAPACITY", 4)
    known = words_module.WordFeatures(2)
    for text in (TEXT, "one two three", TEXT):
        orths = numpy.asarray([NLP.vocab.strings.add(word) for word in text.split()], dtype="uint64")
        found = known(orths, NLP.vocab.strings)
        assert found.tolist() == [known.features(word) for word in text.split()]
        assert len(known._known) < 4 + len(TEXT.split())


@pytest.mark.slow
def test_features_are_the_same_in_another_process_and_vocabulary():
    script = (
        "import sys; from spacy.tokens import Doc; from spacy.vocab import Vocab; "
        "from spacy_weakner.linear.indicators import build_indicator_features as build; "
        "print(build().predict([Doc(Vocab(), words=sys.argv[1].split())])[0].tolist())"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    done = subprocess.run(
        [sys.executable, "-c", script, TEXT], capture_output=True, text=True, env=environment, check=True
    )
    here = build_indicator_features().predict([Doc(Vocab(), words=TEXT.split())])[0].tolist()
    assert done.stdout.strip() == str(here)


@pytest.mark.parametrize("head", ["span_ner", "token_ner", "sentence_category", "mrc_ner"])
def test_models_that_want_vectors_refuse_them(head):
    with pytest.raises(ValueError, match=head):
        spacy.blank("xx").add_pipe(head, config=head_config(head, CONFIG))


# The layer that reads them


def random_ids(lengths=(3, 0, 1), rows=7, n_features=4):
    rng = numpy.random.RandomState(0)
    return [rng.randint(0, rows, size=(n, n_features)).astype("int32") for n in lengths]


@pytest.mark.parametrize("on_device", [False, True])
def test_scores_and_gradients_are_those_of_a_dense_product(monkeypatch, on_device):
    if on_device:
        monkeypatch.setattr(sparse, "_OnCPU", lambda ids, n_rows: sparse._OnDevice(NumpyOps(), ids))
    ids, rng = random_ids(), numpy.random.RandomState(1)
    model = SparseLinear(7)
    model.initialize(X=ids, Y=[numpy.zeros((len(own), 2), dtype="float32") for own in ids])
    assert not model.get_param("W").any()
    model.set_param("W", rng.normal(size=(7, 2)).astype("float32"))
    # How often each feature holds; the same row may stand for two.
    counts = [numpy.stack([(own == row).sum(axis=1) for row in range(7)], axis=1) for own in ids]
    scores, backprop = model.begin_update(ids)
    assert same(scores, [own @ model.get_param("W") for own in counts], tolerance=1e-6)
    gradient = [rng.normal(size=own.shape).astype("float32") for own in scores]
    for times in (1, 2):  # gradients add up
        assert same(backprop(gradient), ids)
        expected = times * sum(own.T @ g for own, g in zip(counts, gradient, strict=True))
        assert same([model.get_grad("W")], [expected], tolerance=1e-6)


def test_it_is_learned_with_and_stored(tmp_path):
    nlp = head_pipeline("crf_ner", CONFIG)
    train(nlp, make_examples(nlp), steps=30, learn_rate=0.1)
    assert entities_of(nlp, TEXTS) == GOLD
    nlp.to_disk(tmp_path)
    again = spacy.load(tmp_path)
    assert entities_of(again, TEXTS) == GOLD
    docs = [make_doc(nlp, text) for text in ("", "Bob", *TEXTS)]
    assert same(distributions(again.get_pipe("crf_ner"), docs), distributions(nlp.get_pipe("crf_ner"), docs))
    assert len(again("")) == 0
