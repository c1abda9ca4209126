"""The candidates to compare on a test set: pipelines, and sets of labels."""

import time
from itertools import islice, zip_longest
from pathlib import Path
from types import MappingProxyType
from typing import Any, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple, Union, cast

from spacy.language import Language
from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..corpus.case import change_case
from ..corpus.docbin import bare_copy, found_files, read_docs, stream_docs
from ..corpus.tags import same_tokens
from ..corpus.weak import (
    doc_entities,
    doc_ids,
    group_entities,
    group_ids,
    group_scores,
    is_weak,
    weak_group,
    weak_sources,
)
from ..errors import Errors, WeaknerError
from ..files import existing
from ..pipelines import TOKENIZER, load_pipeline
from ..ty import Entity

# Maximum number of Docs of the test set in memory.
_CHUNK = 2000
# Docs in memory, or the path of a corpus.
Corpus = Union[Path, Sequence[Doc]]


class Candidate(NamedTuple):
    """A pipeline (a folder), or a corpus of the test sentences with labels (a `.spacy` file or a folder of them); or
    either in memory."""

    name: str
    path: Path  # in memory: the name, for messages
    source: Optional[str] = None  # the weak source whose span group is scored; None: `doc.ents`, or that of `spans_key`
    spans_key: Optional[str] = None
    names: Mapping[str, str] = MappingProxyType({})  # labels of the candidate and their names in the test set
    in_memory: Union[Language, Sequence[Doc], None] = None

    @property
    def is_pipeline(self) -> bool:
        if self.in_memory is not None:
            return isinstance(self.in_memory, Language)
        return (self.path / "config.cfg").is_file()

    @property
    def group(self) -> Optional[str]:
        """The span group that is scored; None: `doc.ents`."""
        return self.spans_key if self.source is None else weak_group(self.source)

    def entities(self, doc: Doc) -> List[Entity]:
        """Return the candidate's entities in one of its Docs."""
        found = doc_entities(doc) if self.group is None else group_entities(doc, self.group)
        return list(map(self._renamed, found))

    def ids(self, doc: Doc) -> Dict[Entity, Tuple[str, ...]]:
        """Return the ids of concepts of those entities that have any."""
        found = doc_ids(doc) if self.group is None else group_ids(doc, self.group)
        return {self._renamed(entity): ids for entity, ids in found.items()}

    def known(self, doc: Doc) -> Set[Entity]:
        """Return the spans that are terms with an id in a list: matches, and entities that `term_linker` scored 1."""
        known = {entity for source in weak_sources(doc) for entity in group_ids(doc, weak_group(source))}
        for ent in doc.ents:
            if ent._.weakner_ids and ent._.weakner_ids[0][1] == 1.0:
                known.add((ent.start, ent.end, ent.label_))
        return set(map(self._renamed, known))

    def _renamed(self, entity: Entity) -> Entity:
        return (*entity[:2], self.names.get(entity[2], entity[2]))

    def scores(self, doc: Doc) -> List[Optional[float]]:
        """Return the scores of the candidate's entities; None for entities without a score."""
        if self.group is not None:
            return group_scores(doc, self.group)
        return [ent._.weakner_score for ent in doc.ents]


def make_candidates(
    given: Mapping[str, Union[Path, str, Language, Iterable[Doc]]],
    names: Mapping[str, str] = MappingProxyType({}),
    spans_key: Optional[str] = None,
) -> List[Candidate]:
    """Parse candidates, given by name: in memory, or as "PATH", or "PATH#SOURCE" for the span group of a weak source. A
    "#" in the name of an existing file or folder is part of the path."""
    if not given:
        raise WeaknerError(Errors.WK401.format(reason="got none"))
    candidates = [
        Candidate(name, *split_source(str(value)), spans_key, names)
        if isinstance(value, (str, Path))
        else Candidate(name, Path(name), None, spans_key, names, value if isinstance(value, Language) else list(value))
        for name, value in given.items()
    ]
    for candidate in (each for each in candidates if each.in_memory is None):
        path = existing(candidate.path, "train it first, or correct the path")
        if path.is_dir() and not candidate.is_pipeline and not found_files(path):
            raise WeaknerError(Errors.WK403.format(path=path))
    return candidates


def split_source(value: str) -> Tuple[Path, Optional[str]]:
    """Split into path and source. Both may contain a "#": the longest path that exists is used."""
    if Path(value).exists() or "#" not in value:
        return Path(value), None
    borders = [i for i, char in enumerate(value) if char == "#" and 0 < i < len(value) - 1]
    border = next((i for i in reversed(borders) if Path(value[:i]).exists()), borders[-1] if borders else len(value))
    return Path(value[:border]), value[border + 1 :] or None


def ignored_source(value: str) -> Optional[str]:
    """Return a source that has labeled a corpus, if none is asked for and the labels in `doc.ents`, which are scored
    then, are not weak ones: they may be gold."""
    candidate = Candidate(value, *split_source(value))
    if candidate.is_pipeline or candidate.source is not None:
        return None
    for doc in stream_docs(candidate.path):
        return None if is_weak(doc) else next(iter(weak_sources(doc)), None)
    return None


def parse_candidates(values: Sequence[str]) -> Dict[str, str]:
    """Parse the NAME=PATH arguments of a command line; the name of a PATH alone is the path."""
    parsed: Dict[str, str] = {}
    for value in values:
        name, _, path = value.partition("=") if "=" in value else (value, "", value)
        if not (name and path):
            raise WeaknerError(Errors.WK401.format(reason=f"got '{value}'"))
        if name in parsed:
            raise WeaknerError(Errors.WK401.format(reason=f"two are named '{name}'"))
        parsed[name] = path
    return parsed


class Predictions:
    """A stream of the test set's Docs with the predictions or labels of a candidate. A pipeline may read them in a
    different case, "lower" or "upper"."""

    def __init__(self, candidate: Candidate, test: Corpus, case: Optional[str] = None) -> None:
        self.candidate = candidate
        self.test = test
        self.case = case
        self._words = 0
        self._seconds = 0.0

    @property
    def words_per_second(self) -> Optional[float]:
        """RETURNS (Optional[float]): Speed of the predictions so far; None for label sets."""
        return self._words / max(self._seconds, 1e-9) if self.candidate.is_pipeline else None

    def __iter__(self) -> Iterator[Tuple[Doc, Doc]]:
        """YIELDS (Tuple[Doc, Doc]): A Doc of the test set, and the Doc with the candidate's labels."""
        pairs = self._predict() if self.candidate.is_pipeline else self._read()
        for number, (gold, doc) in enumerate(pairs, start=1):
            source = self.candidate.source
            # A Doc that the source has not labeled must not be scored as a Doc without entities.
            if source is not None and source not in weak_sources(doc):
                there = ", ".join(weak_sources(doc)) or "none"
                raise WeaknerError(
                    Errors.WK409.format(path=self.candidate.path, number=number, source=source, sources=there)
                )
            group = self.candidate.group
            if group is not None and group not in doc.spans:
                what = f"span group '{group}' in document {number} (there: {', '.join(doc.spans) or 'none'})"
                cure = "Correct 'spans_key' (command line: --spans-key), or give one that writes this group"
                raise WeaknerError(Errors.WK407.format(path=self.candidate.path, what=what, cure=cure))
            yield gold, doc

    def _predict(self) -> Iterator[Tuple[Doc, Doc]]:
        given: Any = self.candidate.in_memory
        nlp = load_pipeline(self.candidate.path, TOKENIZER) if given is None else given
        docs = stream(self.test, nlp.vocab)
        while chunk := list(islice(docs, _CHUNK)):
            bare = [bare_copy(change_case(doc, self.case) if self.case else doc, nlp.vocab) for doc in chunk]
            started = time.perf_counter()
            predicted = list(nlp.pipe(bare))
            self._seconds += time.perf_counter() - started
            self._words += sum(map(len, bare))
            yield from zip(chunk, predicted, strict=True)

    def _read(self) -> Iterator[Tuple[Doc, Doc]]:
        vocab, given = Vocab(), self.candidate.in_memory
        docs = stream(self.candidate.path if given is None else cast(Sequence[Doc], given), vocab)
        return same_sentences(stream(self.test, vocab), docs, self.candidate.path, corpus_name(self.test))


def stream(corpus: Corpus, vocab: Vocab) -> Iterator[Doc]:
    """Stream the Docs of a corpus, with one file at a time in memory, or those in memory."""
    return read_docs(corpus, vocab) if isinstance(corpus, Path) else iter(corpus)


def same_sentences(
    docs: Iterable[Doc], others: Iterable[Doc], path: Path, name: Union[Path, str]
) -> Iterator[Tuple[Doc, Doc]]:
    """Pair the Docs of a corpus of this name with those at a path, which must have the same tokens."""
    for number, (doc, other) in enumerate(zip_longest(docs, others), start=1):
        if doc is None or other is None or not same_tokens(doc, other):
            raise WeaknerError(Errors.WK400.format(path=path, other=name, number=number))
        yield doc, other


def corpus_name(corpus: Corpus) -> str:
    """Return what messages call a corpus."""
    return str(corpus) if isinstance(corpus, Path) else "the test set"
