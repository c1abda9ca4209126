"""Writes a corpus of what a trained model picks (CoFEE)."""

from collections import Counter
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple, Union

from spacy.tokens import Doc
from spacy.util import minibatch

from ..annotations import weak
from ..annotations.corpus import bare_copy
from ..annotations.entities import set_entities
from ..annotations.overlaps import without_overlaps
from ..errors import Errors, WeaknerError, check_choice, check_range
from ..ty import PAIRINGS, Entity
from .devices import on_device
from .hashes import hash_model
from .pipelines import load_pipeline, run_before
from .shards import run_shards

BATCH_SIZE = 256


class PickReport(NamedTuple):
    """What was picked.

    docs (int): Docs written.
    given (int): Entities that were there before.
    kept (int): Those of them that are there still.
    picked (Dict[str, int]): New entities, per label.
    skipped (int): Shards that were finished already.
    """

    docs: int
    given: int
    kept: int
    picked: Dict[str, int]
    skipped: int


def pick(
    input_path: Path,
    output_path: Path,
    model: Union[str, Path],
    *,
    threshold: float = 0.1,
    pairing: Optional[str] = None,
    union: bool = False,
    component: Optional[str] = None,
    gpu_id: int = -1,
    progress: bool = False,
) -> PickReport:
    """Write what a model takes for entities, as labels to learn from (Xue et al. 2020, Section 4.2). All tokens outside
    become "O", the Docs are marked as weak, and the labels that were there stay in the span group "matched", unless
    those of an earlier stage stand there already.

    (The paper goes on with the labels that its best model was trained on. These are what this model itself says: one
    round further.)

    input_path (Path): A corpus: a `.spacy` file or a folder of them.
    output_path (Path): A `.spacy` file, or a folder where every shard keeps its name.
    model (Union[str, Path]): A pipeline with `mrc_ner`: its folder, or the name of an installed package.
    threshold (float): The picking rate delta, a probability that starts and ends must be above. Of entities that
        overlap the more probable stays.
    pairing (Optional[str]): Which ends go with a start: "probable" or "nearest", see `MRCNer`. None: as the component
        is set.
    union (bool): Keep the labels that are there, and add what is picked beside them; else replace them.
    component (Optional[str]): Name of the component; None: the first `mrc_ner`.
    gpu_id (int): GPU for the predictions; -1 is the CPU.
    progress (bool): Show how far it has come.
    RETURNS (PickReport): What was picked.
    RAISES (WeaknerError): For missing input, gold, unusable settings, and a pipeline that cannot be loaded or has no
        `mrc_ner`.
    """
    check_range("threshold", threshold, 0.0, 1.0)
    if pairing is not None:
        check_choice("pairing", pairing, PAIRINGS)
    with on_device(gpu_id):
        nlp = load_pipeline(model)
        # The settings belong to a component that pairs starts with ends.
        pipes: List[Tuple[str, Any]] = [
            (name, pipe) for name, pipe in nlp.pipeline if component in (None, name) and hasattr(pipe, "pairing")
        ]
        if not pipes:
            named = f" of the name '{component}'" if component else ""
            names = ", ".join(nlp.component_names)
            raise WeaknerError(Errors.WK348.format(pipeline=model, named=named, names=names))
        name, pipe = pipes[0]
        pipe.threshold, pipe.pairing = threshold, pairing or pipe.pairing
        counts: Counter[str] = Counter()

        def transform(docs: Iterable[Doc]) -> Iterator[Doc]:
            for batch in minibatch(docs, BATCH_SIZE):
                bare = run_before(nlp, name, [bare_copy(doc, nlp.vocab) for doc in batch])
                for doc, predicted in zip(batch, pipe.predict(bare), strict=True):
                    if len(doc) and not weak.is_weak(doc) and doc.has_annotation("ENT_IOB"):
                        raise WeaknerError(Errors.WK344.format(path=input_path, text=doc.text[:50]))
                    _write(doc, predicted.entities, union, counts)
                    yield doc

        how = {"threshold": threshold, "pairing": pipe.pairing, "union": union}
        settings = {"model": hash_model(model), "component": name, **how}
        report = run_shards(
            input_path,
            output_path,
            "pick",
            transform,
            settings,
            nlp.vocab,
            progress=progress,
            counts=counts,
        )
    totals = report.counts
    return PickReport(
        docs=report.docs_out,
        given=totals["given"],
        kept=totals["kept"],
        picked={key[len("label:") :]: n for key, n in sorted(totals.items()) if key.startswith("label:")},
        skipped=report.skipped,
    )


def _write(doc: Doc, picked: List[Entity], union: bool, counts: "Counter[str]") -> None:
    given = weak.doc_entities(doc)
    entities = sorted(picked)
    if union:
        both = [*given, *picked]
        # What is there comes first.
        ranks = [1.0] * len(given) + [0.0] * len(picked)
        entities = [both[i] for i in without_overlaps([(start, end) for start, end, _ in both], ranks, len(doc))]
    if weak.MATCHED_GROUP not in doc.spans:
        weak.set_group(doc, weak.MATCHED_GROUP, given)
    set_entities(doc, entities, [True] * len(doc))
    weak.set_weak(doc)
    # What earlier stages said of these labels.
    weak.set_tags(doc, None)
    weak.set_soft_labels(doc, None)
    weak.set_confidence(doc, None, None)
    new = {*entities} - {*given}
    counts["given"] += len(given)
    counts["kept"] += len({*entities} & {*given})
    counts.update(f"label:{label}" for _, _, label in new)
