"""Students: linear CRFs that learn what a combination on a Transformer finds in the text, and predict many times as
fast."""

from itertools import chain, islice
from pathlib import Path
from typing import Any, Iterator, List, Mapping, Optional, Sequence

from spacy.tokens import Doc
from spacy.util import minibatch
from spacy.vocab import Vocab

from ..corpus.docbin import copy_with_groups, read_docs, write_docs
from ..corpus.entities import set_entities
from ..corpus.weak import PREDICTED_PREFIX, copy_group, doc_entities, set_weak, weak_group, weak_sources
from ..pipelines import TOKENIZER
from ..progress import Progress
from ..runs.groups import FoldFiles
from ..runtime.devices import on_device
from ..training.augmenting import CaseCopies
from .assembling import PROPOSES, assemble, predict_docs
from .combine import Combination, Head
from .context import TEXT_COPIES, TrainingContext, pipeline_of
from .rules import LINEAR, LINEAR_TEXTS, STUDENT

_BATCH = 256


def train_student(
    context: TrainingContext, teacher: Combination, text: Path, gold: Path, folds: Sequence[FoldFiles]
) -> Head:
    """Train a student on all gold and the text, and one without each fold. Their teachers have not seen the fold
    either.

    context (TrainingContext): The settings of the trainings.
    teacher (Combination): What labels the text.
    text (Path): The text, which may have matches of the lists.
    gold (Path): The gold.
    folds (Sequence[FoldFiles]): The folds of the teacher.
    RETURNS (Head): The student.
    """
    corpora = {context.models / STUDENT: gold}
    for n, fold in enumerate(folds, start=1):
        corpora[context.models / "folds" / f"{STUDENT}-{n}"] = fold.rest
    labeled: List[List[Doc]] = [[] for _ in corpora]
    with on_device(context.gpu_id):
        for batch in _label(context, teacher, text):
            for docs, found in zip(labeled, batch, strict=True):
                docs += found
    trainings = []
    for (output, rest), docs in zip(corpora.items(), labeled, strict=True):
        corpus = output.with_suffix(".spacy")
        gold_docs = [copy for doc in read_docs(rest, Vocab()) for copy in (doc, *context.cases.copies(doc))]
        write_docs(corpus, [*gold_docs, *docs])
        trainings.append(context.of_student(corpus, output))
    context.train(trainings, desc="fit: train students")
    whole, *parts = map(pipeline_of, trainings)
    return Head(STUDENT, STUDENT, LINEAR, whole, parts, reads_lists=bool(context.lists))


def _label(context: TrainingContext, teacher: Combination, text: Path) -> Iterator[List[List[Doc]]]:
    """Yield batches of the text, with copies in other case, as labeled by the teacher of all gold, and by the teacher
    without each fold. Their heads share one encoder, which reads the text once."""
    teachers: List[Optional[int]] = [None, *range(len(teacher.folds))]
    combiners = [teacher.combiner(without) for without in teachers]
    paths = [[head.whole if n is None else head.folds[n] for head in teacher.heads] for n in teachers]
    # A head that used no gold is the same in all folds.
    names = {path: f"head_{i}" for i, path in enumerate(dict.fromkeys(chain.from_iterable(paths)))}
    # The matches of the lists are looked up in copies once, not by each student.
    shares = {case: TEXT_COPIES * share for case, share in context.cases.shares.items()}
    cases = CaseCopies(**shares, lists=context.cases.lists)
    nlp = assemble({}, {name: path for path, name in names.items()}, PROPOSES, TOKENIZER)
    docs = list(islice(read_docs(text, nlp.vocab), LINEAR_TEXTS))
    with Progress[Any](total=len(docs), desc="fit: label text", unit="sentence", enabled=context.progress) as bar:
        for batch in minibatch(docs, _BATCH):
            found = predict_docs(nlp, batch)
            texts = [[doc, *cases.copies(doc)] for doc in batch]
            yield [
                [_labeled(text, doc) for doc, its in zip(decided, texts, strict=True) for text in its]
                for decided in (
                    teacher.decide(_with_candidates(found, teacher, its, names), combiner)
                    for its, combiner in zip(paths, combiners, strict=True)
                )
            ]
            bar.update(len(batch))


def _with_candidates(
    docs: Sequence[Doc], teacher: Combination, paths: Sequence[Path], names: Mapping[Path, str]
) -> List[Doc]:
    """Return copies of Docs with the matches of the lists, and the candidates of one teacher's heads."""
    copies = [copy_with_groups(doc, map(weak_group, weak_sources(doc))) for doc in docs]
    for head, path in zip(teacher.heads, paths, strict=True):
        for doc, copy in zip(docs, copies, strict=True):
            copy_group(doc, copy, f"{PREDICTED_PREFIX}{names[path]}", f"{PREDICTED_PREFIX}{head.name}")
    return copies


def _labeled(text: Doc, found: Doc) -> Doc:
    """Return a sentence of the text, or its copy in other case, as weakly labeled with the entities that were found."""
    labeled = copy_with_groups(text, map(weak_group, weak_sources(text)))
    set_entities(labeled, doc_entities(found), [True] * len(text))
    set_weak(labeled)
    return labeled
