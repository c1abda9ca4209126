"""Lets weak sources label a corpus: term lists, pipelines, patterns, imported labels, all in one pass."""

from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, Dict, Mapping, Optional, Sequence, Union

from ..errors import Errors, WeaknerError, check_range
from ..files import check_output, existing
from ..pipelines import blank_pipeline, load_pipeline
from ..runtime.devices import on_device
from ..runtime.hashes import check_regular, hash_path
from ..runtime.lock import locked
from ..runtime.shards import WHOLE, Part
from ..runtime.spread import Spread
from .report import LabelReport, make_report
from .sources import SettingError, Source, make_source, read_sources
from .stage import Label, Plan, hand_over

TERMS_SOURCE = "gazetteer"
SHARD_SIZE = 5000
# Settings that say nothing. (What the silence of a source means by default depends on its kind.)
_DEFAULTS = {field.name: field.default for field in fields(Source) if field.name != "complete"}


def label(
    input_path: Path,
    output_path: Path,
    *,
    sources: Optional[Union[Path, str, Mapping[str, Any]]] = None,
    terms: Optional[Path] = None,
    pipeline: Optional[Union[Path, str]] = None,
    source: Optional[str] = None,
    lang: str = "en",
    tokenizer: Optional[str] = None,
    format: Optional[str] = None,
    sentences: bool = True,
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
    lang (str): Language of raw text and of terms.
    tokenizer (Optional[str]): Name of the registered tokenizer that splits raw text and terms; should be that of the
        corpus.
    format (Optional[str]): Format of the input, as for `convert`; None: the files tell.
    sentences (bool): Split text without annotations into sentences.
    exclude (Sequence[Path]): Corpora in any format, such as dev and test, whose sentences are to be left out.
        Sentences are equal if they differ only in case and white space.
    only_matched (bool): Leave out Docs without a match of any source.
    shard_size (int): Lines per shard, where the input is no `.spacy` file.
    shard (Optional[str]): "i/n": make only every n-th shard, from the i-th (counted from 1) on. Run all parts, on one
        machine or several; then once without `shard`, which checks the whole and sums up.
    workers (int): Number of processes on this machine.
    ray (Optional[str]): Address of a Ray cluster whose machines make the shards; "auto": that of RAY_ADDRESS, or this
        machine alone. They all must see input, sources and output under the same paths. With a `gpu_id` each part asks
        for a GPU.
    gpu_id (int): GPU for the predictions; -1 is the CPU.
    progress (bool): Show how far it has come.
    **settings (Any): Settings of the single source, such as `attr` and `reliability`; see `sources.Source`.
    RETURNS (LabelReport): What was labelled.
    RAISES (WeaknerError): For malformed, empty or missing input, for unusable settings, if a worker fails, and if a
        pipeline writes span groups but not what was to be taken, or never writes the group that was to be taken.
    """
    if sum(given is not None for given in (sources, terms, pipeline)) != 1:
        raise WeaknerError(Errors.WK303)
    settings = {key: tuple(value) if isinstance(value, list) else value for key, value in settings.items()}
    settings = {key: value for key, value in settings.items() if key not in _DEFAULTS or value != _DEFAULTS[key]}
    if sources is not None:
        for setting in (*([] if source is None else ["source"]), *settings):
            raise WeaknerError(Errors.WK309.format(setting=setting))
        declared = read_sources(sources)
    else:
        declared = [_single_source(source, terms, pipeline, settings)]
    check_range("shard_size", shard_size, 1, None)
    spread = Spread(workers, ray, gpu_id)
    for path in (input_path, *exclude, *(source.file for source in declared if source.file is not None)):
        check_regular(Path(path))
    check_output(map(Path, exclude), [Path(output_path)])
    plan = Plan(
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
        gpu_id=spread.gpu_there,
    )
    part = WHOLE if shard is None else Part.parse(shard)
    with locked(Path(output_path), part), on_device(spread.gpu_here):
        made_with, nlp = plan.settings(), blank_pipeline(lang, tokenizer)
        stage = Label(plan, made_with, nlp, exclude=exclude)
        preparing = partial(hand_over, plan, made_with, exclude)
        counts = spread.run(plan.shards(nlp, part), stage, preparing, progress=progress)
        return make_report(declared, counts, part)


def _single_source(
    name: Optional[str], terms: Optional[Path], pipeline: Optional[Union[Path, str]], settings: Dict[str, Any]
) -> Source:
    kind, path = ("pipeline", str(pipeline)) if terms is None else ("terms", str(terms))
    if name is None:
        name = Path(path).resolve().name if terms is None else TERMS_SOURCE
    try:
        return make_source(name, {kind: path, **settings})
    except SettingError as error:
        if error.key == "terms":
            existing(Path(path))
        elif error.key == "pipeline":
            load_pipeline(path)
        message = Errors.WK005.format(setting=error.key, value=repr(error.value), expected=error.expected)
        raise WeaknerError(message) from None
