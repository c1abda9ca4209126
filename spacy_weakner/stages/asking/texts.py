"""The texts to ask about."""

from pathlib import Path
from typing import Any, Iterator, Optional, Set

from ...annotations.sentences import sentence_key
from ...formats.reading import read_corpus
from ...pipelines import blank_pipeline
from ..runtime.hashes import hash_text


class Texts:
    """The different texts of a corpus, which is read anew for each pass.

    path (Path): The corpus.
    limit (Optional[int]): How many texts at most.
    **reading (Any): See `ask`.
    """

    def __init__(self, path: Path, limit: Optional[int], lang: str, tokenizer: Optional[str], **reading: Any) -> None:
        self.path = path
        self.limit = limit
        self.nlp = blank_pipeline(lang, tokenizer)
        self.reading = reading
        self.duplicates = 0

    def __iter__(self) -> Iterator[str]:
        """YIELDS (str): The texts."""
        seen: Set[bytes] = set()
        self.duplicates = 0
        for doc in read_corpus(self.path, self.nlp, misaligned="drop", **self.reading):
            text = doc.text.strip()
            if not text:
                continue
            same = bytes.fromhex(hash_text(sentence_key(text)))[:16]
            if same in seen:
                self.duplicates += 1
            elif self.limit is not None and len(seen) >= self.limit:
                return
            else:
                seen.add(same)
                yield text
