"""`convert` shard by shard, each made of a block of lines: by this process, by others, or by a cluster."""

from dataclasses import asdict, fields
from functools import partial
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, NamedTuple, Optional

from spacy.language import Language
from spacy.tokens import Doc

from ..corpus.formats.reading import Reading, input_files
from ..corpus.rows import RowCounts
from ..errors import Errors, WeaknerError
from ..pipelines import blank_pipeline
from ..runtime.blocks import corpus_inputs
from ..runtime.executor import Executor
from ..runtime.shards import WHOLE, Part, Shards
from ..runtime.stage import Stage
from .report import ConvertReport


class Asked(NamedTuple):
    """What is to be done; see `convert`."""

    input_path: str
    output_path: str
    format: Optional[str]
    lang: str
    tokenizer: Optional[str]
    reading: Reading
    shard_size: int

    def settings(self) -> Dict[str, Any]:
        """RETURNS (Dict[str, Any]): What the Docs depend on besides the input."""
        return {"lang": self.lang, "tokenizer": self.tokenizer, **asdict(self.reading)}


class Convert(Stage[ConvertReport]):
    """The stage.

    asked (Asked): What is to be done.
    nlp (Language): Its tokenizer reads text.
    """

    name = "convert"
    report = ConvertReport

    def __init__(self, asked: Asked, nlp: Language) -> None:
        super().__init__(asked.settings(), nlp.vocab)
        self.asked = asked
        self.nlp = nlp
        self._rows = RowCounts()  # of the shard at hand

    def shards(self, part: Part = WHOLE) -> Shards:
        """RETURNS (Shards): The shards of a part."""
        asked, rows = self.asked, self._rows
        path = Path(asked.input_path)
        inputs = corpus_inputs(
            path, self.nlp, format=asked.format, reading=asked.reading, shard_size=asked.shard_size, counts=rows
        )
        return Shards(self.name, path, Path(asked.output_path), inputs, part)

    def __call__(self, docs: Iterable[Doc]) -> Iterator[Doc]:
        vars(self._rows).update(vars(RowCounts()))
        yield from self.stats.counting(docs)
        self.stats.add(ConvertReport(**{own.name: getattr(self._rows, own.name) for own in fields(RowCounts)}))


def convert_in_parts(asked: Asked, executor: Executor, *, progress: bool = False) -> ConvertReport:
    """Convert a corpus into a folder of shards.

    asked (Asked): What is to be done.
    executor (Executor): Where they are made.
    progress (bool): Show how far it has come.
    RETURNS (ConvertReport): What was converted.
    RAISES (WeaknerError): If the input cannot be cut, or only some of it, and for what `convert` refuses.
    """
    path = Path(asked.input_path)
    files = input_files(path, asked.format)
    formats = {format_ for _, format_ in files}
    if "spacy" in formats and len(formats) > 1:
        raise WeaknerError(Errors.WK748.format(path=path, names=", ".join(sorted(formats))))
    stage = Convert(asked, blank_pipeline(asked.lang, asked.tokenizer))
    return executor.run(stage.shards(), stage, lambda _: partial(_make_part, asked), progress=progress)


def _make_part(asked: Asked, part: Part) -> None:
    stage = Convert(asked, blank_pipeline(asked.lang, asked.tokenizer))
    stage.shards(part).run(stage)
