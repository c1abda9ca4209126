import json
import os
from dataclasses import replace
from functools import partial

import pytest
import spacy
from spacy.tokens import Doc, Span

from spacy_weakner.corpus import weak
from spacy_weakner.corpus.docbin import read_docs, write_docs
from spacy_weakner.corpus.formats.reading import LONG
from spacy_weakner.corpus.sentences import LONGEST_RUN
from spacy_weakner.errors import WeaknerError
from spacy_weakner.labeling import label as labeling
from spacy_weakner.labeling.aggregate import aggregate

from ..cli.util import invoke

NLP = spacy.blank("xx")
label = partial(labeling.label, lang="xx")  # whose tokenizer is made fastest
TEXTS = ["I love New York", "Paris rocks", "nothing here", "AIDS in paris", "aids help"]


@pytest.fixture
def corpus(tmp_path):
    docs = []
    for text in TEXTS:
        doc = Doc(NLP.vocab, words=text.split())
        doc.set_ents([Span(doc, 0, 1, label="GOLD")], default="outside")
        weak.set_group(doc, "weak:other", [(0, 1, "O1")], [0.5])
        weak.set_id(doc, text)
        docs.append(doc)
    write_docs(tmp_path / "in" / "a.spacy", docs[:3])
    write_docs(tmp_path / "in" / "b.spacy", docs[3:])
    return tmp_path / "in"


@pytest.fixture
def terms(tmp_path):
    rows = [("New York", "CITY"), ("York", "CITY"), ("paris", "CITY"), ("AIDS", "DIS")]
    path = tmp_path / "terms.jsonl"
    path.write_text("".join(json.dumps({"label": b, "term": a}) + "\n" for a, b in rows))
    return path


@pytest.fixture
def pipeline(tmp_path):
    nlp = spacy.blank("xx")
    ruler = nlp.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "CITY", "pattern": "Paris"}, {"label": "P", "pattern": "I"}])
    nlp.to_disk(tmp_path / "model")
    return tmp_path / "model"


def read(path):
    return list(read_docs(path, NLP.vocab))


def groups(path, source):
    return {weak.get_id(doc): weak.group_entities(doc, f"weak:{source}") for doc in read(path)}


def test_terms(corpus, terms, tmp_path):
    report = label(corpus, tmp_path / "out", terms=terms)
    assert groups(tmp_path / "out", "gazetteer") == {
        "I love New York": [(2, 4, "CITY"), (3, 4, "CITY")],
        "Paris rocks": [(0, 1, "CITY")],
        "nothing here": [],
        "AIDS in paris": [(0, 1, "DIS"), (2, 3, "CITY")],
        "aids help": [],
    }
    assert (report.docs, report.excluded, report.unmatched, report.skipped) == (5, 0, 2, 0)
    assert (report.spans, report.sources[0].name) == ({"CITY": 4, "DIS": 1}, "gazetteer")


def test_entities_and_other_groups_stay(corpus, terms, pipeline, tmp_path):
    label(corpus, tmp_path / "a", terms=terms)
    label(tmp_path / "a", tmp_path / "b", pipeline=pipeline, source="ruler")
    for doc in read(tmp_path / "b"):
        assert weak.doc_entities(doc) == [(0, 1, "GOLD")]
        assert weak.weak_sources(doc) == ["gazetteer", "other", "ruler"]
        assert weak.group_scores(doc, "weak:other") == [0.5]
        assert not weak.is_weak(doc)


def test_pipeline_does_not_see_gold(corpus, pipeline, tmp_path):
    report = label(corpus, tmp_path / "out", pipeline=pipeline, source="ruler")
    assert groups(tmp_path / "out", "ruler") == {
        "I love New York": [(0, 1, "P")],
        "Paris rocks": [(0, 1, "CITY")],
        "nothing here": [],
        "AIDS in paris": [],
        "aids help": [],
    }
    assert report.spans == {"CITY": 1, "P": 1}


@pytest.fixture
def span_pipeline(tmp_path):
    nlp = spacy.blank("xx")
    nlp.add_pipe("span_ruler", config={"spans_key": "sc"}).add_patterns([{"label": "CITY", "pattern": "Paris"}])
    nlp.to_disk(tmp_path / "spans")
    return tmp_path / "spans"


@pytest.mark.parametrize("key, what", [(None, "entities"), ("typo", "spans in the group 'typo'")])
def test_pipeline_with_other_span_groups_is_an_error(corpus, span_pipeline, tmp_path, key, what):
    for _ in range(2):  # also when all shards are finished
        with pytest.raises(WeaknerError, match=rf"WK306.*no {what}.*groups: sc\."):
            label(corpus, tmp_path / "out", pipeline=span_pipeline, spans_key=key)


def test_span_groups_that_a_pipeline_never_writes(corpus, pipeline, span_pipeline, tmp_path):
    for shard in ("1/2", "2/2"):  # a part cannot tell
        assert label(corpus, tmp_path / "a", pipeline=pipeline, spans_key="nope", shard=shard).spans == {}
    with pytest.raises(WeaknerError, match=r"WK372.*model' has the span group 'nope'.*there: none\)"):
        label(corpus, tmp_path / "a", pipeline=pipeline, spans_key="nope")
    write_docs(tmp_path / "b.spacy", [Doc(NLP.vocab, words=["nothing"])])
    with pytest.raises(WeaknerError, match=r"WK372.*'typo'.*there: sc\)"):
        label(tmp_path / "b.spacy", tmp_path / "b", pipeline=span_pipeline, spans_key="typo")


def test_sentences_of_other_corpora_are_excluded(corpus, terms, tmp_path):
    dev = tmp_path / "dev.txt"
    dev.write_text("i LOVE  New York\nNot there\n")
    doc = Doc(NLP.vocab, words=["Paris", "rocks", "aids", "help"], sent_starts=[True, False, True, False])
    write_docs(tmp_path / "test.spacy", [doc])
    report = label(corpus, tmp_path / "out", terms=terms, exclude=[dev, tmp_path / "test.spacy"])
    assert list(groups(tmp_path / "out", "gazetteer")) == ["nothing here", "AIDS in paris"]
    assert (report.docs, report.excluded, report.unmatched) == (2, 3, 1)


@pytest.mark.parametrize("sentences, excluded", [("rule", 2), ("none", 1)])
def test_sentences_of_annotated_documents_are_excluded(terms, tmp_path, sentences, excluded):
    (tmp_path / "in.txt").write_text("Paris is here. It rains.\nParis rocks.\n")
    row = {"text": "Paris is here. It rains.", "ents": [[0, 5, "CITY"]]}
    (tmp_path / "gold.jsonl").write_text(json.dumps(row) + "\n")
    exclude = [tmp_path / "gold.jsonl"]
    report = label(tmp_path / "in.txt", tmp_path / "out.spacy", terms=terms, exclude=exclude, sentences=sentences)
    assert [doc.text for doc in read(tmp_path / "out.spacy")] == ["Paris rocks."]
    assert report.excluded == excluded


def test_another_pipeline_of_the_same_path_splits_anew(terms, tmp_path):
    (tmp_path / "in.txt").write_text("Paris is here; it rains. So it is.\n")
    for mark, n in ((".", 2), (";", 2), ("!", 1)):
        nlp = spacy.blank("xx")
        nlp.add_pipe("sentencizer", name="senter", config={"punct_chars": [mark]})
        nlp.to_disk(tmp_path / "splitter")
        settings = {"terms": terms, "lang": "xx", "sentences": str(tmp_path / "splitter")}
        report = label(tmp_path / "in.txt", tmp_path / "out.spacy", **settings)
        assert (report.docs, report.skipped) == (n, 0)
    assert label(tmp_path / "in.txt", tmp_path / "out.spacy", **settings).skipped == 1


def test_a_doc_with_an_excluded_sentence_is_excluded(terms, tmp_path):
    texts = ["It rains. Paris is  here.", "It rains\n\nparis is here.", "Paris! Aids in Paris.", "Paris is here, too."]
    write_docs(tmp_path / "in.spacy", [NLP.make_doc(text) for text in texts])
    (tmp_path / "gold.txt").write_text("Paris is here.\nParis!\n")  # the latter is too short to count as a copy
    label(tmp_path / "in.spacy", tmp_path / "out.spacy", terms=terms, exclude=[tmp_path / "gold.txt"])
    assert [doc.text for doc in read(tmp_path / "out.spacy")] == texts[2:]


@pytest.mark.parametrize("suffix", [".spacy", ""])
def test_what_readers_leave_out_is_counted(terms, tmp_path, suffix):
    rows = [{"text": text, "labels": ["X"]} for text in ("Paris", "AIDS", "(" * (LONGEST_RUN + 1))]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for skipped in (0, 3 if not suffix else 1):  # receipts remember it
        report = label(tmp_path / "in.jsonl", tmp_path / f"out{suffix}", terms=terms, shard_size=1)
        assert (report.docs, report.notes[LONG], report.ignored, report.skipped) == (2, 1, {"labels": 3}, skipped)
    result = invoke("label", tmp_path / "in.jsonl", tmp_path / "b", "--terms", terms)
    assert "Unknown keys ignored: labels (3 rows)" in " ".join(result.stdout.split())


def test_a_file_is_known_where_all_its_docs_are_excluded(corpus, tmp_path):
    (tmp_path / "llm.jsonl").write_text('{"text": "a", "ents": []}\n{"text": "b", "ents": []}\n')
    report = label(corpus, tmp_path / "out", sources={"llm": {"file": tmp_path / "llm.jsonl"}}, exclude=[corpus])
    assert (report.docs, report.sources[0].rows, report.sources[0].docs_with_row) == (0, 2, 0)


def test_rerun_skips_until_something_changes(corpus, terms, pipeline, tmp_path):
    (tmp_path / "dev.txt").write_text("x\n")

    def change(path, text):
        path.write_text(path.read_text() + text)

    first = label(corpus, tmp_path / "out", terms=terms)
    assert label(corpus, tmp_path / "out", terms=terms) == replace(first, skipped=2)
    excluding = {"pipeline": pipeline, "only_matched": True, "exclude": [tmp_path / "dev.txt"]}
    for settings, changed, text in (
        ({"pipeline": pipeline}, pipeline / "meta.json", " "),
        (excluding, tmp_path / "dev.txt", "y\n"),
    ):
        assert [label(corpus, tmp_path / "out", **settings).skipped for _ in range(2)] == [0, 2]
        change(changed, text)
        assert label(corpus, tmp_path / "out", **settings).skipped == 0


@pytest.mark.slow
@pytest.mark.usefixtures("without_torch")
def test_shards_of_an_earlier_run_that_workers_replace_are_counted(corpus, terms, tmp_path):
    settings = ({}, {"workers": 2}, {"workers": 2, "min_length": 5}, {"min_length": 5})
    assert [label(corpus, tmp_path / "out", terms=terms, **more).replaced for more in settings] == [0, 0, 2, 0]


def test_texts_with_spans_that_do_not_fit_are_told_to_convert(terms, tmp_path):
    (tmp_path / "gold.jsonl").write_text(json.dumps({"text": "Paris rocks", "ents": [[0, 3, "CITY"]]}) + "\n")
    with pytest.raises(WeaknerError, match=r"WK103.*line 1.*spacy weakner convert \.\.\. --misaligned drop"):
        label(tmp_path / "gold.jsonl", tmp_path / "out", terms=terms)


@pytest.mark.parametrize(
    "settings, message",
    [
        ({}, "WK303"),
        ({"terms": "none.jsonl"}, "WK005.*terms.*an existing file, but there is none"),
        ({"pipeline": "none"}, "WK005.*pipeline.*neither exists"),
        ({"terms": "terms.jsonl", "exclude": ["none.txt"]}, "WK100"),
        ({"terms": "terms.jsonl", "lang": "qqq"}, "WK005.*lang"),
        ({"terms": "terms.jsonl", "attr": "LEMMA"}, "WK005.*attr.*ORTH, LOWER, NORM"),
        ({"terms": "terms.jsonl", "spans_key": "sc"}, "WK005.*spans_key"),
        ({"terms": "terms.jsonl", "exclude": ["out/dev.txt"]}, "WK304"),
    ],
)
@pytest.mark.usefixtures("pipeline", "terms")
def test_errors(corpus, tmp_path, monkeypatch, settings, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(WeaknerError, match=message):
        label(corpus, tmp_path / "out", **settings)
    assert not (tmp_path / "out").exists()


def test_settings_of_a_single_source_reach_its_declaration(corpus, terms, pipeline, span_pipeline, tmp_path):
    with terms.open("a") as file_:
        file_.write('{"label": "X", "term": "Paris"}\n')
    settings = {"stop": ["Paris"], "min_length": 5}  # neither Paris, nor York and AIDS
    assert label(corpus, tmp_path / "t", terms=terms, **settings).spans == {"CITY": 1}
    report = label(corpus, tmp_path / "s", pipeline=span_pipeline, spans_key="sc")
    assert report.spans == {"CITY": 1} and groups(tmp_path / "s", "spans")["Paris rocks"] == [(0, 1, "CITY")]
    label(corpus, tmp_path / "a", terms=terms, reliability=0.5)
    doc = read(tmp_path / "a")[0]
    assert weak.get_reliability(doc, "gazetteer") == 0.5
    assert not weak.is_complete(doc, "gazetteer")
    assert label(corpus, tmp_path / "b", pipeline=pipeline, reliability=0.9).sources[0].name == "model"
    doc = read(tmp_path / "b")[0]
    assert weak.get_reliability(doc, "model") == 0.9
    assert weak.is_complete(doc, "model")
    label(corpus, tmp_path / "c", pipeline=pipeline, complete=False, stop=[])  # no list of terms, no setting of terms
    assert not weak.is_complete(read(tmp_path / "c")[0], "model")


def test_texts_are_labeled_directly(terms, pipeline, tmp_path):
    (tmp_path / "texts.txt").write_text("I love New York. Paris rocks.\n\nAIDS in paris\n")
    report = label(tmp_path / "texts.txt", tmp_path / "a", terms=terms)
    assert (report.docs, report.spans) == (3, {"CITY": 4, "DIS": 1})
    assert [doc.text for doc in read(tmp_path / "a")] == ["I love New York.", "Paris rocks.", "AIDS in paris"]
    assert label(tmp_path / "texts.txt", tmp_path / "b", terms=terms, sentences="none").docs == 2
    rows = [{"id": "x", "text": "Paris rocks. AIDS."}, {"tokens": ["Paris"], "ents": [[0, 1, "GOLD"]]}]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    label(tmp_path / "rows.jsonl", tmp_path / "c.spacy", pipeline=pipeline, source="s")
    docs = read(tmp_path / "c.spacy")
    assert [weak.get_id(doc) for doc in docs] == ["x.1", "x.2", None]
    assert [weak.group_entities(doc, "weak:s") for doc in docs] == [[(0, 1, "CITY")], [], [(0, 1, "CITY")]]
    assert weak.doc_entities(docs[2]) == [(0, 1, "GOLD")]


@pytest.mark.parametrize("which", ["in.jsonl", "terms.csv", "dev.txt"])
def test_pipes_are_refused_at_once(tmp_path, which):
    (tmp_path / "in.jsonl").write_text('{"text": "Paris"}\n')
    (tmp_path / "terms.csv").write_text("label,term\nLOC,Paris\n")
    (tmp_path / "dev.txt").write_text("London\n")
    (tmp_path / which).unlink()
    os.mkfifo(tmp_path / which)  # whoever opened it would wait for ever
    with pytest.raises(WeaknerError, match=rf"WK786.*{which} is a pipe"):
        label(tmp_path / "in.jsonl", tmp_path / "out", terms=tmp_path / "terms.csv", exclude=[tmp_path / "dev.txt"])
    assert not (tmp_path / "out").exists()


# Ids and abbreviations

HEART = "label,term,id\nDIS,heart failure,D6|D7\nDIS,pain,\n"


def test_ids_of_terms_are_kept_by_sources_aggregates_and_files(tmp_path):
    (tmp_path / "terms.csv").write_text(HEART)
    (tmp_path / "text.txt").write_text("Heart failure and pain.\n")
    label(tmp_path / "text.txt", tmp_path / "labels", terms=tmp_path / "terms.csv")
    aggregate(tmp_path / "labels", tmp_path / "weak")
    for folder in ("labels", "weak"):
        (doc,) = read(tmp_path / folder)
        assert [span.kb_id_ for span in doc.spans["weak:gazetteer"]] == ["D6", ""]
        assert weak.group_ids(doc, "weak:gazetteer") == {(0, 2, "DIS"): ("D6", "D7")}
    assert [(ent.text, ent.kb_id_) for ent in doc.ents] == [("Heart failure", "D6"), ("pain", "")]


def test_ids_of_a_pipeline_and_of_renamed_labels(corpus, tmp_path):
    nlp = spacy.blank("xx")
    nlp.add_pipe("entity_ruler")
    nlp.get_pipe("entity_ruler").add_patterns([{"label": "CITY", "pattern": "Paris", "id": "x"}])
    nlp.add_pipe("term_linker").initialize(nlp=nlp, terms=[{"label": "CITY", "term": "Paris", "id": "Q90"}])
    nlp.to_disk(tmp_path / "model")
    declared = {"m": {"pipeline": str(tmp_path / "model"), "labels": {"CITY": "LOC"}}}
    label(corpus, tmp_path / "out", sources=declared)
    found = {weak.get_id(doc): weak.group_ids(doc, "weak:m") for doc in read(tmp_path / "out")}
    assert found["Paris rocks"] == {(0, 1, "LOC"): ("Q90",)}


@pytest.mark.parametrize("abbreviations", [False, True])
def test_short_forms_are_found_in_the_whole_document(tmp_path, abbreviations):
    (tmp_path / "terms.csv").write_text(HEART)
    texts = ["He had heart failure (HF). Then HF was gone.", "HF is a station."]
    rows = [{"id": f"a{i}", "text": text} for i, text in enumerate(texts)]
    (tmp_path / "text.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    source = {"terms": str(tmp_path / "terms.csv"), "abbreviations": abbreviations}
    label(tmp_path / "text.jsonl", tmp_path / "out", sources={"list": source})
    docs = read(tmp_path / "out")
    assert len(docs) == 3
    found = [[(span.text, span.kb_id_) for span in doc.spans["weak:list"]] for doc in docs]
    long, short = ("heart failure", "D6"), ("HF", "D6")
    assert found == ([[long, short], [short], []] if abbreviations else [[long], [], []])


def test_labels_that_are_left_out_or_renamed_keep_their_own_ids(tmp_path):
    (tmp_path / "terms.csv").write_text("label,term,id\nA,heart failure,idA\nB,heart failure,idB\n")
    (tmp_path / "text.txt").write_text("Heart failure.\n")
    for labels, expected in (({"A": "B"}, {("B", "idA")}), ({"A": "X", "B": "X"}, {("X", "idA")})):
        source = {"terms": str(tmp_path / "terms.csv"), "labels": labels}
        label(tmp_path / "text.txt", tmp_path / "-".join(labels), sources={"list": source})
        (doc,) = read(tmp_path / "-".join(labels))
        assert {(span.label_, span.kb_id_) for span in doc.spans["weak:list"]} == expected
    assert weak.group_ids(doc, "weak:list") == {(0, 2, "X"): ("idA", "idB")}
