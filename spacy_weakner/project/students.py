"""Students: linear CRFs that learn what a pipeline with a Transformer finds in the text, and predict many times as
fast."""

import random
import warnings
from itertools import chain
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, cast

from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import minibatch
from spacy.vocab import Vocab

from ..code_version import code_version
from ..corpus.case import LOWER, UPPER
from ..corpus.docbin import bare_copy, copy_with_groups, read_docs, stream_docs, write_docs
from ..corpus.formats.reading import sentence_keys
from ..corpus.sentences import sentence_key
from ..corpus.weak import PREDICTED_PREFIX, copy_group, weak_group, weak_sources
from ..encoder_tools.embeddings import write_embeddings
from ..pipelines import load_pipeline
from ..progress import Progress
from ..runs.groups import FoldFiles
from ..runtime.devices import on_device
from ..runtime.hashes import hash_model, hash_path, hash_settings
from ..runtime.receipts import Receipt
from ..training.augmenting import CaseCopies
from .assembling import PROPOSES, assemble, predict_docs
from .combine import Combination, TrainedHead
from .context import TEXT_COPIES, TrainingContext, pipeline_of, student_size
from .encoding import Encoded, reusing
from .layout import has_docs
from .rules import LINEAR_TEXTS, STUDENT
from .teaching import Labels, Taught

_BATCH = 256
_RECEIPT = "taught.json"
_VECTORS = "text-vectors"
# Width of the embeddings of the Transformer that students read (students.md).
_WIDTH = 128


def train_student(
    context: TrainingContext, teacher: Combination, text: Path, gold: Path, folds: Sequence[FoldFiles]
) -> Tuple[TrainedHead, Taught]:
    """Train a student on all gold and the text, and one without each fold. The heads that teach it have not seen the
    fold either. With little gold, students do not learn from what their teacher is not sure of, unless that is too
    much.

    context (TrainingContext): The settings of the trainings.
    teacher (Combination): What labels the text.
    text (Path): The text, which may have matches of the lists. Sentences of gold, dev and test are left out.
    gold (Path): The gold.
    folds (Sequence[FoldFiles]): The folds of the teacher; none if dev scores the student.
    RETURNS (Tuple[TrainedHead, Taught]): The student, and what it has learned from the text.
    """
    outputs = {context.models / STUDENT: gold}
    for n, fold in enumerate(folds, start=1):
        outputs[context.models / "folds" / f"{STUDENT}-{n}"] = fold.rest
    corpora = [output.with_suffix(".spacy") for output in outputs]
    made_from = {
        "inputs": {str(path): hash_path(path) for path in (text, context.corpora.annotated, *outputs.values())},
        "teacher": {head.name: [hash_path(path) for path in (head.whole, *head.folds)] for head in teacher.heads},
        "settings": _settings(context),
    }
    taught = _taught_before(context, made_from, corpora)
    if taught is None:
        docs, labels = _label(context, teacher, text, [None, *range(len(folds))])
        taught = Taught.of(labels[0])
        if not taught.leaves_out:
            labels = [[Labels(each.entities) for each in its] for its in labels]
        for path, rest, its in zip(corpora, outputs.values(), labels, strict=True):
            copies = (copy for doc in read_docs(rest, Vocab()) for copy in (doc, *context.cases.copies(doc)))
            write_docs(path, chain(copies, _teach(context, docs, its)))
        _finish(context, made_from, corpora[0], taught)
    has_missing = teacher.has_little_gold and taught.leaves_out
    trainings = [
        context.of_student(path, output, has_missing=has_missing) for path, output in zip(corpora, outputs, strict=True)
    ]
    context.train(trainings, desc="fit: train students")
    whole, *parts = map(pipeline_of, trainings)
    student = TrainedHead(STUDENT, STUDENT, student_size(context.embeds), whole, parts, reads_lists=bool(context.lists))
    return student, taught


def train_student_without_gold(context: TrainingContext, teacher: Path, text: Path) -> Path:
    """Train a student on the text as a pipeline labels it.

    context (TrainingContext): The settings of the trainings.
    teacher (Path): What labels the text.
    text (Path): The text. Sentences of dev and test are left out.
    RETURNS (Path): The student's pipeline.
    """
    output = context.models / STUDENT
    corpus = output.with_suffix(".spacy")
    inputs = [text, *_annotated(context), teacher]
    made_from = {"inputs": {str(path): hash_path(path) for path in inputs}, "settings": _settings(context)}
    if _made_before(context, made_from, [corpus]) is None:
        with on_device(context.gpu_id):
            nlp = load_pipeline(teacher)
            docs = _sample(context, text, nlp)
            found = nlp.pipe(map(bare_copy, docs))
            shown = Progress(found, desc="fit: label text", unit="sentence", enabled=context.progress, total=len(docs))
            write_docs(corpus, _teach(context, docs, map(Labels.of, shown)))
        _finish(context, made_from, corpus)
    training = context.of_student(corpus, output, has_gold=False)
    context.train([training], desc="fit: train the student")
    return pipeline_of(training)


def _settings(context: TrainingContext) -> str:
    encoder = None if context.embeds is None else hash_model(context.embeds)
    settings = {"cases": context.cases.shares, "seed": context.seed, "encoder": encoder, "code": code_version()}
    return hash_settings(settings)


def _made_before(context: TrainingContext, made_from: Dict[str, Any], corpora: Sequence[Path]) -> Optional[Receipt]:
    """Return the receipt of corpora that an earlier run has made from the same; None if there are none."""
    receipt = Receipt.read(context.models / _RECEIPT)
    outputs = [*corpora, *([] if context.embeds is None else [context.student_pieces])]
    if receipt is None or receipt.differences(made_from) or not all(path.exists() for path in outputs):
        return None
    return receipt


def _taught_before(context: TrainingContext, made_from: Dict[str, Any], corpora: Sequence[Path]) -> Optional[Taught]:
    """Return what students learn from these corpora; None if they, or their receipt, have to be made again."""
    receipt = _made_before(context, made_from, corpora)
    try:
        return None if receipt is None else Taught.model_validate(receipt.report)
    except ValueError:  # damaged
        return None


def _finish(context: TrainingContext, made_from: Dict[str, Any], corpus: Path, taught: Optional[Taught] = None) -> None:
    """Write the embeddings that students read, and the receipt of all that they are trained on."""
    if context.embeds is not None:
        write_embeddings(context.embeds, read_docs(corpus, Vocab()), context.student_pieces, _WIDTH)
    report = {} if taught is None else taught.model_dump()
    Receipt(made_from, report=report).write(context.models / _RECEIPT)


def _annotated(context: TrainingContext) -> List[Path]:
    return [context.corpora.annotated] if has_docs(context.corpora.annotated) else []


def _teach(context: TrainingContext, docs: Iterable[Doc], labels: Iterable[Labels]) -> Iterator[Doc]:
    """Yield what a student learns from the text: the sentences and their copies in other case."""
    shares = context.cases.shares
    cases = CaseCopies(TEXT_COPIES * shares[LOWER], TEXT_COPIES * shares[UPPER])
    for doc, its in zip(docs, labels, strict=True):
        for text in (doc, *cases.copies(doc)):
            yield its.teach(text)


def _label(
    context: TrainingContext, teacher: Combination, text: Path, teachers: Sequence[Optional[int]]
) -> Tuple[List[Doc], List[List[Labels]]]:
    """Return the text, and what the teacher of all gold (None) or without a fold finds there. All heads share one
    encoder, which reads the text once."""
    paths = [[head.whole if n is None else head.folds[n] for head in teacher.heads] for n in teachers]
    # A head that used no gold is the same in all folds.
    names = {path: f"head_{i}" for i, path in enumerate(dict.fromkeys(chain.from_iterable(paths)))}
    decide = teacher.decide if teacher.has_little_gold else teacher.annotate
    labels: List[List[Labels]] = [[] for _ in teachers]
    with on_device(context.gpu_id), warnings.catch_warnings():
        # A combiner may lack a label that only one fold has: that of all gold has it.
        warnings.filterwarnings("ignore", message=r"\[WK908\]")
        combiners = [teacher.combiner(without) for without in teachers]
        nlp = assemble({}, {name: path for path, name in names.items()}, PROPOSES, context.language)
        docs = _sample(context, text, nlp)
        bar = Progress[Any](total=len(docs), desc="fit: label text", unit="sentence", enabled=context.progress)
        with bar, reusing(nlp, cast(Encoded, context.encoded), context.models / _VECTORS):
            for batch in minibatch(docs, _BATCH):
                found = predict_docs(nlp, batch)
                for its, combiner, so_far in zip(paths, combiners, labels, strict=True):
                    so_far += map(Labels.of, decide(_with_candidates(found, teacher, its, names), combiner))
                bar.update(len(batch))
    return docs, labels


def _sample(context: TrainingContext, text: Path, nlp: Language) -> List[Doc]:
    """Return the sentences of the text that are not annotated: all, or a random sample of them."""
    annotated = sentence_keys(_annotated(context), nlp)
    rng, n, kept = random.Random(context.seed), 0, {}
    for doc in stream_docs(text):
        if sentence_key(doc.text) not in annotated:
            # Reservoir sampling: the first sentences, then each with a decreasing probability in place of another.
            place = n if n < LINEAR_TEXTS else rng.randrange(n + 1)
            if place < LINEAR_TEXTS:
                kept[place] = copy_with_groups(doc, map(weak_group, weak_sources(doc)), nlp.vocab)
            n += 1
    if n > len(kept):
        context.say(f"text: the student learns from a sample of {len(kept):,} of {n:,} sentences")
    return [*kept.values()]


def _with_candidates(
    docs: Sequence[Doc], teacher: Combination, paths: Sequence[Path], names: Mapping[Path, str]
) -> List[Doc]:
    """Return copies of Docs with the matches of the lists, and the candidates of one teacher's heads."""
    copies = [copy_with_groups(doc, map(weak_group, weak_sources(doc))) for doc in docs]
    for head, path in zip(teacher.heads, paths, strict=True):
        for doc, copy in zip(docs, copies, strict=True):
            copy_group(doc, copy, f"{PREDICTED_PREFIX}{names[path]}", f"{PREDICTED_PREFIX}{head.name}")
    return copies
