"""Conversion of corpora between the formats of `corpus.formats`."""

from collections import Counter
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

from spacy.tokens import Doc

from ..corpus import weak
from ..corpus.conll import COLUMNS
from ..corpus.counts import RowCounts
from ..corpus.docbin import SUFFIX
from ..corpus.formats import brat
from ..corpus.formats.names import FORMATS, OUTPUTS
from ..corpus.formats.offsets import AUTO, UNITS
from ..corpus.formats.reading import Reading, input_files, read_corpus
from ..corpus.formats.tools import READERS
from ..corpus.formats.writing import output_format, write_corpus
from ..corpus.jsonl import DEFAULT_SOURCE
from ..corpus.language import CorpusLanguage, corpus_language, record_language
from ..errors import Errors, WeaknerError, check_choice, check_range
from ..pipelines import NO_SENTENCES
from ..progress import Progress
from ..runtime.hashes import hash_model
from ..runtime.output import SHARD_SIZE, SHARDS, input_keys, is_folder, making, write_shards
from ..runtime.stage import Statistics

_SHARDS = "spacy"


@dataclass
class ConvertReport(RowCounts, Statistics):
    """What was converted, beside the counts of `RowCounts`."""

    docs: int = 0  # Docs written
    files: int = 0  # files written
    tokens: int = 0  # tokens of the Docs written
    unknown: int = 0  # Docs without any entity annotation
    entities: "Counter[str]" = field(default_factory=Counter)  # entities of `doc.ents` per label
    weak: "Counter[str]" = field(default_factory=Counter)  # weak spans per source
    suggested: int = 0  # spans that annotators are shown
    lost: "Counter[str]" = field(default_factory=Counter)  # what the output format cannot hold, by description

    def counting(self, docs: Iterable[Doc], path: Path) -> Iterator[Doc]:
        """Count Docs while passing them on; raise an error if there are none."""
        for doc in docs:
            self.docs += 1
            self.tokens += len(doc)
            self.unknown += not doc.has_annotation("ENT_IOB")
            self.entities.update(ent.label_ for ent in doc.ents)
            self.suggested += len(doc.spans.get(weak.SUGGESTED_GROUP, ()))
            self.weak.update({source: len(doc.spans[weak.weak_group(source)]) for source in weak.weak_sources(doc)})
            yield doc
        # Raised while the writers still hold a temporary file, so that no empty output is left.
        if not self.docs:
            raise WeaknerError(Errors.WK101.format(path=path))
        self.add(ConvertReport())  # sorts all counts by name


def _input_keys(path: Path) -> List[Any]:
    # brat's annotations stand beside the text.
    text = Path(path).with_suffix(brat.TEXT_SUFFIX)
    return input_keys([path, text] if Path(path).suffix == brat.SUFFIX and text.exists() else path)


@making("output_path", "input_path", replaces=SHARDS, sentences=hash_model, input_path=_input_keys)
def convert(
    input_path: Path,
    output_path: Path,
    *,
    format: Optional[str] = None,
    to: Optional[str] = None,
    lang: Optional[str] = None,
    tokenizer: Optional[str] = None,
    sentences: Optional[str] = None,
    abbreviations: Optional[str] = None,
    source: str = DEFAULT_SOURCE,
    limit: Optional[int] = None,
    misaligned: str = "error",
    offsets: str = AUTO,
    labels: Optional[Sequence[str]] = None,
    columns: Tuple[int, int] = COLUMNS,
    spans_key: Optional[str] = None,
    documents: bool = False,
    label_names: Optional[Mapping[str, str]] = None,
    names: Sequence[str] = (),
    shard_size: int = SHARD_SIZE,
    overwrite: bool = False,
    progress: bool = False,
) -> ConvertReport:
    """Convert a corpus. The output is written whole or not at all.

    input_path (Path): A file or a folder, in any of the formats in docs/formats.md.
    output_path (Path): A file, or a folder (a name without suffix) for `.spacy` shards. A single `.spacy` file is built
        in memory, about 7 KB per sentence: for large corpora, give a folder.
    format (Optional[str]): Format of the input. None: detected from the files.
    to (Optional[str]): Format of the output. None: given by its suffix.
    lang (Optional[str]): Language code, "xx" for several; None: as recorded with the input, or else "en".
    tokenizer (Optional[str]): Registered tokenizer; None: as recorded with the input, or else that of the language.
    sentences (Optional[str]): How text without annotations is split into sentences: "rule" (not after abbreviations),
        "sentencizer" (of spaCy), "lines", "none", or a pipeline with a component `senter`. None: as recorded with the
        input, or else "rule".
    abbreviations (Optional[str]): Abbreviations besides those of the language, separated by commas, such as "wg., z.
        B."; None: as recorded with the input.
    source (str): Name of the weak source for "weak_ents" given as a plain list.
    limit (Optional[int]): Write at most this number of Docs.
    misaligned (str): What to do with spans of text that do not end at token boundaries: "error", "drop", "expand" or
        "contract".
    offsets, labels, columns, spans_key, documents: See `corpus.formats.reading.Reading`.
    label_names (Optional[Mapping[str, str]]): New names of labels of entities and span groups; others are kept.
    names (Sequence[str]): Names such as "Yahoo! Inc.", inside which text is not split.
    shard_size (int): Docs per shard, if the output is a folder.
    overwrite (bool): Replace an output that this command has not made, or that was edited.
    progress (bool): Show progress.
    RETURNS (ConvertReport): What was converted.
    RAISES (WeaknerError): For malformed, empty or missing input, for invalid settings, and if the output would
        overwrite the input, or an existing output without `overwrite`.
    """
    check_range("limit", limit, 1, None, optional=True)
    check_range("shard_size", shard_size, 1, None, optional=True)
    output_path = Path(output_path)
    as_folder = is_folder(output_path)
    if as_folder and (output_path.is_file() or to not in (None, _SHARDS)):
        endings = dict.fromkeys(ending for name in OUTPUTS if to in (None, name) for ending in FORMATS[name].outputs)
        folder = "" if to not in (None, _SHARDS) else ", or a folder (a name without suffix)"
        expected = f"a file that ends in {', '.join(endings)}{folder}"
        raise WeaknerError(Errors.WK305.format(path=output_path, expected=expected))
    if not as_folder:
        output_format(output_path, to)
    files = input_files(input_path, format)
    check_choice("offsets", offsets, (AUTO, *UNITS))
    if offsets != AUTO and READERS.keys().isdisjoint(format_ for _, format_ in files):
        where = "for files of other tools: in the formats of spaCy and of this package, offsets count code points"
        raise WeaknerError(Errors.WK331.format(setting=f"offsets = {offsets}", where=where, instead=""))
    language = corpus_language(Path(input_path), lang, tokenizer, sentences, abbreviations)
    splits = language.sentences != NO_SENTENCES
    reading = Reading(splits, source, misaligned, offsets, tuple(labels or ()), columns, spans_key, documents)
    report = ConvertReport()
    docs = converted_docs(
        input_path, language, reading, report, label_names=label_names or {}, names=names, limit=limit, files=files
    )
    docs = iter(Progress(docs, desc=f"convert {output_path.name}", unit="doc", enabled=progress))
    if as_folder:
        report.files = write_shards(docs, output_path, shard_size)
    else:
        report.files = 1
        report.lost = Counter(dict(sorted(write_corpus(output_path, docs, to).lost.items())))
    if as_folder or output_path.suffix == SUFFIX:
        record_language(output_path, language)
    return report


def converted_docs(
    path: Path,
    language: CorpusLanguage,
    reading: Reading,
    report: ConvertReport,
    *,
    label_names: Mapping[str, str] = MappingProxyType({}),
    names: Sequence[str] = (),
    limit: Optional[int] = None,
    files: Optional[Sequence[Tuple[Path, str]]] = None,
) -> Iterator[Doc]:
    """Stream the Docs of a corpus as `convert` writes them.

    path (Path): The corpus.
    language (CorpusLanguage): Its language, and how its texts are split.
    reading (Reading): How it is read.
    report (ConvertReport): Where the Docs are counted.
    label_names, names, limit: See `convert`.
    files (Optional[Sequence[Tuple[Path, str]]]): The files of the corpus with their formats, if they are known.
    YIELDS (Doc): The Docs.
    RAISES (WeaknerError): For malformed, empty or missing input.
    """
    nlp = language.blank()
    language.add_sentences(nlp, names)
    docs = read_corpus(path, nlp, reading, counts=report, files=files)
    if label_names:
        docs = _renaming(docs, label_names, report)
    return report.counting(islice(docs, limit), Path(path))


def _renaming(docs: Iterable[Doc], names: Mapping[str, str], report: ConvertReport) -> Iterator[Doc]:
    renamed = set()
    for doc in docs:
        renamed |= weak.rename_labels(doc, names)
        yield doc
    report.note(f"labels to rename that no span has ({', '.join(names.keys() - renamed)})", len(names.keys() - renamed))
