"""What sources say inside the heads."""

import numpy
import pytest
import spacy
from spacy.tokens import Doc, Span

from spacy_weakner.configs import make_config
from spacy_weakner.corpus.docbin import write_docs
from spacy_weakner.corpus.tags import SCHEMES, TagScheme
from spacy_weakner.corpus.weak import (
    doc_entities,
    group_entities,
    is_weak,
    set_source,
    set_weak,
    weak_group,
    weak_sources,
)
from spacy_weakner.errors import WeaknerError
from spacy_weakner.sources.features import SourceFeatureSettings, build_source_features, set_weights, token_features
from spacy_weakner.sources.initial import InitialWeight, gold_with_sources, initial_weights, starting_weights
from spacy_weakner.sources.matches import read_matches
from spacy_weakner.training.weights import LoadWeights

from ..command_line import spacy_cli
from ..util import (
    GOLD,
    SENTENCES,
    all_zero,
    clear_gradients,
    fix_seed,
    head_config,
    make_doc,
    make_examples,
    numeric_gradient,
    reload_bytes,
    reload_disk,
    same,
    train,
)
from .features_util import own_reading, said_examples, source_features, source_pipeline

NLP = spacy.blank("xx")
TERMS = weak_group("terms")
LABELS = ["LOC", "PER"]
HEAD = "crf_ner"


def random_docs(n=30, seed=0, labels=("LOC", "PER", "ODD")):
    """Docs with matches that overlap; some have no group, some no tokens."""
    rng = numpy.random.RandomState(seed)
    docs = []
    for _ in range(n):
        doc = Doc(NLP.vocab, words=[f"w{rng.randint(9)}" for _ in range(rng.randint(0, 9))])
        if rng.random() < 0.8:
            starts = rng.randint(0, max(1, len(doc)), rng.randint(0, 5) if len(doc) else 0).tolist()
            found = [(start, rng.randint(start + 1, len(doc) + 1), str(rng.choice(labels))) for start in starts]
            set_source(doc, "terms", found, [rng.choice([None, 0.5, 0.75]) for _ in found])
        docs.append(doc)
    return docs


def slow_features(doc, labels):
    """The features of each token, as the docstring of the layer has them."""
    n = len(labels)
    rows = numpy.zeros((len(doc), 5 * n + 6))
    if TERMS not in doc.spans:
        return rows
    group = doc.spans[TERMS]
    kept = own_reading(doc, TERMS)
    rows[:, 5 * n] = 1.0
    for span, score in zip(group, group.attrs["scores"], strict=True):
        value = 1.0 if score is None else score
        entity = (span.start, span.end, span.label_)
        if entity not in kept:
            if span.label_ in labels:
                rows[span.start : span.end, 4 * n + labels.index(span.label_)] += value
            continue
        kept.remove(entity)  # a match may stand there twice
        for i in range(span.start, span.end):
            rows[i, 5 * n] = 0.0
            rows[i, 5 * n + 2 + min(4, len(span)) - 1] = 1.0
            if span.label_ not in labels:
                rows[i, 5 * n + 1] = 1.0
                continue
            place = "S" if len(span) == 1 else "B" if i == span.start else "E" if i == span.end - 1 else "I"
            rows[i, 4 * labels.index(span.label_) + "BIES".index(place)] = value
    return rows


def layer(labels=LABELS, n_outputs=5, seed=0, **settings):
    """A layer with random weights."""
    made = build_source_features(["terms"], **settings)
    made.initialize(Y=[numpy.zeros((1, n_outputs), dtype="float32")])
    set_weights(made, labels, numpy.random.RandomState(seed).normal(size=(5 * len(labels) + 6, n_outputs)))
    return made


# The layer


def test_features_are_those_of_a_slow_twin():
    docs = random_docs()
    matches = read_matches(docs, "terms", LABELS, [False] * len(docs))
    rows, features, values = token_features(matches, len(LABELS))
    found = numpy.zeros((len(matches.looked), 16))
    numpy.add.at(found, (rows, features), values)
    assert found.any(axis=0).all()
    assert numpy.array_equal(found, numpy.concatenate([slow_features(doc, LABELS) for doc in docs]))


def test_scores_may_be_an_array():
    """spaCy's `spancat` writes one."""
    docs = random_docs()
    listed = read_matches(docs, "terms", LABELS, [False] * len(docs)).scores.copy()
    for doc in docs:
        if TERMS in doc.spans:
            scores = [1.0 if score is None else score for score in doc.spans[TERMS].attrs["scores"]]
            doc.spans[TERMS].attrs["scores"] = numpy.asarray(scores, dtype="float32")
    assert numpy.array_equal(read_matches(docs, "terms", LABELS, [False] * len(docs)).scores, listed)


def test_scores_are_features_times_weights():
    docs, made = random_docs(), layer()
    found = made.predict(docs)
    weights = made.get_param("W")
    assert all(
        numpy.allclose(own, slow_features(doc, LABELS) @ weights, atol=1e-5)
        for doc, own in zip(docs, found, strict=True)
    )
    assert made.predict([]) == [] and made.predict([Doc(NLP.vocab)])[0].shape == (0, 5)


def test_the_gradient_is_that_of_finite_differences():
    docs, made = random_docs(8), layer()
    rng = numpy.random.RandomState(1)
    scores, backprop = made.begin_update(docs)
    wanted = [rng.normal(size=own.shape).astype("float32") for own in scores]
    backprop(wanted)
    features = [slow_features(doc, LABELS) for doc in docs]

    def value(weights):
        return sum(float(((x @ weights) * y).sum()) for x, y in zip(features, wanted, strict=True))

    expected = numeric_gradient(value, made.get_param("W").astype("float64"))
    assert numpy.abs(made.get_grad("W") - expected).max() < 1e-4


def test_not_looked_is_not_no_match():
    silent, absent = make_doc(NLP, "a b"), make_doc(NLP, "a b")
    set_source(silent, "terms", [])
    of_silent, of_absent = layer().predict([silent, absent])
    assert of_silent.all() and not of_absent.any()


def test_weak_sentences_do_not_vote_in_training():
    docs, made = random_docs(), layer()
    for doc in docs[::2]:
        set_weak(doc)
    trained, _ = made.begin_update(docs)
    assert all_zero(trained[::2])
    assert same(trained[1::2], made.predict(docs)[1::2]) and not all_zero(made.predict(docs)[::2])


@pytest.mark.parametrize("rate, drop, low, high", [(0.5, 0.2, 0.4, 0.6), (1.0, 0.2, 1.0, 1.0), (0.5, 0.0, 0.0, 0.0)])
def test_dropout_is_by_sentence_and_only_where_there_is_any(rate, drop, low, high):
    docs, made = [make_doc(NLP, "a b") for _ in range(400)], layer(dropout=rate)
    for doc in docs:
        set_source(doc, "terms", [(0, 1, "LOC")])
    made.attrs["dropout_rate"] = drop
    scores, _ = made.begin_update(docs)
    assert all(own.all() or not own.any() for own in scores)
    assert low <= sum(not own.any() for own in scores) / len(docs) <= high
    assert all(own.all() for own in made.predict(docs))


def test_without_sources_there_are_no_features():
    assert build_source_features([]) is None


@pytest.mark.parametrize("setting", [{"sources": ["a", "a"]}, {"strength": -1.0}, {"dropout": 1.5}])
def test_settings_out_of_range(setting):
    with pytest.raises(WeaknerError, match="WK005"):
        build_source_features(**{"sources": ["a"], **setting})


# The start


@pytest.mark.parametrize("name", SCHEMES)
def test_weights_start_towards_the_tags_of_the_scheme(name):
    scheme = TagScheme(name, LABELS)
    weights = starting_weights(scheme, [InitialWeight(numpy.array([3.0, 2.0]), 1.0)])
    doc = make_doc(NLP, "a b c d e f")
    set_source(doc, "terms", [(0, 3, "PER"), (4, 5, "LOC")])
    made = layer(n_outputs=len(scheme))
    set_weights(made, LABELS, weights)
    (scores,) = made.predict([doc])
    tags = scheme.span_tags("PER", 3) + [0] + scheme.span_tags("LOC", 1) + [0]
    assert scores.argmax(axis=1).tolist() == tags
    assert scores.max(axis=1).tolist() == [2.0, 2.0, 2.0, 1.0, 3.0, 1.0] and (scores != 0).sum() == 6


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_first_step_is_the_list(scheme):
    nlp = source_pipeline("terms", scheme=scheme)
    docs = [doc for doc in random_docs(labels=LABELS) if TERMS in doc.spans]
    for doc in docs:
        doc.spans[TERMS].attrs.pop("scores")
        # Under "IO" neighbors are one entity.
        wanted = own_reading(doc, TERMS) if scheme != "IO" else merged(own_reading(doc, TERMS))
        assert doc_entities(nlp.get_pipe(HEAD)(doc)) == wanted


def merged(entities):
    result = []
    for start, end, label in entities:
        if result and result[-1][1] == start and result[-1][2] == label:
            start = result.pop()[0]
        result.append((start, end, label))
    return result


def test_several_sources_weigh_what_they_were_right():
    scheme = TagScheme("BIO", LABELS)
    good = make_doc(NLP, "a b c d e f g h")
    sources = {"right": [(0, 1, "LOC"), (2, 4, "PER")], "wrong": [(0, 2, "LOC"), (5, 6, "PER")], "absent": None}
    for name, said in sources.items():
        if said is not None:
            set_source(good, name, said)
    gold = [(0, 1, "LOC"), (2, 4, "PER")]
    settings = SourceFeatureSettings(list(sources), 4.0, 0.1)
    right, wrong, absent = initial_weights(settings, LABELS, lambda: [(good, gold, numpy.ones(8, dtype=bool))] * 100)
    # Smoothed precision 201 / 202, and (0 + 4 / 202) / 104; of 300 gold tokens all are matched, or 200 are not.
    assert right.matches[0] == 4.0 and right.silence == 4.0
    overall = 1.0 / 202.0
    odds = numpy.log(501.0 / 301.0)
    precision = 4.0 * overall / 104.0
    assert wrong.matches[0] == max(0.0, numpy.log(precision / (1 - precision)) + 2.0 / 3.0 * odds) == 0.0
    assert wrong.silence == pytest.approx(-numpy.log(201.0 / 302.0) + odds / 3.0)
    assert absent.matches.tolist() == [4.0, 4.0] and absent.silence == 4.0
    assert starting_weights(scheme, [right, wrong, absent]).shape == (3 * 16, 5)
    (alone,) = initial_weights(SourceFeatureSettings(["wrong"], 3.0, 0.1), LABELS, lambda: [])
    assert alone.matches.tolist() == [3.0, 3.0] and alone.silence == 3.0


def test_what_is_not_annotated_measures_nothing():
    doc = make_doc(NLP, "a b c d")
    for name in ("one", "two"):
        set_source(doc, name, [(0, 1, "LOC"), (2, 3, "LOC")])
    settings, known = SourceFeatureSettings(["one", "two"], 9.0, 0.1), numpy.array([True, True, False, False])
    partly, fully = (
        initial_weights(settings, LABELS, lambda known=k: [(doc, [(0, 1, "LOC")], known)] * 9)[0]
        for k in (known, numpy.ones(4, dtype=bool))
    )
    assert partly.matches[0] > fully.matches[0]


def test_gold_is_read_with_what_the_pipeline_finds():
    nlp = spacy.blank("xx")
    nlp.add_pipe("gazetteer_ruler", config={"source": "terms"}).add_terms([("LOC", "New York")], nlp)
    examples = make_examples(nlp)
    set_weak(examples[1].reference)
    set_source(examples[3].predicted, "terms", [(0, 1, "ODD")])
    set_source(examples[3].reference, "other", [(0, 1, "PER")])
    found = list(gold_with_sources(examples, ["terms", "other"], nlp))
    assert [entities for _, entities, _ in found] == [GOLD[0], GOLD[2], GOLD[3]]
    assert [group_entities(doc, TERMS) for doc, _, _ in found] == [[(3, 5, "LOC")], [], [(0, 1, "ODD")]]
    assert weak_sources(found[0][0]) == ["terms"] and weak_sources(found[2][0]) == ["other", "terms"]
    assert not weak_sources(examples[0].predicted) and all(known.all() for _, _, known in found)


def test_the_better_of_two_sources_wins():
    fix_seed()
    nlp = spacy.blank("xx")
    config = head_config(HEAD)
    config["model"]["source_features"] = source_features("bad", "good")
    nlp.add_pipe(HEAD, config=config)

    def examples():
        made = make_examples(nlp) * 10
        for example in made:
            entities = doc_entities(example.reference)
            set_source(example.predicted, "good", entities)
            set_source(
                example.predicted, "bad", [(s, e, "PER" if label == "LOC" else "LOC") for s, e, label in entities]
            )
        return made

    nlp.initialize(examples)
    assert [doc_entities(nlp.get_pipe(HEAD)(example.predicted)) for example in examples()[:4]] == GOLD


# The heads


def test_it_learns_where_the_list_is_wrong(tmp_path):
    nlp = source_pipeline("terms")
    train(nlp, said_examples(nlp, "terms"))

    def found(pipeline):
        return [doc_entities(pipeline.get_pipe(HEAD)(eg.predicted)) for eg in said_examples(pipeline, "terms")]

    assert found(nlp) == GOLD
    docs = [eg.predicted for eg in said_examples(nlp, "terms")]
    assert [doc_entities(doc) for doc in nlp.get_pipe(HEAD).pipe(docs, batch_size=3)] == GOLD
    for reload in (reload_bytes, reload_disk):
        again = reload(nlp, tmp_path)
        layer = again.get_pipe(HEAD).model.get_ref("source_features")
        assert found(again) == GOLD and layer.attrs["labels"] == LABELS


def test_weights_of_an_earlier_stage_are_loaded(tmp_path):
    earlier, later = source_pipeline("terms"), source_pipeline("terms", strength=1.0)
    earlier.to_disk(tmp_path)
    LoadWeights(tmp_path, {HEAD: ["head"]})(later)
    first, second = (nlp.get_pipe(HEAD).model.get_ref("source_features").get_param("W") for nlp in (earlier, later))
    assert first.max() == 4.0 and numpy.array_equal(first, second)


def test_only_with_features_the_text_starts_at_zero():
    def last(pipeline):
        return [
            node.get_param("W")
            for node in pipeline.get_pipe(HEAD).model.get_ref("head").walk()
            if "W" in node.param_names
        ]

    fix_seed()
    plain = spacy.blank("xx")
    plain.add_pipe(HEAD, config=head_config(HEAD))
    plain.initialize(lambda: make_examples(plain))
    assert all_zero(last(source_pipeline("terms"))) and not all_zero(last(plain))
    assert not plain.get_pipe(HEAD).model.has_ref("source_features")


@pytest.mark.parametrize("weak", [False, True])
def test_weak_examples_hide_their_features_and_keep_no_mark(weak):
    nlp = source_pipeline("terms")
    ner = nlp.get_pipe(HEAD)
    examples = said_examples(nlp, "terms")
    for example in examples:
        set_weak(example.reference, weak)
    clear_gradients(ner.model)
    ner.update(examples)
    layer = ner.model.get_ref("source_features")
    assert all_zero([layer.get_grad("W") if layer.has_grad("W") else None]) == weak
    assert not any(is_weak(example.predicted) for example in examples)
    # Also if the update fails.
    examples[0].reference.set_ents([Span(examples[0].reference, 0, 1, "NEW")])
    with pytest.raises(WeaknerError, match="WK003"):
        ner.update(examples)
    assert not any(is_weak(example.predicted) for example in examples)


def test_a_warning_where_no_source_has_looked():
    nlp = source_pipeline("terms")
    ner = nlp.get_pipe(HEAD)
    with pytest.warns(UserWarning, match="WK906.*weak:terms"):
        ner.update(make_examples(nlp))
    ner.update(make_examples(nlp))  # once is enough


SWITCHED_OFF = {
    "exclude": lambda path: spacy.load(path, exclude=["gazetteer_ruler"]),
    "disable": lambda path: spacy.load(path, disable=["gazetteer_ruler"]),
    "enable": lambda path: spacy.load(path, enable=[HEAD]),
    "select": lambda path: select(spacy.load(path)),
    "source": lambda path: into_another(spacy.load(path)),
}


def select(nlp):
    nlp.select_pipes(disable=["gazetteer_ruler"])
    return nlp


def into_another(nlp):
    other = spacy.blank("xx", vocab=nlp.vocab)
    other.add_pipe(HEAD, source=nlp)
    return other


@pytest.mark.parametrize("how", SWITCHED_OFF)
def test_a_ruler_that_is_switched_off_is_said(tmp_path, how):
    nlp = source_pipeline("terms")
    nlp.add_pipe("gazetteer_ruler", before=HEAD, config={"source": "terms"}).add_terms([("LOC", "Rome")])
    nlp("Nora saw Rome")
    nlp("nothing")  # its group is empty
    nlp.to_disk(tmp_path)
    without = SWITCHED_OFF[how](tmp_path)
    with pytest.warns(UserWarning, match=f"WK907.*'{HEAD}' .*groups {TERMS},.*sources"):
        without("Nora saw Rome")
    with pytest.warns(UserWarning, match="WK907"):
        list(without.pipe(["Rome", "", "Nora"]))
    without("")
    # Of a source that has answered for some.
    some = [example.predicted for example in said_examples(without, "terms")]
    del some[0].spans[TERMS]
    list(without.pipe(some))


def test_other_sources_than_the_weights_have():
    nlp = source_pipeline("terms")
    ner = nlp.get_pipe("crf_ner")
    sources = ner.model.get_ref("source_features").attrs["settings"].sources
    assert ner.sources_read == ["terms"]
    for others in (["terms", "more"], ["other"]):
        sources[:] = others
        with pytest.raises(WeaknerError, match=rf"WK020.*sources = terms, but.*sources = {', '.join(others)}\."):
            nlp("Bob")


@pytest.mark.slow
def test_a_trained_pipeline_carries_its_list(tmp_path):
    write_docs(tmp_path / "a.spacy", [make_doc(NLP, text, entities) for text, entities in SENTENCES])
    (tmp_path / "terms.csv").write_text("label,term\nLOC,New York\nLOC,Rome\nPER,Paris\n")
    config = make_config("crf_ner.terms", lang="xx")
    config["components"]["crf_ner"]["model"]["tok2vec"].update(head_config("crf_ner")["model"]["tok2vec"])
    config["training"].update(
        {"max_steps": 40, "eval_frequency": 20, "optimizer": {"@optimizers": "Adam.v1", "learn_rate": 0.001}}
    )
    config["paths"].update({"train": "a.spacy", "dev": "a.spacy", "terms": "terms.csv"})
    config.to_disk(tmp_path / "terms.cfg")
    spacy_cli("train", "terms.cfg", "--output", "out", cwd=tmp_path)
    nlp = spacy.load(tmp_path / "out" / "model-best")
    texts = [text for text, _ in SENTENCES]
    assert [doc_entities(doc) for doc in nlp.pipe(texts)] == [doc_entities(nlp(text)) for text in texts] == GOLD
    (rome,) = (doc for doc in nlp.pipe(["nothing at Rome"]))
    assert [span.text for span in rome.spans[TERMS]] == ["Rome"]
    assert ("Rome", "LOC") in [(ent.text, ent.label_) for ent in rome.ents]
