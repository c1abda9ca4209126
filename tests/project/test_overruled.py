"""Terms that the package rejects nearly always, and what the gold says of them."""

import pytest
import spacy

from spacy_weakner.corpus.docbin import write_docs
from spacy_weakner.corpus.weak import set_source
from spacy_weakner.project.overruled import SHOWN, Overruled, find_overruled, overruled_table

from ..util import make_doc

NLP = spacy.blank("xx")


@pytest.fixture
def overruled(tmp_path):
    """What is overruled by a pipeline whose list has "light" and "aspirin", and which accepts aspirin only."""
    nlp = spacy.blank("xx")
    ruler = nlp.add_pipe("gazetteer_ruler", config={"source": "terms"})
    ruler.add_terms({"DRUG": ["aspirin", "light", "heavy"]})
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "DRUG", "pattern": "aspirin"}])
    nlp.to_disk(tmp_path / "model")

    def write(name, texts, gold):
        docs = []
        for text in texts:
            words = text.split()
            matches = [(i, i + 1, "DRUG") for i, word in enumerate(words) if word in ("aspirin", "light", "heavy")]
            docs.append(make_doc(NLP, text, [m for m in matches if words[m[0]] in gold]))
            set_source(docs[-1], "terms", matches)
        write_docs(tmp_path / name, docs)
        return tmp_path / name

    def run(text, gold, right=("aspirin",)):
        found = find_overruled(tmp_path / "model", write("gold.spacy", gold, right), write("text.spacy", text, ()))
        return [(t.term, t.rejected, t.matches, t.right, t.wrong, "incomplete" in t.in_gold) for t in found]

    return run


@pytest.mark.parametrize(
    "gold, right, counts",
    [
        # One or two wrong matches and no right one may be forgotten entities.
        (["a light thing"], (), (0, 1, True)),
        (["a light thing"] * 2, (), (0, 2, True)),
        (["a light thing"] * 3, (), (0, 3, False)),
        (["a light thing"], ("light",), (1, 0, False)),
        (["no thing"], (), (0, 0, False)),
    ],
)
def test_what_the_gold_says(overruled, gold, right, counts):
    assert overruled(["some light here", "take aspirin"] * 4, gold, right) == [("light", 4, 4, *counts)]


@pytest.mark.parametrize("text, found", [(["some light here"] * 2, []), (["take aspirin"] * 9, []), (["nothing"], [])])
def test_what_is_not_overruled(overruled, text, found):
    assert overruled(text, ["a light thing"]) == found


def test_the_most_frequent_comes_first(overruled):
    found = overruled(["some light here"] * 3 + ["too heavy"] * 5, ["nothing"])
    assert [term[0] for term in found] == ["heavy", "light"]


def test_the_table():
    terms = [Overruled(term=str(i), label="A", matches=9, rejected=9, right=0, wrong=1, example="x") for i in range(9)]
    table = overruled_table(terms)
    assert len(table.rows) == SHOWN and table.rows[0][2] == "9 of 9" and "incomplete" in table.rows[0][3]
