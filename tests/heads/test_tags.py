"""What heads that tag tokens say of tags: their schemes, best sequences and distributions."""

import numpy
import pytest

from spacy_weakner.corpus.tags import SCHEMES, TagScheme
from spacy_weakner.corpus.weak import doc_entities

from ..util import GOLD, TEXTS, distributions, entities_of, make_doc, make_examples, raw, reload_bytes, same, train
from .util import pipeline


@pytest.fixture(scope="module", params=["crf_ner", "token_ner"])
def head(request):
    return request.param


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_scheme_learns_and_returns_from_bytes(head, tmp_path, scheme):
    nlp = pipeline(head, scheme=scheme)
    train(nlp, make_examples(nlp))
    other = reload_bytes(nlp, tmp_path)
    assert entities_of(nlp, TEXTS) == entities_of(other, TEXTS) == GOLD
    docs = [raw(nlp, text) for text in TEXTS]
    assert same(*(distributions(x.get_pipe(head), docs) for x in (nlp, other)))


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("labels", [["PER", "LOC"], ["PER", "LOC", "ORG"], ["X"]])
def test_scheme_and_order_of_the_labels_decide_the_tags(head, scheme, labels):
    ner = pipeline(head, scheme=scheme, labels=labels).get_pipe(head)
    assert ner.distribution_labels == TagScheme(scheme, labels).tags and ner.tag_scheme == scheme
    assert ner.model.get_ref("head").get_dim("nO") == ner.n_outputs == len(ner.distribution_labels)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_preset_entities_everywhere_leave_nothing_to_predict(head, scheme):
    nlp, preset = pipeline(head, scheme=scheme), [(0, 2, "X"), (2, 3, "Y")]
    assert doc_entities(nlp(make_doc(nlp, "a b c", preset))) == preset


@pytest.mark.parametrize("texts", [[], [""], ["", "Bob"]])
def test_small_docs(trained, head, texts):
    ner, docs = trained.get_pipe(head), [trained.make_doc(text) for text in texts]
    found = ner.score_tags(iter(docs))
    assert [rows.shape for _, rows in found] == [(len(doc), ner.n_outputs) for doc in docs]
    assert [len(path.tags) for path, _ in found] == [len(doc) for doc in docs]
    assert all(path.score == path.log_probability == 0.0 for path, _ in found if not path.tags)


@pytest.mark.parametrize("temperature", [1.0, 0.5, 3.0])
def test_paths_agree_with_entities_and_distributions(trained, head, temperature):
    ner = trained.get_pipe(head)
    docs = [raw(trained, text) for text in TEXTS]
    before = max(rows.max() for rows in distributions(ner, docs))
    ner.set_temperature(temperature)
    after = max(rows.max() for rows in distributions(ner, docs))
    assert bool(after < before) is (temperature > 1.0)
    for doc, (path, distribution) in zip(docs, ner.score_tags(docs), strict=True):
        assert distribution.shape == (len(doc), ner.n_outputs) and distribution.dtype == "float32"
        assert (distribution >= 0).all() and distribution.sum(axis=1) == pytest.approx([1.0] * len(doc), abs=1e-5)
        ids = ner.scheme.tag_ids(path.tags)
        probability = numpy.exp(path.log_probability)
        assert path.log_probability <= 0
        # A sequence is no more probable than any of its tags, and no less than what the union bound leaves.
        own = distribution[numpy.arange(len(doc)), ids]
        assert max(0.0, 1 - (1 - own).sum()) - 1e-5 <= probability <= own.min() + 1e-5
        assert ner.scheme.decode(ids) == doc_entities(ner(doc))
