"""The labels that are changed: weak ones, in `doc.ents`."""

from pathlib import Path

from spacy.tokens import Doc

from ..corpus import weak
from ..errors import Errors, WeaknerError


def check_given(doc: Doc, path: Path) -> None:
    """Raise an error for gold, which would be overwritten, and for overlapping labels."""
    if len(doc) and not weak.is_weak(doc) and doc.has_annotation("ENT_IOB"):
        raise WeaknerError(Errors.WK344.format(path=path, text=doc.text[:50]))
    check_flat(doc, path)


def check_flat(doc: Doc, path: Path) -> None:
    """Raise an error for the labels of `aggregate --nested`, which would stay as they are."""
    if weak.has_nested(doc):
        raise WeaknerError(Errors.WK345.format(path=path, text=doc.text[:50], key=weak.SPANS_KEY))
