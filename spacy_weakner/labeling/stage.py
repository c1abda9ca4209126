"""The stage of `label`, in this process or in workers."""

from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence

from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import minibatch

from ..corpus.formats.reading import Reading
from ..corpus.sentences import sentence_key
from ..corpus.weak import weak_group
from ..pipelines import blank_pipeline, load_pipeline
from ..runtime.blocks import corpus_inputs
from ..runtime.devices import on_device
from ..runtime.inputs import ShardInput
from ..runtime.shards import WHOLE, Part, Shards
from ..runtime.stage import Stage
from ..scratch import scratch_folder
from .labelers import make_labeller
from .preparing import excluded_keys, prepare
from .report import LabelCounts
from .sources import Source

BATCH_SIZE = 1000
_BASE = "base"


@dataclass(frozen=True)
class Plan:
    """All that a worker has to know; see `label`."""

    input_path: Path
    output_path: Path
    sources: List[Source]
    lang: str
    tokenizer: Optional[str]
    format: Optional[str]
    sentences: bool
    shard_size: int
    only_matched: bool
    exclude: List[str]  # hashes
    gpu_id: int

    def settings(self) -> Dict[str, Any]:
        """What the result depends on besides the input. (A shard's size shows in its input.)"""
        settings = asdict(self)
        for key in ("input_path", "output_path", "shard_size", "gpu_id"):
            del settings[key]
        return {**settings, "sources": [source.settings() for source in self.sources]}

    def inputs(self, nlp: Language) -> List[ShardInput]:
        """What the shards are made from."""
        reading = Reading(sentences=self.sentences)
        return corpus_inputs(self.input_path, nlp, format=self.format, reading=reading, shard_size=self.shard_size)

    def shards(self, nlp: Language, part: Part = WHOLE) -> Shards:
        """The shards of a part."""
        return Shards(Label.name, self.input_path, self.output_path, self.inputs(nlp), part)

    def to_json(self) -> Dict[str, Any]:
        return {**asdict(self), "input_path": str(self.input_path), "output_path": str(self.output_path)}

    @classmethod
    def from_json(cls, data: Dict[str, Any]) -> "Plan":
        paths = {key: Path(data[key]) for key in ("input_path", "output_path")}
        return cls(**{**data, **paths, "sources": [Source(**source) for source in data["sources"]]})


class Label(Stage[LabelCounts]):
    """The stage.

    plan (Plan): What to do.
    settings (Dict[str, Any]): Those of the plan.
    nlp (Language): Its tokenizer splits the terms; the rulers of terms and patterns are its components.
    folder (Optional[Path]): What `prepare` has filled; None: do that too when it is opened.
    exclude (Sequence[Path]): For that: corpora whose sentences are to be left out.
    """

    name = "label"
    report = LabelCounts

    def __init__(
        self,
        plan: Plan,
        settings: Dict[str, Any],
        nlp: Language,
        folder: Optional[Path] = None,
        exclude: Sequence[Path] = (),
    ) -> None:
        super().__init__(settings, nlp.vocab)
        self.plan = plan
        self.nlp = nlp
        self.folder = folder
        self.exclude = exclude
        self._opened = ExitStack()

    def open(self) -> None:
        sources, folder = self.plan.sources, self.folder
        if folder is None:
            folder = self._opened.enter_context(scratch_folder(self.plan.output_path))
            prepare(sources, self.nlp, folder, self.exclude)
        self._excluded = excluded_keys(folder)
        self._labellers = [make_labeller(i, source, self.nlp, folder) for i, source in enumerate(sources)]
        for labeller in self._labellers:
            self._opened.callback(labeller.close)

    def close(self) -> None:
        self._opened.close()

    def zones(self) -> List[Language]:
        return [self.nlp, *(labeller.nlp for labeller in self._labellers if labeller.nlp is not None)]

    def __call__(self, docs: Iterable[Doc]) -> Iterator[Doc]:
        groups = [weak_group(source.name) for source in self.plan.sources]
        for labeller in self._labellers:
            self.stats.by_source[labeller.source.name] = labeller.counts()
        for batch in minibatch(filter(self._is_wanted, docs), BATCH_SIZE):
            for labeller in self._labellers:
                labeller.label(batch, self.stats.by_source[labeller.source.name])
            for doc in batch:
                matched = any(map(len, (doc.spans.get(group, ()) for group in groups)))
                self.stats.unmatched += not matched
                if matched or not self.plan.only_matched:
                    yield doc

    def _is_wanted(self, doc: Doc) -> bool:
        wanted = not self._excluded or sentence_key(doc.text) not in self._excluded
        self.stats.excluded += not wanted
        return wanted


def hand_over(plan: Plan, settings: Dict[str, Any], exclude: Sequence[Path], folder: Path) -> Dict[str, Any]:
    """Prepare what other processes need to make shards.

    plan (Plan): What to do.
    settings (Dict[str, Any]): Those of the plan.
    exclude (Sequence[Path]): Corpora whose sentences are to be left out.
    folder (Path): Takes the compiled sources.
    RETURNS (Dict[str, Any]): What `run_worker` takes.
    """
    nlp = blank_pipeline(plan.lang, plan.tokenizer)
    prepare(plan.sources, nlp, folder, exclude)
    nlp.to_disk(folder / _BASE)
    return {"plan": plan.to_json(), "settings": settings, "folder": str(folder)}


def run_worker(task: Dict[str, Any], part: Part) -> None:
    """Make one part of the shards, with what the parent has prepared; see `runtime.tasks`.

    task (Dict[str, Any]): What `hand_over` has returned.
    part (Part): The part.
    """
    plan, folder = Plan.from_json(task["plan"]), Path(task["folder"])
    nlp = load_pipeline(folder / _BASE)
    with on_device(plan.gpu_id):
        plan.shards(nlp, part).run(Label(plan, task["settings"], nlp, folder))
