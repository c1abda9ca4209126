"""Training by L-BFGS, against a slow twin of what it minimizes, and through spaCy's own loop."""

import io
import itertools
import shutil

import numpy
import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.training.initialize import init_nlp
from spacy.training.loop import train
from spacy.util import registry

from spacy_weakner.configs import make_config
from spacy_weakner.corpus.docbin import write_docs
from spacy_weakner.crf_ner.model import crf_parameters
from spacy_weakner.errors import WeaknerError
from spacy_weakner.training import lbfgs
from spacy_weakner.training.flat import FlatWeights
from spacy_weakner.training.lbfgs import LBFGS, PenalizedLoss, minimize

from ..encoders.tables import write_table
from ..util import (
    GOLD,
    SENTENCES,
    TEXTS,
    TOK2VEC,
    crf_config,
    crf_pipeline,
    entities_of,
    make_doc,
    make_example,
    make_examples,
    numeric_gradient,
    same,
    shared_pipeline,
)

pytestmark = pytest.mark.slow

ENCODER = {"@architectures": "spacy_weakner.IndicatorFeatures.v1", "rows": 2000}
HOLES = {"@losses": "spacy_weakner.PartialCRF.v1", "negative_rate": 0.5}


def small(rows=11, **settings):
    """A pipeline whose table is small enough to count all paths by hand."""
    encoder = {**ENCODER, "rows": rows, "window": 0, "affixes": 1}
    return crf_pipeline(encoder, **{"loss": HOLES, **settings})


def head_of(nlp):
    return nlp.get_pipe("crf_ner")


def table_of(nlp):
    return next(node for node in head_of(nlp).model.walk() if node.name == "sparse_linear").get_param("W")


def counts_of(nlp, examples):
    """What every legal path of every sentence adds up of the weights, and which paths agree with the annotation."""
    pipe = head_of(nlp)
    encoder, n = pipe.model.get_ref("tok2vec"), pipe.n_outputs
    rows = used_rows(nlp, examples)
    may_start, may_move, may_end = pipe.scheme.allowed_transitions()
    for eg in examples:
        ids, gold, counts, agrees = encoder.predict([eg.predicted])[0].tolist(), pipe.scheme.from_example(eg), [], []
        for path in itertools.product(range(n), repeat=len(ids)):
            pairs = list(itertools.pairwise(path))
            if may_start[path[0]] and may_end[path[-1]] and all(may_move[pair] for pair in pairs):
                table, start, end, moves = (numpy.zeros(shape) for shape in ((len(rows), n), n, n, (n, n)))
                start[path[0]] += 1
                end[path[-1]] += 1
                for pair in pairs:
                    moves[pair] += 1
                for own, tag in zip(ids, path, strict=True):
                    for row in own:
                        table[rows.index(row), tag] += 1
                counts.append(numpy.concatenate([table.ravel(), start, end, moves.ravel()]))
                agrees.append(all(wanted in (-1, tag) for wanted, tag in zip(gold, path, strict=True)))
        yield numpy.stack(counts), numpy.asarray(agrees)


def used_rows(nlp, examples):
    """The rows of the table that some feature has."""
    encoder = head_of(nlp).model.get_ref("tok2vec")
    return sorted({row for eg in examples for row in encoder.predict([eg.predicted])[0].ravel().tolist()})


def flat_of(nlp, examples):
    """All weights that matter in the order of the twin: the table, start, end and transitions."""
    parameters = crf_parameters(head_of(nlp).model)
    own = [table_of(nlp)[used_rows(nlp, examples)].ravel(), parameters.start, parameters.end]
    return numpy.concatenate([*own, parameters.transitions.ravel()]).astype("float64")


def test_dropout_within_an_encoder_is_the_same_at_every_evaluation():
    attention = {"@architectures": "spacy_weakner.AttentionEncoder.v1", "tok2vec": TOK2VEC, "heads": 4}
    nlp = crf_pipeline({**attention, "weight_dropout": 0.5})
    objective = PenalizedLoss(head_of(nlp), [head_of(nlp).read_batch(make_examples(nlp))], 0.1)
    assert objective(objective.start)[0] == objective(objective.start)[0]


@pytest.mark.parametrize("l2", [0.1, 2.0])
def test_it_ends_at_the_minimum(l2):
    nlp = small(loss={**HOLES, "negative_rate": 0.0})
    examples = [
        make_example(nlp, "Bob saw Paris", [(0, 1, "PER"), (2, 3, "LOC")]),
        make_example(nlp, "he saw", missing=[0]),
        make_example(nlp, "New York", [(0, 2, "LOC")]),
        make_example(nlp, ""),
    ]
    table_of(nlp)[:] = numpy.random.RandomState(0).normal(size=table_of(nlp).shape)
    start, used = flat_of(nlp, examples), [eg for eg in examples if len(eg.predicted)]
    LBFGS(lambda nlp: examples, l2=l2, tolerance=0.0)(nlp)
    end = flat_of(nlp, examples)
    counts = list(counts_of(nlp, used))

    def brute_force(flat):
        scores = [(own @ flat, agrees) for own, agrees in counts]
        losses = [numpy.logaddexp.reduce(own) - numpy.logaddexp.reduce(own[agrees]) for own, agrees in scores]
        return sum(losses) + l2 / 2 * ((flat - start) ** 2).sum()

    gradient = numeric_gradient(brute_force, end)
    assert numpy.abs(gradient).max() < 2e-3 < 0.1 < numpy.abs(end - start).max()


def objective_of(nlp, l2=0.5, examples=None):
    batches = [examples or make_examples(nlp)[:2], make_examples(nlp)[2:]]
    return PenalizedLoss(head_of(nlp), list(map(head_of(nlp).read_batch, batches)), l2)


def test_value_and_gradient_agree_for_any_encoder_and_seed():
    for encoder in ({**ENCODER, "rows": 40}, {**TOK2VEC, "width": 4, "embed_size": 10}):
        nlp = crf_pipeline(encoder, loss=HOLES)
        missing = [make_example(nlp, text, missing=[0, 2]) for text in TEXTS[:2]]
        objective = objective_of(nlp, examples=missing)
        rng = numpy.random.RandomState(1)
        point = objective.start + 0.1 * rng.normal(size=len(objective.start))
        value, gradient = objective(point)
        numpy.random.seed(3)  # negatives are drawn from here, the same ones every time
        assert objective(point)[0] == value
        direction = rng.normal(size=len(point))
        slope = (objective(point + 1e-3 * direction)[0] - objective(point - 1e-3 * direction)[0]) / 2e-3
        assert slope == pytest.approx(gradient @ direction, rel=2e-2, abs=1e-2)


def test_weights_of_features_that_never_hold_stay():
    nlp = crf_pipeline(ENCODER)
    docs = [eg.predicted for eg in make_examples(nlp)]
    held = numpy.unique(numpy.concatenate([own.ravel() for own in head_of(nlp).model.get_ref("tok2vec").predict(docs)]))
    LBFGS(make_examples)(nlp)
    assert set(numpy.flatnonzero(table_of(nlp).any(axis=1))) == set(held.tolist())
    assert entities_of(nlp, TEXTS) == GOLD


def trained(**settings):
    nlp = crf_pipeline(ENCODER, loss=HOLES)
    LBFGS(make_examples, **settings)(nlp)
    return table_of(nlp)


def test_every_setting_counts():
    plain = trained(l2=0.5)
    assert same([trained(l2=0.5)], [plain])
    assert 0 < numpy.abs(trained(l2=500.0)).max() < numpy.abs(plain).max() / 5
    assert not same([trained(l2=0.5, max_iterations=2)], [plain], tolerance=1e-3)
    assert same([trained(l2=0.5, tolerance=1e6)], [trained(l2=0.5, max_iterations=10)])
    assert not same([trained(l2=0.5, tolerance=1e6)], [trained(l2=0.5, tolerance=0.0)], tolerance=1e-4)
    assert same([trained(l2=0.5, component="crf_ner", max_examples=4)], [plain])


@pytest.mark.parametrize("settings", [{"l2": -1.0}, {"max_iterations": 0}, {"tolerance": -1.0}, {"max_examples": 0}])
def test_settings_out_of_range(settings):
    with pytest.raises(WeaknerError, match="WK005"):
        LBFGS(make_examples, **settings)


def test_a_corpus_without_an_end_is_refused():
    with pytest.raises(ValueError, match=r"more than 50"):
        LBFGS(lambda nlp: itertools.cycle(make_examples(nlp)), max_examples=50)(small())


def test_a_corpus_without_words_is_refused():
    nlp = small()
    with pytest.raises(WeaknerError, match="WK101"):
        LBFGS(lambda nlp: [make_example(nlp, "")])(nlp)


def test_a_component_that_is_not_there_or_not_alone():
    nlp = small()
    with pytest.raises(ValueError, match=r"crf_ner"):
        LBFGS(make_examples, component="ner")(nlp)
    nlp.add_pipe("crf_ner", name="other", config=crf_config(ENCODER))
    with pytest.raises(ValueError, match=r"exactly one"):
        LBFGS(make_examples)(nlp)


def test_an_encoder_of_another_component_is_refused():
    nlp = shared_pipeline(("crf_ner",))
    with pytest.raises(ValueError, match=r"'crf_ner'.*encoder of its own"):
        LBFGS(make_examples)(nlp)


def test_sentences_of_a_text_keep_what_a_frozen_encoder_has_found(monkeypatch):
    nlp, read = shared_pipeline(("crf_ner",)), []
    nlp.config["training"] = {key: ["tok2vec"] for key in ["frozen_components", "annotating_components"]}
    monkeypatch.setattr(lbfgs, "minimize", lambda objective, *_: read.extend(objective.batches) or (0.0, 0.0, 0))
    words = ["Anna", "\n", "went", "Bob", "left", "Paris"]
    docs = [Doc(nlp.vocab, words=words, sent_starts=[i in (0, 3) for i in range(6)]) for _ in range(2)]
    docs[1].set_ents([Span(docs[1], 0, 1, "PER")], default="outside")
    LBFGS(lambda _: [Example(*docs)])(nlp)
    found = {doc.text: doc.tensor for batch in read for doc in batch.texts.docs}
    assert docs[0].tensor.any()
    numpy.testing.assert_array_equal(found["Anna went"], docs[0].tensor[[0, 2]])
    numpy.testing.assert_array_equal(found["Bob left Paris"], docs[0].tensor[3:])


def test_what_changes_with_the_progress_of_training_is_refused(monkeypatch):
    nlp = small()
    monkeypatch.setattr(type(head_of(nlp)), "needs_clock", True)
    with pytest.raises(WeaknerError, match=r"LBFGS.*'crf_ner'.*progress"):
        LBFGS(make_examples)(nlp)


def test_annotating_components_go_first():
    nlp = crf_pipeline(ENCODER)
    seen = []

    @spacy.Language.component("test_lbfgs_marker")
    def mark(doc: Doc) -> Doc:
        seen.append(doc.text)
        doc.spans["weak:marks"] = [Span(doc, 0, 1, "PER")]
        return doc

    nlp.add_pipe("test_lbfgs_marker", first=True)
    nlp.add_pipe("test_lbfgs_marker", name="after")
    examples = make_examples(nlp)
    for annotating, expected in (([], 0), (["test_lbfgs_marker", "after"], len(examples))):
        nlp.config["training"] = {"annotating_components": annotating}
        LBFGS(lambda nlp: examples, max_iterations=1)(nlp)
        assert len(seen) == expected
    assert all("weak:marks" in eg.predicted.spans for eg in examples)


def test_components_of_other_pipelines_go_first_too():
    # spaCy disables them while a pipeline is initialized.
    other = spacy.blank("xx")
    ruler = other.add_pipe("gazetteer_ruler", config={"source": "terms"})
    ruler.initialize(lambda: [], nlp=other, terms={"PER": ["Bob"]})
    nlp = crf_pipeline(ENCODER)
    nlp.add_pipe("gazetteer_ruler", source=other, first=True)
    nlp.config["training"] = {"annotating_components": ["gazetteer_ruler"]}
    examples = make_examples(nlp)
    with nlp.select_pipes(disable="gazetteer_ruler"):
        LBFGS(lambda nlp: examples, max_iterations=1)(nlp)
    assert all("weak:terms" in eg.predicted.spans for eg in examples)


def test_of_features_beside_an_encoder_only_those_that_hold_are_weights(tmp_path):
    pieces = {"@architectures": "spacy_weakner.PieceVectors.v1", "path": str(write_table(tmp_path)), "window": 0}
    model = {"@architectures": "spacy_weakner.CRFTagger.v1", "tok2vec": pieces, "linear": ENCODER}
    nlp = spacy.blank("xx")
    nlp.add_pipe("crf_ner", config={"model": model})
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    objective, n = PenalizedLoss(head_of(nlp), [head_of(nlp).read_batch(examples)], 0.1), head_of(nlp).n_outputs
    features = head_of(nlp).model.get_ref("linear").layers[0]
    used = len(numpy.unique(numpy.concatenate(features.predict([eg.predicted for eg in examples]))))
    assert 0 < used < 2000 and not any(
        own.any() for own in head_of(nlp).model.predict([eg.predicted for eg in examples])
    )
    assert objective.start.size == used * n + (6 + 1) * n + 2 * n + n * n
    first, last, _ = minimize(objective, 50, 1e-3)
    assert last < first and entities_of(nlp, TEXTS) == GOLD


@pytest.mark.parametrize("rows, other", [(2000, 2000), (2000, 500), (500, 2000)])
def test_two_tables_of_features(rows, other):
    beside = {**ENCODER, "rows": other, "affixes": 2, "window": 2}
    model = {"@architectures": "spacy_weakner.CRFTagger.v1", "tok2vec": {**ENCODER, "rows": rows}, "linear": beside}
    nlp = spacy.blank("xx")
    nlp.add_pipe("crf_ner", config={"model": model})
    examples = make_examples(nlp)
    nlp.initialize(lambda: examples)
    objective, every = (
        PenalizedLoss(head_of(nlp), [head_of(nlp).read_batch(examples)], 0.1),
        FlatWeights(head_of(nlp).model),
    )
    assert objective.start.size < every.read().size
    _, gradient = objective(objective.start)
    assert gradient.any()
    # What is left out has none.
    head_of(nlp).update(examples, drop=0.0)
    assert numpy.abs(every.read_gradient()).sum() == pytest.approx(numpy.abs(objective.weights.read_gradient()).sum())
    first, last, _ = minimize(objective, 50, 1e-3)
    assert last < first


def test_a_loss_of_zero_is_left_alone():
    nlp = small()
    examples = [make_example(nlp, "a b", annotated=False)]
    objective = PenalizedLoss(head_of(nlp), [head_of(nlp).read_batch(examples)], 1.0)
    head_of(nlp).loss = registry.resolve({"it": {**HOLES, "negative_rate": 0.0}})["it"]
    before = objective.start.copy()
    assert minimize(objective, 10, 1e-3) == (0.0, 0.0, 0)
    assert same([objective.weights.read()], [before])


@pytest.mark.parametrize("size", ["linear", "linear-static"])
@pytest.mark.parametrize("recipe", ["crf_ner", "crf_ner.strong_weak"])
def test_the_linear_sizes_in_spacys_own_loop(recipe, size, tmp_path):
    blank = spacy.blank("en")
    write_docs(tmp_path / "a.spacy", [make_doc(blank, text, entities) for text, entities in SENTENCES])
    config = make_config(recipe, size)
    config["paths"].update(dict.fromkeys(config["paths"], str(tmp_path / "a.spacy")))
    if size == "linear-static":
        (tmp_path / "pieces").mkdir()
        config["paths"]["pieces"] = str(write_table(tmp_path / "pieces"))
    nlp = init_nlp(config.interpolate())
    learned = table_of(nlp).copy()
    (tmp_path / "model").mkdir()
    train(nlp, tmp_path / "model", stdout=io.StringIO(), stderr=io.StringIO())
    assert learned.any() and same([table_of(nlp)], [learned])
    shutil.rmtree(tmp_path / "pieces", ignore_errors=True)
    again = spacy.load(tmp_path / "model" / "model-best")
    assert again.meta["performance"]["ents_f"] == 1.0
    assert same([table_of(again)], [learned])
    assert entities_of(again, TEXTS) == GOLD
    example = Example(make_doc(again, "Bob", annotated=False), make_doc(again, "Bob", [(0, 1, "PER")]))
    assert again.evaluate([example])["ents_f"] == 1.0
