"""Converts corpora: from any format of `spacy_weakner.formats` to any of them."""

from collections import Counter
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Iterable, Iterator, Optional, Sequence, Tuple

from spacy.tokens import Doc

from ..annotations import weak
from ..annotations.conll import COLUMNS
from ..annotations.rows import DEFAULT_SOURCE, RowCounts
from ..errors import Errors, WeaknerError, check_range
from ..files import check_output
from ..formats.names import FORMATS, OUTPUTS
from ..formats.offsets import AUTO
from ..formats.reading import input_files, read_corpus
from ..formats.writing import output_format, write_corpus
from ..pipelines import blank_pipeline
from ..progress import Progress
from .runtime.lock import holding
from .runtime.output import SHARD_SIZE, check_there, is_folder, write_shards

_SHARDS = "spacy"


@dataclass
class ConvertReport(RowCounts):
    """What was converted, beside what `RowCounts` tells.

    docs (int): Docs written.
    tokens (int): Their tokens.
    unknown (int): Docs without any entity annotation.
    entities (Counter[str]): Entities of `doc.ents` per label.
    weak (Counter[str]): Weak spans per source.
    lost (Counter[str]): What the format of the output cannot say, in words.
    files (int): Files written.
    """

    docs: int = 0
    tokens: int = 0
    unknown: int = 0
    entities: "Counter[str]" = field(default_factory=Counter)
    weak: "Counter[str]" = field(default_factory=Counter)
    lost: "Counter[str]" = field(default_factory=Counter)
    files: int = 1


@holding("output_path")
def convert(
    input_path: Path,
    output_path: Path,
    *,
    format: Optional[str] = None,
    to: Optional[str] = None,
    lang: str = "en",
    tokenizer: Optional[str] = None,
    sentences: bool = True,
    source: str = DEFAULT_SOURCE,
    limit: Optional[int] = None,
    misaligned: str = "error",
    offsets: str = AUTO,
    labels: Optional[Sequence[str]] = None,
    columns: Tuple[int, int] = COLUMNS,
    shard_size: int = SHARD_SIZE,
    overwrite: bool = False,
    progress: bool = False,
) -> ConvertReport:
    """Convert a corpus. The output is written whole or not at all.

    input_path (Path): A file or a folder, in any of the formats in docs/formats.md.
    output_path (Path): A file, or a folder (no suffix) that takes `.spacy` shards.
    format (Optional[str]): Format of the input. None: the files tell.
    to (Optional[str]): Format of the output. None: its suffix tells.
    lang (str): Language of the text.
    tokenizer (Optional[str]): Name of a registered tokenizer; None is the language's own.
    sentences (bool): Split text without annotations into sentences.
    source (str): Name of the weak source of "weak_ents" that are a plain list.
    limit (Optional[int]): Write at most so many Docs.
    misaligned (str): What to do with spans of text that do not end at token borders: "error", "drop", "expand" or
        "contract".
    offsets, labels, columns: See `formats.reading.read_corpus`.
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
    if as_folder and (output_path.is_file() or to not in (None, _SHARDS)):
        endings = dict.fromkeys(ending for name in OUTPUTS if to in (None, name) for ending in FORMATS[name].outputs)
        folder = "" if to not in (None, _SHARDS) else ", or a folder (a name without suffix)"
        expected = f"a file that ends in {', '.join(endings)}{folder}"
        raise WeaknerError(Errors.WK305.format(path=output_path, expected=expected))
    if not as_folder:
        output_format(output_path, to)
    check_output([Path(input_path), *(file_ for file_, _ in input_files(input_path, format))], [output_path])
    check_there(output_path, overwrite)
    report = ConvertReport()
    docs = read_corpus(
        input_path,
        blank_pipeline(lang, tokenizer),
        format=format,
        sentences=sentences,
        source=source,
        misaligned=misaligned,
        offsets=offsets,
        labels=labels or (),
        columns=columns,
        counts=report,
    )
    docs = _counted(islice(docs, limit), Path(input_path), report)
    docs = iter(Progress(docs, desc=output_path.name, unit="doc", enabled=progress))
    if as_folder:
        report.files = write_shards(docs, output_path, shard_size)
    else:
        report.lost = write_corpus(output_path, docs, to).lost
    for name in ("entities", "weak", "ignored", "notes"):
        setattr(report, name, Counter(dict(sorted(getattr(report, name).items()))))
    return report


def _counted(docs: Iterable[Doc], path: Path, report: ConvertReport) -> Iterator[Doc]:
    for doc in docs:
        report.docs += 1
        report.tokens += len(doc)
        report.unknown += not doc.has_annotation("ENT_IOB")
        report.entities.update(ent.label_ for ent in doc.ents)
        report.weak.update({source: len(doc.spans[weak.weak_group(source)]) for source in weak.weak_sources(doc)})
        yield doc
    # Raised where the writers still hold a temporary file, so that no empty one is left.
    if not report.docs:
        raise WeaknerError(Errors.WK101.format(path=path))
