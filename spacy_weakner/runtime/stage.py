"""Stages: the processing of the Docs of a corpus, shard by shard, with counts."""

from abc import ABC, abstractmethod
from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, ClassVar, Dict, Generic, Iterable, Iterator, Optional, Type, TypeVar, Union, cast

from pydantic import ConfigDict, TypeAdapter
from spacy.language import Language
from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..corpus.language import CorpusLanguage

S = TypeVar("S", bound="Statistics")
R = TypeVar("R", bound="Report")


@dataclass
class Statistics:
    """Base of counts: a dataclass whose fields have defaults and can be added up and stored as JSON: numbers,
    `Counter`s, other statistics by name (in a `defaultdict` of their class), or pydantic types with `+=`."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    def add(self, other: Any) -> None:
        """Add other counts."""
        for count in fields(self):
            setattr(self, count.name, _sum(getattr(self, count.name), getattr(other, count.name)))

    def to_json(self) -> Any:
        """Return the counts as JSON-compatible values."""
        return type_adapter(cast(Any, type(self))).dump_python(self, mode="json")

    @classmethod
    def from_json(cls: Type[S], data: Any) -> S:
        """Read the output of `to_json`; raise a `ValueError` for anything else."""
        return cast(S, type_adapter(cast(Any, cls)).validate_python(data))


@dataclass
class Report(Statistics):
    """Base of the counts of a run over shards, including shards that were already finished."""

    docs_in: int = 0  # Docs read
    docs: int = 0  # Docs written
    written: int = field(default=0, compare=False)  # shards made now; depends on how many there are
    skipped: int = 0  # shards that were already finished
    replaced: int = 0  # shards made from another input or with other settings, which were made again or removed


class Stage(ABC, Generic[R]):
    """The processing of the Docs of a corpus. `Shards` runs it.

    settings (Dict[str, Any]): JSON-compatible settings that the result depends on, besides the input.
    vocab (Vocab): Vocabulary of the Docs.
    stats (Report): Counts of the current shard.
    language (Optional[CorpusLanguage]): Language to record for the output; None: the one recorded for the input.
    """

    name: ClassVar[str]
    report: Type[R]
    language: Optional[CorpusLanguage] = None

    def __init__(self, settings: Dict[str, Any], vocab: Vocab) -> None:
        self.settings = settings
        self.vocab = vocab
        self.stats = self.report()

    def open(self) -> None:
        """Load or fit what is needed. Called once, before the first shard that has to be made."""

    def close(self) -> None:
        """Release the resources."""

    def zones(self) -> Iterable[Union[Vocab, Language]]:
        """Return the owners of the memory zones that are opened around each shard, so that no vocabulary grows from
        shard to shard; each vocabulary once."""
        return [self.vocab]

    @abstractmethod
    def __call__(self, docs: Iterable[Doc]) -> Iterator[Doc]:
        """Process and count the Docs of one shard.

        YIELDS (Doc): The Docs to write.
        """


@contextmanager
def memory_zones(owners: Iterable[Union[Vocab, Language]]) -> Iterator[None]:
    """Remove the words that vocabularies have added during the block."""
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


@cache
def type_adapter(kind: Any) -> "TypeAdapter[Any]":
    """Return what reads and writes values of a type as JSON."""
    return TypeAdapter(kind)
