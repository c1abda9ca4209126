"""Projects on a frozen Transformer: encoded once, and packaged with the encoder itself."""

import json
import shutil
import subprocess
import sys
from functools import partial
from itertools import product

import numpy
import pytest
import spacy
from spacy.tokens import Span
from spacy.vocab import Vocab

from spacy_weakner.configs import render_config
from spacy_weakner.corpus.docbin import bare_copy, read_docs, write_docs
from spacy_weakner.corpus.gold import missing_tokens
from spacy_weakner.corpus.language import record_language
from spacy_weakner.corpus.weak import doc_entities, is_weak, set_source
from spacy_weakner.encoders import stored_vectors
from spacy_weakner.encoders.stored_vectors import ENDS, KEYS, VECTORS, VectorStore
from spacy_weakner.files import write_text
from spacy_weakner.pipelines import TOKENIZER, load_pipeline
from spacy_weakner.project import comparing, rules, students, teaching
from spacy_weakner.project.assembling import assemble, predict_docs
from spacy_weakner.project.combine import PROPOSES, WRITES, TrainedHead
from spacy_weakner.project.context import ALONE, WITH_LISTS, config_name
from spacy_weakner.project.fit import fit
from spacy_weakner.project.rules import (
    COMBINED,
    GOLD_ALONE,
    LINEARS,
    LIST_AND_HEAD,
    STUDENT,
    STUDENT_AND_LIST,
    TERM_LIST,
    TRAINED,
    WEAK_ALONE,
)
from spacy_weakner.project.selection import PREVIOUS
from spacy_weakner.training.augmenting import CaseCopies

from ..encoders import kinds
from ..util import distributions, make_doc, needs_transformers
from .util import LANGUAGE, NLP, PEOPLE, make_corpora

pytestmark = [
    pytest.mark.slow,
    pytest.mark.long,
    needs_transformers,
    pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning"),
]

STEPS, WIDTH = 30, 16
# The components of the combination, and the heads that share one encoder.
PARTS = ["sentencizer", "gazetteer_ruler", "tok2vec", "gold", "frozen", "weak", "ent_combiner"]
LISTENING = {"frozen": ["gold", "frozen"], "transformer": ["gold", "frozen", "weak"]}
TITLES = [TERM_LIST, GOLD_ALONE, "frozen with list", WEAK_ALONE, LIST_AND_HEAD, COMBINED]
# What pipelines find in texts, as a process of its own prints it.
USED = """
import json, sys
import spacy
found = {}
for path in sys.argv[2:]:
    nlp = spacy.load(path)
    docs = nlp.pipe(json.loads(sys.argv[1]))
    found[path] = [[(ent.start, ent.end, ent.label_) for ent in doc.ents] for doc in docs]
print(json.dumps(found))
"""


@pytest.fixture
def project(tmp_path, tiny_bert, trained_here, monkeypatch):
    """`fit` with a Transformer of two layers, whose training is short."""
    bert = kinds.bert(tmp_path / "bert", tiny_bert, num_hidden_layers=2)
    for recipe, size in product((ALONE, WITH_LISTS), ("linear", "linear-static", "frozen")):
        _write_config(tmp_path, recipe, size, bert)
    _write_config(tmp_path, WITH_LISTS, "transformer", bert)
    (tmp_path / "terms.jsonl").write_text("".join(json.dumps({"label": "PER", "term": p}) + "\n" for p in PEOPLE))
    monkeypatch.setitem(TRAINED, "transformer", STEPS)
    monkeypatch.setattr(comparing, "SAMPLES", 10)
    monkeypatch.setattr(rules, "_LITTLE", 0)
    monkeypatch.setattr(rules, "TOO_FEW", 0)
    given = {"configs": tmp_path / "configs", "terms": tmp_path / "terms.jsonl"}
    return partial(fit, tmp_path / "corpus", tmp_path / "training", **given)


def _write_config(folder, recipe, size, bert):
    transformer = None if size in LINEARS else str(bert)
    text = render_config(recipe, size, lang="xx", transformer=transformer)
    # Other texts of a batch then change nothing.
    text = text.replace('mixed_precision = "bf16"', "mixed_precision = null")
    write_text(folder / "configs" / config_name(recipe, size), text)


def changed(folder, *names):
    """When the files of these names were written."""
    return {path: path.stat().st_mtime_ns for name in names for path in folder.rglob(name)}


def entities(path):
    return [doc_entities(doc) for doc in read_docs(path, Vocab())]


def in_a_new_process(texts, paths):
    command = [sys.executable, "-c", USED, json.dumps(texts), *paths]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    return [[[tuple(ent) for ent in doc] for doc in found[path]] for path in paths]


@pytest.mark.parametrize("size, little", [("frozen", 0), ("transformer", 0), ("transformer", 21)])
def test_what_was_compared_is_what_is_packaged(tmp_path, project, monkeypatch, size, little):
    monkeypatch.setattr(rules, "_LITTLE", little)
    student = [STUDENT] if little else []
    corpora, output = make_corpora(tmp_path / "corpus", gold=20, dev=12, text=20), tmp_path / "training"
    selection = project(size=size)
    assert [each.name for each in selection.candidates] == [*TITLES[:-1], *student, COMBINED]
    assert selection.chosen_by == "dev"
    assert selection.settings.text_steps == (STEPS if size == "transformer" else 0)
    assert all(each.scores.tp + each.scores.fn == 24 for each in selection.candidates)

    # However many heads there are, a pipeline has one encoder, and none of the vectors.
    paths = {each.name: each.path for each in selection.candidates}
    loaded = {name: spacy.load(path) for name, path in paths.items()}
    combined = loaded[COMBINED]
    assert combined.pipe_names == [*PARTS[:-1], *student, PARTS[-1]]
    assert combined.get_pipe("tok2vec").listening_components == LISTENING[size]
    with_encoder = {GOLD_ALONE, "frozen with list", COMBINED}
    with_encoder |= {WEAK_ALONE, LIST_AND_HEAD} if size == "transformer" else set()
    assert {name for name, nlp in loaded.items() if "tok2vec" in nlp.pipe_names} == with_encoder
    for name, path in paths.items():
        files = [each.name for each in (tmp_path / path).rglob("*")]
        assert not {VECTORS, KEYS, ENDS} & {*files} and files.count("tok2vec") == (name in with_encoder)
        assert "StoredVectors" not in (tmp_path / path / "config.cfg").read_text()

    # A second run trains nothing again, encodes nothing again, and says the same.
    names = ("trained.json", VECTORS, "encoded.json")
    before = changed(output, *names)
    assert output / "encoder" / "vectors" / VECTORS in before
    again = project(size=size)
    assert changed(output, *names) == before
    scores = {each.name: each.scores.f1 for each in selection.candidates}
    assert {each.name: each.scores.f1 for each in again.candidates} == scores

    # The encoder is in each pipeline: neither that of the project is needed, nor the Transformer that it was made from.
    scored = {}
    for n, each in enumerate(selection.candidates, start=1):
        scored[each.name] = entities(output / "folds" / f"predicted-{n}.spacy")
    texts = [doc.text for doc in read_docs(corpora.dev, Vocab())]
    for folder in ("encoder", "weak", "weak-frozen"):
        if (output / folder).exists():
            (output / folder).rename(output / f"no {folder}")
    (tmp_path / "bert").rename(tmp_path / "no bert")
    found = in_a_new_process(texts, list(paths.values()))
    assert dict(zip(paths, found, strict=True)) == scored
    assert any(scored[GOLD_ALONE]) and any(scored[COMBINED])


def test_the_head_that_trained_the_transformer_reads_the_vectors_too(tmp_path, project):
    corpora, output = make_corpora(tmp_path / "corpus", gold=20, dev=12, text=20), tmp_path / "training"
    project(size="transformer")
    # Its last layer is beside the middle one of the original.
    assert VectorStore(output / "encoder" / "vectors").width == 2 * WIDTH
    encoder = spacy.load(output / "encoder" / "pipeline").get_pipe("tok2vec").model
    docs = [*read_docs(corpora.gold_labeled, Vocab()), *read_docs(corpora.dev, Vocab())]
    assert all(rows.shape == (5, 2 * WIDTH) and rows.any(axis=1).all() for rows in encoder.predict(docs))
    pipelines = [load_pipeline(output / name) for name in ("weak/model-best", "weak-frozen")]
    heads = [nlp.get_pipe("crf_ner") for nlp in pipelines]
    assert heads[0].labels == heads[1].labels
    # Both know gold, dev and their copies in other case.
    copies = CaseCopies(0.5, 0.25)
    docs = [each for doc in docs for each in (doc, *copies.copies(doc))]
    assert len(docs) > 32
    first, second = (numpy.concatenate(distributions(head, docs)) for head in heads)
    # Stored in half precision.
    numpy.testing.assert_allclose(first, second, atol=2e-3)
    # It has learned something, so that they are not alike by chance.
    assert numpy.ptp(first, axis=0).max() > 0.1


@pytest.mark.parametrize("size", ["frozen", "transformer"])
def test_folds_are_predicted_from_stored_vectors(tmp_path, project, size):
    """As the pipelines with the encoder would, in which sentences are encoded as they come."""
    make_corpora(tmp_path / "corpus", gold=20, dev=0, text=20)
    output, cases = tmp_path / "training", CaseCopies(0.5, 0.25)
    selection = project(size=size)
    assert [each.name for each in selection.candidates] == TITLES and selection.chosen_by == "cross-validation"
    assert all(each.scores.tp + each.scores.fn == 40 for each in selection.candidates)
    for name, path in (("gold", "folds/gold-1/model-last"), ("frozen", "folds/frozen-1/model-last")):
        head = TrainedHead(name, name)
        predicted = head.predict(output / path, output / "folds" / "fold-1.spacy", LANGUAGE, cases)
        nlp = assemble({}, {name: output / path}, {**PROPOSES, **WRITES, "annotate_ents": True}, LANGUAGE)
        assert nlp.pipe_names == ["sentencizer", "tok2vec", name]
        texts = [*predicted.gold, *predicted.copies]
        found = predict_docs(nlp, list(texts))
        assert len(found) > 4 and any(doc.ents for doc in found)
        assert [*map(doc_entities, found)] == [*map(doc_entities, [*predicted.docs, *predicted.copied])]


@pytest.mark.parametrize("dev, little", [(12, 20), (0, 21)])
def test_a_student_needs_no_transformer(tmp_path, project, monkeypatch, dev, little):
    monkeypatch.setattr(rules, "_LITTLE", little)
    monkeypatch.setattr(teaching, "_ENTITY", 0.0)  # sure of all entities, and of nothing else
    monkeypatch.setattr(teaching, "_NONE", -1.0)
    labeled, label = [], students._label
    monkeypatch.setattr(students, "_label", lambda *args: labeled.append(label(*args)) or labeled[-1])
    corpora, output = make_corpora(tmp_path / "corpus", gold=20, dev=dev, text=20), tmp_path / "training"
    # Sentences of the gold may be in the text too.
    if dev == 0:
        write_docs(corpora.weak / "more.spacy", [bare_copy(doc) for doc in read_docs(corpora.gold, Vocab())])
    project(size="frozen")
    before = changed(output, "trained.json", VECTORS)
    selection = project(size="frozen", prefer="speed")
    # Only students are trained and, with little gold, nothing: the combination has a student, too.
    after = changed(output, "trained.json", VECTORS)
    new = {STUDENT, "text-vectors", *(f"student-{n + 1}" for n in range(5))} if little == 20 else set()
    assert {path.parent.name for path in after if path not in before} == new
    assert all(after[path] == before[path] for path in before)
    assert [each.name for each in selection.candidates] == [*TITLES[:-1], STUDENT, COMBINED, STUDENT_AND_LIST, PREVIOUS]
    assert selection.best in (STUDENT, STUDENT_AND_LIST)
    paths = {each.name: each.path for each in selection.candidates}
    assert spacy.load(paths[STUDENT]).pipe_names == ["sentencizer", "gazetteer_ruler", STUDENT]
    # Interrupted and run again, nothing is labeled or trained again.
    (output / "selection.json").unlink()
    files = changed(output, "trained.json", "student*.spacy")
    project(size="frozen", prefer="speed")
    assert changed(output, "trained.json", "student*.spacy") == files
    # What costs are compared.
    costs = {each.name: each.cost for each in selection.candidates if each.cost}
    assert {*costs} == {COMBINED, STUDENT, selection.best}
    assert all(cost.words_per_second > 0 < cost.megabytes for cost in costs.values())

    # A student has learned what its teacher, which has not seen the fold either, finds in the text, and the gold.
    learned = list(read_docs(output / "student.spacy", Vocab()))
    gold = [doc for doc in learned if not is_weak(doc)]
    texts = {doc.text: doc for doc in learned if is_weak(doc)}
    cases = CaseCopies(0.5, 0.25)
    assert len(gold) == 20 + sum(len([*cases.copies(doc)]) for doc in read_docs(corpora.gold, Vocab()))
    annotated = {doc.text.lower() for doc in read_docs(corpora.annotated, Vocab())}
    docs = [doc for doc in read_docs(corpora.weak, Vocab()) if doc.text.lower() not in annotated]
    assert {doc.text for doc in docs} < {*texts} and not annotated & {text.lower() for text in texts}
    ((docs, (labels, *_)),) = labeled
    for doc, its in zip(docs, labels, strict=True):
        unsure, sure = ({i for start, end, _ in some for i in range(start, end)} for some in (its.unsure, its.sure))
        assert doc_entities(texts[doc.text]) == its.entities and {*missing_tokens(texts[doc.text])} == unsure - sure
    # The borders of matches are candidates, too.
    assert any(missing_tokens(doc) for doc in texts.values()) == (little > 20)
    if little == 20:
        teacher = load_pipeline(paths[COMBINED], TOKENIZER)
        found = predict_docs(teacher, [*read_docs(corpora.weak, teacher.vocab)])
        entities_of = {doc.text: doc_entities(doc) for doc in found}
        assert [entities_of[doc.text] for doc in docs] == [its.entities for its in labels]
    # Copies in other case have the entities of the original.
    entities_of = {doc.text.lower(): doc_entities(doc) for doc in texts.values()}
    assert all(doc_entities(doc) == entities_of[doc.text.lower()] for doc in texts.values()) and any(
        entities_of.values()
    )
    for n in range(1, 6):
        held_out = {doc.text.lower() for doc in read_docs(output / "folds" / f"fold-{n}.spacy", Vocab())}
        seen = {doc.text.lower() for doc in read_docs(output / "folds" / f"student-{n}.spacy", Vocab())}
        assert seen and not seen & held_out


def test_a_student_without_gold(tmp_path, project):
    corpora, output = make_corpora(tmp_path / "corpus", gold=0, dev=0, text=20), tmp_path / "training"
    selection = project(size="transformer", prefer="speed")
    assert [each.name for each in selection.candidates] == [
        TERM_LIST,
        WEAK_ALONE,
        LIST_AND_HEAD,
        STUDENT,
        STUDENT_AND_LIST,
    ]
    assert selection.best == STUDENT_AND_LIST
    paths = {each.name: each.path for each in selection.candidates}
    assert spacy.load(paths[STUDENT_AND_LIST]).pipe_names == ["sentencizer", "crf_ner", "gazetteer_ruler"]
    # It has learned what the list and the head find in the text.
    teacher = load_pipeline(paths[LIST_AND_HEAD], TOKENIZER)
    learned = list(read_docs(output / "student.spacy", Vocab()))
    assert all(is_weak(doc) and not missing_tokens(doc) for doc in learned)
    texts = {doc.text: doc_entities(doc) for doc in learned}
    docs = [bare_copy(doc, teacher.vocab) for doc in read_docs(corpora.weak, Vocab())]
    expected = {doc.text: doc_entities(doc) for doc in teacher.pipe(docs)}
    assert expected.items() <= texts.items() and len(texts) > len(expected) and any(expected.values())
    # Interrupted and run again, nothing is labeled or trained again.
    (output / "selection.json").unlink()
    files = changed(output, "trained.json", "student.spacy")
    project(size="transformer", prefer="speed")
    assert changed(output, "trained.json", "student.spacy") == files


def test_text_that_comes_later_is_encoded_alone(tmp_path, project, monkeypatch):
    corpora, encoded = make_corpora(tmp_path / "corpus", gold=12, dev=0, text=6), []
    round_, folder = stored_vectors._half, tmp_path / "training" / "text-vectors"
    monkeypatch.setattr(stored_vectors, "_half", lambda rows: encoded.append(len(rows)) or round_(rows))
    project(size="frozen", prefer="speed")
    assert len(encoded) == len(VectorStore(folder)) > 0
    # More gold changes how vectors are standardized, but not what the Transformer computes.
    encoded.clear()
    gold = [*read_docs(corpora.gold_labeled, NLP.vocab), make_doc(NLP, "Anna saw the sea", [(0, 1, "PER")])]
    write_docs(corpora.gold_labeled, gold)
    write_docs(corpora.weak / "more.spacy", [make_doc(NLP, "Nobody wrote this before")])
    before = len(VectorStore(folder))
    project(size="frozen", prefer="speed")
    assert encoded == [4] and len(VectorStore(folder)) == before + 1


@pytest.mark.parametrize(
    "sentences, abbreviations, n", [("none", "", 1), ("lines", "", 1), ("sentencizer", "", 3), ("rule", "wg.", 2)]
)
def test_candidates_split_texts_as_the_corpora(tmp_path, project, sentences, abbreviations, n):
    corpora, docs = make_corpora(tmp_path / "corpus", gold=12, dev=0, text=0), []
    for i in range(12):
        docs.append(NLP.make_doc(f"Anna came wg. {i} days. Bob left"))
        docs[-1].set_ents([Span(docs[-1], 0, 1, "PER")])
        set_source(docs[-1], "gazetteer", [(0, 1, "PER")])
    write_docs(corpora.gold_labeled, docs)
    language = LANGUAGE._replace(sentences=sentences, abbreviations=abbreviations)
    record_language(corpora.annotated, language)
    for each in project(size="frozen").candidates:
        if each.name != TERM_LIST:
            (doc,) = spacy.load(each.path).pipe([docs[0].text])
            assert len([*doc.sents] if doc.has_annotation("SENT_START") else [doc]) == n


def test_another_transformer_trains_the_heads_anew(tmp_path, project, tiny_bert):
    make_corpora(tmp_path / "corpus", gold=12, dev=8, text=0)
    project(size="frozen")
    before = changed(tmp_path / "training", "trained.json", VECTORS)
    kinds.bert(tmp_path / "bert", tiny_bert, num_hidden_layers=3)
    project(size="frozen")
    after = changed(tmp_path / "training", "trained.json", VECTORS)
    assert not any(after[path] == before[path] for path in before)


def test_sentences_that_end_inside_a_row(tmp_path, project):
    """A row of several sentences, with an entity across a sentence end: pipelines split it in other places than
    trainings."""
    corpora = make_corpora(tmp_path / "corpus", gold=12, dev=0, text=0)
    texts = [f"Hello . I saw St . Mary today {i} . Anna left" for i in range(12)]
    docs = [make_doc(NLP, text, [(4, 7, "LOC"), (10, 11, "PER")]) for text in texts]
    write_docs(corpora.gold_labeled, docs)
    selection = project(size="frozen")
    assert all(each.scores.tp + each.scores.fn == 24 for each in selection.candidates)


def test_names_with_the_end_of_a_sentence_stay_whole_in_folds(tmp_path, project):
    """In each fold, a head knows the names of the other folds, and the matches of the list."""
    corpora = make_corpora(tmp_path / "corpus", gold=12, dev=0, text=0)
    rows = [(f"Eve likes Yahoo ! Inc {i} . So", [(2, 5, "ORG")]) for i in range(12)]
    rows.append(("Yahoo ! Inc bought Guess ? Europe or Oh ! My ! God", [(0, 3, "ORG"), (4, 7, "ORG"), (8, 13, "PER")]))
    rows.append(("We saw What ? Ever and Yahoo ! Inc", [(6, 9, "ORG")]))
    docs = [make_doc(NLP, text, entities) for text, entities in rows]
    for doc in docs:
        set_source(doc, "gazetteer", [(2, 5, "LOC")] if "What" in doc.text else [])
    write_docs(corpora.gold_labeled, docs)
    selection = project(size="frozen")
    assert all(each.scores.tp + each.scores.fn == 16 for each in selection.candidates)
    found = {}
    for n in range(1, 6):
        folds, cases = tmp_path / "training/folds", CaseCopies(0.5, 0.25, [tmp_path / "training/lists/list-1"])
        path = folds / f"frozen-{n}" / "model-last"
        predicted = TrainedHead("frozen", "").predict(path, folds / f"fold-{n}.spacy", LANGUAGE, cases)
        packaged = predict_docs(
            assemble({}, {"frozen": path}, PROPOSES, LANGUAGE), [*predicted.gold, *predicted.copies]
        )
        docs = [*predicted.docs, *predicted.copied]
        assert [[*map(str, doc.sents)] for doc in docs] == [[*map(str, doc.sents)] for doc in packaged]
        found.update((doc[:3].text, [*map(str, doc.sents)]) for doc in predicted.docs)
    assert len(found["Eve likes Yahoo"]) == 2 and len(found["We saw What"]) == 1
    assert found["Yahoo ! Inc"] == ["Yahoo ! Inc bought Guess ?", "Europe or Oh !", "My !", "God"]


def test_lost_vectors_are_computed_again(tmp_path, project):
    make_corpora(tmp_path / "corpus", gold=12, dev=8, text=0)
    vectors = tmp_path / "training" / "encoder" / "vectors"
    project(size="frozen")
    before = (vectors / VECTORS).read_bytes()
    shutil.rmtree(vectors)
    project(size="frozen")
    assert (vectors / VECTORS).read_bytes() == before
