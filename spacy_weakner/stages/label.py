"""Lets weak sources label a corpus: term lists, pipelines, patterns, imported labels, all in one pass."""

from collections import Counter
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Union

from spacy.language import Language
from spacy.tokens import Doc

from ..annotations.sentences import sentence_key
from ..annotations.weak import group_entities, weak_group
from ..errors import Errors, WeaknerError, check_range
from ..files import check_output, existing
from .labelling.blocks import corpus_inputs
from .labelling.labellers import Labellers, prepare
from .labelling.report import LabelReport, make_report
from .labelling.sources import SettingError, Source, make_source, read_sources
from .runtime.devices import on_device
from .runtime.hashes import hash_path
from .runtime.pipelines import blank_pipeline, load_pipeline
from .runtime.scratch import scratch_folder
from .runtime.shards import WHOLE, Part, ShardReport, Shards
from .runtime.workers import Task, run_workers

TERMS_SOURCE = "gazetteer"
SHARD_SIZE = 5000
_BASE = "base"
# Of the settings of a single source, those that are not None by default.
_DEFAULTS = {"attr": "LOWER", "acronym_length": 5, "stop": [], "min_length": 1, "ambiguity": "all"}


@dataclass(frozen=True)
class _Plan:
    """All that a worker has to know."""

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

    def shards(self, nlp: Language, settings: Dict[str, Any], part: Part) -> Shards:
        """The shards of a part."""
        inputs = corpus_inputs(
            self.input_path, nlp, format=self.format, sentences=self.sentences, shard_size=self.shard_size
        )
        return Shards(self.input_path, self.output_path, "label", settings, inputs, part)

    def to_json(self) -> Dict[str, Any]:
        return {**asdict(self), "input_path": str(self.input_path), "output_path": str(self.output_path)}

    @classmethod
    def from_json(cls, data: Dict[str, Any]) -> "_Plan":
        paths = {key: Path(data[key]) for key in ("input_path", "output_path")}
        return cls(**{**data, **paths, "sources": [Source(**source) for source in data["sources"]]})


def label(
    input_path: Path,
    output_path: Path,
    *,
    sources: Optional[Union[Path, str, Mapping[str, Any]]] = None,
    terms: Optional[Path] = None,
    pipeline: Optional[Union[Path, str]] = None,
    source: Optional[str] = None,
    spans_key: Optional[str] = None,
    attr: str = "LOWER",
    acronym_length: int = 5,
    stop: Sequence[str] = (),
    min_length: int = 1,
    ambiguity: str = "all",
    term_label: Optional[str] = None,
    reliability: Optional[float] = None,
    lang: str = "en",
    tokenizer: Optional[str] = None,
    format: Optional[str] = None,
    sentences: bool = True,
    exclude: Sequence[Path] = (),
    only_matched: bool = False,
    shard_size: int = SHARD_SIZE,
    shard: Optional[str] = None,
    workers: int = 1,
    gpu_id: int = -1,
    progress: bool = False,
) -> LabelReport:
    """Write the span group `weak:<source>` of each source to every Doc of a corpus. Other groups and `doc.ents` stay as
    they are.

    Finished shards are skipped when the same command runs again. The result does not depend on how many workers and
    parts made it.

    input_path (Path): A corpus in any format: a file or a folder. Raw text, JSONL and CoNLL are cut into shards.
    output_path (Path): A `.spacy` file, or a folder where every `.spacy` shard keeps its name.
    sources (Optional[Union[Path, str, Mapping[str, Any]]]): Declarations of sources: a file in spaCy's config syntax,
        or settings by name, like {"drugs": {"terms": "drugs.csv"}}; see `sources.Source`.
    terms (Optional[Path]): Or a single source: a term list, looked up by a `gazetteer_ruler`.
    pipeline (Optional[Union[Path, str]]): Or a pipeline: its folder or name. It gets the bare tokens of each
        Doc.
    source (Optional[str]): Name of the single source; None: "gazetteer" for terms, and for a pipeline the last part of
        its path or name.
    spans_key, attr, acronym_length, stop, min_length, ambiguity, term_label, reliability: Settings of the single
        source; see `sources.Source`.
    lang (str): Language of raw text and of terms.
    tokenizer (Optional[str]): Name of the registered tokenizer that splits raw text and terms; should be that of the
        corpus.
    format (Optional[str]): Format of the input: "jsonl", "conll", "text", "spacy". None: the suffixes tell.
    sentences (bool): Split text without annotations into sentences.
    exclude (Sequence[Path]): Corpora in any format, such as dev and test, whose sentences are to be left out.
        Sentences are equal if they differ only in case and white space.
    only_matched (bool): Leave out Docs without a match of any source.
    shard_size (int): Lines per shard, where the input is no `.spacy` file.
    shard (Optional[str]): "i/n": make only every n-th shard, from the i-th (counted from 1) on. Run all parts, on one
        machine or several; then once without `shard`, which checks the whole and sums up.
    workers (int): Number of processes.
    gpu_id (int): GPU for the predictions; -1 is the CPU.
    progress (bool): Show how far it has come.
    RETURNS (LabelReport): What was labelled.
    RAISES (WeaknerError): For malformed, empty or missing input, for unusable settings, if a worker fails, and if a
        pipeline writes span groups but not what was to be taken, or never writes the group that was to be taken.
    """
    single = {
        "source": source,
        "spans_key": spans_key,
        "attr": attr,
        "acronym_length": acronym_length,
        "stop": list(stop),
        "min_length": min_length,
        "ambiguity": ambiguity,
        "term_label": term_label,
        "reliability": reliability,
    }
    if sum(given is not None for given in (sources, terms, pipeline)) != 1:
        raise WeaknerError(Errors.WK303)
    if sources is not None:
        _refuse(single)
        declared = read_sources(sources)
    else:
        declared = [_single_source(terms, pipeline, single)]
    for setting, number in (("shard_size", shard_size), ("workers", workers)):
        check_range(setting, number, 1, None)
    check_output(map(Path, exclude), [Path(output_path)])
    plan = _Plan(
        input_path=Path(input_path),
        output_path=Path(output_path),
        sources=declared,
        lang=lang,
        tokenizer=tokenizer,
        format=format,
        sentences=sentences,
        shard_size=shard_size,
        only_matched=only_matched,
        exclude=[hash_path(existing(Path(path))) for path in exclude],
        gpu_id=gpu_id,
    )
    settings = plan.settings()
    part = WHOLE if shard is None else Part.parse(shard)
    nlp = blank_pipeline(lang, tokenizer)
    shards = plan.shards(nlp, settings, part)
    with on_device(gpu_id), ExitStack() as stack:
        made = _run_workers(plan, settings, shards, exclude, workers, progress) if workers > 1 else 0

        def make() -> Labellers:
            folder = stack.enter_context(scratch_folder(plan.output_path))
            prepare(declared, nlp, folder, exclude)
            labellers = Labellers(declared, nlp, folder)
            stack.callback(labellers.close)
            return labellers

        report = _run(plan, shards, nlp, make, progress)
    return make_report(declared, report._replace(skipped=report.skipped - made), part)


def run_worker(task: Dict[str, Any], part: Part) -> None:
    """Make one part of the shards, with what the parent has prepared; see `workers`.

    task (Dict[str, Any]): What `_run_workers` wrote.
    part (Part): The part.
    """
    plan = _Plan.from_json(task["plan"])
    folder = Path(task["folder"])
    nlp = load_pipeline(folder / _BASE)
    with on_device(plan.gpu_id), closing(Labellers(plan.sources, nlp, folder)) as labellers:
        _run(plan, plan.shards(nlp, task["settings"], part), nlp, lambda: labellers, progress=False)


def _run_workers(
    plan: _Plan, settings: Dict[str, Any], shards: Shards, exclude: Sequence[Path], n: int, progress: bool
) -> int:
    """Let workers make the shards; gives the number of those made."""
    if shards.is_file:
        raise WeaknerError(Errors.WK312.format(path=plan.output_path))
    pending = shards.pending()
    if not pending:
        return 0
    with scratch_folder(plan.output_path) as folder:
        nlp = blank_pipeline(plan.lang, plan.tokenizer)
        prepare(plan.sources, nlp, folder, exclude)
        nlp.to_disk(folder / _BASE)
        task = {"plan": plan.to_json(), "settings": settings, "folder": str(folder)}
        shares = [[path for i, path in pending.items() if i % n == k] for k in range(n)]
        parts = zip(shards.part.split(n), shares, strict=True)
        tasks = [Task("label", part, task, share) for part, share in parts if share]
        run_workers(tasks, folder, progress=progress)
    return len(pending)


def _run(plan: _Plan, shards: Shards, nlp: Language, make: Callable[[], Labellers], progress: bool) -> ShardReport:
    labellers: List[Labellers] = []
    counts: Counter[str] = Counter()
    groups = [weak_group(source.name) for source in plan.sources]

    def kept(docs: Iterable[Doc]) -> Iterator[Doc]:
        excluded = labellers[0].excluded
        for doc in docs:
            if excluded and sentence_key(doc.text) in excluded:
                counts["excluded"] += 1
            else:
                yield doc

    def transform(docs: Iterable[Doc]) -> Iterator[Doc]:
        for doc in labellers[0].label(kept(docs), counts):
            matched = any(group_entities(doc, group) for group in groups)
            counts["unmatched"] += not matched
            if matched or not plan.only_matched:
                yield doc

    return shards.run(
        transform,
        nlp.vocab,
        prepare=lambda: labellers.append(make()),
        memory_zone=lambda: labellers[0].memory_zone(),
        progress=progress,
        counts=counts,
    )


# The declaration of a single source


def _single_source(terms: Optional[Path], pipeline: Optional[Union[Path, str]], single: Dict[str, Any]) -> Source:
    if terms is not None:
        kind, path, name = "terms", str(terms), TERMS_SOURCE
        used = [key for key in single if key not in ("source", "spans_key")]
    else:
        kind, path, name = "pipeline", str(pipeline), Path(str(pipeline)).resolve().name
        used = ["reliability"]
    settings = {key: single[key] for key in used}
    if single["spans_key"] is not None:
        settings["spans_key"] = single["spans_key"]
    try:
        return make_source(name if single["source"] is None else single["source"], {kind: path, **settings})
    except SettingError as error:
        if error.key == "terms":
            existing(Path(path))
        elif error.key == "pipeline":
            load_pipeline(path)
        message = Errors.WK005.format(setting=error.key, value=repr(error.value), expected=error.expected)
        raise WeaknerError(message) from None


def _refuse(single: Dict[str, Any]) -> None:
    for setting, value in single.items():
        if value != _DEFAULTS.get(setting):
            raise WeaknerError(Errors.WK309.format(setting=setting))
