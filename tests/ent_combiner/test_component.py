"""What the component decides, and its settings."""

import pickle

import numpy
import pytest
import spacy
import srsly
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.vocab import Vocab

from spacy_weakner.corpus.case import change_case
from spacy_weakner.corpus.gold import set_gold
from spacy_weakner.corpus.weak import doc_entities, set_group, set_id, set_weak
from spacy_weakner.ent_combiner.component import EntCombiner
from spacy_weakner.errors import WeaknerError
from spacy_weakner.ty import TagScorer

from .util import NLP, borders, doc_of, f1, labels, noisy, without_gold


def make(docs=None, **settings):
    pipe = NLP.create_pipe("ent_combiner", config=settings)
    if docs is not None:
        pipe.fit(docs)
    return pipe


def decide(pipe, docs):
    return [doc_entities(doc) for doc in pipe.pipe(without_gold(doc) for doc in docs)]


@pytest.fixture(scope="module")
def fitted():
    return make(noisy(150))


# What it learns


def test_borders_that_are_always_wrong_are_repaired():
    pipe, docs = make(borders(80)), borders(50, seed=1)
    assert pipe.report.alone == {"weak:list": pytest.approx(32, abs=20)}
    assert pipe.choice == "combined" and pipe.report.reach == 1.0
    assert f1(docs, decide(pipe, docs)) == 1.0
    assert f1(docs, decide(make(borders(80), border=0), docs)) < 0.6


def found(doc):
    return [(ent.text.split(), ent.label_, round(ent._.weakner_score, 9)) for ent in doc.ents]


@pytest.mark.parametrize("gap", ["\n", "  ", "\u00a0"])
@pytest.mark.parametrize("world", [borders, noisy])
def test_white_space_makes_no_difference(world, gap):
    pipe = make(world(80))
    for doc in map(without_gold, world(20, seed=1)):
        words = [text for token in doc for text in (gap, token.text)]
        groups = {}
        for name, group in doc.spans.items():
            scores = [[score] for score in group.attrs.get("scores", ())] or [[]] * len(group)
            spans = zip(group, scores, strict=True)
            groups[name.replace(":", "__")] = [(2 * s.start + 1, 2 * s.end, s.label_, *score) for s, score in spans]
        assert found(pipe(doc_of(words, **groups))) == found(pipe(doc))


def test_a_text_gives_what_its_sentences_give():
    pipe, sentences = make(noisy(80)), [without_gold(doc) for doc in noisy(8, seed=1)]
    text = Doc.from_docs(sentences)
    for token in text:
        token.is_sent_start = token.i % len(sentences[0]) == 0
    for name in sentences[0].spans:
        scores = [score for doc in sentences for score in doc.spans[name].attrs.get("scores", ())]
        text.spans[name].attrs.update({"scores": scores} if scores else {})
    assert found(pipe(text)) == [entity for doc in sentences for entity in found(pipe(doc))]


@pytest.mark.parametrize("n, choice", [(40, "pred:crf"), (120, "combined")])
def test_with_few_docs_a_component_that_is_as_good_is_used_alone(n, choice):
    entities = [(1, 2, "X"), (0, 1, "X")]
    docs = [doc_of(["a", "b", str(i)], entities[i % 2 :][:1], pred__crf=[(*entities[i % 2], 0.9)]) for i in range(n)]
    assert make(docs).choice == choice


def test_a_source_is_believed_for_the_label_that_it_is_right_about():
    pipe = make(labels(30))
    assert decide(pipe, labels(1)) == [[(1, 2, "A")], [], [], [(1, 2, "B")]]
    assert all(f1 == pytest.approx(50) for f1 in pipe.report.alone.values())
    # Gold of other labels is none.
    report = make().fit(labels(10), ["A"])
    assert report.gold == 10 and report.reach == 1.0


def test_probabilities_are_calibrated_on_other_docs(fitted):
    docs, scores, right = noisy(400, seed=1), [], []
    for doc in docs:
        for ent in fitted(without_gold(doc)).ents:
            scores.append(ent._.weakner_score)
            right.append((ent.start, ent.end, ent.label_) in doc_entities(doc))
    bins = numpy.minimum((numpy.array(scores) * 10).astype(int), 9)
    gaps = numpy.bincount(bins, weights=numpy.array(scores) - numpy.array(right, dtype=float))
    assert numpy.abs(gaps).sum() / len(scores) < 0.05
    assert f1(docs, decide(fitted, docs)) > max(fitted.report.alone.values()) / 100


def test_what_is_better_alone_is_taken_alone():
    # Nothing that is known about the candidates tells right from wrong, but all that the list says is right in the end.
    docs = [doc_of(["x", "y"], [(0, 1, "A")], weak__a=[(0, 1, "A")], pred__b=[(0, 1, "B", 0.9)]) for _ in range(2)]
    pipe = make(docs)
    pipe._report = pipe.report._replace(choice="pred:b")
    assert decide(pipe, docs[:1]) == [[(0, 1, "B")]]
    pipe.set_thresholds({"B": 0.99})
    assert decide(pipe, docs[:1]) == [[]]


def test_the_reference_docs_of_examples_are_what_it_is_fitted_to():
    docs = borders(30)
    nlp = spacy.blank("xx")
    pipe = nlp.add_pipe("ent_combiner")
    nlp.initialize(lambda: [Example(nlp.make_doc(doc.text), doc) for doc in docs])
    assert pipe.report == make(docs).report and pipe.label_data == ["D"]
    pipe.initialize(lambda: [Example(nlp.make_doc(doc.text), doc) for doc in docs], labels=["D", "E"])
    assert pipe.labels == ("D", "E")
    # Gold beside weak labels is for measuring.
    for doc in docs[10:]:
        set_gold(doc, doc_entities(doc))
        set_weak(doc)
    pipe.initialize(lambda: [Example(nlp.make_doc(doc.text), doc) for doc in docs])
    assert pipe.report.sentences == 10


def test_what_is_not_annotated_teaches_nothing():
    docs = borders(30)
    partial = doc_of(["acute", "pain", "acute", "pain"], weak__list=[(1, 2, "D"), (3, 4, "D")])
    partial.set_ents([Span(partial, 0, 2, "D")], missing=[partial[2:4]], default="outside")
    weak = docs[0].copy()
    set_weak(weak)
    report = make([*docs, partial, weak, doc_of([], []), doc_of(["x"])]).report
    assert report.sentences == 31 and report.gold == 31
    assert report.candidates == make(docs).report.candidates + 2  # the match, and with a token more at the left


def test_nothing_to_learn():
    with pytest.raises(WeaknerError, match="WK715"):
        make([doc_of(["x"], weak__a=[(0, 1, "X")])])
    with pytest.raises(WeaknerError, match="WK715"):
        make([doc_of(["x"], [(0, 1, "X")], weak__a=[])])
    with pytest.raises(WeaknerError, match=r"WK715.*weak:b.*weak:a"):
        make([doc_of(["x"], [(0, 1, "X")], weak__a=[(0, 1, "X")])], sources=["b"])
    for use in (lambda pipe: pipe(doc_of(["x"])), lambda pipe: pipe.report):
        with pytest.raises(WeaknerError, match="WK008"):
            use(make())


@pytest.mark.parametrize("n", [1, 2, 3])
def test_very_few_docs(n):
    pipe = make(borders(n))
    assert (pipe.report.f1 is None) == (n == 1) and pipe.to_bytes() == make(borders(n)).to_bytes()
    assert all(0.0 <= score <= 1.0 for own in pipe.score_candidates(borders(5)) for _, score in own)


# What it writes


def test_pipe_is_one_by_one(fitted):
    docs = [*noisy(20, seed=2), doc_of([]), doc_of(["x"], weak__list=[], pred__crf=[])]
    docs.append(doc_of(["\n"], weak__list=[(0, 1, "X")], pred__crf=[]))
    single = [[(ent.start, ent.end, ent._.weakner_score) for ent in fitted(without_gold(doc)).ents] for doc in docs]
    for size in (1, 3, 100):
        found = list(fitted.pipe((without_gold(doc) for doc in docs), batch_size=size))
        assert [[(ent.start, ent.end) for ent in doc.ents] for doc in found] == [[e[:2] for e in own] for own in single]
        for doc, own in zip(found, single, strict=True):
            numpy.testing.assert_allclose([ent._.weakner_score for ent in doc.ents], [e[2] for e in own], atol=1e-12)
    assert all(doc.has_annotation("ENT_IOB") for doc in found if len(doc))


def test_a_group_that_is_absent_is_not_one_without_matches():
    docs = noisy(60)
    for doc in docs[:20]:
        del doc.spans["weak:list"]
    pipe = make(docs)
    assert pipe.weights["weak:list absent"] != 0.0
    said = [(1, 2, "X", 0.6)]
    silent, absent = doc_of("abc", pred__crf=said, weak__list=[]), doc_of("abc", pred__crf=said)
    assert pipe.score_candidates([silent]) != pipe.score_candidates([absent])
    assert pipe(doc_of("abc", pred__crf=[])).ents == ()  # without a warning, since gold lacks it, too


def test_what_it_was_not_fitted_with_is_named(fitted):
    for there, absent in (
        ({}, "weak:list, pred:crf"),
        ({"weak__list": []}, "pred:crf"),
        ({"pred__crf": []}, "weak:list"),
    ):
        with pytest.warns(UserWarning, match=f"WK907.*'ent_combiner' .*groups {absent},"):
            assert fitted(doc_of("abc", **there)).ents == ()
        # A component that runs writes its group to each Doc; a model answers for some.
        list(fitted.pipe([doc_of("abc", **there), doc_of([]), doc_of("a", weak__list=[], pred__crf=[])]))
    fitted(doc_of([]))
    # Scores depend on groups that are not chosen, too.
    alone = make(noisy(150))
    alone._report = alone.report._replace(choice="pred:crf")
    with pytest.warns(UserWarning, match=r"WK907.*groups weak:list,"):
        alone(doc_of("abc", pred__crf=[]))
    # Folds of a project are read by a combiner with a vocabulary of its own.
    doc = Doc(Vocab(), words=["a", "b", "c"])
    set_group(doc, "pred:crf", [])
    set_group(doc, "weak:list", [(0, 1, "STRANGE")])
    with pytest.warns(UserWarning, match="WK908.*'ent_combiner' was fitted without the labels 'STRANGE'"):
        assert fitted(doc).ents == ()


@pytest.mark.parametrize("overwrite", [False, True])
def test_preset_entities_stay_unless_overwritten(overwrite):
    pipe = make(borders(60), overwrite=overwrite)
    doc = without_gold(borders(1)[0])
    doc.set_ents([Span(doc, 3, 5, "OTHER")])
    before = pipe.score_candidates([doc])
    assert doc_entities(pipe(doc)) == ([(2, 4, "D")] if overwrite else [(3, 5, "OTHER")])
    assert pipe.score_candidates([doc]) == before


def test_a_group_that_is_taken_alone_fills_what_is_left():
    pipe = make(borders(60))
    pipe._report = pipe.report._replace(choice="weak:list")
    doc = doc_of(["acute", "renal", "failure"], weak__list=[(0, 3, "D"), (1, 3, "D")])
    assert doc_entities(pipe(doc.copy())) == [(0, 3, "D")]
    doc.set_ents([Span(doc, 0, 1, "OTHER")])
    assert doc_entities(pipe(doc)) == [(0, 1, "OTHER"), (1, 3, "D")]


def test_docs_that_fail_go_to_the_error_handler(fitted):
    failed = []
    pipe = make().from_bytes(fitted.to_bytes())
    pipe.set_error_handler(lambda name, proc, docs, error: failed.extend(docs))
    docs = [without_gold(doc) for doc in noisy(3)]
    group = docs[1].spans["weak:list"]
    group.attrs["scores"] = [0.5] * (len(group) + 1)
    assert list(pipe.pipe(docs)) == [docs[0], docs[2]] and failed == [docs[1]]


# Teaching


def test_it_is_a_teacher(fitted):
    assert isinstance(fitted, TagScorer)
    docs = [without_gold(doc) for doc in noisy(10, seed=4)] + [doc_of([])]
    for doc, (path, rows) in zip(docs, fitted.score_tags(docs), strict=True):
        assert rows.shape == (len(doc), 3) and rows.dtype == "float32"
        numpy.testing.assert_allclose(rows.sum(axis=1), 1.0, atol=1e-6)
        assert len(path.tags) == len(doc) and path.log_probability <= 0.0
    # Predictions do not touch the Docs.
    for doc, candidates in zip(docs[:10], fitted.score_candidates(docs), strict=False):
        assert not doc.has_annotation("ENT_IOB")
        assert {*doc_entities(fitted(doc))} <= {entity for entity, _ in candidates}


# Settings


def test_every_setting_has_an_effect():
    docs = noisy(40)
    base = make(docs)
    assert make(docs, sources=[]).report.alone.keys() == {"pred:crf"}
    assert make(docs, predictions=[]).report.alone.keys() == {"weak:list"}
    assert make(docs, border=0).report.candidates < base.report.candidates
    assert make(docs, penalty=77.0).report.penalty == 77.0
    assert make(docs, folds=2).report.f1 != base.report.f1
    assert make(docs, scheme="IOBES").distribution_labels == ("O", "B-X", "I-X", "E-X", "S-X")
    low, high = make(docs, threshold=0.1), make(docs, threshold=0.99)
    assert sum(map(len, decide(low, docs))) > sum(map(len, decide(high, docs)))
    # A given threshold is what is reported on.
    assert high.report.threshold == 0.99 and high.report.f1 < base.report.f1 and high.report.choice != "combined"


@pytest.mark.parametrize(
    "settings", [{"border": -1}, {"threshold": 1.5}, {"penalty": 0.0}, {"folds": 1}, {"scheme": "BILOU"}]
)
def test_settings_out_of_range(settings):
    with pytest.raises(WeaknerError, match="WK00"):
        make(**settings)


def test_thresholds_of_labels(fitted):
    pipe, docs = make().from_bytes(fitted.to_bytes()), noisy(30, seed=5)
    before = decide(pipe, docs)
    pipe.set_thresholds({"X": 0.8})
    high = list(pipe.pipe(without_gold(doc) for doc in docs))
    assert 0 < sum(len(doc.ents) for doc in high) < sum(map(len, before))
    assert all(ent._.weakner_score >= 0.8 for doc in high for ent in doc.ents)
    assert make().from_bytes(pipe.to_bytes()).thresholds == {"X": 0.8}
    pipe.set_thresholds({"X": 0.1})
    assert sum(map(len, decide(pipe, docs))) > sum(map(len, before))
    exact = max(score for own in pipe.score_candidates(docs) for _, score in own)
    pipe.set_thresholds({"X": exact})
    assert sum(map(len, decide(pipe, docs))) >= 1
    pipe.set_thresholds({})
    assert decide(pipe, docs) == before
    for wrong, code in (({"Z": 0.5}, "WK003"), ({"X": 1.5}, "WK005")):
        with pytest.raises(WeaknerError, match=code):
            pipe.set_thresholds(wrong)


def test_the_scorer_is_used(fitted):
    docs = noisy(5)
    examples = [Example(fitted(without_gold(doc)), doc) for doc in docs]
    assert 0.0 < fitted.score(examples)["ents_f"] <= 1.0
    assert isinstance(EntCombiner(NLP.vocab).score(examples), dict)


# Storage


def test_it_comes_back_as_it_was(fitted, tmp_path):
    docs = noisy(10, seed=6)
    expected = fitted.score_candidates(docs)
    fitted.to_disk(tmp_path / "pipe")
    for other in (
        make().from_disk(tmp_path / "pipe"),
        make().from_bytes(fitted.to_bytes()),
        pickle.loads(pickle.dumps(fitted)),
    ):
        assert other.report == fitted.report and other.score_candidates(docs) == expected
    assert make().from_bytes(make().to_bytes()).labels == ()
    assert make().from_bytes(fitted.to_bytes(), exclude=["model"]).labels == ()


def test_a_pipeline_returns_from_disk_with_a_vocabulary_of_its_own(tmp_path):
    nlp = spacy.blank("xx")
    ruler = nlp.add_pipe("gazetteer_ruler", config={"source": "list"})
    ruler.add_terms(["failure", "pain", "injury"], label="D")
    nlp.add_pipe("ent_combiner").fit(borders(60))
    nlp.to_disk(tmp_path)
    for pipeline in (nlp, spacy.load(tmp_path)):
        doc = pipeline("we saw acute injury again")
        assert doc_entities(doc) == [(2, 4, "D")] and doc.ents[0]._.weakner_score > 0.5
    assert spacy.load(tmp_path).config["components"]["ent_combiner"]["border"] == 1


def test_weights_of_other_features_are_refused(fitted):
    state = fitted._state()
    with pytest.raises(WeaknerError, match="WK800"):
        make()._load(srsly.msgpack_dumps({**state, "weights": {"unknown": 1.0}}))


def by_heart(*more):
    """Which of these words are right can only be learned by heart."""
    right = [(0, 1, "D")]
    return [doc_of([f"Word{i}", "x", *more], right * (i * 7 % 3 == 0), weak__list=right) for i in range(60)]


@pytest.mark.parametrize("kind", ["case", "copy", "document"])
def test_what_belongs_together_is_in_one_fold(kind):
    docs = by_heart()
    copies = {
        "case": [change_case(doc, case) for doc in docs for case in ("lower", "upper")],
        "copy": [*by_heart(), *by_heart()],
        "document": [*by_heart("y"), *by_heart("z")],
    }[kind]
    for i, doc in enumerate([*docs, *copies] if kind == "document" else ()):
        set_id(doc, f"d{i % len(docs)}.{i // len(docs)}")
    together = make([*docs, *copies]).report
    assert together.f1 == pytest.approx(make(docs).report.f1, abs=3.0)
    assert together.sentences == len(docs) * (1 if kind == "case" else 3)


def test_weak_sources_are_read_from_the_docs(fitted):
    assert fitted.sources_read == ["list"] and make().sources_read == []
