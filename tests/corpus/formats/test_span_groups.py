"""Span groups of `.spacy` files that are not ours: counted, or read as the gold."""

import re

import pytest
from spacy.tokens import Doc, DocBin, Span

from spacy_weakner.checks.check import check
from spacy_weakner.conversion.convert import convert
from spacy_weakner.corpus import overlaps, weak
from spacy_weakner.corpus.docbin import read_docs
from spacy_weakner.corpus.formats import reading
from spacy_weakner.errors import WeaknerError
from spacy_weakner.project.new import init_project
from spacy_weakner.project.prepare import prepare

from ...util import iob
from .util import NLP, converted, ents, write_lines

WORDS = ["Anna", "met", "Bob", "in", "Paris"]
SPANS = [(0, 1, "PER"), (4, 5, "LOC")]


def write(path, *groups, n=1):
    """Docs with these span groups, and no entities."""
    bin_ = DocBin(store_user_data=True)
    for found in groups * n:
        doc = Doc(NLP.vocab, words=WORDS)
        for name, spans in found.items():
            doc.spans[name] = [Span(doc, *span) for span in spans]
        bin_.add(doc)
    bin_.to_disk(path)
    return path


@pytest.mark.parametrize(
    "spans, tags, notes",
    [
        (SPANS, "BOOOB", {}),
        ([], "OOOOO", {}),
        ([*SPANS, (0, 3, "X")], "---OB", {overlaps.OVERLAPS: 2}),
        ([*SPANS, (0, 1, "PER")], "BOOOB", {}),
    ],
)
def test_a_group_is_read_as_gold(tmp_path, spans, tags, notes):
    path = write(tmp_path / "a.spacy", {"sc": spans, "other": [(1, 2, "X")]})
    (doc,), report = converted(path, spans_key="sc")
    assert (iob(doc), report.notes, report.groups) == (tags, notes, {"other": 1})
    assert [*doc.spans] == ["other"]


def test_ids_of_the_group_are_read(tmp_path):
    doc = Doc(NLP.vocab, words=WORDS)
    doc.spans["sc"] = [Span(doc, *span, kb_id=f"Q{i}") for i, span in enumerate([*SPANS, (4, 5, "X")])]
    DocBin(docs=[doc]).to_disk(tmp_path / "a.spacy")
    (doc,), _ = converted(tmp_path / "a.spacy", spans_key="sc")
    assert [(ent.text, ent.kb_id_) for ent in doc.ents] == [("Anna", "Q0")]


def test_other_groups_are_counted_and_named(tmp_path):
    path = write(tmp_path / "a.spacy", {"sc": SPANS, weak.weak_group("list"): SPANS}, {"sc": []})
    docs, report = converted(path)
    assert report.groups == {"sc": 2} and [*docs[0].spans] == ["sc", "weak:list"]
    assert any("--spans-key sc" in remark and remark.endswith(": 2") for remark in report.remarks)
    assert convert(path, tmp_path / "a.jsonl", lang="xx").lost == {"spans of the group 'sc'": 2}
    assert convert(path, tmp_path / "b.jsonl", lang="xx", spans_key="sc").lost == {}


def test_documents_without_the_group_are_not_known(tmp_path):
    path = write(tmp_path / "a.spacy", {"sc": SPANS}, {})
    docs, report = converted(path, spans_key="sc")
    assert [iob(doc) for doc in docs] == ["BOOOB", "-----"] and report.notes == {reading.ABSENT: 1}
    for name, there in ((path, "sc"), (write_lines(tmp_path / "b.jsonl", [{"tokens": ["a"], "ents": []}]), "none")):
        with pytest.raises(WeaknerError, match=rf"WK372.*'ruler' \(groups there: {there}"):
            converted(name, spans_key="ruler")


def test_weak_entities_give_way(tmp_path):
    path = write(tmp_path / "a.spacy", {"sc": SPANS})
    (doc,) = read_docs(path, NLP.vocab)
    doc.set_ents([Span(doc, 0, 2, "X")])
    weak.set_weak(doc, True)
    bin_ = DocBin(store_user_data=True, docs=[doc])
    bin_.to_disk(path)
    (doc,), _ = converted(path, spans_key="sc")
    assert ents(doc) == [("Anna", "PER"), ("Paris", "LOC")] and not weak.is_weak(doc)


def test_check_names_the_group_and_reads_it(tmp_path):
    path = write(tmp_path / "a.spacy", {"sc": SPANS}, n=60)
    error = next(each for each in check(gold=path, lang="xx").findings if each.level == "error")
    assert re.search("None of its 60 sentences is annotated", error.message) and "--spans-key sc" in error.cure
    report = check(gold=path, lang="xx", spans_key="sc")
    assert report.errors == 0 and report.labels[0].counts == {"PER": 60, "LOC": 60}
    dev = write_lines(tmp_path / "dev.jsonl", [{"tokens": ["Anna", str(i)], "ents": [[0, 1, "PER"]]} for i in range(9)])
    assert check(gold=path, dev=dev, lang="xx", spans_key="sc").errors == 0
    for files, expected in (({"gold": path}, "WK372"), ({"dev": dev}, "is a .spacy file")):
        errors = [f for f in check(**files, lang="xx", spans_key="ruler").findings if f.level == "error"]
        assert len(errors) == 1 and expected in errors[0].message


def test_a_project_reads_it_too(tmp_path):
    path = write(tmp_path / "a.spacy", {"sc": SPANS}, n=60)
    init_project(tmp_path / "project", gold=path, spans_key="sc")
    text = (tmp_path / "project" / "project.yml").read_text()
    assert text.count("--spans-key '${vars.spans_key}'") == 2 and '\n  spans_key: "sc"\n' in text
    init_project(tmp_path / "other", gold=path)
    assert "spans_key" not in (tmp_path / "other" / "project.yml").read_text()
    prepared = prepare(tmp_path / "corpus", gold=path, spans_key="sc")
    assert prepared.gold == 60
