import spacy
from thinc.api import Model, chain

from spacy_weakner.caching import caching_outputs, read_once

NLP = spacy.blank("xx")


def counting(name):
    calls = []

    def forward(model, docs, is_train):
        def read():
            calls.append(name)
            return [len(doc) for doc in docs]

        return read_once(model, docs, read), lambda _: []

    return Model(name, forward), calls


def test_what_was_read_is_remembered_within_its_time_alone():
    layer, calls = counting("a")
    model = chain(layer, Model("b", lambda model, X, is_train: (X, lambda dY: dY)))
    docs, others = [NLP("one two"), NLP("three")], [NLP("four")]
    with caching_outputs(model):
        assert model.predict(docs) == model.predict(docs) == [2, 1] and len(calls) == 1
        assert model.predict(others) == [1] and model.predict(docs[::-1]) == [1, 2] and len(calls) == 3
    assert not layer.attrs and model.predict(docs) == [2, 1] and len(calls) == 4


def test_docs_that_were_read_live_as_long_as_the_memory():
    layer, _ = counting("a")
    with caching_outputs(layer):
        # An identity that came again would give what another Doc had.
        assert [layer.predict([NLP("a " * n)]) for n in range(1, 50)] == [[n] for n in range(1, 50)]
