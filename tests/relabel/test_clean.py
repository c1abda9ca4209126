"""`clean` with pipelines that say what the test wants."""

import json
from typing import Any, Dict, List

import numpy
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span

from spacy_weakner.corpus import weak
from spacy_weakner.corpus.docbin import read_docs, write_docs
from spacy_weakner.errors import WeaknerError
from spacy_weakner.labeling.aggregate import aggregate
from spacy_weakner.relabel.clean import clean
from spacy_weakner.relabel.confident_learning import UNKNOWN, given_labels, suspect_tokens
from spacy_weakner.runtime.hashes import hash_file

from ..cli.util import invoke
from ..util import make_doc
from .util import nested_is_refused

NLP = spacy.blank("xx")
TAGS = ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]


class Oracle:
    """Says of every word the probabilities that it was given; of others that they are "O"."""

    tag_scheme = "BIO"

    def __init__(self, words: Dict[str, Any], tags: List[str]) -> None:
        self.words, self.distribution_labels = words, tuple(tags)

    def __call__(self, doc):
        return doc

    labels = ("LOC", "PER")

    def score_tags(self, docs):
        default = [1.0] + [0.0] * (len(self.distribution_labels) - 1)
        found = ([self.words.get(token.text, default) for token in doc] for doc in docs)
        return [(None, numpy.asarray(rows, "float32").reshape(-1, len(default))) for rows in found]


@Language.factory("clean_oracle", default_config={"tags": TAGS})
def make_oracle(nlp: Language, name: str, words: Dict[str, Any], tags: List[str]) -> Oracle:
    return Oracle(words, tags)


def sure(tag, probability=0.9, tags=TAGS):
    """A tag is probable, all others are equally improbable."""
    return [probability if other == tag else (1 - probability) / (len(tags) - 1) for other in tags]


# "Rose" is a person to the model, "May" is nothing, "Rome" a place (B and I together), "Ann" hardly a person.
WORDS = {
    "Anna": sure("B-PER"),
    "Rose": sure("B-PER", 0.8),
    "May": sure("O", 0.98),
    "Rome": [0.1, 0.45, 0.35, 0.05, 0.05],
    "Ann": sure("B-PER", 0.4),
    "York": sure("I-LOC"),
    "New": sure("B-LOC"),
}
LABELED = [
    ("Anna saw Rome", [(0, 1, "PER"), (2, 3, "LOC")]),
    ("Rose saw May", [(0, 1, "LOC"), (2, 3, "PER")]),
    ("Anna Ann of New York", [(0, 2, "PER"), (3, 4, "LOC")]),
    ("", []),
    ("New York City", [(0, 3, "LOC")]),
    ("Anna", [(0, 1, "PER")]),
]
SUSPECT = [(1, (0, 1, "LOC"), "PER"), (1, (2, 3, "PER"), "O"), (4, (0, 3, "LOC"), "O")]
BESIDE = [(2, (3, 4, "LOC"), "LOC"), (2, (4, 5, "O"), "LOC")]


def save_oracle(path, words=WORDS, tags=TAGS):
    nlp = spacy.blank("xx")
    nlp.add_pipe("clean_oracle", config={"words": words, "tags": tags})
    nlp.to_disk(path)
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return save_oracle(tmp_path_factory.mktemp("model") / "oracle")


def corpus_docs(is_weak=True):
    docs = []
    for number, (text, entities) in enumerate(LABELED):
        doc = make_doc(NLP, text, entities)
        weak.set_id(doc, f"d{number}")
        weak.set_source(doc, "terms", entities[:1])
        weak.set_source(doc, "llm", entities)
        if is_weak:
            weak.set_weak(doc)
        docs.append(doc)
    return docs


def run(tmp_path, docs, model, **settings):
    write_docs(tmp_path / "in.spacy", docs)
    report = clean(tmp_path / "in.spacy", tmp_path / "out.spacy", model, **settings)
    return report, list(read_docs(tmp_path / "out.spacy", NLP.vocab))


def found_in(docs):
    result = []
    for number, doc in enumerate(docs):
        group = doc.spans.get(weak.SUSPECT_GROUP, [])
        instead = group.attrs["instead"] if group else []
        result += [(number, (s.start, s.end, s.label_), i) for s, i in zip(group, instead, strict=True)]
    return result


def make_folds(folder, parts):
    """What `train --folds` leaves: pipelines, and the Docs that they have not seen."""
    folder.mkdir()
    rows = []
    for number, (words, docs) in enumerate(parts):
        save_oracle(folder / f"model-{number}", words)
        write_docs(folder / f"fold-{number}.spacy", docs)
        key = hash_file(folder / f"fold-{number}.spacy")
        rows.append({"model": f"model-{number}", "corpus": f"fold-{number}.spacy", "corpus_hash": key})
    (folder / "folds.json").write_text(json.dumps(rows))
    return folder


# What is suspect


def test_planted_errors_are_found_and_nothing_else(tmp_path, model):
    report, docs = run(tmp_path, corpus_docs(), model)
    assert found_in(docs) == SUSPECT
    assert [weak.doc_entities(doc) for doc in docs] == [
        [(0, 1, "PER"), (2, 3, "LOC")],
        [],
        [(0, 2, "PER"), (3, 4, "LOC")],
        [],
        [],
        [(0, 1, "PER")],
    ]
    assert [token.ent_iob for token in docs[1]] == [0, 2, 0] and all(weak.is_weak(doc) for doc in docs)
    assert (report.docs, report.tokens, report.missing, report.gold) == (6, 15, 5, 0)
    counts = {name: (label.units, label.suspect) for name, label in report.labels.items()}
    assert counts == {"LOC": (4, 2), "O": (4, 0), "PER": (4, 1)}
    counts = {name: (source.units, source.suspect) for name, source in report.sources.items()}
    assert counts == {"llm": (8, 3), "terms": (5, 2)}
    # What sources say stays.
    assert weak.group_entities(docs[1], "weak:llm") == LABELED[1][1]


def test_tokens_outside_and_borders(tmp_path, model):
    _, docs = run(tmp_path, corpus_docs(), model, outside=True)
    assert found_in(docs) == [*SUSPECT[:2], *BESIDE, SUSPECT[2]]
    assert weak.doc_entities(docs[2]) == [(0, 2, "PER")] and [token.ent_iob for token in docs[2]][2:] == [2, 0, 0]
    (tmp_path / "out.spacy.json").unlink()
    (tmp_path / "out.spacy").unlink()
    report, docs = run(tmp_path, corpus_docs(), model, outside=True, entities=False)
    assert found_in(docs) == BESIDE
    assert (report.labels["O"].suspect, report.labels["LOC"].suspect, report.missing) == (1, 1, 2)


def test_thresholds_are_mean_self_confidences(tmp_path, model):
    report, _ = run(tmp_path, corpus_docs(), model)
    loc = [0.8, 0.1, 0.925, 0.925, 0.925, 0.0]  # Rome, Rose, New, and New York City
    assert report.labels["LOC"].threshold == pytest.approx(numpy.mean(loc))
    per = [0.925, 0.01, 0.925, 0.55, 0.925]
    assert report.labels["PER"].threshold == pytest.approx(numpy.mean(per))


def test_the_rule_is_that_of_the_equation():
    """A twin that goes from token to token."""
    rng = numpy.random.default_rng(0)
    labels = ["O", "A", "B", "C"]
    seen = 0
    for factor in (0.3, 1.0, 1.5):
        rows = rng.dirichlet([0.5] * 4, 60)
        rows[:10, 3] = numpy.nan
        given = rng.integers(-1, 4, 60)
        thresholds = numpy.array([0.5, 0.3, 0.2, numpy.nan])
        found = suspect_tokens(rows, given, thresholds, factor)
        for i in range(60):
            k = given[i]
            others = {j: rows[i, j] for j in range(4) if j != k and rows[i, j] >= thresholds[j]}
            wrong = k >= 0 and rows[i, k] < factor * thresholds[k] and bool(others)
            assert found.instead[i] == (max(others, key=others.get) if wrong else UNKNOWN)
            seen += wrong
    assert seen > 20
    assert given_labels(3, [(1, 2, "Z")], [0], labels).tolist() == [0, UNKNOWN, UNKNOWN]


def test_white_space_makes_nothing_suspect(tmp_path, model):
    docs = [Doc(NLP.vocab, words=words) for words in (["New", "\n", "York", "saw"], ["New", "\n", "New", "York"])]
    for doc in docs:
        doc.set_ents([Span(doc, 0, 3, "LOC")])
        weak.set_weak(doc)
    report, found = run(tmp_path, docs, model)
    assert found_in(found) == [] and report.labels["LOC"].threshold == pytest.approx(0.925)
    (tmp_path / "out.spacy").unlink()
    _, found = run(tmp_path, docs, model, outside=True)
    assert found_in(found) == [(1, (0, 3, "LOC"), "LOC"), (1, (3, 4, "O"), "LOC")]
    assert found[1].spans[weak.SUSPECT_GROUP].attrs["scores"] == pytest.approx([0.925, 0.025])


@pytest.mark.parametrize("factor, suspect", [(0.0, 0), (0.05, 2), (1.0, 3), (2.0, 3)])
def test_the_factor_decides_how_many_are_suspect(tmp_path, model, factor, suspect):
    assert len(found_in(run(tmp_path, corpus_docs(), model, factor=factor)[1])) == suspect


def test_the_corpus_is_predicted_once(tmp_path, model, monkeypatch):
    seen = []

    def watch(self, docs):
        seen.extend(doc.text for doc in docs)
        return score_tags(self, docs)

    score_tags = Oracle.score_tags
    monkeypatch.setattr(Oracle, "score_tags", watch)
    # Equal Docs may have equal names.
    _, docs = run(tmp_path, [*corpus_docs(), *corpus_docs()], model)
    assert sorted(seen) == sorted(2 * [text for text, _ in LABELED if text])
    assert found_in(docs[6:]) == SUSPECT
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.spacy", "out.spacy", "out.spacy.json"]


# What is left alone


def test_gold_is_left_alone_unless_asked_for(tmp_path, model):
    report, docs = run(tmp_path, corpus_docs(is_weak=False), model)
    assert found_in(docs) == [] and report.gold == 5 and report.missing == 0
    assert report.labels["PER"].threshold is not None
    report, docs = run(tmp_path, corpus_docs(is_weak=False), model, gold=True)
    assert found_in(docs) == SUSPECT and report.gold == 0 and not weak.is_weak(docs[1])


def test_what_nobody_knows_is_not_judged(tmp_path, model):
    docs = [
        make_doc(NLP, "May saw Rose", [(0, 1, "GPE")], missing=[2]),
        make_doc(NLP, "Rose", annotated=False),
        Doc(NLP.vocab),
    ]
    for doc in docs:
        weak.set_weak(doc)
    report, found = run(tmp_path, docs, model, outside=True)
    assert found_in(found) == [] and weak.doc_entities(found[0]) == [(0, 1, "GPE")]
    assert report.labels["GPE"].threshold is None and report.missing == 0


def test_what_else_is_learned_from_is_missing_too(tmp_path, model):
    docs = corpus_docs()
    weak.set_tags(docs[1], ["B-LOC", "O", "I-PER"])
    rows = numpy.eye(5, dtype="float32")[[1, 0, 3]]
    weak.set_soft_labels(docs[1], weak.TagDistributions(tuple(TAGS), "BIO", rows))
    _, found = run(tmp_path, docs, model)
    assert weak.get_tags(found[1]) == [None, "O", None]
    assert weak.get_soft_labels(found[1]).probabilities.sum(axis=1).tolist() == [0.0, 1.0, 0.0]


# Who judges


def test_every_fold_is_judged_by_the_pipeline_that_has_not_seen_it(tmp_path):
    docs = corpus_docs()
    # Who has seen a Doc agrees with its labels; that "Rose" is wrong says only the first.
    agrees = {**WORDS, "Rose": sure("B-LOC"), "May": sure("B-PER"), "City": sure("I-LOC")}
    folds = make_folds(tmp_path / "folds", [(WORDS, docs[:2]), (agrees, [*docs[2:3], *docs[4:]])])
    assert found_in(run(tmp_path, docs, folds)[1]) == SUSPECT[:2]


@pytest.mark.parametrize("change", ["text", "labels", "identifier"])
def test_folds_of_another_corpus_are_refused(tmp_path, change):
    docs = corpus_docs()
    folds = make_folds(tmp_path / "folds", [(WORDS, docs[:2]), (WORDS, docs[2:])])
    if change == "text":
        docs.append(make_doc(NLP, "Somebody else"))
    elif change == "labels":
        docs[0].set_ents([])
    else:
        weak.set_id(docs[0], "other")
    with pytest.raises(WeaknerError, match=r"WK725.*folds"):
        run(tmp_path, docs, folds)
    assert not (tmp_path / "out.spacy").exists()


def test_a_fold_does_not_judge_labels_that_it_does_not_know(tmp_path):
    """Its pipeline was trained without the only sentences that have them."""
    docs = corpus_docs()
    folds = make_folds(tmp_path / "folds", [(WORDS, docs[:2]), (WORDS, docs[2:])])
    only = {word: [row[0] + row[1] + row[2], *row[3:]] for word, row in WORDS.items()}
    save_oracle(folds / "model-0", only, ["O", "B-PER", "I-PER"])
    report, found = run(tmp_path, docs, folds)
    assert [finding for finding in found_in(found) if finding[0] < 2] == SUSPECT[1:2]
    assert report.labels["LOC"].tokens == 4


# What is written


def test_shards_are_resumed_and_made_anew(tmp_path, model):
    docs = corpus_docs()
    for name, shard in (("a", docs[:3]), ("b", docs[3:])):
        write_docs(tmp_path / "in" / f"{name}.spacy", shard)

    def again(**settings):
        return clean(tmp_path / "in", tmp_path / "out", model, list_path=tmp_path / "list.jsonl", **settings)

    first = again()
    listed = (tmp_path / "list.jsonl").read_text()
    (tmp_path / "out" / "b.spacy").unlink()
    (tmp_path / "list.jsonl").unlink()
    second = again()
    assert (second.skipped, second.written) == (1, 1) and second.missing == first.missing
    assert second.labels == first.labels and second.sources == first.sources
    assert (tmp_path / "list.jsonl").read_text() == listed and listed.count("\n") == 3
    assert [again(**{key: value}).skipped for key, value in (("factor", 0.5), ("outside", True))] == [0, 0]
    # The thresholds are those of all shards.
    write_docs(tmp_path / "in" / "b.spacy", docs[4:])
    assert again(outside=True).skipped == 0


def test_the_list_tells_what_and_why(tmp_path, model):
    docs = corpus_docs()
    docs[1] = make_doc(NLP, "Rose \x1b[31m\u202e\u2028saw May", [(0, 1, "LOC")])
    weak.set_weak(docs[1])
    run(tmp_path, docs, model, list_path=tmp_path / "list.jsonl")
    text = (tmp_path / "list.jsonl").read_text(encoding="utf-8")
    rows = [json.loads(line) for line in text.split("\n")[:-1]]
    assert len(rows) == 2 and all(char.isprintable() or char == "\n" for char in text)
    assert rows[0]["text"] == docs[1].text and rows[0]["sources"] == [] and rows[0]["id"] is None
    assert (rows[0]["instead"], rows[0]["instead_probability"]) == ("PER", 0.85)
    assert rows[1] == {
        "id": "d4",
        "text": "New York City",
        "start": 0,
        "end": 13,
        "entity": "New York City",
        "label": "LOC",
        "sources": ["llm", "terms"],
        "probability": 0.0,
        "instead": "O",
        "instead_probability": 1.0,
    }


def test_aggregating_again_forgets_what_was_suspect(tmp_path, model):
    run(tmp_path, corpus_docs(), model)
    aggregate(tmp_path / "out.spacy", tmp_path / "again.spacy", sources=["llm"])
    docs = list(read_docs(tmp_path / "again.spacy", NLP.vocab))
    assert found_in(docs) == [] and weak.doc_entities(docs[1]) == LABELED[1][1]


def test_the_command(tmp_path, model):
    write_docs(tmp_path / "in.spacy", [*corpus_docs(), *corpus_docs(is_weak=False)])
    paths = (tmp_path / "in.spacy", tmp_path / "out.spacy", model, "--list", tmp_path / "l.jsonl")
    result = invoke("relabel", "clean", *paths)
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.output.splitlines()]
    starts = [line[:5] for line in lines]
    assert ["LOC", "4", "2", "50.0", "%"] in starts and ["source", "llm", "8", "3", "37.5"] in starts
    assert "5 of 30" in result.output and "--gold" in result.output and (tmp_path / "l.jsonl").exists()


@pytest.mark.parametrize(
    "settings, code",
    [({"factor": -1.0}, "WK005"), ({"entities": False}, "WK005.*entities"), ({"component": "x"}, "WK341")],
    ids=str,
)
def test_unusable_settings(tmp_path, model, settings, code):
    with pytest.raises(WeaknerError, match=code):
        run(tmp_path, corpus_docs(), model, **settings)


def test_paths_are_checked_first(tmp_path, model):
    for list_path in (tmp_path / "in.spacy", tmp_path / "out.spacy", tmp_path):
        with pytest.raises(WeaknerError, match=r"WK304|WK109"):
            run(tmp_path, corpus_docs(), model, list_path=list_path)
    assert not (tmp_path / "out.spacy").exists()


def test_a_list_that_was_edited_is_not_replaced(tmp_path, model):
    list_path = tmp_path / "list.jsonl"
    for _ in range(2):
        run(tmp_path, corpus_docs(), model, list_path=list_path)
    list_path.write_text(list_path.read_text() + "\n")
    with pytest.raises(WeaknerError, match="WK300"):
        run(tmp_path, corpus_docs(), model, list_path=list_path)


def test_probabilities_that_are_no_numbers_are_refused(tmp_path):
    broken = save_oracle(tmp_path / "broken", {"Anna": [None] * 5})
    with pytest.raises(WeaknerError, match="WK343"):
        run(tmp_path, corpus_docs(), broken)


def test_labels_that_would_stay_are_refused(tmp_path, model):
    (doc, *_) = corpus_docs()
    nested_is_refused(doc, lambda: run(tmp_path, [doc], model), tmp_path / "out.spacy")
