"""Makes suspect labels missing: those that a model which has not seen them confidently takes for wrong."""

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, DefaultDict, Dict, Iterable, Iterator, List, Optional, Union

import numpy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import minibatch
from spacy.vocab import Vocab

from ..corpus import weak
from ..corpus.docbin import corpus_files, read_docs
from ..errors import Errors, WeaknerError, check_range
from ..files import check_output
from ..runtime.devices import on_device
from ..runtime.hashes import hash_file, hash_text
from ..runtime.lock import holding
from ..runtime.shards import run_stage
from ..runtime.stage import Report, Stage, Statistics, memory_zones
from ..ty import Entity
from .cleaning.judges import Judges
from .cleaning.suspicion import (
    OUTSIDE,
    Columns,
    Finding,
    Rows,
    find_entities,
    find_outside,
    given_labels,
    own_probabilities,
    suspect_tokens,
)
from .cleaning.writing import make_missing, sources_of, write_list

BATCH_SIZE = 256


@dataclass
class Labelled(Statistics):
    """What has a label, or comes from a source.

    units (int): Entities; of "O", tokens.
    suspect (int): Those that were made missing.
    judged (int): Tokens that went into the threshold: those of Docs that are left as they are count too.
    confidence (float): Sum of the probabilities of the label there.
    """

    units: int = 0
    suspect: int = 0
    judged: int = 0
    confidence: float = 0.0

    @property
    def threshold(self) -> Optional[float]:
        """RETURNS (Optional[float]): Mean self-confidence; None if nothing was judged."""
        return self.confidence / self.judged if self.judged else None


def _by_name() -> "DefaultDict[str, Labelled]":
    return defaultdict(Labelled)


@dataclass
class CleanReport(Report):
    """What was judged, beside what `Report` tells.

    tokens (int): Tokens of the Docs written.
    missing (int): Those that were made missing.
    gold (int): Docs with gold, which was left as it is.
    labels (DefaultDict[str, Labelled]): Per label; "O" for tokens outside of entities.
    sources (DefaultDict[str, Labelled]): Entities per source that proposed them.
    """

    tokens: int = 0
    missing: int = 0
    gold: int = 0
    labels: "DefaultDict[str, Labelled]" = field(default_factory=_by_name)
    sources: "DefaultDict[str, Labelled]" = field(default_factory=_by_name)


@holding("output_path", "list_path")
def clean(
    input_path: Path,
    output_path: Path,
    judge: Union[str, Path],
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
    """Make labels missing that are probably wrong, by confident learning (Northcutt et al. 2021). A token is suspect
    where its label k has a lower probability than where k is given on average, while another label j reaches its own
    average:

        p(k) < factor t(k)   and   p(j) >= t(j)   with t(k) = mean of p(k) over all tokens that have the label k

    An entity is suspect if one of its tokens is, and becomes missing as a whole.

    The probabilities must come from models that have not seen the labels. What was suspect stays in the span group
    "suspect", what sources say in theirs. The corpus is read twice: for the thresholds, and to clean it.

    input_path (Path): A corpus, weak or gold: a `.spacy` file or a folder of them.
    output_path (Path): A `.spacy` file, or a folder where every shard keeps its name.
    judge (Union[str, Path]): The folder of `train --folds` on this very corpus: every Doc is judged by the pipeline
        that was trained without it. Or a pipeline that was trained on other data.
    component (Optional[str]): Name of the component that gives distributions over tags; None: the last that does.
    factor (float): What the threshold of a token's own label is multiplied by: the lower, the fewer are suspect.
    entities (bool): Judge the tokens of entities.
    outside (bool): Judge tokens that are "O". An entity beside one that ought to have its label is then suspect, too,
        since it ends in the wrong place. Of a term list, which misses more than it gets wrong, judge these alone.
    gold (bool): Clean Docs with gold, too.
    list_path (Optional[Path]): Write what was suspect to this JSONL file, to look at.
    gpu_id (int): GPU for the predictions; -1 is the CPU.
    progress (bool): Show how far it has come.
    RETURNS (CleanReport): What was done.
    RAISES (WeaknerError): For missing input, unusable settings, folds of another corpus, and a pipeline that gives no
        distributions.
    """
    check_range("factor", factor, 0.0, None)
    if not (outside or entities):
        raise WeaknerError(Errors.WK726)
    input_path, output_path = Path(input_path), Path(output_path)
    there = [Path(judge)] if Path(judge).exists() else []
    check_output(there, [output_path])
    if list_path is not None:
        check_output([input_path, *there, output_path], [Path(list_path)])
        if Path(list_path).is_dir():
            raise WeaknerError(Errors.WK109.format(path=list_path))
    with on_device(gpu_id):
        judges = Judges(str(judge), component)
        settings = {
            "judges": judges.hashes(),
            # The thresholds are those of the whole corpus.
            "corpus": hash_text("\n".join(map(hash_file, corpus_files(input_path)))),
            "component": component,
            "factor": factor,
            "entities": entities,
            "outside": outside,
            "gold": gold,
        }
        report = run_stage(Clean(judges, settings, input_path), input_path, output_path, progress=progress)
    if list_path is not None:
        write_list(Path(list_path), output_path)
    return report


class Clean(Stage[CleanReport]):
    """The stage.

    judges (Judges): Who says what is probable.
    settings (Dict[str, Any]): See `clean`.
    path (Path): The corpus that the thresholds are those of.
    """

    name = "clean"
    report = CleanReport

    def __init__(self, judges: Judges, settings: Dict[str, Any], path: Path) -> None:
        super().__init__(settings, Vocab())
        self.judges = judges
        self.path = path
        self.thresholds: Rows = numpy.zeros(0)

    def open(self) -> None:
        """Load the judges and learn the thresholds.

        RAISES (WeaknerError): For a Doc that nobody can judge.
        """
        self.judges.open()
        found = _by_name()
        for file_ in corpus_files(self.path):
            vocab = Vocab()
            with memory_zones([vocab, *self.judges.zones()]):
                for batch in minibatch(read_docs(file_, vocab), BATCH_SIZE):
                    for doc, rows in zip(batch, self.judges(batch), strict=True):
                        self._count(found, rows, self._given(doc))
        means = [found[label].threshold for label in self.judges.labels]
        self.thresholds = numpy.array([numpy.nan if mean is None else mean for mean in means])

    def zones(self) -> List[Union[Vocab, Language]]:
        return [self.vocab, *self.judges.zones()]

    def __call__(self, docs: Iterable[Doc]) -> Iterator[Doc]:
        for batch in minibatch(docs, BATCH_SIZE):
            for doc, rows in zip(batch, self.judges(batch), strict=True):
                self._clean(doc, rows)
                yield doc

    def _given(self, doc: Doc) -> Columns:
        return given_labels(len(doc), weak.doc_entities(doc), _outside(doc), self.judges.labels)

    def _count(self, labels: Dict[str, Labelled], rows: Rows, given: Columns) -> None:
        own = own_probabilities(rows, given)
        for column, label in enumerate(self.judges.labels):
            judged = own[(given == column) & ~numpy.isnan(own)]
            labels[label].judged += len(judged)
            labels[label].confidence += float(judged.sum())

    def _clean(self, doc: Doc, rows: Rows) -> None:
        given = self._given(doc)
        self._count(self.stats.labels, rows, given)
        self.stats.tokens += len(doc)
        if not weak.is_weak(doc) and not self.settings["gold"]:
            self.stats.gold += len(doc) > 0 and doc.has_annotation("ENT_IOB")
            return
        entities, outside, labels = weak.doc_entities(doc), _outside(doc), self.judges.labels
        suspicion = suspect_tokens(rows, given, self.thresholds, self.settings["factor"])
        found = find_entities(suspicion, entities, labels) if self.settings["entities"] else []
        if self.settings["outside"]:
            there = {each[:3] for each in found}
            found += [each for each in find_outside(suspicion, outside, entities, labels) if each[:3] not in there]
        found.sort()
        self._count_units(doc, entities, outside, found)
        make_missing(doc, found)

    def _count_units(self, doc: Doc, entities: List[Entity], outside: List[int], found: List[Finding]) -> None:
        stats, suspect = self.stats, {each[:3] for each in found}
        for entity in entities:
            sources = [stats.sources[name] for name in sources_of(doc, entity)]
            for counts in (stats.labels[entity[2]], *sources):
                counts.units += 1
                counts.suspect += entity in suspect
        stats.labels[OUTSIDE].units += len(outside)
        stats.labels[OUTSIDE].suspect += sum(each.end - each.start for each in found if each.label == OUTSIDE)
        stats.missing += sum(each.end - each.start for each in found)


def _outside(doc: Doc) -> List[int]:
    return [token.i for token in doc if token.ent_iob != 0 and not token.ent_type]
