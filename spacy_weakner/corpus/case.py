"""Sentences in lower or upper case."""

from typing import Any, Dict

from spacy.attrs import SENT_START
from spacy.tokens import Doc

from .docbin import COPIED, doc_of_words
from .weak import copy_group, get_augmented, set_augmented, stored_user_data

LOWER, UPPER = "lower", "upper"
CASES = {LOWER: str.lower, UPPER: str.upper}
_ATTRS = [*COPIED, SENT_START]


def has_case(text: str) -> bool:
    """Return True if a sentence has an upper-case letter, so that it can be changed to lower case."""
    return text != text.lower()


def change_case(doc: Doc, case: str) -> Doc:
    """Return a copy of a sentence in "lower" or "upper" case, with the same tokens and annotation. Words may get
    longer: "Straße" becomes "STRASSE"."""
    change, strings = CASES[case], doc.vocab.strings
    values: Any = doc.to_array(_ATTRS)
    changed: Dict[int, str] = {key: change(strings[key]) for key in set(values[:, 0].tolist())}
    words = [changed[key] for key in values[:, 0].tolist()]
    copy = doc_of_words(doc.vocab, words, _ATTRS, values)
    copy.has_unknown_spaces = doc.has_unknown_spaces
    copy.cats = dict(doc.cats)
    copy.user_data.update(stored_user_data(doc))
    augmented = get_augmented(doc)
    if augmented is not None:
        set_augmented(copy, [change(word) for word in augmented])
    for name in doc.spans:
        copy_group(doc, copy, name)
    return copy
