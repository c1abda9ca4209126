"""Clusters of word vectors as features."""

import pickle

import numpy
import pytest
import spacy
from spacy.vectors import Vectors
from spacy.vocab import Vocab

from spacy_weakner.errors import WeaknerError
from spacy_weakner.linear.indicators import build_indicator_features, templates
from spacy_weakner.linear.word_clusters import NO_CLUSTERS, cluster_vectors, fold

from ..util import GOLD, TEXTS, entities_of, head_config, make_doc, make_examples, same, train

LEVELS = [2, 3]
NAMES, PLACES = ["anna", "bob", "zoe", "00"], ["paris", "York", "rome"]


def vocab(mode="default"):
    """Names have one direction, places another."""
    found, rng = Vocab(), numpy.random.RandomState(0)
    words = NAMES + PLACES
    data = numpy.repeat([[1, 0], [0, 1]], [len(NAMES), len(PLACES)], axis=0) + rng.normal(size=(len(words), 2)) / 50
    data = (data * rng.uniform(1, 9, size=(len(words), 1))).astype("float32")
    if mode == "default":
        found.vectors = Vectors(strings=found.strings, data=data, keys=words, name="test")
        found.vectors.add("nothing", row=found.vectors.add("zero", row=0))
    else:
        data = rng.normal(size=(50, 4)).astype("float32")
        how = {"mode": "floret", "minn": 2, "maxn": 3, "hash_count": 1, "bow": "<", "eow": ">"}
        found.vectors = Vectors(strings=found.strings, data=data, name="test", **how)
        for word in words:
            found.strings.add(word)
    return found


def find(clusters, vocab, word):
    return clusters.find([vocab.strings.add(form) for form in (word, word.lower(), fold(word))])


@pytest.mark.parametrize("mode", ["default", "floret"])
def test_words_of_a_vocabulary_have_clusters(mode):
    own = vocab(mode)
    clusters = cluster_vectors(own, LEVELS)
    assert (numpy.diff(clusters.keys.astype("float64")) > 0).all() and clusters.ids.shape == (len(clusters.keys), 2)
    assert clusters.equals(cluster_vectors(vocab(mode), LEVELS)) and not clusters.equals(NO_CLUSTERS)
    # As they are written, in lower case, and with all digits the same.
    assert find(clusters, own, "York") and find(clusters, own, "yorker") is None
    assert find(clusters, own, "ANNA") == find(clusters, own, "anna")
    if mode == "default":
        assert find(clusters, own, "42") == find(clusters, own, "00")
        groups = [{find(clusters, own, word)[0] for word in words} for words in (NAMES, PLACES)]
        assert [len(group) for group in groups] == [1, 1] and groups[0] != groups[1]


def test_without_vectors_or_levels_there_are_none():
    assert cluster_vectors(Vocab(), LEVELS) is NO_CLUSTERS and cluster_vectors(vocab(), []) is NO_CLUSTERS
    nlp = spacy.blank("xx")
    docs = [make_doc(nlp, text) for text in ("", *TEXTS)]
    plain, with_levels = build_indicator_features(), build_indicator_features(clusters=LEVELS)
    with_levels.initialize(X=docs)
    assert same(with_levels.predict(docs), plain.predict(docs))


def test_fewer_words_than_clusters():
    assert cluster_vectors(vocab(), [1000]).ids.max() < len(NAMES + PLACES)


def pipeline(vectors):
    nlp = spacy.blank("xx")
    tok2vec = {"@architectures": "spacy_weakner.IndicatorFeatures.v1", "rows": 5000, "clusters": LEVELS}
    nlp.add_pipe("crf_ner", config=head_config("crf_ner", tok2vec))
    if vectors:
        nlp.vocab.vectors = vocab().vectors
    nlp.initialize(lambda: make_examples(nlp))
    return nlp


def features(nlp, text):
    return nlp.get_pipe("crf_ner").model.get_ref("tok2vec").predict([make_doc(nlp, text)])[0]


def test_a_head_reads_and_keeps_them(tmp_path):
    nlp = pipeline(vectors=True)
    count = len(templates(1, 5, LEVELS))
    assert count == len(templates(1, 5)) + 3 * len(LEVELS) == len(set(templates(1, 5, LEVELS)))
    # Words of one cluster differ in all but its features; a word without has none of them.
    first, second, other = (features(nlp, word)[0].tolist() for word in ("anna", "bob", "rome"))
    at = templates(1, 5, LEVELS).index((("cluster2", 0),))
    assert first[at] == second[at] != other[at] and first[0] != second[0]
    assert features(nlp, "unseen")[0, at] not in (first[at], other[at])
    train(nlp, make_examples(nlp), steps=30, learn_rate=0.1)
    assert entities_of(nlp, TEXTS) == GOLD
    # They need no vectors any more.
    nlp.vocab.vectors = Vectors(strings=nlp.vocab.strings)
    expected = [features(nlp, text) for text in TEXTS]
    nlp.to_disk(tmp_path)
    again = spacy.load(tmp_path)
    assert same([features(again, text) for text in TEXTS], expected)
    assert same([features(pickle.loads(pickle.dumps(again)), text) for text in TEXTS], expected)
    # Initialized anew, without vectors, it has no clusters.
    again.initialize(lambda: make_examples(again))
    assert features(again, TEXTS[0]).shape[1] == len(templates(1, 5))


def test_copies_with_other_clusters_share_nothing():
    docs = [make_doc(spacy.blank("xx"), "anna in York")]
    model = build_indicator_features(clusters=LEVELS)
    other = model.copy()
    model.initialize(X=[spacy.tokens.Doc(vocab(), words=["anna"])])
    for _ in range(2):
        assert model.predict(docs)[0].shape[1] > other.predict(docs)[0].shape[1]


def test_levels_out_of_range():
    with pytest.raises(WeaknerError, match=r"WK005.*clusters"):
        build_indicator_features(clusters=[32, 0])
