"""Sentences of pages whose words are forgotten before they are written."""

from spacy.vocab import Vocab

from spacy_weakner.corpus.docbin import read_docs
from spacy_weakner.labeling.anchors.anchors import anchors


def test_new_words_are_written(tmp_path):
    pages = "".join(f"<p>Zqx{i} met <a href='/wiki/Bob{i}'>Bobqx{i}</a> there.</p>" for i in range(3))
    (tmp_path / "a.html").write_text(f"<html><body>{pages}</body></html>")
    anchors([tmp_path / "a.html"], tmp_path / "out.spacy", min_anchors=1)
    docs = list(read_docs(tmp_path / "out.spacy", Vocab()))
    assert [doc[0].text for doc in docs] == ["Zqx0", "Zqx1", "Zqx2"]
