"""Which sentences and links are kept."""

from spacy_weakner.corpus import weak
from spacy_weakner.labeling.anchors.anchors import anchors

from .util import SENTENCE, entities, run


def test_sentences_and_what_a_doc_carries(tmp_path):
    text = "Zero. [[Anna]] met [[Bob]]! Then [[Rome]] fell.\n* [[Last]] item"
    report, docs = run(tmp_path, {"a.wiki": text}, label="THING")
    assert [doc.text for doc in docs] == ["Anna met Bob!", "Then Rome fell.", "Last item"]
    for doc in docs:
        assert weak.is_weak(doc) and weak.weak_sources(doc) == ["anchors"] and weak.get_id(doc) is None
        assert weak.group_entities(doc, "weak:anchors") == weak.doc_entities(doc)
        assert {ent.label_ for ent in doc.ents} == {"THING"} and all(token.ent_iob for token in doc)
    assert (report.docs, report.tokens, report.anchors, report.few) == (3, 10, 4, 1)
    assert (report.files, report.pages, report.long, report.duplicates, report.misaligned) == (1, 1, 0, 0, 0)


def test_min_anchors(tmp_path):
    text = f"{SENTENCE} Only [[one]].\n\n[[One]] and [[two]] and [[three]]."
    report, docs = run(tmp_path, {"a.wiki": text}, min_anchors=4)
    assert [len(doc.ents) for doc in docs] == [4] and report.few == 2
    report, docs = run(tmp_path, {"a.wiki": text}, "b.spacy", min_anchors=3)
    assert [len(doc.ents) for doc in docs] == [4, 3] and report.few == 1
    report, docs = run(tmp_path, {"a.wiki": "No link."}, "c.spacy", min_anchors=0)
    assert [weak.is_weak(doc) and len(doc.ents) for doc in docs] == [0] and report.few == 0


def test_max_length(tmp_path):
    text = "[[One]] is here. [[Two]] is here now."
    report, docs = run(tmp_path, {"a.wiki": text}, max_length=4)
    assert [len(doc) for doc in docs] == [4] and report.long == 1
    assert run(tmp_path, {"a.wiki": text}, "b.spacy", max_length=5)[0].long == 0


def test_duplicates(tmp_path):
    files = {"a.wiki": "[[Anna]] is here.\n* Anna is [[here]].", "b.wiki": "ANNA is [[HERE]]."}
    report, docs = run(tmp_path, files)
    assert [doc.text for doc in docs] == ["Anna is here."] and report.duplicates == 2
    assert entities(docs[0]) == ["Anna"]
    # The same file twice is read once.
    folder = tmp_path / "in"
    report = anchors([folder, folder / "a.wiki"], tmp_path / "b.spacy", min_anchors=1)
    assert (report.pages, report.duplicates) == (2, 2)


def test_anchors_must_align(tmp_path):
    text = "un[[happy]] [[Bob]][[Ann]] [[Yahoo! Inc|Yahoo! Inc]] [[Rome]] fell."
    report, docs = run(tmp_path, {"a.wiki": text})
    assert [entities(doc) for doc in docs] == [["Rome"]]
    assert report.misaligned == 4


def test_tokenizer_and_language(tmp_path):
    files = {"a.wiki": "[[L]]-dopa is new."}
    assert run(tmp_path, files, tokenizer="spacy_weakner.WordTokenizer.v1")[0].anchors == 1
    assert (
        run(tmp_path, {"a.wiki": "[[北京]]是[[中国]]的[[首都]]。你呢？"}, "b.spacy", lang="zh", min_anchors=3)[0].docs
        == 1
    )
