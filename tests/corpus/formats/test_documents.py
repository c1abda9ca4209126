"""Annotated texts of several sentences: split like text without annotations, and known as one document."""

from spacy_weakner.corpus.docbin import read_docs
from spacy_weakner.corpus.documents import document_of, group_documents
from spacy_weakner.corpus.formats.reading import Reading, read_corpus
from spacy_weakner.corpus.gold import missing_tokens
from spacy_weakner.corpus.weak import doc_entities, get_id, get_meta, group_entities
from spacy_weakner.labeling.label import label
from spacy_weakner.project.layout import Corpora
from spacy_weakner.project.prepare import prepare

from .util import NLP, write_lines

TEXT = "Anna met Mr X! Bob left!\n\nNew\nYork is big!"
ENTS = [[0, 4, "PER"], [9, 13, "PER"], [15, 18, "PER"], [26, 34, "LOC"]]


def read(path, *rows, **settings):
    write_lines(path, rows)
    return list(read_corpus(path, NLP, Reading(**{"documents": True, **settings})))


def test_annotated_text_is_split_like_other_text(tmp_path):
    docs = read(tmp_path / "a.jsonl", {"text": TEXT, "ents": ENTS, "meta": {"by": "me"}}, {"text": TEXT})
    n = len(docs) // 2
    assert n == 3 and [doc.text for doc in docs[:n]] == [doc.text for doc in docs[n:]]
    assert [doc[start:end].text for doc in docs for start, end, _ in doc_entities(doc)] == [
        TEXT[start:end].replace("\n", " ") for start, end, _ in ENTS
    ]
    assert [get_id(doc) for doc in docs] == [f"a-{row}.{i}" for row in (1, 2) for i in range(1, n + 1)]
    assert [len(group) for group in group_documents(docs)] == [n, n]
    assert get_meta(docs[n - 1]) == {"by": "me"}
    whole = read(tmp_path / "a.jsonl", {"text": TEXT, "ents": ENTS}, documents=False)
    assert [(doc.text, get_id(doc)) for doc in whole] == [(TEXT, None)]


def test_all_labels_of_a_text_are_kept(tmp_path):
    row = {"id": "x", "text": "Ana ran! Bob sat! Eve won!", "ents": [[0, 3, "X"], [7, 12, "Y"]], "missing": [[22, 25]]}
    row.update(wrong=[[18, 21, "X"]], weak_ents={"s": [[0, 3, "Z", 0.5], [18, 25, "Z"]]})
    docs = read(tmp_path / "a.jsonl", row)
    # No sentence begins inside an entity.
    assert [(doc.text, get_id(doc)) for doc in docs] == [("Ana ran! Bob sat!", "x.1"), ("Eve won!", "x.2")]
    assert [doc_entities(doc) for doc in docs] == [[(0, 1, "X"), (2, 4, "Y")], []]
    assert [group_entities(doc, "weak:s") for doc in docs] == [[(0, 1, "Z")], [(0, 2, "Z")]]
    assert [group_entities(doc, "wrong") for doc in docs] == [[], [(0, 1, "X")]]
    assert [missing_tokens(doc) for doc in docs] == [[], [1]]


def test_sentences_keep_their_documents(tmp_path):
    rows = [{"id": f"a{i}.{k}", "text": f"Anna {i} {k}.", "ents": [[0, 4, "PER"]]} for i in range(5) for k in (1, 2)]
    for given in (rows, [{**row, "ents": None} for row in rows]):
        assert [get_id(doc) for doc in read(tmp_path / "a.jsonl", *given)] == [row["id"] for row in rows]


def test_what_is_not_split(tmp_path):
    rows = [
        {"tokens": ["Anna", ".", "Bob", "."], "ents": []},
        {"text": "Anna. Bob.", "ents": [], "cats": {"A": 1.0}},
        {"text": "Anna.", "ents": []},
    ]
    assert [(len(doc), get_id(doc)) for doc in read(tmp_path / "a.jsonl", *rows)] == [(4, None), (4, None), (2, None)]
    assert len(read(tmp_path / "a.jsonl", {"text": "Anna. Bob.", "ents": []}, sentences=False)) == 1


def test_projects_learn_from_sentences(tmp_path):
    rows = [{"text": f"Anna {i} left! She is here!", "ents": [[0, 4, "PER"]]} for i in range(10)]
    gold, text = write_lines(tmp_path / "gold.jsonl", rows), tmp_path / "text.txt"
    prepared = prepare(tmp_path / "corpus", gold=gold)
    docs = list(read_docs(Corpora(tmp_path / "corpus").gold, NLP.vocab))
    assert prepared.gold == len(docs) == 20 and {len(doc.ents) for doc in docs} == {0, 1}
    assert len({document_of(get_id(doc)) for doc in docs}) == 10
    # An abbreviation is known in the other sentences of its document.
    text.write_text("We saw heart failure (HF)! HF is bad!\nHF\n", encoding="utf-8")
    (tmp_path / "terms.csv").write_text("label,term\nDIS,heart failure\n", encoding="utf-8")
    label(text, tmp_path / "out.spacy", terms=tmp_path / "terms.csv", abbreviations=True)
    found = [len(group_entities(doc, "weak:gazetteer")) for doc in read_docs(tmp_path / "out.spacy", NLP.vocab)]
    assert found == [2, 1, 0]
