"""Makes suspect labels missing: labels that a model which was not trained on them confidently contradicts."""

import json
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, DefaultDict, Dict, Iterable, Iterator, List, Optional, Tuple, Union

import numpy
from pydantic import Field
from spacy.tokens import Doc, Span
from spacy.util import minibatch
from spacy.vocab import Vocab

from ..corpus import weak
from ..corpus.docbin import corpus_files, read_docs, stream_docs
from ..errors import Errors, WeaknerError, check_range
from ..files import atomic_path, check_output
from ..runtime.devices import on_device
from ..runtime.hashes import hash_file, hash_text
from ..runtime.lock import holding
from ..runtime.output import finished, write_receipt
from ..runtime.shards import Shards
from ..runtime.stage import Report, Stage, Statistics, memory_zones
from ..scratch import scratch_folder
from ..ty import Entity, Floats, Ints
from .confident_learning import (
    OUTSIDE,
    UNKNOWN,
    SuspectTokens,
    find_outside,
    find_suspects,
    given_labels,
    self_confidence,
    suspect_tokens,
)
from .given import check_flat
from .held_out import HeldOutModels, doc_key

BATCH_SIZE = 256


@dataclass
class SuspectCounts(Statistics):
    """Counts of a label or a source."""

    units: int = 0  # entities; for "O", tokens
    suspect: int = 0  # those that were made missing
    tokens: int = 0  # tokens that the threshold is computed from, including tokens of Docs that are not changed
    confidence: float = 0.0  # sum of the probabilities of the label at these tokens

    @property
    def threshold(self) -> Optional[float]:
        """Mean self-confidence; None without tokens."""
        return self.confidence / self.tokens if self.tokens else None


_ByName = DefaultDict[str, Annotated[SuspectCounts, Field(default_factory=SuspectCounts)]]


def _by_name() -> _ByName:
    return defaultdict(SuspectCounts)


@dataclass
class CleanReport(Report):
    """Counts of `clean`, beside those of `Report`."""

    tokens: int = 0  # tokens of the Docs written
    missing: int = 0  # those that were made missing
    gold: int = 0  # Docs with gold, which was not changed
    # Per label; "O" for tokens outside of entities.
    labels: _ByName = field(default_factory=_by_name)
    sources: _ByName = field(default_factory=_by_name)  # entities per source that proposed them


_LIST = {"stage": "list of suspect labels"}


@holding("output_path", "list_path")
def clean(
    input_path: Path,
    output_path: Path,
    model: Union[str, Path],
    *,
    component: Optional[str] = None,
    factor: float = 1.0,
    entities: bool = True,
    outside: bool = False,
    gold: bool = False,
    list_path: Optional[Path] = None,
    gpu_id: int = -1,
    progress: bool = False,
) -> CleanReport:
    """Make labels missing that are probably wrong, by confident learning (Northcutt et al. 2021). A token is suspect if
    its label k has a lower probability than k has on average where it is given, while another label j reaches its own
    average:

        p(k) < factor t(k)   and   p(j) >= t(j)   with t(k) = mean of p(k) over all tokens that have the label k

    An entity is suspect if one of its tokens is, and becomes missing as a whole.

    The probabilities must come from models that were not trained on the labels. Suspect labels are kept in the span
    group "suspect", and labels of sources in their own groups. The corpus is read twice and predicted once; its
    probabilities are stored in a temporary file beside the output.

    input_path (Path): A corpus, weak or gold: a `.spacy` file or a folder of them.
    output_path (Path): A `.spacy` file, or a folder in which each shard keeps its name.
    model (Union[str, Path]): The folder of `train --folds` on this very corpus: each Doc is predicted by the pipeline
        that was trained without it. Or a pipeline that was trained on other data.
    component (Optional[str]): Name of the component that gives distributions over tags; None: the last one that does.
    factor (float): Factor of the threshold of a token's own label: the lower, the fewer tokens are suspect.
    entities (bool): Clean the tokens of entities.
    outside (bool): Clean tokens that are "O". An entity beside a token that should have its label is then also suspect,
        since its border is wrong. For a term list, which misses more than it gets wrong, clean only these.
    gold (bool): Also clean Docs with gold.
    list_path (Optional[Path]): Write the suspect labels to this JSONL file.
    gpu_id (int): GPU for the predictions; -1 is the CPU.
    progress (bool): Show progress.
    RETURNS (CleanReport): What was done.
    RAISES (WeaknerError): For missing input, invalid settings, folds of another corpus, and a pipeline that gives no
        distributions.
    """
    check_range("factor", factor, 0.0, None)
    if not (outside or entities):
        raise WeaknerError(Errors.WK005.format(setting="entities", value=False, expected="true, or outside = true"))
    input_path, output_path = Path(input_path), Path(output_path)
    there = [Path(model)] if Path(model).exists() else []
    check_output(there, [output_path])
    if list_path is not None:
        check_output([input_path, *there, output_path], [Path(list_path)])
        if Path(list_path).is_dir():
            raise WeaknerError(Errors.WK109.format(path=list_path))
        finished(Path(list_path), _LIST, None)
    with on_device(gpu_id), scratch_folder(output_path) as folder:
        models = HeldOutModels(str(model), component)
        settings = {
            "models": models.hashes(),
            # The thresholds depend on the whole corpus.
            "corpus": hash_text("\n".join(map(hash_file, corpus_files(input_path)))),
            "component": component,
            "factor": factor,
            "entities": entities,
            "outside": outside,
            "gold": gold,
        }
        stage = Clean(models, settings, input_path, folder)
        report = Shards(stage.name, input_path, output_path).run(stage, progress=progress)
    if list_path is not None:
        write_list(Path(list_path), output_path)
        write_receipt(Path(list_path), _LIST)
    return report


class Clean(Stage[CleanReport]):
    """The stage. The thresholds are computed on the corpus at `path`, whose probabilities are kept in a folder."""

    name = "clean"
    report = CleanReport

    def __init__(self, models: HeldOutModels, settings: Dict[str, Any], path: Path, folder: Path) -> None:
        super().__init__(settings, Vocab())
        self.models = models
        self.path = path
        self.folder = folder
        self.thresholds: Floats = numpy.zeros(0)
        self.predictions: Optional[_Predictions] = None

    def open(self) -> None:
        """Load the models, predict the corpus and compute the thresholds."""
        self.models.open()
        self.predictions = _Predictions(self.folder / "predictions", len(self.models.labels))
        counts = _by_name()
        for file_ in corpus_files(self.path):
            vocab = Vocab()
            with memory_zones([vocab, *self.models.zones()]):
                for batch in minibatch(read_docs(file_, vocab), BATCH_SIZE):
                    for doc, rows in zip(batch, self.models(batch), strict=True):
                        self.predictions.add(doc, rows)
                        self._count(counts, rows, self._given(doc))
        means = [counts[label].threshold for label in self.models.labels]
        self.thresholds = numpy.array([numpy.nan if mean is None else mean for mean in means])

    def close(self) -> None:
        if self.predictions is not None:
            self.predictions.close()

    def __call__(self, docs: Iterable[Doc]) -> Iterator[Doc]:
        assert self.predictions is not None
        for doc in docs:
            self._clean(doc, self.predictions.get(doc))
            yield doc

    def _given(self, doc: Doc) -> Ints:
        given = given_labels(len(doc), weak.doc_entities(doc), _outside(doc), self.models.labels)
        # White space is "O" to all models, even inside an entity. (`self.vocab` has no flags such as IS_SPACE.)
        given[[token.i for token in doc if token.text.isspace()]] = UNKNOWN
        return given

    def _count(self, labels: Dict[str, SuspectCounts], rows: Floats, given: Ints) -> None:
        confidence = self_confidence(rows, given)
        for column, label in enumerate(self.models.labels):
            of_label = confidence[(given == column) & ~numpy.isnan(confidence)]
            labels[label].tokens += len(of_label)
            labels[label].confidence += float(of_label.sum())

    def _clean(self, doc: Doc, rows: Floats) -> None:
        check_flat(doc, self.path)
        given = self._given(doc)
        self._count(self.stats.labels, rows, given)
        self.stats.tokens += len(doc)
        if not weak.is_weak(doc) and not self.settings["gold"]:
            self.stats.gold += len(doc) > 0 and doc.has_annotation("ENT_IOB")
            return
        entities, outside, labels = weak.doc_entities(doc), _outside(doc), self.models.labels
        suspicion = suspect_tokens(rows, given, self.thresholds, self.settings["factor"])
        found = find_suspects(suspicion, entities, labels) if self.settings["entities"] else []
        if self.settings["outside"]:
            there = {finding[:3] for finding in found}
            more = find_outside(suspicion, outside, entities, labels)
            found += [finding for finding in more if finding[:3] not in there]
        found.sort()
        self._count_units(doc, entities, outside, found)
        make_missing(doc, found)

    def _count_units(self, doc: Doc, entities: List[Entity], outside: List[int], found: List[SuspectTokens]) -> None:
        stats, suspect = self.stats, {finding[:3] for finding in found}
        for entity in entities:
            sources = [stats.sources[name] for name in sources_of(doc, entity)]
            for counts in (stats.labels[entity[2]], *sources):
                counts.units += 1
                counts.suspect += entity in suspect
        stats.labels[OUTSIDE].units += len(outside)
        stats.labels[OUTSIDE].suspect += sum(f.end - f.start for f in found if f.label == OUTSIDE)
        stats.missing += sum(f.end - f.start for f in found)


def _outside(doc: Doc) -> List[int]:
    return [token.i for token in doc if token.ent_iob != 0 and not token.ent_type]


class _Predictions:
    """Probabilities of Docs, in a file. Equal Docs share them."""

    def __init__(self, path: Path, n_labels: int) -> None:
        self._file = path.open("w+b")
        self._n_labels = n_labels
        self._places: Dict[bytes, Tuple[int, int]] = {}

    def add(self, doc: Doc, rows: Floats) -> None:
        self._places[bytes.fromhex(doc_key(doc))] = (self._file.seek(0, 2), len(rows))
        self._file.write(rows.astype("float64").tobytes())

    def get(self, doc: Doc) -> Floats:
        start, n = self._places[bytes.fromhex(doc_key(doc))]
        self._file.seek(start)
        return numpy.frombuffer(self._file.read(8 * n * self._n_labels)).reshape(n, self._n_labels)

    def close(self) -> None:
        self._file.close()


def make_missing(doc: Doc, found: List[SuspectTokens]) -> None:
    """Make suspect tokens missing in entities, tags and soft labels, and keep their labels in the span group
    "suspect". Suspect entities are removed from "matched", so that `complete` does not restore them."""
    weak.remove_group(doc, weak.SUSPECT_GROUP)
    if not found:
        return
    spans = [Span(doc, finding.start, finding.end, label=finding.label) for finding in found]
    group = weak.set_spans(doc, weak.SUSPECT_GROUP, spans, {"scores": [finding.probability for finding in found]})
    group.attrs["instead"] = [finding.instead for finding in found]
    group.attrs["instead_scores"] = [finding.instead_probability for finding in found]
    doc.set_ents([], missing=spans, default="unmodified")
    if weak.MATCHED_GROUP in doc.spans:
        kept = {*weak.group_entities(doc, weak.MATCHED_GROUP)} - {finding[:3] for finding in found}
        weak.keep_entities(doc, weak.MATCHED_GROUP, kept)
    tokens = [i for finding in found for i in range(finding.start, finding.end)]
    tags, soft = weak.get_tags(doc), weak.get_soft_labels(doc)
    if tags is not None:
        weak.set_tags(doc, [None if i in {*tokens} else tag for i, tag in enumerate(tags)])
    if soft is not None:
        rows = soft.probabilities.copy()
        rows[tokens] = 0.0
        weak.set_soft_labels(doc, soft._replace(probabilities=rows))


def sources_of(doc: Doc, entity: Entity) -> List[str]:
    """Return the names of the weak sources that propose an entity, sorted."""
    return [name for name in weak.weak_sources(doc) if entity in weak.group_entities(doc, weak.weak_group(name))]


def write_list(path: Path, corpus: Path) -> None:
    """Write the suspect labels of a cleaned corpus as JSONL, one per row."""
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file_:
        for doc in stream_docs(corpus):
            for row in _rows(doc):
                file_.write(_printable(json.dumps(row, ensure_ascii=False)) + "\n")


def _rows(doc: Doc) -> Iterator[Dict[str, Any]]:
    if weak.SUSPECT_GROUP not in doc.spans:
        return
    group = doc.spans[weak.SUSPECT_GROUP]
    columns = (group.attrs[name] for name in ("scores", "instead", "instead_scores"))
    for span, probability, instead, instead_probability in zip(group, *columns, strict=True):
        yield {
            "id": weak.get_id(doc),
            "text": doc.text,
            "start": span.start_char,
            "end": span.end_char,
            "entity": span.text,
            "label": span.label_,
            "sources": sources_of(doc, (span.start, span.end, span.label_)),
            "probability": round(probability, 4),
            "instead": instead,
            "instead_probability": round(instead_probability, 4),
        }


def _printable(line: str) -> str:
    """Escape characters that would move a cursor, change the writing direction, or end a line."""
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in line)
