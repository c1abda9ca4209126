"""Pages with links, and what becomes of them."""

import spacy

from spacy_weakner.corpus.docbin import read_docs
from spacy_weakner.labeling.anchors.anchors import anchors

NLP = spacy.blank("xx")
SENTENCE = "[[Anna]] met [[Bob|Bobby]] in [[Paris]] and [[Rome]]."


def page(title, text, ns="0", extra="", model="wikitext"):
    """A page of a dump."""
    return (
        f"<page><title>{title}</title><ns>{ns}</ns><id>1</id>{extra}<revision><id>2</id><model>{model}</model>"
        f'<text xml:space="preserve">{text}</text></revision></page>'
    )


def dump(*pages, namespaces="", head=""):
    """A dump of a wiki."""
    site = f"<siteinfo><namespaces>{namespaces}</namespaces></siteinfo>"
    return f'{head}<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/">{site}{"".join(pages)}</mediawiki>'


def run(tmp_path, files, output="out.spacy", **options):
    """Read files from a folder; gives the report and what was written."""
    folder = tmp_path / "in"
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    report = anchors([folder], tmp_path / output, **{"min_anchors": 1, "lang": "xx", **options})
    return report, list(read_docs(tmp_path / output, NLP.vocab))


def entities(doc):
    """The texts of entities."""
    return [ent.text for ent in doc.ents]
