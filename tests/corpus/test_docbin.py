"""`.spacy` files: what is kept, what is not, and what is left when something fails."""

import math
import struct
import zlib

import numpy
import pytest
import spacy
import srsly
from spacy.attrs import HEAD, SPACY
from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Corpus
from spacy.vocab import Vocab

from spacy_weakner.corpus import weak
from spacy_weakner.corpus.docbin import HASHES, bare_copy, corpus_files, read_docs, write_docs
from spacy_weakner.corpus.weak import TagDistributions
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
    assert len(write_and_read(tmp_path / "b.spacy", Doc(NLP.vocab))) == 0


def test_our_user_data_is_kept(tmp_path):
    doc = make_doc(NLP, "a b")
    doc.cats = {"A": True, "B": 2, "C": 0.5}
    weak.set_id(doc, "s1")
    weak.set_weak(doc)
    weak.set_confidence(doc, 0.5)
    weak.set_tags(doc, ["B-X", None])
    weak.set_augmented(doc, ["x", "y"])
    weak.set_soft_labels(doc, TagDistributions(("O", "I-X"), "IO", numpy.full((2, 2), 0.5, dtype="float32")))
    found = write_and_read(tmp_path / "a.spacy", doc)
    assert found.cats == doc.cats
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


def test_scores_of_a_spancat_are_an_array(tmp_path):
    doc = make_doc(NLP, "a b")
    attrs = {"scores": numpy.array([0.25], dtype="float32")}
    doc.spans["weak:x"] = SpanGroup(doc, name="weak:x", spans=[Span(doc, 0, 1, "X")], attrs=attrs)
    assert weak.group_scores(write_and_read(tmp_path / "a.spacy", doc), "weak:x") == [0.25]


# Contents that are not those of a corpus, in a file that can be unpacked


def no_string(column):
    """A hash in a column of tokens is that of no string."""

    def change(message):
        tokens = numpy.frombuffer(message["tokens"], "uint64").reshape(-1, len(message["attrs"])).copy()
        tokens[0, message["attrs"].index(column)] = 12345
        message["tokens"] = tokens.tobytes()

    return change


def span(place, value):
    """A number of a stored span is another: id, kb_id, label, first token, end, first character, end."""

    def change(message):
        ((stored, names),) = srsly.msgpack_loads(message["span_groups"][0]).items()
        group = srsly.msgpack_loads(stored)
        values = list(struct.unpack(">QQQllll", group["spans"][0]))
        values[place] += value
        group["spans"][0] = struct.pack(">QQQllll", *values)
        message["span_groups"][0] = srsly.msgpack_dumps({srsly.msgpack_dumps(group): names})

    return change


def user_data(**values):
    def change(message):
        keys = {("weakner." + key): value for key, value in values.items()}
        message["user_data"][0] = srsly.msgpack_dumps(keys)

    return change


def other(**parts):
    return lambda message: message.update({name: make(message[name]) for name, make in parts.items()})


CATS = [{"A": ""}, {"A": math.nan}, {"A": None}, {"A": math.inf}, {1: 1.0}, ["A"], 3]
FORGED = [
    *((no_string(column), "12345") for column in HASHES),
    *((span(place, 119 << 24), "") for place in range(3, 7)),
    (span(2, 1), ""),
    *((other(cats=lambda found, cats=cats: [cats, *found[1:]]), "") for cats in CATS),
    (other(attrs=lambda found: [int(SPACY) if key == HEAD else key for key in found]), "tokens do not fit the text"),
    (other(spaces=lambda found: b"\2" + found[1:]), "tokens do not fit the text"),
    (other(strings=lambda found: []), ""),
    (other(span_groups=lambda found: [b"x", b"y"]), ""),
    (other(lengths=lambda found: found[:4]), ""),
    (other(user_data=lambda found: found[1:]), ""),
    (user_data(confidence="0.5"), "confidence"),
    (user_data(confidence=7.0), "confidence"),
    (user_data(tags=["O"]), "tags"),
    (user_data(id=3), "id"),
    (user_data(meta=3), "meta"),
    (user_data(soft={"labels": ["O"], "scheme": "IO", "probabilities": 1}), "soft"),
]


@pytest.mark.parametrize("change, reason", FORGED)
def test_wrong_contents_are_refused(tmp_path, change, reason):
    path, doc = tmp_path / "a.spacy", make_doc(NLP, "a b", [(0, 1, "X")])
    weak.set_confidence(doc, 0.5)
    doc.spans["x"] = [Span(doc, 0, 1, label="SOME")]
    write_docs(path, [doc, make_doc(NLP, "c")])
    message = srsly.msgpack_loads(zlib.decompress(path.read_bytes()))
    change(message)
    path.write_bytes(zlib.compress(srsly.msgpack_dumps(message)))
    with pytest.raises(WeaknerError, match=rf"WK206.*a\.spacy.*{reason}"):
        list(read_docs(path, Vocab()))


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
