"""Probable mistakes in the gold: which ones, in which order, and the file that is reviewed and read again."""

import json

import pytest
import spacy
from spacy.vocab import Vocab

from spacy_weakner.conversion.convert import convert
from spacy_weakner.corpus.docbin import read_docs
from spacy_weakner.corpus.weak import set_group
from spacy_weakner.project.layout import Corpora
from spacy_weakner.project.mistakes import SHOWN, find_mistakes, mistakes_table, write_mistakes
from spacy_weakner.project.prepare import prepare

from ..util import make_doc
from .test_prepare import texts
from .util import write_rows

NLP = spacy.blank("xx")
GROUP = "pred:combined"
TEXT = "Anna Lee met Bob in Rome"
ANNA, LEE, BOB, ROME = (0, 2, "PER"), (1, 2, "PER"), (3, 4, "PER"), (5, 6, "LOC")
# Sentences in which all agree, so that most entities of the gold have a high probability.
SURE = [([ANNA, BOB, ROME], {ANNA: 0.98, BOB: 0.97, ROME: 0.99})] * 60


def judge(*sentences):
    """Sentences of the same text: their gold, and the probabilities of candidates."""
    pairs = []
    for gold, candidates in sentences:
        doc, other = make_doc(NLP, TEXT, gold), make_doc(NLP, TEXT, [])
        set_group(other, GROUP, list(candidates), list(candidates.values()))
        pairs.append((doc, other))
    return pairs


@pytest.mark.parametrize(
    "gold, candidates, found",
    [
        # Forgotten.
        ([ANNA, ROME], {ANNA: 0.9, BOB: 0.9, ROME: 0.9}, [([], BOB)]),
        # A wrong border, on either side; a wrong label.
        ([LEE, BOB, ROME], {ANNA: 0.9, LEE: 0.02, BOB: 0.9, ROME: 0.9}, [([LEE], ANNA)]),
        ([(0, 3, "PER"), BOB, ROME], {ANNA: 0.9, BOB: 0.9, ROME: 0.9}, [([(0, 3, "PER")], ANNA)]),
        ([ANNA, BOB, (5, 6, "PER")], {ANNA: 0.9, BOB: 0.9, ROME: 0.95}, [([(5, 6, "PER")], ROME)]),
        # Not an entity.
        ([ANNA, BOB, (4, 5, "LOC"), ROME], {ANNA: 0.9, BOB: 0.9, ROME: 0.9}, [([(4, 5, "LOC")], None)]),
        # One entity in place of two.
        ([(0, 1, "PER"), LEE, BOB, ROME], {ANNA: 0.95, BOB: 0.9, ROME: 0.9}, [([(0, 1, "PER"), LEE], ANNA)]),
        # Two in one sentence, the more probable first; and less probable than not.
        ([ANNA], {ANNA: 0.9, BOB: 0.8, ROME: 0.9}, [([], ROME), ([], BOB)]),
        ([ANNA, ROME], {ANNA: 0.9, BOB: 0.4, ROME: 0.9}, []),
        ([ANNA, BOB, ROME], {ANNA: 0.9, BOB: 0.9, ROME: 0.9}, []),
    ],
)
def test_kinds_of_mistakes(gold, candidates, found):
    mistakes = find_mistakes(judge(*SURE, (gold, candidates)), GROUP)
    assert [(sorted(one.gold), one.probable) for one in mistakes] == found
    assert all(one.sentence == len(SURE) and one.score > 0.0 for one in mistakes)


def test_models_that_find_little_refute_little():
    # Most entities of this gold are not even candidates.
    unknown = [([ANNA, BOB, ROME], {})] * 10
    assert find_mistakes(judge(*unknown), GROUP) == []
    mistakes = find_mistakes(judge(*unknown, ([ANNA, BOB], {ROME: 0.9})), GROUP)
    assert [one.probable for one in mistakes] == [ROME]


def test_the_most_probable_ones():
    sentences = [([ANNA, ROME], {ANNA: 0.9, BOB: p, ROME: 0.9}) for p in (0.6, 0.9, 0.7, 0.8)]
    mistakes = find_mistakes(judge(*SURE, *sentences), GROUP, most=3)
    assert [one.sentence - len(SURE) for one in mistakes] == [1, 3, 2]


def test_tokens_without_gold_have_no_mistakes():
    (doc, other), *more = judge(([ANNA], {ANNA: 0.9, BOB: 0.9, ROME: 0.9}), *SURE)
    doc.set_ents(list(doc.ents), missing=[doc[3:4]], default="outside")
    assert [one.probable for one in find_mistakes([(doc, other), *more], GROUP)] == [ROME]
    doc.set_ents([], default="missing")
    assert find_mistakes([(doc, other), *more], GROUP) == []


def test_they_are_reviewed_and_read_again(tmp_path):
    gold = tmp_path / "gold.jsonl"
    write_rows(gold, [{"id": "a", "text": TEXT, "ents": [[4, 8, "PER"], [20, 24, "LOC"]]}])
    prepare(tmp_path / "corpus", gold=gold, lang="xx")
    judged = judge(*SURE, ([LEE, ROME], {ANNA: 0.9, BOB: 0.9, ROME: 0.9}))
    path = tmp_path / "gold-mistakes.jsonl"
    mistakes = write_mistakes(path, judged, find_mistakes(judged, GROUP))
    assert [(m.gold, m.probable, m.text) for m in mistakes] == [
        ("Lee (PER)", "Anna Lee (PER)", TEXT),
        ("", "Bob (PER)", TEXT),
    ]
    (row,) = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    # As of `suggest`: nobody has decided yet, so the rows change nothing.
    assert row.get("ents") is None and all(m.why in row["meta"]["why"] for m in mistakes)
    # Only answers are set aside.
    write_mistakes(path, judged, find_mistakes(judged, GROUP))
    assert [file_.name for file_ in tmp_path.glob("*mistakes*")] == [path.name]
    answered = {**row, "ents": [[4, 12, "PER"]]}
    write_rows(path, [answered])
    write_mistakes(path, judged, find_mistakes(judged, GROUP))
    assert json.loads((tmp_path / f"previous-{path.name}").read_text(encoding="utf-8")) == answered
    assert json.loads(path.read_text(encoding="utf-8")) == row
    before = gold.read_text(encoding="utf-8")
    gold.write_text(before + path.read_text(encoding="utf-8"), encoding="utf-8")
    corpora = Corpora(tmp_path / "corpus")
    assert prepare(tmp_path / "corpus", gold=gold, lang="xx").gold == 1 and entities(corpora.gold) == ["Lee", "Rome"]
    # Tools get what is probable as a suggestion. The answer replaces the old annotation.
    convert(path, tmp_path / "tasks.json", to="label-studio", lang="xx")
    (task,) = json.loads((tmp_path / "tasks.json").read_text(encoding="utf-8"))
    assert {result["value"]["text"] for result in task["predictions"][0]["result"]} == {"Anna Lee", "Bob", "Rome"}
    answer = {"text": TEXT, "ents": [[0, 8, "PER"], [13, 16, "PER"], [20, 24, "LOC"]]}
    gold.write_text(before + json.dumps(answer) + "\n", encoding="utf-8")
    prepared = prepare(tmp_path / "corpus", gold=gold, lang="xx")
    assert prepared.gold == 1 and entities(corpora.gold) == ["Anna Lee", "Bob", "Rome"]
    assert any("left out: 1" in note for note in prepared.notes)


def entities(path):
    return [ent.text for doc in read_docs(path, Vocab()) for ent in doc.ents]


@pytest.mark.parametrize(
    "first, second, kept",
    [
        # The same annotation, twice; another one, perhaps of other tokens.
        ({"text": TEXT, "ents": [[0, 8, "PER"]]}, {"text": TEXT, "ents": [[0, 8, "PER"]]}, 2),
        ({"text": TEXT, "ents": [[0, 8, "PER"]]}, {"text": TEXT, "ents": []}, 1),
        ({"tokens": TEXT.split(), "ents": [[0, 2, "PER"]]}, {"text": TEXT, "ents": [[0, 8, "PER"]]}, 2),
        ({"tokens": TEXT.split(), "ents": [[0, 2, "PER"]]}, {"text": TEXT, "ents": [[0, 8, "LOC"]]}, 1),
        # A short sentence is the same if its id is.
        ({"text": "Anna", "ents": [[0, 4, "PER"]]}, {"text": "Anna", "ents": []}, 2),
        ({"text": "Anna", "ents": [[0, 4, "PER"]], "id": "a"}, {"text": "Anna", "ents": [], "id": "b"}, 2),
        ({"text": "Anna", "ents": [[0, 4, "PER"]], "id": "a"}, {"text": "Anna", "ents": [], "id": "a"}, 1),
    ],
)
def test_the_last_annotation_counts(tmp_path, first, second, kept):
    other = {"text": "Bob", "ents": [[0, 3, "PER"]]}
    path = write_rows(tmp_path / "gold.jsonl", [first, other, second])
    prepared = prepare(tmp_path / "corpus", gold=path, lang="xx")
    found = texts(Corpora(tmp_path / "corpus").gold)
    assert prepared.gold == len(found) == kept + 1
    assert any("annotated again" in note for note in prepared.notes) == (kept == 1)


WHOLE = "Anna had wg. fever in Paris . Bob went to Rome with her . Clara saw Oslo again ."


@pytest.mark.parametrize(
    "abbreviations, rows, n",
    [
        # Sentences of the text, as they were before "wg." was an abbreviation, and as they are.
        ("", [("a.2", "fever in Paris .", []), ("a.3", "Bob went to Rome with her .", [])], 0),
        ("wg.", [("a.2", "fever in Paris .", []), ("a.3", "Bob went to Rome with her .", [])], 1),
        ("wg.", [("a.1", "Anna had wg.", []), ("a.2", "fever in Paris .", [])], 2),
        # Without an answer, of another document, short, and new.
        ("wg.", [("a.2", "fever in Paris .", None), ("b.2", "fever in Paris .", [])], 0),
        ("wg.", [(None, "fever in Paris .", []), ("a.2", "in Paris .", []), ("a.4", "He saw it in Paris .", [])], 0),
    ],
)
def test_annotations_of_sentences_that_are_parts_of_others_now(tmp_path, abbreviations, rows, n):
    first = {"id": "a", "text": WHOLE, "ents": [[0, 4, "PER"]]}
    again = [{"id": name, "text": text, "ents": entities} for name, text, entities in rows]
    path = write_rows(tmp_path / "gold.jsonl", [first, *again])
    prepared = prepare(tmp_path / "corpus", gold=path, lang="en", abbreviations=abbreviations)
    notes = [note for note in prepared.notes if "parts of longer ones" in note]
    assert len(notes) == bool(n) and all(note.endswith(f": {n}") for note in notes)


def test_the_first_ones_are_shown(tmp_path):
    judged = judge(*SURE, *[([ANNA, ROME], {ANNA: 0.9, BOB: 0.9, ROME: 0.9})] * 8)
    mistakes = write_mistakes(tmp_path / "mistakes.jsonl", judged, find_mistakes(judged, GROUP))
    table = mistakes_table(mistakes)
    assert len(mistakes) == 8 and len(table.rows) == SHOWN and "All 8" in table.note
