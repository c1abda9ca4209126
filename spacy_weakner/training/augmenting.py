"""Copies of training sentences in lower or upper case, for text without case."""

import os
from functools import lru_cache
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Sequence

from spacy.language import Language
from spacy.strings import get_string_id
from spacy.tokens import Doc
from spacy.training import Example

from ..corpus.case import LOWER, UPPER, change_case, has_case
from ..corpus.docbin import bare_copy
from ..corpus.tags import same_tokens
from ..corpus.weak import WEAK_PREFIX, copy_group
from ..errors import check_range
from ..files import existing
from ..pipelines import TOKENIZER, load_pipeline


class CaseCopies:
    """An augmenter for `[corpora.train.augmenter]` that repeats some sentences in lower case, and some in upper case,
    so that a model also works on text without case. All annotation is copied; tokens do not change. Sentences without
    an upper-case letter are not repeated.

    The choice of sentences depends only on their text.

    lower (float): Share of the sentences that are repeated in lower case.
    upper (float): Share of the sentences that are repeated in upper case.
    lists (Sequence[Path]): Pipelines of term lists, whose matches are looked up again in each copy; those of all other
        sources are copied.
    RAISES (WeaknerError): If a share is out of range.
    """

    def __init__(self, lower: float = 0.5, upper: float = 0.25, lists: Sequence[Path] = ()) -> None:
        check_range("lower", lower, 0.0, 1.0)
        check_range("upper", upper, 0.0, 1.0)
        self.shares: Dict[str, float] = {LOWER: lower, UPPER: upper}
        self.lists = [*map(Path, lists)]
        self._pipelines: Optional[List[Language]] = None

    def __call__(self, nlp: Language, example: Example) -> Iterator[Example]:
        """YIELDS (Example): The example, and its copies."""
        predicted, reference = example.predicted, example.reference
        # Copy before yielding, since the consumer may change the example.
        pairs = [(change_case(predicted, case), self._change(reference, case)) for case in self._cases(reference)]
        yield example
        for pair in pairs:
            # The case of a letter may depend on its neighbors, so other tokens could lead to another text.
            if same_tokens(predicted, reference) or pair[0].text == pair[1].text:
                yield Example(*pair)

    def copies(self, doc: Doc) -> Iterator[Doc]:
        """YIELDS (Doc): The copies of a sentence."""
        return (self._change(doc, case) for case in self._cases(doc))

    def _cases(self, doc: Doc) -> List[str]:
        text = doc.text
        if not has_case(text):
            return []
        return [case for case, share in self.shares.items() if get_string_id(f"{case} {text}") / 2**64 < share]

    def _change(self, doc: Doc, case: str) -> Doc:
        copy = change_case(doc, case)
        if self._pipelines is None:
            self._pipelines = [_load(path, os.path.getmtime(existing(path / "meta.json"))) for path in self.lists]
        for nlp in self._pipelines:
            matched = nlp(bare_copy(copy, nlp.vocab))
            for name in matched.spans:
                if name.startswith(WEAK_PREFIX):
                    copy_group(matched, copy, name)
        return copy


@lru_cache(maxsize=8)
def _load(path: Path, changed: float) -> Language:
    """Load the pipeline of a list, modified at `changed`. It is cached, since a training has several readers of its
    corpus, and a process may train several pipelines."""
    return load_pipeline(path, TOKENIZER)
