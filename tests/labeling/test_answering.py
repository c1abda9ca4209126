"""Answers of language models as a source."""

import json

import pytest
import spacy

from spacy_weakner.corpus import weak
from spacy_weakner.corpus.docbin import read_docs
from spacy_weakner.errors import WeaknerError
from spacy_weakner.labeling.imported import vote
from spacy_weakner.labeling.label import label

NLP = spacy.blank("xx")
P, L, O = "PER", "LOC", "ORG"  # noqa: E741


@pytest.mark.parametrize(
    "samples, expected",
    [
        # one sample: what it says
        ([[(0, 1, P)]], {(0, 1, P): 1.0}),
        ([[]], {}),
        # mentions by their share of all samples
        ([[(0, 1, P)], [(0, 1, P), (2, 3, L)], [], [(0, 1, P)]], {(0, 1, P): 0.75, (2, 3, L): 0.25}),
        # the type by majority of those that have the mention: 1 of 4 has LOC, and none of the types has 3 of 4
        ([[(0, 1, P)], [(0, 1, L)], [(0, 1, P)], []], {(0, 1, P): 0.75}),
        # in a draw the first that was named
        ([[(0, 1, L)], [(0, 1, P)]], {(0, 1, L): 1.0}),
        # a mention that is said twice, or with two types, is there once
        ([[(0, 1, P), (0, 1, P)], [(0, 1, O), (0, 1, L)], [(0, 1, L)]], {(0, 1, L): 1.0}),
        # other borders are another mention
        ([[(0, 2, P)], [(0, 1, P)], [(0, 2, P)]], {(0, 1, P): 1 / 3, (0, 2, P): 2 / 3}),
    ],
)
def test_agreement_by_hand(samples, expected):
    entities, scores = vote(samples)
    assert dict(zip(entities, scores, strict=True)) == pytest.approx(expected)


def write(path, rows):
    """Rows of `ask`: (text, mentions) or (text, mentions, prompt)."""
    whole = [
        {
            "key": f"{i:032x}",
            "asked": prompt[0] if prompt else "q1",
            "model": "m",
            "sample": i,
            "text": text,
            "ents": mentions,
        }
        for i, (text, mentions, *prompt) in enumerate(rows)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in whole))


def run(folder, texts, rows, **settings):
    """Labels some texts by answers; gives the groups, None for a text without one, and the report."""
    write(folder / "answers.jsonl", rows)
    return run_there(folder, texts, **settings)


def run_there(folder, texts, **settings):
    (folder / "in.txt").write_text("".join(f"{text}\n" for text in texts))
    sources = {"llm": {"answers": str(folder / "answers.jsonl"), **settings}}
    report = label(folder / "in.txt", folder / "out.spacy", sources=sources, lang="xx", sentences="none")
    docs = list(read_docs(folder / "out.spacy", NLP.vocab))
    return docs, [found(doc) for doc in docs], report.sources[0]


def found(doc):
    if "weak:llm" not in doc.spans:
        return None
    return [(doc[start:end].text, name) for start, end, name in weak.group_entities(doc, "weak:llm")]


def phrase(text, name=P):
    return {"text": text, "label": name}


@pytest.mark.parametrize(
    "text, mentions, expected, lost",
    [
        # all occurrences
        ("bill paid the bill to Bill", [phrase("bill")], [("bill", P), ("bill", P)], 0),
        ("Anna met Anna", [phrase("Anna")], [("Anna", P), ("Anna", P)], 0),
        # its own case first, then any
        ("ASPIRIN and aspirin", [phrase("Aspirin")], [("ASPIRIN", P), ("aspirin", P)], 0),
        # commas, brackets, white space
        ("take 2,4-dinitrophenol (DNP) now", [phrase("2,4-dinitrophenol")], [("2,4-dinitrophenol", P)], 0),
        ("take 2,4-[bis(x)]phenol now", [phrase("2,4-[bis(x)]phenol")], [("2,4-[bis(x)]phenol", P)], 0),
        ("New York rocks", [phrase("New  York")], [("New York", P)], 0),
        # a part of a token, and what is not there
        ("Annabel left", [phrase("Anna"), phrase("Rex"), phrase("left", L)], [("left", L)], 2),
        # places of marks
        ("bill paid the bill", [[14, 18, P]], [("bill", P)], 0),
    ],
)
def test_alignment(tmp_path, text, mentions, expected, lost):
    docs, labeled, report = run(tmp_path, [text], [(text, mentions)])
    assert labeled == [expected]
    assert report.not_found == lost
    # Where an answer was lost, silence may stand for it.
    assert weak.is_complete(docs[0], "llm") == (not lost)


def test_all_samples_vote_even_if_rows_have_the_id_of_the_doc(tmp_path):
    write(tmp_path / "answers.jsonl", [("Anna met Bob", [phrase(name)]) for name in ("Anna", "Bob", "Bob")])
    rows = [{**json.loads(row), "id": "1"} for row in (tmp_path / "answers.jsonl").read_text().splitlines()]
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "in.jsonl").write_text(json.dumps({"id": "1", "text": "Anna met Bob"}))
    sources = {"llm": {"answers": str(tmp_path / "answers.jsonl")}}
    label(tmp_path / "in.jsonl", tmp_path / "out.spacy", sources=sources, lang="xx", sentences="none")
    (doc,) = read_docs(tmp_path / "out.spacy", NLP.vocab)
    assert found(doc) == [("Bob", P)]


def test_scores_and_silence(tmp_path):
    texts = ["Anna met Bob", "nobody", "refused", "not asked", "half"]
    rows = [
        ("Anna met Bob", [phrase("Anna"), phrase("Bob")]),
        ("refused", None),
        ("Anna met Bob", [phrase("anna"), phrase("Rex")]),
        ("nobody", []),
        ("half", None),
        ("Anna met Bob", [phrase("Anna", L)]),
        ("half", [phrase("half")]),
    ]
    docs, labeled, report = run(tmp_path, texts, rows)
    assert labeled == [[("Anna", P)], [], None, None, [("half", P)]]
    # Of three samples all have Anna, one has Bob. Rex is nowhere, but only one sample has it.
    assert weak.group_scores(docs[0], "weak:llm") == [1.0]
    assert [weak.is_complete(docs[i], "llm") for i in (0, 1, 4)] == [True, True, True]
    assert (report.low_scores, report.not_found, report.docs_without_row, report.repeated_rows) == (1, 1, 2, 0)
    assert (report.rows, report.docs_with_row) == (3, 3)
    docs, labeled, _ = run(tmp_path, texts, rows, min_score=0.0, labels={"PER": "NAME"}, complete=False)
    assert labeled[0] == [("Anna", "NAME"), ("Bob", "NAME")]
    assert weak.group_scores(docs[0], "weak:llm") == pytest.approx([1.0, 1 / 3])
    assert not weak.is_complete(docs[1], "llm")


def test_several_prompts(tmp_path):
    rows = [("Anna", [phrase("Anna")], "q1"), ("Bob", [], "q2"), ("Anna", [phrase("Anna", L)], "q2")]
    with pytest.raises(WeaknerError, match=r'WK772.*"q2" \(m, 2 rows\), "q1" \(m, 1 rows\)'):
        run(tmp_path, ["Anna", "Bob"], rows)
    with pytest.raises(WeaknerError, match="WK772"):
        run(tmp_path, ["Anna", "Bob"], rows, asked="q3")
    assert run(tmp_path, ["Anna", "Bob"], rows, asked="q1")[1] == [[("Anna", P)], None]
    assert run(tmp_path, ["Anna", "Bob"], rows, asked="q2")[1] == [[("Anna", L)], []]


@pytest.mark.parametrize("kind", ["answers", "file"])
def test_sentences_that_a_list_joins(tmp_path, kind):
    """`ask` has no list, so it splits inside "Yahoo! Inc."."""
    parts = {
        "Eve works for Yahoo!": ["Eve", "Yahoo!"],
        "Inc. now and Bob likes it.": ["Bob"],
        "Ann saw Yahoo!": ["Ann"],
    }
    write(tmp_path / "answers.jsonl", [(text, [phrase(name) for name in names]) for text, names in parts.items()])
    (tmp_path / "t.csv").write_text("label,term\nORG,Yahoo! Inc.\n")
    (tmp_path / "in.txt").write_text("Eve works for Yahoo! Inc. now and Bob likes it. Ann saw Yahoo! Inc. too.\n")
    sources = {"terms": {"terms": str(tmp_path / "t.csv")}, "llm": {kind: str(tmp_path / "answers.jsonl")}}
    label(tmp_path / "in.txt", tmp_path / "out.spacy", sources=sources, lang="en")
    docs = list(read_docs(tmp_path / "out.spacy", NLP.vocab))
    assert [doc.text for doc in docs] == [
        "Eve works for Yahoo! Inc. now and Bob likes it.",
        "Ann saw Yahoo! Inc. too.",  # "Inc. too." was not labeled
    ]
    assert [found(doc) for doc in docs] == [[("Eve", P), ("Yahoo!", P), ("Bob", P)], None]
    if kind == "answers":
        assert weak.group_scores(docs[0], "weak:llm") == [1.0, 1.0, 1.0]


def test_files_that_are_not_whole_or_not_answers(tmp_path):
    write(tmp_path / "answers.jsonl", [("Anna", [phrase("Anna")]), ("Bob", [])])
    whole = (tmp_path / "answers.jsonl").read_text()
    (tmp_path / "answers.jsonl").write_text(whole[:-20])
    with pytest.raises(WeaknerError, match="WK773"):
        run_there(tmp_path, ["Anna"])
    (tmp_path / "answers.jsonl").write_text(whole[:-1])
    assert run_there(tmp_path, ["Anna", "Bob"])[1] == [[("Anna", P)], []]
    (tmp_path / "answers.jsonl").write_text('{"text": "Anna", "ents": []}\n')
    with pytest.raises(WeaknerError, match=r"line 1: this row was not written by 'ask'\. Declare .* 'file' "):
        run_there(tmp_path, ["Anna"])


@spacy.Language.component("llm_test_only")
def silent(doc):
    return doc


@pytest.mark.parametrize("component, expected", [("llm_test_only", False), ("sentencizer", True)])
def test_silence_of_pipelines_that_ask_language_models(tmp_path, component, expected):
    """One of spacy-llm is silent also where its answer could not be read."""
    nlp = spacy.blank("xx")
    nlp.add_pipe(component, name="ner")
    nlp.to_disk(tmp_path / "model")
    (tmp_path / "in.txt").write_text("Anna\n")
    for declared in ({}, {"complete": True}, {"complete": False}):
        sources = {"llm": {"pipeline": str(tmp_path / "model"), **declared}}
        label(tmp_path / "in.txt", tmp_path / "out.spacy", sources=sources, lang="xx")
        (doc,) = read_docs(tmp_path / "out.spacy", NLP.vocab)
        assert weak.is_complete(doc, "llm") == declared.get("complete", expected)
