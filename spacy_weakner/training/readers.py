"""Readers of training corpora: `.spacy` and JSONL files, and mixtures of gold and weakly labeled sentences."""

import random
import shlex
from itertools import chain, islice
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Union

from spacy.errors import Errors as SpacyErrors
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Corpus, Example
from spacy.vocab import Vocab

from ..corpus.alignment import copy_sources
from ..corpus.docbin import SUFFIX, bare_copy, corpus_files, read_docs
from ..corpus.formats.reading import Reading, read_corpus
from ..corpus.weak import is_weak, set_weak, weak_group
from ..errors import Errors, WeaknerError
from ..ty import CorpusReader


class DocBinCorpus(Corpus):
    """A reader of `.spacy` files like spaCy's `Corpus`, with the same settings; see `make_docbin_corpus`."""

    def __init__(self, path: Path, *, sources: Sequence[str] = (), **settings: Any) -> None:
        super().__init__(path, **settings)
        self.sources = list(sources)

    def __call__(self, nlp: Language) -> Iterator[Example]:
        """Stream the examples; raises an error if there are no files, or if a weakly labeled Doc would be split."""
        path = Path(self.path)
        if path.is_file() and path.suffix != SUFFIX:
            names = {"file": shlex.quote(str(path)), "new": shlex.quote(str(path.with_suffix(SUFFIX)))}
            raise WeaknerError(Errors.WK106.format(path=path, **names))
        if not any(file_.suffix == SUFFIX for file_ in corpus_files(self.path)):
            raise WeaknerError(Errors.WK101.format(path=self.path))
        return _with_sources(super().__call__(nlp), self.sources)

    def read_docbin(self, vocab: Vocab, locs: Iterable[Union[str, Path]]) -> Iterator[Doc]:
        """Stream the Docs that have tokens."""
        docs = filter(len, chain.from_iterable(read_docs(Path(loc), vocab) for loc in locs))
        for doc in islice(docs, self.limit if self.limit > 0 else None):
            self._check_whole(doc)
            yield doc

    def _check_whole(self, doc: Doc) -> None:
        too_long = 0 < self.max_length <= len(doc)
        carries = is_weak(doc) or any(weak_group(source) in doc.spans for source in self.sources)
        if (too_long or self.gold_preproc) and carries and doc.has_annotation("SENT_START"):
            setting = "max_length" if too_long else "gold_preproc"
            which = "weak" if is_weak(doc) else "labeled"
            raise WeaknerError(Errors.WK018.format(which=which, setting=setting, value=getattr(self, setting)))


class JsonlCorpus:
    """A reader of examples from JSONL rows in the format of `corpus.jsonl`.

    path (Path): A `.jsonl` or `.jsonl.gz` file.
    limit (int): Maximum number of rows to read; 0: all.
    sources (Sequence[str]): Weak sources whose span groups are copied, as in `spacy_weakner.Corpus.v1`.
    """

    def __init__(self, path: Path, limit: int = 0, sources: Sequence[str] = ()) -> None:
        self.path = path
        self.limit = limit
        self.sources = list(sources)

    def __call__(self, nlp: Language) -> Iterator[Example]:
        """Stream an example for each row; rows without tokens are tokenized. Raises an error if there are no rows."""
        docs = read_corpus(self.path, nlp, Reading(sentences=False), format="jsonl")
        examples = map(make_example, islice(docs, self.limit if self.limit > 0 else None))
        return _with_sources(_not_empty(examples, self.path), self.sources)


class StrongWeakCorpus:
    """A reader that mixes gold ("strong") and weakly labeled sentences.

    Without `strong_share`, every sentence is read once, the strong ones first; `spacy train` shuffles them. With it,
    all weak sentences are read once, and strong ones, equally often, are inserted evenly between them to make up this
    share; if there are too few weak sentences for that, all strong ones are read once. The weak sentences are streamed,
    the strong ones are kept in memory.

    strong (CorpusReader): CorpusReader of the gold corpus.
    weak (CorpusReader): CorpusReader of the weakly labeled corpus.
    strong_share (Optional[float]): Share of strong sentences, in (0, 1).
    seed (int): Seed of the order of the strong sentences.
    """

    def __init__(
        self, strong: CorpusReader, weak: CorpusReader, strong_share: Optional[float] = None, seed: int = 0
    ) -> None:
        if strong_share is not None and not 0.0 < strong_share < 1.0:
            message = Errors.WK005.format(setting="strong_share", value=strong_share, expected="between 0 and 1")
            raise WeaknerError(message)
        for which, reader in (("strong", strong), ("weak", weak)):
            _check_reader(which, reader)
        self.strong = strong
        self.weak = weak
        self.strong_share = strong_share
        self.seed = seed

    def __call__(self, nlp: Language) -> Iterator[Example]:
        """Stream the examples, marking those of the weak corpus as weak. Raises an error if a corpus is empty."""
        strong = list(_not_empty(self.strong(nlp), "the strong corpus"))
        weak = _marked(_not_empty(self.weak(nlp), "the weak corpus"))
        if self.strong_share is None:
            yield from strong
            yield from weak
        else:
            yield from self._mixed(strong, weak, self.strong_share)

    def _mixed(self, strong: List[Example], weak: Iterator[Example], share: float) -> Iterator[Example]:
        rng = random.Random(self.seed)
        waiting = rng.sample(strong, len(strong))
        first_round, due = True, 0.0
        for example in weak:
            yield example
            due += share / (1.0 - share)
            while due >= 1.0:
                if not waiting:
                    waiting, first_round = rng.sample(strong, len(strong)), False
                yield waiting.pop()
                due -= 1.0
        if first_round:
            yield from waiting


def make_docbin_corpus(
    path: Optional[Path],
    gold_preproc: bool = False,
    max_length: int = 0,
    limit: int = 0,
    augmenter: Optional[Callable[[Language, Example], Iterator[Example]]] = None,
    sources: Sequence[str] = (),
) -> CorpusReader:
    """Create a reader of `.spacy` files like spaCy's `spacy.Corpus.v1`, but more than ten times as fast if Docs have
    span groups. Registered as `spacy_weakner.Corpus.v1`.

    path (Optional[Path]): A file, or a folder that is searched for `.spacy` files. (In a config it may be null only if
        it is set on the command line.)
    gold_preproc (bool): Use sentences as examples, with gold tokens. Raises an error for weakly labeled Docs, whose
        labels would be lost.
    max_length (int): Split Docs of at least this many tokens into sentences, and leave out sentences that are longer;
        0: no limit. Raises an error for weakly labeled Docs.
    limit (int): Maximum number of Docs to read from all files together; 0: all.
    augmenter (Optional[Callable]): Changes examples or adds further ones, like spaCy's registered augmenters.
    sources (Sequence[str]): Weak sources whose span groups `weak:<source>` are copied from the reference to the
        predicted Docs, in training and evaluation, so that components can use them. (Not needed for groups that a
        component of the pipeline writes.)
    RETURNS (CorpusReader): The reader.
    RAISES (ValueError): Without a path, with spaCy's message.
    """
    if path is None:
        raise ValueError(SpacyErrors.E913)
    settings: Dict[str, Any] = {"gold_preproc": gold_preproc, "max_length": max_length, "limit": limit}
    return DocBinCorpus(path, sources=sources, augmenter=augmenter, **settings)


def make_example(doc: Doc) -> Example:
    """Make an example whose predicted Doc has only the words of the reference."""
    return Example(bare_copy(doc), doc)


def _with_sources(examples: Iterable[Example], sources: Sequence[str]) -> Iterator[Example]:
    for example in examples:
        copy_sources(example, sources)
        yield example


def _marked(examples: Iterable[Example]) -> Iterator[Example]:
    for example in examples:
        if not is_weak(example.reference):
            set_weak(example.reference)
        yield example


def _not_empty(examples: Iterable[Example], name: Union[str, Path]) -> Iterator[Example]:
    empty = True
    for example in examples:
        empty = False
        yield example
    if empty:
        raise WeaknerError(Errors.WK101.format(path=name))


def _check_reader(which: str, reader: CorpusReader) -> None:
    # These settings make new Docs from parts of Docs, without their user_data.
    if isinstance(reader, Corpus):
        for setting in ("max_length", "gold_preproc"):
            value = getattr(reader, setting)
            if value:
                raise WeaknerError(Errors.WK018.format(which=which, setting=setting, value=value))
