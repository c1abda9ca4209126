"""Temperatures of heads, from little gold."""

from types import SimpleNamespace

import numpy
import pytest
import spacy

from spacy_weakner.project.combine import Predicted, calibrate_head

from ..util import make_doc

NLP = spacy.blank("xx")


class Head:
    """Its decisions have the given log-odds, and are right or not."""

    labels = ("PER",)
    temperature = 1.0

    def __init__(self, margins):
        self.margins = numpy.asarray(margins)

    def held_out_loss(self, examples):
        return lambda temperature: float(numpy.logaddexp(0.0, -self.margins[: len(examples)] / temperature).mean())

    def set_temperature(self, temperature):
        self.temperature = temperature


def temperature(margins, *, known=True):
    """What is found of Docs, in two unequal parts."""
    docs = [make_doc(NLP, "Bob went", [(0, 1, "PER" if known else "LOC")]) for _ in margins]
    heads = [Head(margins[:3]), Head(margins[3:])]
    pipelines = [SimpleNamespace(get_pipe=lambda name, head=head: head) for head in heads]
    whole = Head([])
    parts = [Predicted(nlp, own, own) for nlp, own in zip(pipelines, (docs[:3], docs[3:]), strict=True)]
    calibrate_head(SimpleNamespace(get_pipe=lambda name: whole), "crf_ner", parts)
    return whole.temperature


def test_few_sentences_that_are_all_right_prove_little():
    assert 0.4 < temperature([4.0] * 30) < 1.0
    assert temperature([4.0] * 3000) < temperature([4.0] * 30)


def test_with_gold_enough_it_is_the_likeliest():
    # Three in four are right, whose log-odds are log 3; the parts count by their sentences.
    margins = [-4.0] * 3 + ([4.0, 4.0, 4.0, -4.0] * 500)
    assert temperature(margins) == pytest.approx(4.0 / numpy.log(3.0), rel=0.01)


def test_gold_that_says_nothing_changes_nothing():
    assert temperature([4.0] * 6, known=False) == 1.0
