"""A stage: what is done to the Docs of a corpus, shard by shard, and what is counted on the way."""

from abc import ABC, abstractmethod
from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any, ClassVar, Dict, Generic, Hashable, Iterable, Iterator, Optional, Type, TypeVar, Union, cast

from pydantic import ConfigDict, TypeAdapter
from spacy.language import Language
from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..corpus.language import CorpusLanguage

S = TypeVar("S", bound="Statistics")
R = TypeVar("R", bound="Report")


@dataclass
class Statistics:
    """Base of what is counted: a dataclass whose fields have defaults and can be summed up and stored as JSON: numbers,
    `Counter`s, other statistics by name (in a `defaultdict` of their class), or what pydantic knows and has `+=`."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    def add(self, other: Any) -> None:
        """Add what was counted elsewhere."""
        for count in fields(self):
            setattr(self, count.name, _sum(getattr(self, count.name), getattr(other, count.name)))

    def to_json(self) -> Any:
        """What JSON can hold."""
        return _adapter(cast(Hashable, type(self))).dump_python(self, mode="json")

    @classmethod
    def from_json(cls: Type[S], data: Any) -> S:
        """Read what `to_json` has made; a `ValueError` if it is something else."""
        return cast(S, _adapter(cast(Hashable, cls)).validate_python(data))


@dataclass
class Report(Statistics):
    """Base of what a run over shards did, also in those that were finished already."""

    docs_in: int = 0  # Docs read
    docs: int = 0  # Docs written
    written: int = field(default=0, compare=False)  # shards made now; depends on how many there are
    skipped: int = 0  # shards that were finished already
    replaced: int = 0  # shards made from another input or with other settings, that were made anew or removed


class Stage(ABC, Generic[R]):
    """What is done to the Docs of a corpus. It is run by `Shards`.

    settings (Dict[str, Any]): What the result depends on besides the input. JSON must be able to hold it.
    vocab (Vocab): Vocabulary of the Docs.
    stats (Report): What was counted in the shard at hand.
    language (Optional[CorpusLanguage]): What is recorded for the output; None: what is recorded for the input.
    """

    name: ClassVar[str]
    report: Type[R]
    language: Optional[CorpusLanguage] = None

    def __init__(self, settings: Dict[str, Any], vocab: Vocab) -> None:
        self.settings = settings
        self.vocab = vocab
        self.stats = self.report()

    def open(self) -> None:
        """Load or learn what is needed. Called once, before the first shard that has to be made."""

    def close(self) -> None:
        """Free what was opened."""

    def zones(self) -> Iterable[Union[Vocab, Language]]:
        """What a memory zone is opened of around each shard, so that no vocabulary grows from shard to shard; each
        vocabulary once."""
        return [self.vocab]

    @abstractmethod
    def __call__(self, docs: Iterable[Doc]) -> Iterator[Doc]:
        """Work on the Docs of one shard, and count.

        docs (Iterable[Doc]): The Docs.
        YIELDS (Doc): Those to write.
        """


@contextmanager
def memory_zones(owners: Iterable[Union[Vocab, Language]]) -> Iterator[None]:
    """Forget, in the end, the words that vocabularies have come to know."""
    with ExitStack() as zones:
        for owner in owners:
            zones.enter_context(owner.memory_zone())
        yield


def _sum(a: Any, b: Any) -> Any:
    if isinstance(a, Counter):
        a.update(b)
        return Counter(dict(sorted(a.items())))
    if isinstance(a, dict):
        for key, value in b.items():
            a[key].add(value)
        return a
    a += b
    return a


@lru_cache(None)
def _adapter(kind: Hashable) -> "TypeAdapter[Any]":
    return TypeAdapter(cast(Any, kind))
