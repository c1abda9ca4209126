"""The training clock, by hand and in spaCy's own training loop."""

import pytest
import spacy

from spacy_weakner.errors import WeaknerError
from spacy_weakner.training.clock import TrainingClock

from ..util import SENTENCES, crf_pipeline, head_config, loop_config, make_examples, run_loop


def recorded():
    nlp = spacy.blank("xx")
    return nlp, nlp.add_pipe("clock_recorder")


def read(nlp):
    return make_examples(nlp)


def tick(clock, nlp, *pairs):
    for step, epoch in pairs:
        clock(nlp, {"step": step, "epoch": epoch})


def test_progress_in_steps():
    nlp, recorder = recorded()
    tick(TrainingClock(total_steps=4), nlp, (0, 0), (1, 0), (2, 1), (4, 2), (5, 2))
    assert [tick[:3] for tick in recorder.ticks] == [(0, 0, 0.0), (1, 0, 0.25), (2, 1, 0.5), (4, 2, 1.0), (5, 2, 1.0)]


def test_the_number_of_epochs_is_known_after_the_first():
    nlp, recorder = recorded()
    tick(TrainingClock(total_steps=12), nlp, (0, 0), (1, 0), (2, 0), (3, 0), (4, 1), (5, 1), (9, 2))
    assert [tick.n_epochs for tick in recorder.ticks] == [12.0, 6.0, 4.0, 3.0, 3.0, 3.0, 3.0]
    nlp, recorder = recorded()
    tick(TrainingClock(total_epochs=7), nlp, (0, 0), (5, 1))
    assert [tick.n_epochs for tick in recorder.ticks] == [7.0, 7.0]


def test_progress_in_epochs():
    nlp, recorder = recorded()
    tick(TrainingClock(total_epochs=2), nlp, (0, 0), (7, 1), (14, 2), (21, 3))
    assert [found.progress for found in recorder.ticks] == [0.0, 0.5, 1.0, 1.0]


def test_renewals_come_at_the_interval_with_the_whole_corpus_and_after_the_tick():
    nlp, recorder = recorded()
    tick(TrainingClock(read, total_steps=5, interval=2), nlp, *((step, 0) for step in range(5)))
    texts = [text for text, _ in SENTENCES]
    assert [(step, [text.strip() for text in found]) for step, found in recorder.renewals] == [
        (0, texts),
        (2, texts),
        (4, texts),
    ]


def test_every_component_gets_its_own_reading_of_the_corpus():
    nlp, first = recorded()
    second = nlp.add_pipe("clock_recorder", name="second")
    tick(TrainingClock(lambda nlp: iter(make_examples(nlp)), total_steps=2, interval=1), nlp, (0, 0))
    assert first.renewals == second.renewals
    assert len(first.renewals[0][1]) == len(SENTENCES)


def test_renewals_see_what_annotating_components_write():
    nlp, recorder = recorded()
    ruler = nlp.add_pipe("gazetteer_ruler", first=True)
    ruler.initialize(lambda: [], nlp=nlp, terms={"PER": ["Bob"]})
    nlp.config["training"]["annotating_components"] = ["gazetteer_ruler"]
    examples = make_examples(nlp)
    tick(TrainingClock(lambda nlp: examples, total_steps=2, interval=1), nlp, (0, 0))
    assert len(recorder.renewals[0][1]) == len(examples)
    assert all("weak:gazetteer" in eg.predicted.spans for eg in examples)


def test_frozen_components_are_not_renewed():
    nlp, frozen = recorded()
    trained = nlp.add_pipe("clock_recorder", name="trained")
    nlp.config["training"]["frozen_components"] = ["clock_recorder"]
    tick(TrainingClock(read, total_steps=2, interval=1), nlp, (0, 0))
    assert len(trained.renewals) == 1 and frozen.renewals == []
    assert len(frozen.ticks) == 1


@pytest.mark.parametrize("settings", [{}, {"corpus": read}])
def test_without_an_interval_nothing_is_renewed(settings):
    nlp, recorder = recorded()
    tick(TrainingClock(total_steps=5, **settings), nlp, (0, 0), (1, 0))
    assert recorder.renewals == []


def test_a_training_without_renewals_is_warned_of():
    with pytest.warns(UserWarning, match="WK903"):
        TrainingClock(read, total_steps=5, interval=5)
    TrainingClock(read, total_steps=5, interval=4)


def test_components_that_want_no_clock_are_left_alone():
    nlp = spacy.blank("xx")
    nlp.add_pipe("sentencizer")
    tick(TrainingClock(read, total_steps=5, interval=1), nlp, (0, 0))


@pytest.mark.parametrize(
    "settings, message",
    [
        ({}, "total_steps"),
        ({"total_steps": 0, "total_epochs": 0}, "total_steps"),
        ({"total_steps": 5, "total_epochs": 5}, "total_steps=5, total_epochs=5"),
        ({"total_steps": -1}, "total_steps=-1"),
        ({"total_steps": 5, "interval": -1}, r"\[WK005\].*interval"),
        ({"total_steps": 5, "interval": 2}, "corpus"),
    ],
)
def test_settings_that_cannot_be(settings, message):
    with pytest.raises(ValueError, match=message):
        TrainingClock(**settings)


def test_zero_counts_as_not_given():
    assert TrainingClock(total_steps=0, total_epochs=3).total_epochs == 3


def test_a_component_that_needs_the_clock_says_so(monkeypatch):
    nlp = crf_pipeline()
    ner = nlp.get_pipe("crf_ner")
    monkeypatch.setattr(type(ner), "needs_clock", True)
    with pytest.raises(WeaknerError, match=r"\[WK004\] 'crf_ner'.*TrainingClock.*total_steps = \$"):
        nlp.update(make_examples(nlp), sgd=False)
    tick(TrainingClock(total_steps=4), nlp, (0, 0))
    assert nlp.update(make_examples(nlp), sgd=False)["crf_ner"] > 0


def test_a_component_that_needs_the_clock_predicts_without_it(monkeypatch):
    nlp = crf_pipeline()
    monkeypatch.setattr(type(nlp.get_pipe("crf_ner")), "needs_clock", True)
    assert len(nlp("Bob")) == 1


def run(tmp_path, settings, **training):
    """A training of two batches an epoch."""
    batcher = {"@batchers": "spacy.batch_by_sequence.v1", "size": 2, "get_length": None}
    corpus = {"@readers": "spacy_weakner.Corpus.v1", "path": str(tmp_path / "a.spacy")}
    clock = {"@callbacks": "spacy_weakner.TrainingClock.v1", "corpus": corpus, **settings}
    training = {"eval_frequency": 100, "batcher": batcher, "before_update": clock, **training}
    nlp, _ = run_loop(
        loop_config(tmp_path, {"crf_ner": head_config("crf_ner"), "clock_recorder": {}}, training=training)
    )
    return nlp


def test_in_the_training_loop_by_steps(tmp_path):
    nlp = run(tmp_path, {"total_steps": 5, "interval": 3}, max_steps=5)
    recorder = nlp.get_pipe("clock_recorder")
    # spaCy makes max_steps + 1 updates.
    assert [found.step for found in recorder.ticks] == [0, 1, 2, 3, 4, 5]
    assert [found.progress for found in recorder.ticks] == [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    assert [(step, len(texts)) for step, texts in recorder.renewals] == [(0, 4), (3, 4)]
    assert nlp.get_pipe("crf_ner")._tick == recorder.ticks[-1]


def test_in_the_training_loop_by_epochs(tmp_path):
    recorder = run(tmp_path, {"total_epochs": 3}, max_epochs=3).get_pipe("clock_recorder")
    assert [(found.epoch, round(found.progress, 2)) for found in recorder.ticks] == [
        (0, 0.0),
        (0, 0.0),
        (1, 0.33),
        (1, 0.33),
        (2, 0.67),
        (2, 0.67),
    ]
