"""Sentences of visible tokens."""

from dataclasses import dataclass
from typing import List

import numpy
import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example
from thinc.types import Ragged

from spacy_weakner.corpus.gold import find_gold, set_gold
from spacy_weakner.corpus.parts import Parts, split_doc, split_examples
from spacy_weakner.corpus.weak import (
    TagDistributions,
    doc_entities,
    get_augmented,
    get_soft_labels,
    get_tags,
    group_entities,
    group_scores,
    is_weak,
    set_augmented,
    set_group,
    set_soft_labels,
    set_source,
    set_tags,
    set_weak,
)


def doc_of(text, starts=(), entities=(), **settings):
    """A Doc of words; "_" is a white-space token, "|" a line end, "¶" a blank line."""
    words = [{"_": " ", "|": "\n", "¶": "\n\n"}.get(word, word) for word in text.split()]
    sent_starts = [i in starts for i in range(len(words))] if starts else None
    doc = Doc(spacy.blank("xx").vocab, words=words, sent_starts=sent_starts)
    if entities or settings:
        doc.set_ents([Span(doc, *entity) for entity in entities], **{"default": "outside", **settings})
    return doc


def words_of(docs):
    return [[token.text for token in doc] for doc in docs]


@pytest.mark.parametrize(
    "text, starts, expected",
    [
        ("", (), [[]]),
        ("a b", (), [["a", "b"]]),
        ("a b", (0,), [["a", "b"]]),
        ("a b c", (0, 1), [["a"], ["b", "c"]]),
        ("_ a | b _", (), [["a", "b"]]),
        ("_ |", (), []),
        ("a ¶ b", (), [["a"], ["b"]]),
        ("a | | b", (), [["a"], ["b"]]),
        ("¶ a | b ¶", (), [["a", "b"]]),
        ("a | b c", (0, 1), [["a"], ["b", "c"]]),
        ("a | b c", (0, 2), [["a"], ["b", "c"]]),
    ],
)
def test_sentences_and_blank_lines_split_and_white_space_is_left_out(text, starts, expected):
    doc = doc_of(text, starts)
    parts = split_doc(doc)
    assert words_of(part.doc for part in parts) == expected
    assert [[doc[i].text for i in part.tokens.tolist()] for part in parts] == expected
    visible = [[word for words in expected for word in words]]
    assert words_of(part.doc for part in split_doc(doc, sentences=False)) == (visible if any(expected) else expected)


def test_one_sentence_of_visible_tokens_is_its_own_part():
    doc = doc_of("a b c")
    assert split_doc(doc)[0].doc is doc
    assert Parts.of([doc, doc_of("")]).are_whole
    assert not Parts.of([doc, doc_of("a _")]).are_whole


@pytest.mark.parametrize(
    "entities, settings, starts, iob, expected",
    [
        ([(0, 3, "X")], {}, (), "BIO", [(0, 2, "X")]),
        ([(0, 1, "X"), (2, 3, "X")], {}, (), "BBO", [(0, 1, "X"), (1, 2, "X")]),
        ([(1, 3, "X")], {}, (), "OBO", [(1, 2, "X")]),
        ([(1, 2, "X")], {}, (), "OOO", []),
        ([], {"default": "missing"}, (), ["", "", ""], []),
        ([(3, 4, "X")], {"default": "missing"}, (), ["", "", "B"], [(2, 3, "X")]),
        # Cut by a bound.
        ([(2, 4, "X")], {}, (0, 3), "OBB", [(1, 2, "X"), (2, 3, "X")]),
    ],
)
def test_entities(entities, settings, starts, iob, expected):
    parts = split_doc(doc_of("a | b c", starts, entities, **settings))
    assert [token.ent_iob_ for part in parts for token in part.doc] == list(iob)
    offsets = numpy.cumsum([0, *(len(part.doc) for part in parts)]).tolist()
    found = [(s + n, e + n, label) for n, p in zip(offsets, parts, strict=False) for s, e, label in doc_entities(p.doc)]
    assert found == expected


def test_blocked_tokens_spaces_and_ids_stay():
    doc = doc_of("a | b c")
    doc.set_ents([Span(doc, 0, 3, "X", kb_id="Q1")], blocked=[doc[3:4]], default="outside")
    doc.spans["weak:t"] = [Span(doc, 0, 3, "X", kb_id="Q2")]
    (part,) = split_doc(doc)
    assert [(token.ent_iob_, token.ent_type_) for token in part.doc] == [("B", "X"), ("I", "X"), ("B", "")]
    assert part.doc.ents[0].kb_id_ == "Q1" and part.doc.spans["weak:t"][0].kb_id_ == "Q2"
    doc = Doc(spacy.blank("xx").vocab, words=["a", "\n", "b", "c", " ", "."], spaces=[False] * 6)
    assert split_doc(doc)[0].doc.text == "a bc ."


def test_groups_go_to_the_sentence_that_holds_their_spans():
    doc = doc_of("a | b c _ d", (0, 3))
    set_source(
        doc, "t", [(0, 3, "X"), (2, 4, "CROSSES"), (3, 5, "Y"), (4, 6, "Z"), (1, 2, "SPACE")], [0.1, 0.2, 0.3, 0.4, 0.5]
    )
    set_group(doc, "pred:p", [])
    first, second = (part.doc for part in split_doc(doc))
    assert (group_entities(first, "weak:t"), group_scores(first, "weak:t")) == ([(0, 2, "X")], [0.1])
    assert (group_entities(second, "weak:t"), group_scores(second, "weak:t")) == (
        [(0, 1, "Y"), (1, 2, "Z")],
        [0.3, 0.4],
    )
    assert "pred:p" in first.spans and "pred:p" in second.spans


def test_what_is_known_of_a_sentence_goes_with_its_tokens():
    doc = doc_of("a | b c", (0, 3))
    rows = numpy.arange(8, dtype="float32").reshape(4, 2)
    set_weak(doc)
    set_tags(doc, ["B-X", "I-X", "I-X", None])
    set_augmented(doc, ["A", "|", "B", "C"])
    set_soft_labels(doc, TagDistributions(("O", "I-X"), "IO", rows))
    set_gold(doc, [(0, 3, "X")], missing=[1, 3])
    first, second = (part.doc for part in split_doc(doc))
    assert is_weak(first) and is_weak(second)
    assert (get_tags(first), get_tags(second)) == (["B-X", "I-X"], [None])
    assert (get_augmented(first), get_augmented(second)) == (["A", "B"], ["C"])
    assert [get_soft_labels(part).probabilities.tolist() for part in (first, second)] == [[[0, 1], [4, 5]], [[6, 7]]]
    assert (find_gold(first).entities, find_gold(first).missing) == ({(0, 2, "X")}, frozenset())
    assert (find_gold(second).entities, find_gold(second).missing) == (frozenset(), {0})


def test_selecting_and_spreading_rows():
    docs = [doc_of("a | b c", (0, 3)), doc_of("_"), doc_of("x y")]
    parts, rows = Parts.of(docs), [numpy.arange(2.0 * len(doc)).reshape(-1, 2) for doc in docs]
    selected = parts.select(rows)
    assert [len(rows) for rows in selected] == [2, 1, 2]
    spread = parts.spread(selected, rows)
    assert [rows.tolist() for rows in spread] == [[[0, 1], [0, 0], [4, 5], [6, 7]], [[0, 0]], [[0, 1], [2, 3]]]
    # Only a part with white space within it needs an index per row.
    assert [isinstance(part.rows, slice) for part in split_doc(docs[0])] == [False, True]


@dataclass
class Data:
    """Like what spacy-transformers leaves in `doc._.trf_data`: the numbers of each token's pieces."""

    align: Ragged


@dataclass
class Layers:
    """Like what spacy-curated-transformers leaves there: the rows of each token's pieces, for each layer."""

    all_outputs: List[Ragged]


@pytest.mark.parametrize("wrap", [Data, lambda rows: Layers([rows])])
@pytest.mark.parametrize("lengths", [[1, 1, 1, 1], [2, 0, 1, 3], [0, 1, 2, 0], [0, 0, 0, 0]])
def test_sharing_what_an_encoder_has_written(lengths, wrap):
    before = {name: Doc.get_extension(name) for name in ["trf_data"] if Doc.has_extension(name)}
    doc, pieces = doc_of("a | b c", (0, 3)), numpy.split(numpy.arange(sum(lengths)) + 10, numpy.cumsum(lengths)[:-1])
    doc.tensor = numpy.arange(8.0).reshape(-1, 2)
    Doc.set_extension("trf_data", default=None, force=True)
    try:
        doc._.trf_data = wrap(Ragged(numpy.concatenate(pieces), numpy.array(lengths)))
        parts = Parts.of([doc, doc_of("_"), doc_of("x | y")])  # the others have no encoding
        parts.share_encoding()
        found = [part._.trf_data for part in parts.docs]
        tables = [data.align if wrap is Data else data.all_outputs[0] for data in found[:2]]
    finally:
        Doc.remove_extension("trf_data")
        for name, (default, method, getter, setter) in before.items():
            Doc.set_extension(name, default=default, method=method, getter=getter, setter=setter)
    assert [part.tensor.tolist() for part in parts.docs] == [[[0, 1], [4, 5]], [[6, 7]], []]
    assert [table.lengths.tolist() for table in tables] == [[lengths[0], lengths[2]], [lengths[3]]]
    assert [table.dataXd.tolist() for table in tables] == [[*pieces[0], *pieces[2]], [*pieces[3]]]
    assert found[2:] == [None]


def test_rows_of_an_empty_doc_may_have_no_width():
    """spacy-transformers gives (0, 0) arrays."""
    rows = [numpy.ones((3, 2)), numpy.zeros((0, 0))]
    spread = Parts.of([doc_of("a | b"), doc_of("")]).spread([numpy.ones((2, 2)), numpy.zeros((0, 2))], rows)
    assert [rows.tolist() for rows in spread] == [[[1, 1], [0, 0], [1, 1]], []]


# Examples


@pytest.mark.parametrize(
    "starts, entities, expected",
    [
        ((0, 3), [(0, 3, "X")], [["a", "b"], ["c", "d"]]),
        # No sentence begins inside an entity.
        ((0, 3), [(2, 4, "X")], [["a", "b", "c", "d"]]),
    ],
)
def test_examples_of_the_same_tokens(starts, entities, expected):
    example = Example(doc_of("a | b c d", starts), doc_of("a | b c d", (), entities))
    parts, split = split_examples([example])
    assert words_of(eg.predicted for eg in split) == words_of(eg.reference for eg in split) == expected
    assert parts.docs == [eg.predicted for eg in split]
    assert sum(len(eg.reference.ents) for eg in split) == 1
    example = Example(doc_of("a b"), doc_of("a b"))
    assert split_examples([example])[1][0] is example


@pytest.mark.parametrize(
    "words, starts, reference, entities, expected",
    [
        # The reference has no white space.
        (["ab", "\n", "c", "d"], (0, 3), ["a", "b", "c", "d"], [(0, 3, "X")], [["a", "b", "c"], ["d"]]),
        # A token of it stands on both sides of a bound.
        (["a", "\n", "b", "c"], (0, 3), ["a", "bc"], [(0, 1, "X")], [["a", "bc"]]),
        # Other white space.
        (["a", "\n", "b"], (), ["a", " ", "b"], [(0, 3, "X")], [["a", "b"]]),
    ],
)
def test_examples_of_other_tokens(words, starts, reference, entities, expected):
    vocab = spacy.blank("xx").vocab
    sent_starts = [i in starts for i in range(len(words))] if starts else None
    predicted = Doc(vocab, words=words, spaces=[False] * len(words), sent_starts=sent_starts)
    gold = Doc(vocab, words=reference, spaces=[False] * len(reference))
    gold.ents = [Span(gold, *entity) for entity in entities]
    _, split = split_examples([Example(predicted, gold)])
    assert words_of(eg.reference for eg in split) == expected
    assert all(eg.get_aligned_ner() for eg in split)
    assert sum(len(eg.reference.ents) for eg in split) == len(entities)
