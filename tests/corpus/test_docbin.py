"""`.spacy` files: what is kept, what is not, and what is left when something fails."""

import math
import struct

import numpy
import pytest
import spacy
import srsly
from spacy.attrs import HEAD, SPACY
from spacy.tokens import Doc, DocBin, Span, SpanGroup
from spacy.training import Corpus
from spacy.vocab import Vocab

from spacy_weakner.corpus import weak
from spacy_weakner.corpus.docbin import HASHES, bare_copy, corpus_files, read_docs, write_docs
from spacy_weakner.corpus.weak import SoftLabels
from spacy_weakner.errors import WeaknerError

from ..util import make_doc

NLP = spacy.blank("xx")


class TransformerData:
    """Like what spacy-transformers leaves in `doc._.trf_data`: nothing that msgpack could write."""


def write_and_read(path, doc):
    write_docs(path, [doc])
    return next(read_docs(path, Vocab()))


@pytest.mark.parametrize("default, expected", [("missing", "-BI-"), ("outside", "OBIO")])
def test_missing_is_not_outside(tmp_path, default, expected):
    doc = make_doc(NLP, "a b c d", annotated=False)
    doc.set_ents([spacy.tokens.Span(doc, 1, 3, "X")], default=default)
    found = write_and_read(tmp_path / "a.spacy", doc)
    assert "".join(token.ent_iob_ or "-" for token in found) == expected


def test_empty_docs_are_kept(tmp_path):
    assert len(write_and_read(tmp_path / "a.spacy", Doc(NLP.vocab))) == 0


def test_our_user_data_is_kept(tmp_path):
    doc = make_doc(NLP, "a b")
    weak.set_id(doc, "s1")
    weak.set_weak(doc)
    weak.set_confidence(doc, 0.5)
    weak.set_tags(doc, ["B-X", None])
    weak.set_augmented(doc, ["x", "y"])
    weak.set_soft_labels(doc, SoftLabels(("O", "I-X"), "IO", numpy.full((2, 2), 0.5, dtype="float32")))
    found = write_and_read(tmp_path / "a.spacy", doc)
    (read_by_spacy,) = Corpus(tmp_path / "a.spacy")(NLP)
    assert weak.get_confidence(read_by_spacy.reference) == 0.5
    assert (weak.get_id(found), weak.is_weak(found), weak.get_confidence(found)) == ("s1", True, 0.5)
    assert (weak.get_tags(found), weak.get_augmented(found)) == (["B-X", None], ["x", "y"])
    assert weak.get_soft_labels(found).labels == ("O", "I-X")
    assert weak.get_soft_labels(found).probabilities.tolist() == [[0.5, 0.5], [0.5, 0.5]]


def test_other_user_data_is_neither_stored_nor_lost(tmp_path):
    doc = make_doc(NLP, "a b")
    doc.user_data["junk"] = "kept by components"
    doc.user_data[("._.", "trf_data", None, None)] = TransformerData()
    before = dict(doc.user_data)
    weak.set_id(doc, "s1")
    found = write_and_read(tmp_path / "a.spacy", doc)
    assert dict(found.user_data) == {"weakner.id": "s1"}
    assert {**doc.user_data, **before} == doc.user_data


# Files


@pytest.mark.parametrize("name, code", [("no.spacy", "WK100"), ("", "WK101")])
def test_files_that_are_not_there(tmp_path, name, code):
    with pytest.raises(WeaknerError, match=code):
        corpus_files(tmp_path / name)


def test_a_folder_of_shards_is_read_in_order(tmp_path):
    for name in ("b/2.spacy", "a/1.spacy", "c.spacy", ".hidden.spacy", "c.txt"):
        write_docs(tmp_path / name, [make_doc(NLP, name)])
    assert [doc.text for doc in read_docs(tmp_path, NLP.vocab)] == ["a/1.spacy", "b/2.spacy", "c.spacy"]


@pytest.mark.parametrize("damage", [lambda data: data[: len(data) // 2], lambda data: b"", lambda data: b"no corpus"])
def test_a_damaged_file(tmp_path, damage):
    path = tmp_path / "a.spacy"
    write_docs(path, [make_doc(NLP, "a b c", [(0, 1, "X")])])
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(WeaknerError, match=r"\[WK206\].*a\.spacy"):
        list(read_docs(path, NLP.vocab))


def failing_docs():
    yield make_doc(NLP, "a")
    raise RuntimeError("no more")


@pytest.mark.parametrize("earlier", [True, False])
def test_nothing_is_left_behind_or_lost_when_writing_fails(tmp_path, earlier):
    path = tmp_path / "a.spacy"
    before = [write_docs(path, [make_doc(NLP, "old")])] if earlier else []
    with pytest.raises(RuntimeError):
        write_docs(path, failing_docs())
    assert [p.name for p in tmp_path.iterdir()] == ["a.spacy"] * len(before)
    assert [doc.text for p in tmp_path.iterdir() for doc in read_docs(p, NLP.vocab)] == ["old"] * len(before)


@pytest.mark.parametrize("cats", [{"A": ""}, {"A": math.nan}, {"A": None}, {"A": math.inf}, {1: 1.0}, ["A"]], ids=str)
def test_categories_without_numbers_are_refused(tmp_path, cats):
    doc = Doc(Vocab(), words=["a"])
    bin_ = DocBin(store_user_data=True, docs=[doc])
    bin_.cats = [cats]
    bin_.to_disk(tmp_path / "a.spacy")
    with pytest.raises(WeaknerError, match=r"WK206.*a\.spacy.*cats"):
        list(read_docs(tmp_path / "a.spacy", Vocab()))


def test_scores_of_a_spancat_are_an_array(tmp_path):
    doc = make_doc(NLP, "a b")
    attrs = {"scores": numpy.array([0.25], dtype="float32")}
    doc.spans["weak:x"] = SpanGroup(doc, name="weak:x", spans=[Span(doc, 0, 1, "X")], attrs=attrs)
    assert weak.group_scores(write_and_read(tmp_path / "a.spacy", doc), "weak:x") == [0.25]


def two_words():
    return DocBin(store_user_data=True, docs=[Doc(Vocab(), words=["a", "b"], ents=["B-X", "O"])])


@pytest.mark.parametrize("where", ["spaces", "attrs"])
def test_blanks_of_other_sizes_are_refused(tmp_path, where):
    bin_ = two_words()
    if where == "spaces":
        bin_.spaces[0].view("uint8")[0] = 2
    else:
        bin_.attrs[bin_.attrs.index(HEAD)] = SPACY
    bin_.to_disk(tmp_path / "a.spacy")
    with pytest.raises(WeaknerError, match=r"WK206.*a\.spacy.*stand where"):
        list(read_docs(tmp_path / "a.spacy", Vocab()))


@pytest.mark.parametrize("attr", HASHES)
def test_hashes_of_no_string_are_refused(tmp_path, attr):
    bin_ = two_words()
    bin_.tokens[0][0, bin_.attrs.index(attr)] = 12345
    bin_.to_disk(tmp_path / "a.spacy")
    with pytest.raises(WeaknerError, match=r"WK206.*a\.spacy.*12345"):
        list(read_docs(tmp_path / "a.spacy", Vocab()))


@pytest.mark.parametrize("place", range(4))
def test_spans_that_stand_nowhere_are_refused(tmp_path, place):
    doc = Doc(Vocab(), words=["a", "b"])
    doc.spans["x"] = [Span(doc, 0, 1, label="SOME")]
    bin_ = DocBin(store_user_data=True, docs=[doc])
    ((stored, names),) = srsly.msgpack_loads(bin_.span_groups[0]).items()
    group = srsly.msgpack_loads(stored)
    # id, kb_id, label, first token, end, first character, end
    values = list(struct.unpack(">QQQllll", group["spans"][0]))
    values[3 + place] += 119 << 24
    group["spans"][0] = struct.pack(">QQQllll", *values)
    bin_.span_groups[0] = srsly.msgpack_dumps({srsly.msgpack_dumps(group): names})
    bin_.to_disk(tmp_path / "a.spacy")
    with pytest.raises(WeaknerError, match=r"WK206.*a\.spacy"):
        list(read_docs(tmp_path / "a.spacy", Vocab()))


def test_labels_of_spans_that_are_no_string_are_refused(tmp_path):
    doc, other = Doc(Vocab(), words=["a"]), Doc(Vocab(), words=["a"])
    doc.spans["x"] = [Span(doc, 0, 1, label="SOME")]
    bin_ = DocBin(docs=[other, other])
    bin_.span_groups[1] = doc.spans.to_bytes()
    bin_.to_disk(tmp_path / "a.spacy")
    with pytest.raises(WeaknerError, match=r"WK206.*a\.spacy"):
        list(read_docs(tmp_path / "a.spacy", Vocab()))


def test_categories_may_be_any_numbers(tmp_path):
    doc = Doc(Vocab(), words=["a"])
    doc.cats = {"A": True, "B": 2, "C": 0.5}
    write_docs(tmp_path / "a.spacy", [doc])
    (read,) = read_docs(tmp_path / "a.spacy", Vocab())
    assert read.cats == {"A": True, "B": 2, "C": 0.5}


def test_a_bare_copy_has_the_same_words_and_nothing_else():
    one, two = spacy.blank("xx"), spacy.blank("xx")
    for doc in (
        one("  Bob's NOUN \n\n likes  it\tcafé "),
        one(""),
        Doc(one.vocab, words=["a", "b"], spaces=[False, True]),
    ):
        doc.set_ents([], default="outside")
        for vocab in (None, two.vocab):
            copy = bare_copy(doc, vocab)
            assert copy.vocab is (doc.vocab if vocab is None else vocab)
            assert [token.text_with_ws for token in copy] == [token.text_with_ws for token in doc]
            assert copy.text_with_ws == doc.text_with_ws and not (len(copy) and copy.has_annotation("ENT_IOB"))
