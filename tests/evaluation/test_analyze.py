import random

import pytest
from spacy.tokens import Doc

from spacy_weakner.corpus.docbin import write_docs
from spacy_weakner.corpus.weak import GOLD_GROUP, group_entities, set_group, set_source, set_weak, weak_group
from spacy_weakner.errors import WeaknerError
from spacy_weakner.evaluation.analyze import analyze
from spacy_weakner.evaluation.tables import analysis_tables
from spacy_weakner.scores import as_json

from ..util import make_doc


@pytest.fixture
def corpus(nlp, tmp_path):
    """Two sources; the second has looked at the first Doc and the last, which is empty."""
    first = make_doc(nlp, "Anna went to New York City", [(0, 1, "PER"), (3, 6, "LOC")])
    set_source(first, "a", [(0, 1, "PER"), (0, 1, "LOC"), (3, 5, "LOC"), (4, 6, "LOC")], [0.9, 0.2, None, 0.4])
    set_source(first, "b", [(0, 1, "LOC"), (3, 6, "LOC"), (2, 3, "PER")])
    second = make_doc(nlp, "Anna likes Anna", [(0, 1, "PER")], missing=[2])
    set_source(second, "a", [(2, 3, "PER")])
    third = make_doc(nlp, "nothing here", annotated=False)
    fourth = Doc(nlp.vocab)
    set_source(fourth, "a", [])
    set_source(fourth, "b", [])
    write_docs(tmp_path / "corpus.spacy", [first, second, third, fourth])
    return tmp_path / "corpus.spacy"


def test_sources_by_hand(corpus):
    analysis = analyze(corpus)
    assert (analysis.docs, analysis.tokens, analysis.unlabeled) == (4, 11, 1)
    a, b = analysis.sources
    assert (a.name, a.docs, a.tokens) == ("a", 3, 9)
    assert a.total == (5, 3, 2, 5)  # spans, phrases, docs, tokens: "Anna" under two labels is one phrase
    assert a.per_label == {"LOC": (3, 3, 1, 4), "PER": (2, 1, 2, 2)}
    assert (a.overlapping, a.ambiguous) == (2, 1)
    assert a.doc_coverage == pytest.approx(200 / 3) and a.token_coverage == pytest.approx(500 / 9)
    # In the second Doc nobody else has looked, so nothing is beside its span.
    assert (a.alone, b.alone) == (1, 1)
    assert (b.docs, b.tokens, b.total) == (2, 6, (3, 3, 1, 5))


def test_gold_by_hand(corpus):
    analysis = analyze(corpus)
    assert analysis.gold[:2] == (3, 1)
    assert [row.gold for row in analysis.gold.lengths] == [2, 0, 1, 0, 0, 0, 0]
    a, b = (source.gold for source in analysis.sources)
    # The span of the second Doc touches a missing token.
    assert (a.docs, a.total.exact, a.unscored) == (3, (1, 3, 2), 1)
    assert a.total.errors == (2, 1, 0, 0, 1)
    # b has not looked at the second Doc, so it has not missed anything there.
    assert (b.docs, b.total.exact) == (2, (1, 2, 1))
    assert b.total.errors == (0, 1, 0, 1, 0)
    assert [(row.gold, row.found) for row in b.lengths[:3]] == [(1, 0), (0, 0), (1, 1)]


def test_calibration_of_sources_and_candidates(nlp, corpus, tmp_path):
    calibration = analyze(corpus).calibration
    assert set(calibration) == {"a"} and calibration["a"][:2] == (3, 1)
    doc = make_doc(nlp, "Anna went", [(0, 1, "PER")])
    set_group(doc, "pred:crf_ner", [(0, 1, "PER"), (1, 2, "PER")], [0.8, 0.6])
    write_docs(tmp_path / "x.spacy", [doc])
    analysis = analyze(tmp_path / "x.spacy")
    assert analysis.sources == []
    assert analysis.calibration["pred:crf_ner"].error == pytest.approx((0.2 + 0.6) / 2)


def test_aggregated_labels_are_a_source(nlp, tmp_path):
    doc = make_doc(nlp, "Anna went to Rome", [(0, 1, "PER"), (3, 4, "PER")], missing=[1])
    set_weak(doc)
    set_group(doc, GOLD_GROUP, [(0, 1, "PER"), (3, 4, "LOC")])
    set_source(doc, "ents", [(0, 1, "PER")])
    untouched = make_doc(nlp, "not seen", annotated=False)
    set_weak(untouched)
    write_docs(tmp_path / "x.spacy", [doc, untouched])
    analysis = analyze(tmp_path / "x.spacy")
    # A source that bears the same name does not hide them.
    assert [source.name for source in analysis.sources] == ["weak:ents", "ents"]
    source, ents = analysis.sources
    assert (ents.docs, ents.gold.total.exact, ents.gold.total.errors.type) == (1, (1, 1, 1), 1)
    # What is aggregated from a source does not make it less alone.
    assert source.alone == 1
    assert analysis.unlabeled == 1


def test_without_gold_its_parts_are_absent(nlp, tmp_path):
    doc = make_doc(nlp, "Anna went", annotated=False)
    set_source(doc, "a", [(0, 1, "PER")], [0.5])
    write_docs(tmp_path / "weak.spacy", [doc])
    analysis = analyze(tmp_path / "weak.spacy")
    assert analysis.gold is None and analysis.sources[0].gold is None and analysis.calibration == {}
    assert [table.title for table in analysis_tables(analysis)] == ["Sources", "Labels of the sources"]
    assert as_json(analysis)["sources"][0]["gold"] is None
    # Gold from another corpus.
    write_docs(tmp_path / "gold.spacy", [make_doc(nlp, "Anna went", [(0, 1, "PER")])])
    analysis = analyze(tmp_path / "weak.spacy", gold=tmp_path / "gold.spacy")
    assert analysis.sources[0].gold.total.exact == (1, 0, 0)


def test_some_sources(corpus):
    analysis = analyze(corpus, sources=["b"])
    assert [source.name for source in analysis.sources] == ["b"]
    assert analysis.overlaps == [] and analysis.calibration == {}
    assert analysis.unlabeled == 2


def test_equals_the_slow_twin_on_random_sources(nlp, tmp_path):
    rng = random.Random(0)

    def entities():
        starts = [(rng.randrange(6), rng.randint(1, 3)) for _ in range(rng.randint(0, 5))]
        return [(start, start + width, rng.choice("AB")) for start, width in starts]

    docs = []
    for _ in range(60):
        doc = make_doc(nlp, " ".join("abcdefghi"), annotated=False)
        for source in "xyz":
            if rng.random() < 0.8:
                set_source(doc, source, entities())
        docs.append(doc)
    write_docs(tmp_path / "x.spacy", docs)
    analysis = analyze(tmp_path / "x.spacy")

    def spans(doc, source):
        return set(group_entities(doc, weak_group(source)))

    def touch(a, b):
        return a[0] < b[1] and b[0] < a[1]

    looked = {source: [doc for doc in docs if weak_group(source) in doc.spans] for source in "xyz"}
    for report in analysis.sources:
        own = [(doc, span) for doc in looked[report.name] for span in spans(doc, report.name)]
        rest = [s for s in "xyz" if s != report.name]
        alone = sum(not any(touch(span, other) for s in rest for other in spans(doc, s)) for doc, span in own)
        overlapping = sum(
            any(touch(span, each) and each[:2] != span[:2] for each in spans(doc, report.name)) for doc, span in own
        )
        assert (report.docs, report.total.spans) == (len(looked[report.name]), len(own))
        assert (report.alone, report.overlapping) == (alone, overlapping)
        assert report.total.tokens == len({(id(doc), i) for doc, (s, e, _) in own for i in range(s, e)})
    assert len(analysis.overlaps) == 6
    for pair in analysis.overlaps:
        both = [doc for doc in looked[pair.source] if weak_group(pair.other) in doc.spans]
        kinds = {"same": 0, "conflict": 0, "overlapping": 0, "only": 0}
        for doc in both:
            others = spans(doc, pair.other)
            for span in spans(doc, pair.source):
                if span in others:
                    kinds["same"] += 1
                elif any(other[:2] == span[:2] for other in others):
                    kinds["conflict"] += 1
                else:
                    kinds["overlapping" if any(touch(span, other) for other in others) else "only"] += 1
        assert pair.docs == len(both)
        assert {name: getattr(pair, name) for name in kinds} == kinds


def test_json_holds_counts_shares_and_scores(corpus):
    result = as_json(analyze(corpus, top=1))
    a = result["sources"][0]
    assert a["token_coverage"] == 55.5556
    assert a["gold"]["total"]["exact"] == {"p": 25.0, "r": 33.33, "f1": 28.57, "tp": 1, "fp": 3, "fn": 2}
    assert a["gold"]["missed"] == [{"text": "Anna", "label": "PER", "n": 1, "of": 2}]
    assert a["gold"]["lengths"][0] == {"length": "1", "gold": 2, "found": 1, "cumulative": 66.6667, "recall": 50.0}
    assert len(a["gold"]["false"]) == 1
    assert result["overlaps"][0]["conflict"] == 1


def test_tables_hold_the_numbers(corpus):
    tables = {table.title: table for table in analysis_tables(analyze(corpus))}
    assert tables["Sources"].rows[0] == ["a", "3", "66.7 %", "55.6 %", "5", "3", "1", "2", "1"]
    assert tables["Agreement between sources"].rows[0] == ["a", "b", "2", "4", "1", "1", "2", "0"]
    assert tables["Kinds of errors"].rows[2] == ["a", "all", "1", "2", "1", "0", "0", "1"]
    assert tables["Recall by length"].rows[0] == ["1", "2", "66.7 %", "50.0", "0.0"]
    assert all(len(row) == len(table.header) for table in tables.values() for row in table.rows)


def test_bad_input_is_refused(nlp, corpus, tmp_path):
    plain, short, none = (tmp_path / f"{name}.spacy" for name in ("plain", "short", "none"))
    write_docs(plain, [make_doc(nlp, "Anna went", annotated=False)])
    write_docs(short, [make_doc(nlp, "Anna went to New York City")])
    write_docs(none, [])
    for message, path, settings in [
        (r"WK301.*plain\.spacy", plain, {}),
        (r"WK302.*'c'.*a, b", corpus, {"sources": ["a", "c"]}),
        (r"WK400.*from document 1 on", corpus, {"gold": plain}),
        (r"WK400.*from document 2 on", corpus, {"gold": short}),
        (r"WK407.*plain\.spacy", plain, {"gold": plain}),
        (r"WK100.*nowhere", tmp_path / "nowhere", {}),
        (r"WK100.*nowhere", corpus, {"gold": tmp_path / "nowhere"}),
        (r"WK005.*top", corpus, {"top": -1}),
        ("WK101", none, {}),
    ]:
        with pytest.raises(WeaknerError, match=message):
            analyze(path, **settings)
