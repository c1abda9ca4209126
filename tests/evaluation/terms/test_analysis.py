import json

import pytest
import spacy
import srsly
from spacy.tokens import Doc, Span
from spacy.vocab import Vocab

from spacy_weakner.corpus.docbin import read_docs, write_docs
from spacy_weakner.corpus.gold import find_gold
from spacy_weakner.corpus.language import CorpusLanguage, record_language
from spacy_weakner.corpus.weak import GOLD_GROUP, doc_entities, group_entities, set_source
from spacy_weakner.errors import WeaknerError
from spacy_weakner.evaluation.terms.analysis import analyze_terms
from spacy_weakner.evaluation.terms.matches import read_sentence
from spacy_weakner.labeling.aggregate import aggregate
from spacy_weakner.labeling.label import label
from spacy_weakner.scores import count_matches

from ...cli.util import invoke, stand_in

NLP = spacy.blank("xx")
TERMS = [("LOC", "Oslo"), ("LOC", "Light"), ("LOC", "New York"), ("PER", "York"), ("PER", "Ann")]
TEXTS = [
    ("Ann saw Oslo", [(0, 1, "PER"), (2, 3, "LOC")]),
    ("a light day", []),
    ("the light in New York State", [(3, 6, "LOC")]),
    ("Bob met Ann", [(0, 1, "PER"), (2, 3, "PER")]),
    ("York is old", [(0, 1, "LOC")]),
]


def gold_against_weak(labeled):
    docs = read_docs(labeled, Vocab())
    return count_matches((group_entities(doc, GOLD_GROUP), doc_entities(doc)) for doc in docs)


def make_doc(text, gold=None, said=None):
    doc = Doc(NLP.vocab, words=text.split())
    if gold is not None:
        doc.set_ents([Span(doc, *entity) for entity in gold], default="outside")
    for source, entities in (said or {}).items():
        set_source(doc, source, entities)
    return doc


@pytest.fixture
def labeled(tmp_path):
    """Gold, twelve times, labeled by a term list."""
    write_docs(tmp_path / "gold.spacy", [make_doc(*pair) for pair in TEXTS * 12])
    srsly.write_jsonl(tmp_path / "terms.jsonl", [{"label": name, "term": term} for name, term in TERMS])
    label(tmp_path / "gold.spacy", tmp_path / "labeled.spacy", terms=tmp_path / "terms.jsonl", lang="xx")
    return tmp_path / "labeled.spacy"


def write(tmp_path, docs):
    write_docs(tmp_path / "said.spacy", docs)
    record_language(tmp_path / "said.spacy", CorpusLanguage.make("xx"))
    return tmp_path / "said.spacy"


def test_figures(labeled):
    result = analyze_terms(labeled, bootstrap=100)
    assert result == analyze_terms(labeled, bootstrap=100)
    assert (result.docs, result.unlabeled, result.tokens, result.entities) == (60, 0, 12 * 18, 12 * 6)
    assert result.scores.counts == (36, 48, 36) and result.scores.docs == 60
    assert result.per_label["PER"].counts == (24, 12, 12) and result.per_label["LOC"].counts == (12, 36, 24)
    assert result.per_source["gazetteer"] == result.scores
    assert 0 < result.scores.interval.low < 100 * 72 / 156 < result.scores.interval.high < 100
    worst = result.worst_terms[0]
    assert worst[:5] == ("light", "LOC", "gazetteer", 24, 0) and worst.examples[0] == "a light day"
    assert [t.term for t in result.worst_terms] == ["light", "new york", "york"]


def test_figures_are_those_of_what_aggregate_writes(labeled, tmp_path):
    for policy in ("longest", "priority", "agreement", "drop"):
        aggregate(labeled, tmp_path / f"{policy}.spacy", policy=policy)
        assert (
            analyze_terms(labeled, policy=policy, bootstrap=1).scores.counts
            == gold_against_weak(tmp_path / f"{policy}.spacy")[0]
        )
    # What was aggregated is judged like what was not: gold is where `aggregate` has put it.
    assert analyze_terms(tmp_path / "drop.spacy", bootstrap=1) == analyze_terms(labeled, bootstrap=1)


def test_stop_terms_of_a_split_corpus_fit_the_list(tmp_path):
    docs = [make_doc("take 5 - FU daily", [(0, 1, "X")]), make_doc("take rest", [(0, 1, "X")])]
    write_docs(tmp_path / "gold.spacy", docs)
    srsly.write_jsonl(tmp_path / "terms.jsonl", [{"label": "X", "term": "5-FU"}, {"label": "X", "term": "take"}])
    words = {"terms": tmp_path / "terms.jsonl", "tokenizer": "spacy_weakner.WordTokenizer.v1"}
    label(tmp_path / "gold.spacy", tmp_path / "labeled.spacy", **words)
    (doc, _) = read_docs(tmp_path / "labeled.spacy", NLP.vocab)
    take, drug = read_sentence(doc, find_gold(doc), "gazetteer").matches
    assert (take.term, drug.term) == ("take", "5 - fu")
    report = label(tmp_path / "gold.spacy", tmp_path / "stopped.spacy", stop=[drug.term], **words)
    assert report.sources[0].spans == {"X": 2}


def test_sources_that_are_no_term_lists_get_figures(tmp_path):
    docs = [make_doc(text, gold, {"model": [(1, 2, "LOC")], "good": gold}) for text, gold in TEXTS * 12]
    result = analyze_terms(write(tmp_path, docs), bootstrap=50)
    assert result.per_source["model"].counts == (0, 60, 72) and result.per_source["good"].counts == (72, 0, 0)
    (warning,) = [w for w in result.warnings if w.kind == "combination"]
    assert "'good' alone" in warning.text
    assert analyze_terms(write(tmp_path, docs), sources=["good"], bootstrap=50).scores.counts.f1 == 100


def test_docs_that_a_source_has_not_looked_at(tmp_path):
    docs = [
        make_doc(text, gold, {"terms": gold, "model": gold} if i else {"terms": gold})
        for i, (text, gold) in enumerate(TEXTS)
    ]
    docs.append(make_doc("Oslo", [(0, 1, "LOC")]))
    result = analyze_terms(write(tmp_path, docs), bootstrap=50)
    assert (result.docs, result.unlabeled, result.scores.docs) == (6, 1, 5)
    assert result.scores.counts == (6, 0, 0)
    assert {name: scores.docs for name, scores in result.per_source.items()} == {"terms": 5, "model": 4}
    model, terms = (warning.text for warning in result.warnings if warning.kind == "unanswered")
    assert "'model'" in model and "2 of 6" in model and "'terms'" in terms and "1 of 6" in terms


@pytest.mark.parametrize("method", ["majority", "weighted", "label_model"])
def test_other_methods(tmp_path, method):
    docs = [make_doc(t, gold, {"a": gold, "b": gold, "c": [(1, 2, "LOC")]}) for t, gold in TEXTS * 4]
    result = analyze_terms(write(tmp_path, docs), method=method, bootstrap=20)
    assert (result.method, result.policy) == (method, None)
    assert result.scores.counts.recall == 100
    empty = analyze_terms(
        write(tmp_path, [make_doc(t, gold, {"a": []}) for t, gold in TEXTS]), method=method, bootstrap=20
    )
    assert empty.scores.counts == (0, 0, 6) and [w.kind for w in empty.warnings] == ["nothing"]


def test_a_label_model_of_other_text_names_sources_without_answers(tmp_path):
    texts = [make_doc(t, None, {"a": gold, "b": gold, "llm": gold}) for t, gold in TEXTS * 4]
    write_docs(tmp_path / "text.spacy", texts)
    gold = write(tmp_path, [make_doc(t, gold, {"a": gold, "b": gold}) for t, gold in TEXTS])
    result = analyze_terms(gold, method="label_model", fit_on=tmp_path / "text.spacy", bootstrap=20)
    assert result.unanswered == ("llm",) and result.scores.counts.f1 == 100
    assert "'llm' has labeled none of the 5 gold documents" in result.warnings[0].text
    aggregate(gold, tmp_path / "out.spacy", method="label_model", fit_on=tmp_path / "text.spacy")
    assert gold_against_weak(tmp_path / "out.spacy")[0] == result.scores.counts


def test_every_option_is_passed_on(tmp_path, monkeypatch):
    seen = stand_in(monkeypatch, "evaluation.terms.analysis.analyze_terms")
    options = "--method label_model --policy drop --source a --source b --fit-on f"
    assert invoke("analyze", tmp_path / "x.spacy", "--worst-terms", *options.split()).exit_code == 130
    given = {"method", "policy", "sources", "fit_on"}
    assert {*seen} - {"args"} == given and seen["sources"] == ["a", "b"]


@pytest.mark.parametrize(
    "said, kinds",
    [
        ({}, []),
        ({"LOC": "PLACE"}, ["never_given", "never_right"]),
        ({"LOC": None}, ["never_given"]),
    ],
)
def test_labels_that_do_not_meet(tmp_path, said, kinds):
    docs = []
    for text, gold in TEXTS * 20:
        named = [(s, e, said.get(name, name)) for s, e, name in gold]
        docs.append(make_doc(text, gold, {"x": [entity for entity in named if entity[2]]}))
    warnings = analyze_terms(write(tmp_path, docs), bootstrap=50).warnings
    assert [w.kind for w in warnings] == kinds


def test_labels_that_will_hurt(tmp_path):
    def warnings(docs):
        return analyze_terms(write(tmp_path, docs), bootstrap=50).warnings

    docs = [make_doc("a b c d e f", [(0, 1, "X")], {"x": [(i, i + 1, "X") for i in range(6)]})] * 30
    (warning,) = warnings(docs)
    assert warning.kind == "precision" and "16.7" in warning.text and "gold alone" in warning.text
    docs = [make_doc("a b", [(0, 1, "X")], {"x": [(0, 1, "X")] if i < 2 else []}) for i in range(60)]
    assert [w.kind for w in warnings(docs)] == ["recall"]
    right = [(i, i + 1, "X") for i in range(4)]
    said = [*right, *((i, i + 1, "Y") for i in range(4, 9))]
    (warning,) = warnings([make_doc("a b c d e f g h i", [*right, (4, 5, "Y")], {"x": said}) for _ in range(20)])
    assert warning.kind == "precision" and "Y 20.0 (80 of 100 wrong)" in warning.text
    # Too little gold.
    docs = [make_doc("a b", [(0, 1, "X")], {"x": [(i % 2, i % 2 + 1, "X")]}) for i in range(10)]
    assert "gold" in [w.kind for w in warnings(docs)]
    docs = [make_doc("aspirin", [(0, 1, "Chemical")], {"x": [(0, 1, "Chemicals")]})] * 10
    assert any("'Chemicals' for 'Chemical'" in w.text for w in warnings(docs))


def test_unusable_input(tmp_path):
    labels = {"x": [(0, 1, "X")]}
    for docs, settings, message in [
        ([make_doc("a b", None, labels)], {}, r"WK407.*no gold in its 1 documents"),
        ([make_doc("a b", [], labels)], {}, r"WK407.*no entity in its 1 documents"),
        ([make_doc("a b", [(0, 1, "X")])], {}, "WK301"),
        ([], {}, "WK101"),
        ([make_doc("a b", [(0, 1, "X")], labels)], {"sources": ["y"]}, r"WK302.*'y'.*x"),
        ([make_doc("a b", [(0, 1, "X")], labels)], {"method": "majority", "policy": "drop"}, r"WK331.*policy"),
    ]:
        with pytest.raises(WeaknerError, match=message):
            analyze_terms(write(tmp_path, docs), **settings)


def test_parts_of_gold_that_nobody_has_annotated_are_not_scored(tmp_path):
    doc = make_doc("a b c", None, {"x": [(0, 1, "X"), (2, 3, "X")]})
    doc.set_ents([Span(doc, 0, 1, "X")], outside=[doc[1:2]], default="missing")
    assert analyze_terms(write(tmp_path, [doc]), bootstrap=5).scores.counts == (1, 0, 0)


def test_command(labeled, tmp_path):
    output = tmp_path / "labels.json"
    result = invoke("analyze", labeled, "--worst-terms", "--output", output)
    assert result.exit_code == 0, result.output
    assert "Worst terms" in result.output
    figures = json.loads(output.read_text(encoding="utf-8"))
    assert figures["scores"]["f1"] == pytest.approx(46.15) and figures["scores"]["interval"]["low"] > 0
    assert {"docs", "tokens", "entities", "per_label", "per_source", "worst_terms"} < set(figures)
    assert [set(w) for w in figures["warnings"]] == [{"kind", "text"}] * len(figures["warnings"])


@pytest.mark.parametrize(
    "n_right, n_wrong, is_bad",
    [(1, 11, True), (0, 12, True), (4, 8, False), (0, 4, False), (3, 7, False), (29, 71, True), (1, 4, True)],
)
def test_a_source_whose_label_is_wrong_though_others_make_up_for_it(tmp_path, n_right, n_wrong, is_bad):
    both = [(0, 1, "PER"), (1, 2, "LOC")]
    docs = [make_doc(f"Ann Oslo {i}", both, {"list": [both[1]], "llm": both}) for i in range(100)]
    for i in range(n_right + n_wrong):
        set_source(docs[i], "list", [both[1], (0, 1, "PER") if i < n_right else (2, 3, "PER")])
    result = analyze_terms(write(tmp_path, docs), bootstrap=10, method="majority")
    assert result.per_source_label["list"] == {"LOC": (100, 0, 0), "PER": (n_right, n_wrong, 100 - n_right)}
    assert result.per_source_label["llm"] == {"LOC": (100, 0, 0), "PER": (100, 0, 0)}
    found = [warning.text for warning in result.warnings if warning.kind == "precision"]
    assert len(found) == is_bad
    if is_bad:
        share = 100 * n_right / (n_right + n_wrong)
        assert "'list'" in found[0] and f"PER {share:.1f} ({n_wrong} of {n_right + n_wrong} wrong)" in found[0]
        assert "LOC" not in found[0] and "llm" not in found[0]


def test_a_single_source_has_one_warning_per_label(tmp_path):
    docs = [make_doc(f"Ann Oslo {i}", [(0, 1, "PER"), (1, 2, "LOC")], {"list": [(1, 2, "LOC")]}) for i in range(40)]
    for i in range(12):
        set_source(docs[i], "list", [(1, 2, "LOC"), (0, 1, "PER") if i == 0 else (2, 3, "PER")])
    result = analyze_terms(write(tmp_path, docs), bootstrap=10)
    assert [warning.kind for warning in result.warnings].count("precision") == 1
