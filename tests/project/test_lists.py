"""Term lists as pipelines: what they find is what the list labels."""

import json
import random

import pytest
import spacy
from spacy.vocab import Vocab

from spacy_weakner.annotations.corpus import bare_copy, read_docs, write_docs
from spacy_weakner.annotations.weak import doc_entities
from spacy_weakner.project.lists import make_lists, term_sources
from spacy_weakner.stages.aggregate import aggregate
from spacy_weakner.stages.label import label

from ..util import raw
from .util import NLP

WORDS = ["aa", "Bb", "CCC", "dd", "e", "Ff-g", "IT", "it"]


@pytest.fixture
def lists(tmp_path):
    """Pipelines of a declaration, made in a folder."""

    def make(text):
        (tmp_path / "sources.cfg").write_text(text)
        return make_lists(term_sources(None, tmp_path / "sources.cfg"), tmp_path / "lists", lang="xx", tokenizer=None)

    return make


def write_terms(path, rows):
    path.write_text("".join(json.dumps({"label": label, "term": term}) + "\n" for label, term in rows))


@pytest.mark.parametrize(
    "settings",
    [
        "",
        'attr = "ORTH"\nambiguity = "drop"',
        'acronym_length = 0\nambiguity = "first"\nstop = ["aa", "dd e"]',
        'min_length = 3\nlabels = {"A": "X", "B": "X"}',
        'labels = {"A": "B", "C": "A"}\nreliability = 0.5',
    ],
)
def test_the_entities_are_those_of_label_and_aggregate(tmp_path, lists, settings):
    rng = random.Random(settings)
    write_terms(
        tmp_path / "terms.jsonl",
        [(rng.choice("ABC"), " ".join(rng.choices(WORDS, k=rng.choice((1, 1, 2, 3))))) for _ in range(40)],
    )
    docs = [raw(NLP, " ".join(rng.choices([*WORDS, "zz"], k=rng.randint(1, 12)))) for _ in range(80)]
    write_docs(tmp_path / "in.spacy", docs)
    (made,) = lists(f'[sources.drugs]\nterms = "terms.jsonl"\n{settings}\n').values()
    label(tmp_path / "in.spacy", tmp_path / "weak.spacy", sources=tmp_path / "sources.cfg", lang="xx")
    aggregate(tmp_path / "weak.spacy", tmp_path / "out.spacy", policy="longest", unmatched="outside")
    wanted = [doc_entities(doc) for doc in read_docs(tmp_path / "out.spacy", Vocab())]
    nlp = spacy.load(made)
    assert [doc_entities(doc) for doc in nlp.pipe(bare_copy(doc, nlp.vocab) for doc in docs)] == wanted
    assert sum(map(len, wanted)) > 50


def test_all_settings_arrive(tmp_path, lists):
    write_terms(tmp_path / "t.jsonl", [("A", "aa bb"), ("B", "cc")])
    given = {"attr": "ORTH", "acronym_length": 3, "min_length": 2, "ambiguity": "drop", "reliability": 0.7}
    text = "".join(f"{key} = {json.dumps(value)}\n" for key, value in given.items())
    ((name, made),) = lists(
        f'[sources.drugs]\nterms = "t.jsonl"\nstop = ["x"]\nlabels = {{"A": "NEW"}}\n{text}'
    ).items()
    assert (name, made.name) == ("term list", "weak-drugs")
    nlp = spacy.load(made)
    ruler = nlp.get_pipe("gazetteer_ruler")
    assert {key: getattr(ruler, key) for key in given} == given and [*ruler.stop] == ["x"]
    assert ruler.labels == ("NEW",) and nlp.config["training"]["score_weights"] == {"ents_f": 1.0}


def test_labels_of_terms_without_one(tmp_path, lists):
    (tmp_path / "t.txt").write_text("aa\nbb cc\n")
    (made,) = lists('[sources.drugs]\nterms = "t.txt"\nterm_label = "DRUG"\n').values()
    assert doc_entities(spacy.load(made)("aa and bb cc")) == [(0, 1, "DRUG"), (2, 4, "DRUG")]


def test_several_lists_and_other_sources(tmp_path, lists):
    for name in ("a", "b"):
        write_terms(tmp_path / f"{name}.jsonl", [(name.upper(), name)])
    (tmp_path / "answers.jsonl").write_text('{"text": "a b", "spans": []}\n')
    declared = "".join(f'[sources.{name}]\nterms = "{name}.jsonl"\n' for name in "ab")
    made = lists(f'{declared}[sources.answers]\nfile = "answers.jsonl"\n')
    assert list(made) == ["term list 'a'", "term list 'b'"]
    assert [doc_entities(spacy.load(path)("a b")) for path in made.values()] == [[(0, 1, "A")], [(1, 2, "B")]]
    assert term_sources(None, None) == []


def test_a_list_that_is_given_by_its_path(tmp_path):
    write_terms(tmp_path / "t.jsonl", [("A", "aa")])
    (source,) = term_sources(tmp_path / "t.jsonl", None)
    for _ in range(2):  # one that stands there already is replaced
        (made,) = make_lists([source], tmp_path / "lists", lang="de", tokenizer=None).values()
    assert [path.name for path in (tmp_path / "lists").iterdir()] == [made.name]
    nlp = spacy.load(made)
    assert nlp.lang == "de" and [ent.text for ent in nlp("x aa y").ents] == ["aa"]
