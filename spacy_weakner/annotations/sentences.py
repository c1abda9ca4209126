"""When two sentences are the same, whatever their case and white space."""

from pathlib import Path
from typing import Iterable, Set

from spacy.language import Language

from .formats import read_corpus


def sentence_key(text: str) -> str:
    """What makes sentences equal: the text without case and white space."""
    return "".join(text.casefold().split())


def sentence_keys(paths: Iterable[Path], nlp: Language) -> Set[str]:
    """Keys of all sentences of some corpora. Of Docs with several sentences, both the whole and the parts
    count.

    paths (Iterable[Path]): The corpora, in any format.
    nlp (Language): Reads them.
    RETURNS (Set[str]): The keys.
    """
    keys = set()
    for path in paths:
        for doc in read_corpus(Path(path), nlp, misaligned="drop"):
            keys.add(sentence_key(doc.text))
            if doc.has_annotation("SENT_START"):
                keys.update(sentence_key(sentence.text) for sentence in doc.sents)
    return keys
