"""Converts corpora: JSONL, CoNLL, raw text and `.spacy` files into `.spacy` files, JSONL or CoNLL."""

from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Dict, Iterable, Iterator, List, NamedTuple, Optional

from spacy.tokens import Doc

from ..annotations import weak
from ..annotations.conll import write_conll
from ..annotations.corpus import SUFFIX, write_docs
from ..annotations.formats import input_files, read_corpus
from ..annotations.jsonl import write_jsonl
from ..annotations.rows import DEFAULT_SOURCE
from ..errors import Errors, WeaknerError, check_range
from ..files import check_output
from ..progress import progress as show
from .runtime.output import SHARD_SIZE, check_there, is_folder, write_shards
from .runtime.pipelines import blank_pipeline

OUTPUT_SUFFIXES = (SUFFIX, ".jsonl", ".conll")


class ConvertReport(NamedTuple):
    """What was converted.

    docs (int): Docs written.
    tokens (int): Their tokens.
    unknown (int): Docs without any entity annotation.
    entities (Dict[str, int]): Entities of `doc.ents` per label.
    weak (Dict[str, int]): Weak spans per source.
    empty (int): Empty lines of raw text that were passed over.
    misaligned (int): Spans that were dropped because they do not end at token borders.
    moved (int): Spans that were expanded or contracted to token borders.
    files (int): Files written.
    ignored (Dict[str, int]): JSONL rows per key that is not part of the layout.
    suspects (List[str]): Those of these keys that hold lists, if no row has annotations of the layout.
    """

    docs: int
    tokens: int
    unknown: int
    entities: Dict[str, int]
    weak: Dict[str, int]
    empty: int
    misaligned: int
    moved: int
    files: int
    ignored: Dict[str, int]
    suspects: List[str]


def convert(
    input_path: Path,
    output_path: Path,
    *,
    format: Optional[str] = None,
    lang: str = "en",
    tokenizer: Optional[str] = None,
    sentences: bool = True,
    source: str = DEFAULT_SOURCE,
    limit: Optional[int] = None,
    misaligned: str = "error",
    shard_size: int = SHARD_SIZE,
    overwrite: bool = False,
    progress: bool = False,
) -> ConvertReport:
    """Convert a corpus. The output is written whole or not at all.

    input_path (Path): A file or a folder: `.jsonl`, `.conll` `.iob` `.bio` `.tsv`, `.txt` (one text per
        line), all of them also as `.gz`, or `.spacy`.
    output_path (Path): A `.spacy`, `.jsonl` or `.conll` file, or a folder (no suffix) that takes `.spacy`
        shards.
    format (Optional[str]): Format of the input: "jsonl", "conll", "text", "spacy". None: the suffixes tell.
    lang (str): Language of the text.
    tokenizer (Optional[str]): Name of a registered tokenizer; None is the language's own.
    sentences (bool): Split text without annotations into sentences.
    source (str): Name of the weak source of "weak_ents" that are a plain list.
    limit (Optional[int]): Write at most so many Docs.
    misaligned (str): What to do with spans in JSONL text that do not end at token borders: "error", "drop", "expand"
        or "contract".
    shard_size (int): Docs per shard, if the output is a folder.
    overwrite (bool): Replace an output that exists: the file, or all shards in the folder.
    progress (bool): Show how far it has come.
    RETURNS (ConvertReport): What was converted.
    RAISES (WeaknerError): For malformed, empty or missing input, for unusable settings, and if the output would
        overwrite the input, or anything at all without `overwrite`.
    """
    for setting, value in (("limit", limit), ("shard_size", shard_size)):
        if value is not None:
            check_range(setting, value, 1, None)
    output_path = Path(output_path)
    as_folder = is_folder(output_path)
    if output_path.is_file() if as_folder else output_path.suffix not in OUTPUT_SUFFIXES:
        expected = f"a file that ends in {', '.join(OUTPUT_SUFFIXES)}, or a folder (a name without suffix)"
        raise WeaknerError(Errors.WK305.format(path=output_path, expected=expected))
    check_output([Path(input_path), *(file_ for file_, _ in input_files(input_path, format))], [output_path])
    check_there(output_path, overwrite)
    counts: Counter[str] = Counter()
    entities: Counter[str] = Counter()
    spans: Counter[str] = Counter()
    docs = read_corpus(
        input_path,
        blank_pipeline(lang, tokenizer),
        format=format,
        sentences=sentences,
        source=source,
        misaligned=misaligned,
        counts=counts,
    )
    docs = _counted(islice(docs, limit), Path(input_path), counts, entities, spans)
    docs = iter(show(docs, desc=output_path.name, unit="doc", enabled=progress))
    files = _write(docs, output_path, as_folder, shard_size)
    return ConvertReport(
        docs=counts["docs"],
        tokens=counts["tokens"],
        unknown=counts["unknown"],
        entities=dict(sorted(entities.items())),
        weak=dict(sorted(spans.items())),
        empty=counts["empty"],
        misaligned=counts["misaligned"],
        moved=counts["moved"],
        files=files,
        ignored=_named(counts, "key:"),
        suspects=[] if counts["annotated"] else list(_named(counts, "list:")),
    )


def _named(counts: "Counter[str]", prefix: str) -> Dict[str, int]:
    return {name[len(prefix) :]: n for name, n in sorted(counts.items()) if name.startswith(prefix)}


def _counted(
    docs: Iterable[Doc],
    path: Path,
    counts: "Counter[str]",
    entities: "Counter[str]",
    spans: "Counter[str]",
) -> Iterator[Doc]:
    for doc in docs:
        counts["docs"] += 1
        counts["tokens"] += len(doc)
        counts["unknown"] += not doc.has_annotation("ENT_IOB")
        entities.update(ent.label_ for ent in doc.ents)
        for source in weak.weak_sources(doc):
            spans[source] += len(doc.spans[weak.weak_group(source)])
        yield doc
    # Raised where the writers still hold a temporary file, so that no empty one is left.
    if not counts["docs"]:
        raise WeaknerError(Errors.WK101.format(path=path))


def _write(docs: Iterable[Doc], output_path: Path, as_folder: bool, shard_size: int) -> int:
    if as_folder:
        return write_shards(docs, output_path, shard_size)
    writers = {SUFFIX: write_docs, ".jsonl": write_jsonl, ".conll": write_conll}
    writers[output_path.suffix](output_path, docs)
    return 1
