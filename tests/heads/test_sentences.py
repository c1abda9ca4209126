"""A text gives what its sentences give, however it is wrapped."""

import itertools

import numpy
import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_weakner.corpus.weak import doc_entities, group_entities

from ..util import (
    ENTITY_HEADS,
    LISTENING_HEADS,
    SENTENCES,
    TEXTS,
    TOK2VEC,
    all_zero,
    clear_gradients,
    gradients,
    same,
    shared_pipeline,
)
from .util import CATEGORY, TALKATIVE, answer, example, pipeline, stir

# White-space tokens between any two words.
GAPS = [["\n"], [" "], ["\t", " "], ["\u00a0"]]


def wrapped(nlp, words, gap):
    """A Doc with a gap between all words, and at both ends."""
    return Doc(nlp.vocab, words=[*gap, *itertools.chain(*([word, *gap] for word in words))])


def text_of(nlp, sentences):
    """A Doc of several sentences."""
    words = [sentence.split() for sentence in sentences]
    starts = [i == 0 for own in words for i in range(len(own))]
    return Doc(nlp.vocab, words=list(itertools.chain(*words)), sent_starts=starts)


def found(doc, shift=lambda token: token, group=None):
    """Entities and their scores, with other offsets."""
    spans = doc.ents if group is None else doc.spans[group]
    scores = [s._.weakner_score for s in spans] if group is None else doc.spans[group].attrs["scores"]
    return [
        (
            shift(span.start),
            shift(span.end - 1) + 1,
            span.label_,
            None if score is None else pytest.approx(score, abs=1e-5),
        )
        for span, score in zip(spans, scores, strict=True)
    ]


def test_white_space_makes_no_difference(load, head):
    settings = {**TALKATIVE[head], "scores": True} if head == "crf_ner" else TALKATIVE[head]
    nlp = load(**settings)
    for text, gap in itertools.product(TEXTS, GAPS):
        plain, other = nlp(Doc(nlp.vocab, words=text.split())), nlp(wrapped(nlp, text.split(), gap))
        if head == CATEGORY:
            assert other.cats == pytest.approx(plain.cats, abs=1e-5)
            continue
        assert plain.ents or text == TEXTS[2]

        def shift(token, gap=gap):
            return len(gap) + token * (len(gap) + 1)

        assert found(other) == found(plain, shift)
        for group in plain.spans:
            assert found(other, group=group) == found(plain, shift, group)


@pytest.fixture(params=ENTITY_HEADS)
def talkative(request, paths):
    name = request.param
    settings = {**TALKATIVE[name], **({"scores": True} if name == "crf_ner" else {})}
    return spacy.load(paths / name, config={"components": {name: settings}})


def test_a_text_gives_what_its_sentences_give(talkative):
    nlp, offset, expected, groups = talkative, 0, [], {}
    for text in TEXTS:
        doc = nlp(Doc(nlp.vocab, words=text.split()))
        expected += found(doc, lambda token, by=offset: token + by)
        for group in doc.spans:
            groups.setdefault(group, []).extend(found(doc, lambda token, by=offset: token + by, group))
        offset += len(doc)
    docs = [text_of(nlp, TEXTS), text_of(nlp, TEXTS[::-1]), text_of(nlp, TEXTS[:1])]
    for doc in (nlp(text_of(nlp, TEXTS)), next(iter(nlp.pipe(docs)))):
        assert found(doc) == expected
        assert {group: found(doc, group=group) for group in doc.spans} == groups


@pytest.mark.parametrize("method", ["score_candidates", "score_tags", "entities_under"])
def test_so_does_what_stages_ask(talkative, method):
    ((_, pipe),) = talkative.pipeline
    if not hasattr(pipe, method):
        pytest.skip(f"has no {method}")
    ask = (lambda docs: pipe.entities_under(docs, [0.0, 2.0])) if method == "entities_under" else getattr(pipe, method)
    text, sentences = text_of(talkative, TEXTS), [Doc(talkative.vocab, words=text.split()) for text in TEXTS]
    (whole,), single = ask([text]), ask(sentences)
    starts = [0, *itertools.accumulate(map(len, sentences))]

    def moved(entities, n):
        return [((s + starts[n], e + starts[n], label), *rest) for (s, e, label), *rest in entities]

    if method == "score_tags":
        (path, rows), (paths, parts) = whole, zip(*single, strict=True)
        assert rows == pytest.approx(numpy.concatenate(parts), abs=1e-5)
        assert path.tags == [tag for part in paths for tag in part.tags]
        assert path.score == pytest.approx(sum(part.score for part in paths), rel=1e-4)
        assert path.log_probability == pytest.approx(sum(part.log_probability for part in paths), abs=1e-4)
    elif method == "score_candidates":
        expected = [own for n, found in enumerate(single) for own in moved(found, n)]
        assert [entity for entity, _ in whole] == [entity for entity, _ in expected]
        assert [score for _, score in whole] == pytest.approx([score for _, score in expected], abs=1e-5)
    else:
        by_bias = [
            [own for n, found in enumerate(single) for (own,) in moved([(e,) for e in found[b]], n)] for b in (0, 1)
        ]
        assert whole == by_bias


def test_white_space_inside_an_entity_is_tagged_with_it(talkative):
    ((_, pipe),) = talkative.pipeline
    if not hasattr(pipe, "score_tags"):
        pytest.skip("has no tags")
    ((path, rows),) = pipe.score_tags([wrapped(talkative, TEXTS[0].split(), ["\n"])])
    assert path.tags[8] == "I-LOC" and path.tags[0] == path.tags[2] == "O"
    assert rows.sum(axis=1) == pytest.approx([1.0] * len(path.tags), abs=1e-5)


def test_entities_that_are_there_stay(talkative):
    doc = wrapped(talkative, TEXTS[0].split(), ["\n"])
    doc.ents = [Span(doc, 7, 8, "ORG")]
    found = doc_entities(talkative(doc))
    assert (7, 8, "ORG") in found and (1, 2, "PER") in found and (7, 10, "LOC") not in found


@pytest.mark.parametrize("blocked", [False, True])
def test_annotated_white_space_stays(talkative, blocked):
    doc = wrapped(talkative, TEXTS[0].split(), ["\n"])
    doc.set_ents([] if blocked else [Span(doc, 8, 9, "ORG")], blocked=[doc[8:9]] * blocked, default="missing")
    found = doc_entities(talkative(doc))
    assert (1, 2, "PER") in found and (7, 10, "LOC") not in found and ((8, 9, "ORG") in found) != blocked


# Training


@pytest.mark.parametrize("gap", GAPS[:2])
def test_white_space_teaches_nothing(head, gap):
    results = []
    for with_gap in (False, True):
        nlp = stir(pipeline(head), head)
        ner, batch = nlp.get_pipe(head), []
        for text, entities in SENTENCES:
            plain = example(nlp, text, entities)
            if with_gap:
                by = len(gap)
                reference = wrapped(nlp, text.split(), gap)
                spans = [
                    Span(reference, by + s * (by + 1), by + (e - 1) * (by + 1) + 1, label) for s, e, label in entities
                ]
                reference.set_ents(spans, default="outside")
                reference.cats = plain.reference.cats
                plain = Example(wrapped(nlp, text.split(), gap), reference)
            batch.append(plain)
        clear_gradients(ner.model)
        losses = nlp.update(batch, sgd=False)
        results.append((losses[head], gradients(ner.model)))
    (loss, expected), (other, found) = results
    assert other == pytest.approx(loss, rel=1e-4)
    assert same(expected, found, tolerance=1e-5)


@pytest.mark.parametrize("head", ENTITY_HEADS)
def test_a_text_teaches_what_its_sentences_teach(head):
    results = []
    for as_text in (False, True):
        nlp = stir(pipeline(head), head)
        ner = nlp.get_pipe(head)
        batch = [example(nlp, text, entities) for text, entities in SENTENCES]
        if as_text:
            reference, offset, spans = text_of(nlp, TEXTS), 0, []
            for text, entities in SENTENCES:
                spans += [Span(reference, s + offset, e + offset, label) for s, e, label in entities]
                offset += len(text.split())
            reference.set_ents(spans, default="outside")
            batch = [Example(text_of(nlp, TEXTS), reference)]
        clear_gradients(ner.model)
        nlp.update(batch, sgd=False)
        results.append(gradients(ner.model))
    assert same(*results, tolerance=1e-5)


@pytest.mark.parametrize("head", [head for head in LISTENING_HEADS if head in ENTITY_HEADS])
def test_heads_on_a_shared_encoder_are_measured_by_sentence(head):
    # Without context, sentences have the same rows in a text and alone.
    nlp = shared_pipeline((head,), config={**TOK2VEC, "window_size": 0})
    reference = Doc(
        nlp.vocab, words=["Anna", "left", "Bob", "saw", "Paris"], sent_starts=[True, False, True, False, False]
    )
    reference.set_ents([Span(reference, 0, 1, "PER"), Span(reference, 4, 5, "LOC")], default="outside")
    predicted = Doc(nlp.vocab, words=[token.text for token in reference], sent_starts=[1, -1, 1, -1, -1])
    whole = Example(predicted, reference)
    single = [Example(predicted[a:b].as_doc(), reference[a:b].as_doc()) for a, b in ((0, 2), (2, 5))]
    pipe, encoder = nlp.get_pipe(head), nlp.get_pipe("tok2vec")
    for eg in (whole, *single):
        assert encoder(eg.predicted).tensor.any()
    assert pipe.held_out_loss([whole])(1.5) == pytest.approx(pipe.held_out_loss(single)(1.5), rel=1e-5)


@pytest.mark.parametrize("head", LISTENING_HEADS)
def test_a_shared_encoder_reads_whole_docs(head):
    nlp = shared_pipeline((head,))
    reference = Doc(nlp.vocab, words=["Anna", "\n", "left", "Bob", "."], sent_starts=[True, False, False, True, False])
    reference.set_ents([Span(reference, 0, 1, "PER")], default="outside")
    reference.cats = {"PER": 1.0}
    predicted = Doc(nlp.vocab, words=[token.text for token in reference], sent_starts=[1, -1, -1, 1, -1])
    blank = Doc(nlp.vocab, words=[" "])
    batch = [Example(predicted, reference), Example(blank.copy(), blank)]
    clear_gradients(nlp.get_pipe("tok2vec").model)
    losses = nlp.update(batch, sgd=False)
    assert losses[head] > 0 and not all_zero(gradients(nlp.get_pipe("tok2vec").model))
    assert answer(head, nlp(predicted.copy())) is not None
    assert [len(doc) for doc in nlp.pipe([predicted.copy(), blank.copy()])] == [5, 1]
    assert group_entities(blank, f"pred:{head}") == []
