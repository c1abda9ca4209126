"""Labels a corpus with weak sources: term lists, pipelines, patterns and imported labels, all in one pass.

`label_docs` reads the declarations of sources (`sources.py`) and runs the stage `Label` on Docs; `label` runs it on the
shards of a corpus, in this process or in workers. The stage has one labeler per source (`labelers.py`; `imported.py`
and `alignment.py` for labels made elsewhere).
"""

import json
import warnings
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Type, Union

from spacy.language import Language
from spacy.tokens import Doc

from ..corpus.docbin import full_copies
from ..corpus.documents import group_documents
from ..corpus.formats.reading import Reading, sentence_keys
from ..corpus.language import CorpusLanguage, corpus_language
from ..corpus.sentences import SHORT, SentenceSplitter, sentence_key
from ..corpus.weak import weak_group
from ..errors import Errors, Warnings, WeaknerError, check_range
from ..files import check_output, existing
from ..pipelines import NO_SENTENCES, bare_pipeline, blank_pipeline, load_pipeline
from ..runtime.blocks import corpus_inputs
from ..runtime.devices import on_device
from ..runtime.executor import Executor, MakePart
from ..runtime.hashes import hash_model, hash_path
from ..runtime.inputs import ShardInput
from ..runtime.lock import locked
from ..runtime.output import SHARD_SIZE
from ..runtime.shards import WHOLE, Shards, ShardShare
from ..runtime.stage import Stage
from ..scratch import resolved, scratch_folder
from .imported import AnswersLabeler, FileLabeler
from .labelers import CorpusLabeler, Labeler, PatternLabeler, PipelineLabeler, TermLabeler
from .report import LabelCounts, LabelReport, make_report
from .sources import SettingError, Source, defaults, make_source, read_sources

TERMS_SOURCE = "gazetteer"
BATCH_SIZE = 1000
# By kind of source; see `sources.KINDS`.
LABELERS: Dict[str, Type[Labeler[Any]]] = {
    "terms": TermLabeler,
    "pipeline": PipelineLabeler,
    "patterns": PatternLabeler,
    "file": FileLabeler,
    "answers": AnswersLabeler,
    "corpus": CorpusLabeler,
}
_EXCLUDED = "excluded.json"
_BASE = "base"


def label_docs(
    docs: Iterable[Doc],
    sources: Union[Path, str, Mapping[str, Any]],
    *,
    nlp: Optional[Language] = None,
    gpu_id: int = -1,
) -> Iterator[Doc]:
    """Write the span group `weak:<source>` of each source to Docs in memory, in blocks of about 1,000, as `label` does
    for a corpus. It is written to copies: the given Docs are not changed.

    docs (Iterable[Doc]): The Docs, perhaps of several vocabularies.
    sources (Union[Path, str, Mapping[str, Any]]): Declarations of sources, as for `label`. A `pipeline` may also be one
        in memory: {"model": {"pipeline": nlp}}.
    nlp (Optional[Language]): The pipeline whose tokenizer made the Docs, which also splits terms; it is not changed.
        None: a blank pipeline of the first Doc's language.
    gpu_id (int): GPU for the predictions; -1 is the CPU.
    YIELDS (Doc): The labeled copies. After the last one, a warning counts labels of files that fit no Doc.
    RAISES (WeaknerError): As `label`.
    """
    declared, docs = read_sources(sources), full_copies(docs)
    first = next(docs, None)
    if first is None:
        return
    blank = blank_pipeline(first.vocab.lang or "en") if nlp is None else bare_pipeline(nlp)
    config = LabelConfig(declared, CorpusLanguage(blank.vocab.lang, "", NO_SENTENCES))
    with TemporaryDirectory() as folder:
        stage = Label(config, {}, blank, Path(folder))
        try:
            with on_device(gpu_id):
                stage.open()
            for batch in _batches(chain([first], docs)):
                with on_device(gpu_id):  # not while the caller uses the Docs
                    labeled = list(stage(batch))
                yield from labeled
        finally:
            stage.close()
    for source in make_report(declared, stage.stats, WHOLE).sources:
        if source.misaligned or source.not_found or source.other_text or source.met_no_doc:
            warnings.warn(Warnings.WK910.format(source=source.name, counts=source.details()), stacklevel=2)


def label(
    input_path: Path,
    output_path: Path,
    *,
    sources: Optional[Union[Path, str, Mapping[str, Any]]] = None,
    terms: Optional[Path] = None,
    pipeline: Optional[Union[Path, str]] = None,
    source: Optional[str] = None,
    lang: Optional[str] = None,
    tokenizer: Optional[str] = None,
    sentences: Optional[str] = None,
    exclude: Sequence[Path] = (),
    only_matched: bool = False,
    shard_size: int = SHARD_SIZE,
    shard: Optional[str] = None,
    workers: int = 1,
    ray: Optional[str] = None,
    gpu_id: int = -1,
    progress: bool = False,
    **settings: Any,
) -> LabelReport:
    """Write the span group `weak:<source>` of each source to every Doc of a corpus. Other groups and `doc.ents` are not
    changed.

    Finished shards are skipped when the same command runs again. The result does not depend on the number of workers
    and parts.

    input_path (Path): A corpus in any format: a file or a folder. Raw text and rows are cut into shards; files in
        formats other than these and `.spacy` become one shard.
    output_path (Path): A `.spacy` file, or a folder in which each `.spacy` shard keeps its name.
    sources (Optional[Union[Path, str, Mapping[str, Any]]]): Declarations of sources: a file in spaCy's config syntax,
        or settings by name, like {"drugs": {"terms": "drugs.csv"}}; see `sources.Source`.
    terms (Optional[Path]): Or a single source: a term list, looked up by a `gazetteer_ruler`.
    pipeline (Optional[Union[Path, str]]): Or a pipeline: its folder or name. It gets the bare tokens of each Doc.
    source (Optional[str]): Name of the single source; None: "gazetteer" for terms, and for a pipeline the last part of
        its path or name.
    lang, tokenizer: See `convert`. They split raw text, and the terms.
    sentences (Optional[str]): See `convert`, which also takes abbreviations.
    exclude (Sequence[Path]): Corpora in any format, such as dev and test, whose sentences are left out. Sentences are
        equal if they differ only in case and white space. A Doc of several sentences is left out if it contains one of
        them that has more than 3 tokens.
    only_matched (bool): Leave out Docs without a match of any source.
    shard_size (int): Lines of raw text or rows per shard.
    shard (Optional[str]): "i/n": make only every n-th shard, starting with the i-th (counted from 1). Run all parts, on
        one or several machines, and then once without `shard`, which checks the output and sums up.
    workers (int): Number of processes on this machine.
    ray (Optional[str]): Address of a Ray cluster whose machines make the shards; "auto": that of RAY_ADDRESS, or this
        machine alone. All machines must see input, sources and output under the same paths. With a `gpu_id`, each part
        requests a GPU.
    gpu_id (int): GPU for the predictions; -1 is the CPU.
    progress (bool): Show progress.
    **settings (Any): Settings of the single source, such as `attr` and `reliability`; see `sources.Source`.
    RETURNS (LabelReport): What was labeled.
    RAISES (WeaknerError): For malformed, empty or missing input, for invalid settings, if a worker fails, and if a
        pipeline writes span groups but not the requested labels, or never writes the requested group.
    """
    if sum(given is not None for given in (sources, terms, pipeline)) != 1:
        raise WeaknerError(Errors.WK303)
    settings = {key: tuple(value) if isinstance(value, list) else value for key, value in settings.items()}
    # A default declares nothing. (The default of "complete" depends on the kind of source.)
    usual = {**defaults(), "complete": ...}
    settings = {key: value for key, value in settings.items() if value != usual.get(key, ...)}
    if sources is not None:
        for setting in (*([] if source is None else ["source"]), *settings):
            instead = ", or move it to the section of the source that it applies to"
            raise WeaknerError(Errors.WK331.format(setting=setting, where="without 'sources'", instead=instead))
        declared = read_sources(sources)
    else:
        declared = [_single_source(source, terms, pipeline, settings)]
    check_range("shard_size", shard_size, 1, None)
    executor = Executor(workers, ray, gpu_id)
    check_output(map(Path, exclude), [Path(output_path)])
    language = corpus_language(Path(input_path), lang, tokenizer, sentences)
    config = LabelConfig(declared, language, [existing(Path(path)) for path in exclude], only_matched)
    open_shards = partial(_open_shards, Path(input_path), Path(output_path), language, shard_size)
    part = WHOLE if shard is None else ShardShare.parse(shard)
    with locked(Path(output_path), part), on_device(executor.gpu_here), scratch_folder(Path(output_path)) as folder:
        made_with, nlp = config.settings(), language.blank()
        stage = Label(config, made_with, nlp, folder)
        hand_over = partial(_hand_over, config, made_with, open_shards, executor.gpu_there)
        counts = executor.run(open_shards(nlp, part), stage, hand_over, progress=progress)
        return make_report(declared, counts, part)


def _single_source(
    name: Optional[str], terms: Optional[Path], pipeline: Optional[Union[Path, str]], settings: Dict[str, Any]
) -> Source:
    kind, path = ("pipeline", str(pipeline)) if terms is None else ("terms", str(terms))
    if name is None:
        name = resolved(path).name if terms is None else TERMS_SOURCE
    try:
        return make_source(name, {kind: path, **settings}, Path())
    except SettingError as error:
        message = Errors.WK005.format(setting=error.key, value=repr(error.value), expected=error.expected)
        raise WeaknerError(message) from None


@dataclass(frozen=True)
class LabelConfig:
    """How Docs are labeled; see `label`."""

    sources: List[Source]
    language: CorpusLanguage
    exclude: Sequence[Path] = ()
    only_matched: bool = False

    def settings(self) -> Dict[str, Any]:
        """Return the settings that the result depends on, besides the input. (A shard's size shows in its input.)"""
        sources, exclude = [source.settings() for source in self.sources], [hash_path(path) for path in self.exclude]
        settings = {"only_matched": self.only_matched, "sources": sources, "exclude": exclude}
        return {**self.language._asdict(), "sentences": hash_model(self.language.sentences), **settings}

    def keyed_sources(self) -> Iterator[Tuple[str, Source]]:
        """Yield the sources, each with the name of its prepared files."""
        for number, source in enumerate(self.sources, start=1):
            yield f"source-{number}", source

    def prepare(self, nlp: Language, folder: Path) -> None:
        """Compile term lists and patterns, and index files with labels, once for all processes."""
        for key, source in self.keyed_sources():
            LABELERS[source.kind].prepare(source, nlp, folder, key)
        self.language.add_sentences(nlp)  # after the lists, since no sentence ends inside their terms
        keys = sorted(sentence_keys(self.exclude, nlp))
        (folder / _EXCLUDED).write_text(json.dumps(keys), encoding="utf-8")


class Label(Stage[LabelCounts]):
    """The stage. `nlp` has the tokenizer that splits terms, and gets the rulers. `folder` was filled by
    `LabelConfig.prepare`, or is empty: then it is filled when the stage is opened."""

    name = "label"
    report = LabelCounts

    def __init__(self, config: LabelConfig, settings: Dict[str, Any], nlp: Language, folder: Path) -> None:
        super().__init__(settings, nlp.vocab)
        self.language = config.language
        self.config = config
        self.nlp = nlp
        self.folder = folder
        self._opened = ExitStack()

    def open(self) -> None:
        if not (self.folder / _EXCLUDED).exists():
            self.config.prepare(self.nlp, self.folder)
        self._excluded = {*json.loads((self.folder / _EXCLUDED).read_text(encoding="utf-8"))}
        self._splitter = SentenceSplitter(self.nlp)
        self._labelers: List[Labeler[Any]] = []
        for key, source in self.config.keyed_sources():
            self._labelers.append(LABELERS[source.kind](source, self.nlp, self.folder, key))
            self._opened.callback(self._labelers[-1].close)

    def close(self) -> None:
        self._opened.close()

    def zones(self) -> List[Language]:
        return [self.nlp, *(labeler.nlp for labeler in self._labelers if labeler.nlp is not None)]

    def __call__(self, docs: Iterable[Doc]) -> Iterator[Doc]:
        groups = [weak_group(source.name) for source in self.config.sources]
        for labeler in self._labelers:
            self.stats.by_source[labeler.source.name].add(labeler.counts())
        for batch in _batches(filter(self._is_wanted, docs)):
            for labeler in self._labelers:
                labeler.label(batch, self.stats.by_source[labeler.source.name])
            for doc in batch:
                matched = any(map(len, (doc.spans.get(group, ()) for group in groups)))
                self.stats.unmatched += not matched
                if matched or not self.config.only_matched:
                    yield doc

    def _is_wanted(self, doc: Doc) -> bool:
        """Return False if an excluded corpus has a Doc's text, or one of its sentences that is not short."""
        if not self._excluded:
            return True
        sentences = [sentence for sentence in self._splitter.sentences_of(doc) if len(sentence) > SHORT]
        is_free = self._excluded.isdisjoint(sentence_key(part.text) for part in [doc, *sentences])
        self.stats.excluded += not is_free
        return is_free


def _batches(docs: Iterable[Doc]) -> Iterator[List[Doc]]:
    """Yield batches that do not split documents."""
    batch: List[Doc] = []
    for sentences in group_documents(docs):
        batch += sentences
        if len(batch) >= BATCH_SIZE:
            yield batch
            batch = []
    if batch:
        yield batch


def label_inputs(path: Path, nlp: Language, language: CorpusLanguage, shard_size: int) -> List[ShardInput]:
    """Return the inputs of the shards of a corpus. Its texts are split as `language` tells."""
    reading = Reading(sentences=language.sentences != NO_SENTENCES, documents=True)
    return corpus_inputs(path, nlp, reading, shard_size=shard_size)


def _open_shards(
    input_path: Path, output_path: Path, language: CorpusLanguage, shard_size: int, nlp: Language, part: ShardShare
) -> Shards:
    return Shards(Label.name, input_path, output_path, label_inputs(input_path, nlp, language, shard_size), part)


def _hand_over(
    config: LabelConfig, settings: Dict[str, Any], open_shards: Callable[..., Shards], gpu_id: int, folder: Path
) -> MakePart:
    """Prepare the sources in a folder for other processes."""
    nlp = config.language.blank()
    config.prepare(nlp, folder)
    nlp.to_disk(folder / _BASE)
    return partial(_make_part, config, settings, open_shards, gpu_id, folder)


def _make_part(
    config: LabelConfig,
    settings: Dict[str, Any],
    open_shards: Callable[..., Shards],
    gpu_id: int,
    folder: Path,
    part: ShardShare,
) -> None:
    nlp = load_pipeline(folder / _BASE)
    with on_device(gpu_id):
        open_shards(nlp, part).run(Label(config, settings, nlp, folder))
