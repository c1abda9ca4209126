"""Terms of lists that the package rejects nearly always in the text."""

from itertools import islice
from pathlib import Path
from typing import List, Sequence

from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..active_learning.terms import FoundPhrases
from ..corpus.docbin import bare_copy, read_docs
from ..corpus.gold import missing_tokens
from ..corpus.weak import weak_group, weak_sources
from ..evaluation.tables import Table, shorten_line
from ..pipelines import TOKENIZER, load_pipeline
from ..scores import Strict

MOST, SHOWN = 50, 5
# Sentences of the text with matches of the lists that are predicted.
TEXTS = 2000
# A term is overruled if at least this share of at least this number of matches is rejected.
NEARLY_ALWAYS, LEAST = 0.9, 3
# A term with at most this number of wrong matches, and no right one, may be an entity that was forgotten in the gold.
FEW = 2


class Overruled(Strict):
    """A term that is overruled, and its matches in the text and in the gold."""

    term: str
    label: str
    matches: int
    rejected: int
    right: int  # of its matches in the gold
    wrong: int
    example: str

    @property
    def in_gold(self) -> str:
        """RETURNS (str): What the gold says."""
        if not self.right + self.wrong:
            return "does not occur"
        incomplete = ", or the gold is incomplete" if not self.right and self.wrong <= FEW else ""
        return f"right {self.right} of {self.right + self.wrong} times{incomplete}"


def find_overruled(pipeline: Path, gold: Path, text: Path) -> List[Overruled]:
    """Return the terms that a pipeline with lists rejects nearly always in a sample of the text, those with the most
    matches first. The gold has the matches of the same lists."""
    nlp = load_pipeline(pipeline, TOKENIZER)
    matched = (doc for doc in read_docs(text, nlp.vocab) if any(doc.spans.get(group) for group in _groups(doc)))
    in_text, in_gold = FoundPhrases(), FoundPhrases()
    for doc in nlp.pipe(bare_copy(doc) for doc in islice(matched, TEXTS)):
        in_text.add(doc, _groups(doc))
    for doc in read_docs(gold, Vocab()):
        if not missing_tokens(doc):
            in_gold.add(doc, _groups(doc))
    found = []
    for key, phrase in in_text.listed.items():
        n, rejected = in_text.matches[key], phrase.mentions
        if n >= LEAST and rejected >= NEARLY_ALWAYS * n:
            wrong = in_gold.listed[key].mentions if key in in_gold.listed else 0
            term = Overruled(
                term=phrase.text,
                label=key[0],
                matches=n,
                rejected=rejected,
                right=in_gold.matches[key] - wrong,
                wrong=wrong,
                example=phrase.example,
            )
            found.append(term)
    return sorted(found, key=lambda term: (-term.rejected, term.term, term.label))[:MOST]


def overruled_table(terms: Sequence[Overruled]) -> Table:
    """Return a table of the terms with the most matches."""
    rows = [[t.term, t.label, f"{t.rejected} of {t.matches}", t.in_gold, t.example] for t in terms[:SHOWN]]
    header = ["Term", "Label", "rejected in the text", "in the gold", "for example"]
    note = (
        f"{len(terms)} terms of the lists are nearly always rejected. If one is right, correct the gold, or write "
        "'must' into the column 'binding' of the list."
    )
    return Table("Overruled terms", header, [list(map(shorten_line, row)) for row in rows], note, names=5)


def _groups(doc: Doc) -> List[str]:
    return [weak_group(source) for source in weak_sources(doc)]
