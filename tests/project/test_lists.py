"""Term lists as pipelines: what they find is what the list labels."""

import json
import random

import pytest
import spacy
from spacy.training import Example
from spacy.vocab import Vocab

from spacy_weakner.corpus.docbin import bare_copy, read_docs, write_docs
from spacy_weakner.corpus.language import CorpusLanguage
from spacy_weakner.corpus.weak import doc_entities, group_entities, group_ids, set_id, set_source, weak_group
from spacy_weakner.evaluation.terms.collected import LeakedLabel
from spacy_weakner.labeling.aggregate import aggregate
from spacy_weakner.labeling.label import label
from spacy_weakner.project.assembling import assemble, last_steps, save
from spacy_weakner.project.lists import hide, label_with, make_lists, term_sources

from ..util import make_doc, raw
from .util import LANGUAGE, NLP

WORDS = ["aa", "Bb", "CCC", "dd", "e", "Ff-g", "IT", "it"]


@pytest.fixture
def lists(tmp_path):
    """Pipelines of a declaration, made in a folder."""

    def make(text):
        (tmp_path / "sources.cfg").write_text(text)
        return make_lists(term_sources(None, tmp_path / "sources.cfg"), tmp_path / "lists", CorpusLanguage.make("xx"))

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
        'labels = {"A": "A"}\nambiguity = "drop"',
        'labels = {"B": "X", "C": "X"}\nambiguity = "first"',
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
    ((*_, made),) = lists(f'[sources.drugs]\nterms = "terms.jsonl"\n{settings}\n')
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
    ((source, title, made),) = lists(
        f'[sources.drugs]\nterms = "t.jsonl"\nstop = ["x"]\nlabels = {{"A": "NEW"}}\n{text}'
    )
    assert (source, title, made.name) == ("drugs", "term list", "list-1")
    nlp = spacy.load(made)
    ruler = nlp.get_pipe("gazetteer_ruler")
    assert {key: getattr(ruler, key) for key in given} == given and [*ruler.stop] == ["x"]
    assert ruler.labels == ("NEW",) and nlp.config["training"]["score_weights"] == {"ents_f": 1.0}
    (tmp_path / "t.txt").write_text("aa\nbb cc\n")
    ((*_, made),) = lists('[sources.drugs]\nterms = "t.txt"\nterm_label = "DRUG"\n')
    assert doc_entities(spacy.load(made)("aa and bb cc")) == [(0, 1, "DRUG"), (2, 4, "DRUG")]


def test_several_lists_and_other_sources(tmp_path, lists):
    for name in ("a", "b"):
        write_terms(tmp_path / f"{name}.jsonl", [(name.upper(), name)])
    (tmp_path / "answers.jsonl").write_text('{"text": "a b", "spans": []}\n')
    declared = "".join(f'[sources.{name}]\nterms = "{name}.jsonl"\n' for name in "ab")
    made = lists(f'{declared}[sources.answers]\nfile = "answers.jsonl"\n')
    assert [(each.source, each.title) for each in made] == [("a", "term list 'a'"), ("b", "term list 'b'")]
    assert [doc_entities(spacy.load(each.pipeline)("a b")) for each in made] == [[(0, 1, "A")], [(1, 2, "B")]]
    # What they say beside the gold of a corpus is what they label.
    write_docs(tmp_path / "dev.spacy", [make_doc(NLP, "a b", [(0, 2, "X")])])
    (doc,) = read_docs(label_with(made, tmp_path / "dev.spacy", tmp_path / "labeled.spacy"), Vocab())
    assert doc_entities(doc) == [(0, 2, "X")]
    assert [group_entities(doc, weak_group(name)) for name in "ab"] == [[(0, 1, "A")], [(1, 2, "B")]]
    assert term_sources(None, None) == []


def test_a_list_that_is_given_by_its_path(tmp_path):
    write_terms(tmp_path / "t.jsonl", [("A", "aa")])
    (source,) = term_sources(tmp_path / "t.jsonl", None)
    for _ in range(2):  # one that stands there already is replaced
        ((*_, made),) = make_lists([source], tmp_path / "lists", CorpusLanguage.make("de"))
    assert [path.name for path in (tmp_path / "lists").iterdir()] == [made.name]
    nlp = spacy.load(made)
    assert nlp.lang == "de" and [ent.text for ent in nlp("x aa y").ents] == ["aa"]


# Short forms and ids


def test_short_forms_and_ids_reach_the_package(tmp_path, lists):
    rows = [{"label": "DIS", "term": "heart failure", "id": "D6"}, {"label": "DIS", "term": "pain", "id": "D7"}]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (each,) = made = lists('[sources.drugs]\nterms = "t.jsonl"\nabbreviations = true\n')
    nlp = spacy.load(each.pipeline)
    doc = nlp("heart failure (HF) and HF, pains")
    assert [(ent.text, ent.kb_id_) for ent in doc.ents] == [("heart failure", "D6"), ("HF", "D6"), ("HF", "D6")]

    docs = [raw(NLP, text) for text in ("heart failure ( HF )", "so HF", "HF")]
    for doc, name in zip(docs, ("a.1", "a.2", "b.1"), strict=True):
        set_id(doc, name)
    write_docs(tmp_path / "gold.spacy", docs)
    label_with(made, tmp_path / "gold.spacy", tmp_path / "with.spacy")
    found = [group_ids(doc, weak_group("drugs")) for doc in read_docs(tmp_path / "with.spacy", Vocab())]
    assert found == [{(0, 2, "DIS"): ("D6",), (3, 4, "DIS"): ("D6",)}, {(1, 2, "DIS"): ("D6",)}, {}]

    whole = assemble({each.source: each.pipeline}, {"gold": tiny_head(tmp_path)}, {}, LANGUAGE)
    save(whole, tmp_path / "package", {each.source: each.pipeline})
    names = spacy.load(tmp_path / "package").pipe_names
    assert names == ["sentencizer", "gazetteer_ruler", "short_forms_1", "gold", "abbreviations", "term_linker"]
    nlp = spacy.load(tmp_path / "package")
    doc = nlp.make_doc("Heart failure (HF), some pains, HF")
    doc.ents = [doc.char_span(0, 13, "DIS"), doc.char_span(25, 30, "DIS")]
    for name in names[-2:]:
        doc = nlp.get_pipe(name)(doc)
    assert [(e.text, e.kb_id_) for e in doc.ents] == [
        ("Heart failure", "D6"),
        ("HF", "D6"),
        ("pains", "D7"),
        ("HF", "D6"),
    ]


def tiny_head(folder):
    """A head that was trained on nothing."""
    nlp = spacy.blank("xx")
    nlp.add_pipe("crf_ner").initialize(lambda: [Example(doc, doc) for doc in [make_doc(nlp, "a b", [(0, 1, "DIS")])]])
    nlp.to_disk(folder / "head")
    return folder / "head"


def test_an_assembled_pipeline_has_the_tokenizer_of_its_head(tmp_path):
    """It tokenizes the names that have the end of a sentence."""
    head = spacy.load(tiny_head(tmp_path))
    spacy.blank("en").to_disk(tmp_path / "english")
    english = spacy.load(tmp_path / "english")
    english.add_pipe("crf_ner", source=head)
    english.to_disk(tmp_path / "english")
    found = assemble({}, {"gold": tmp_path / "english"}, {}, LANGUAGE)
    assert found.lang == "en" and found.pipe_names == ["sentencizer", "gold"]
    assert [token.text for token in found("Yahoo! Inc. isn't")] == ["Yahoo", "!", "Inc.", "is", "n't"]


def test_hidden_matches_take_their_ids_along(tmp_path):
    docs = [make_doc(NLP, "a b", [(0, 1, "A")]) for _ in range(20)]
    for doc in docs:
        set_source(doc, "g", [(0, 1, "A"), (1, 2, "A")], ids={(0, 1, "A"): ["1"], (1, 2, "A"): ["2"]})
    write_docs(tmp_path / "gold.spacy", docs)
    hide(tmp_path / "gold.spacy", tmp_path / "out.spacy", {("g", "A"): LeakedLabel(2.0, 0.5)})
    found = [group_ids(doc, weak_group("g")) for doc in read_docs(tmp_path / "out.spacy", Vocab())]
    both = {(0, 1, "A"): ("1",), (1, 2, "A"): ("2",)}
    assert {len(ids) for ids in found} == {1, 2}
    assert all(ids in (both, {(1, 2, "A"): ("2",)}) for ids in found)


def test_a_list_that_only_forbids(tmp_path, lists):
    (tmp_path / "t.jsonl").write_text(json.dumps({"label": "A", "term": "bb", "binding": "never"}) + "\n")
    (each,) = lists('[sources.drugs]\nterms = "t.jsonl"\n')
    nlp = spacy.load(each.pipeline)
    assert nlp.pipe_names == ["gazetteer_ruler", "binding_terms"] and not nlp("aa bb cc").ents
    doc = make_doc(NLP, "aa bb cc", [(0, 1, "A"), (1, 2, "A")])
    assert doc_entities(last_steps({each.source: each.pipeline})(doc)) == [(0, 1, "A")]


def test_binding_terms_reach_the_package(tmp_path, lists):
    rows = [
        {"label": "A", "term": "aa", "binding": "must"},
        {"label": "A", "term": "bb", "binding": "never"},
        {"label": "A", "term": "cc"},
        {"label": "X", "term": "xx", "binding": "must"},
    ]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (each,) = made = lists('[sources.drugs]\nterms = "t.jsonl"\nlabels = {"A": "B"}\n')
    nlp = spacy.load(each.pipeline)
    assert nlp.pipe_names == ["gazetteer_ruler", "binding_terms"]
    assert [(ent.text, ent.label_) for ent in nlp("aa bb cc xx").ents] == [("aa", "B"), ("cc", "B")]

    # What is never an entity is no weak label, and no feature of a head either.
    write_docs(tmp_path / "gold.spacy", [raw(NLP, "aa bb cc")])
    (doc,) = read_docs(label_with(made, tmp_path / "gold.spacy", tmp_path / "with.spacy"), Vocab())
    assert group_entities(doc, weak_group("drugs")) == [(0, 1, "B"), (2, 3, "B")]

    sources = {each.source: each.pipeline}
    save(assemble(sources, {"gold": tiny_head(tmp_path)}, {}, LANGUAGE), tmp_path / "package", sources)
    nlp = spacy.load(tmp_path / "package")
    assert nlp.pipe_names == ["sentencizer", "gazetteer_ruler", "gold", "binding_terms"]
    # Predictions are scored with the steps that the package has.
    for step in (nlp.get_pipe("binding_terms"), last_steps(sources)):
        doc = make_doc(NLP, "aa bb cc", [(0, 1, "Y"), (1, 2, "B")])
        assert doc_entities(step(doc)) == [(0, 1, "B")]
