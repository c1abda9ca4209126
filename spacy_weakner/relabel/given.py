"""The labels that are changed: weak ones, in `doc.ents`."""

from pathlib import Path

from spacy.tokens import Doc

from ..corpus import weak
from ..errors import Errors, WeaknerError


def check_given(doc: Doc, path: Path) -> None:
    """Raise an error for gold, which would be overwritten, and for labels of sources that are not in `doc.ents`."""
    if len(doc) and not weak.is_weak(doc):
        if doc.has_annotation("ENT_IOB"):
            raise WeaknerError(Errors.WK344.format(path=path, text=doc.text[:50]))
        sources = [source for source in weak.weak_sources(doc) if len(doc.spans[weak.weak_group(source)])]
        if sources:
            raise WeaknerError(Errors.WK346.format(path=path, text=doc.text[:50], sources=", ".join(sources)))
    check_flat(doc, path)


def check_flat(doc: Doc, path: Path) -> None:
    """Raise an error for the labels of `aggregate --nested`, which would stay as they are."""
    if weak.has_nested(doc):
        raise WeaknerError(Errors.WK345.format(path=path, text=doc.text[:50], key=weak.SPANS_KEY))
