"""Trains one config with several seeds, and averages what the pipelines say about the corpus (RoSTER)."""

from collections import Counter
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence

import numpy
from numpy.typing import NDArray
from spacy.tokens import Doc
from spacy.util import minibatch
from spacy.vocab import Vocab

from ..annotations import weak
from ..errors import Errors, WeaknerError, check_range
from ..files import check_output
from .runtime.devices import on_device
from .runtime.hashes import hash_model
from .runtime.predictions import TokenPredictor
from .runtime.shards import Shards, spacy_inputs
from .runtime.training import LAST, Member, Training, flat_config, train_all

BATCH_SIZE = 256
SEEDS = ("system.seed", "training.seed")


class EnsembleReport(NamedTuple):
    """What was trained and averaged.

    members (List[Member]): The pipelines; each says whether it was finished already.
    docs (int): Docs written.
    tokens (int): Their tokens.
    agreement (float): Share of the tokens whose most likely tag is the same to all members.
    deviation (float): Standard deviation of P(entity) = 1 - P(O) between the members, on average over the tokens: the
        lower, the less do predictions depend on the seed.
    skipped (int): Shards that were finished already.
    """

    members: List[Member]
    docs: int
    tokens: int
    agreement: float
    deviation: float
    skipped: int


def ensemble(
    config: Path,
    corpus: Path,
    output: Path,
    corpus_output: Path,
    *,
    members: int = 5,
    processes: int = 1,
    overrides: Optional[Mapping[str, Any]] = None,
    seed: int = 0,
    gpu_id: int = -1,
    component: Optional[str] = None,
    progress: bool = False,
) -> EnsembleReport:
    """Train pipelines that differ by their seed alone, and write the mean of their distributions over tags as soft
    labels: what a further pipeline learns from (Meng et al. 2021, Equation 6).

    There need be no gold, so no checkpoint is chosen: the last one counts, and trainings do not end early. Where the
    config names no `paths.dev`, they are evaluated on the corpus itself, which says little; a high
    `training.eval_frequency` saves that time.

    config (Path): Config of the training; it trains on `paths.train`.
    corpus (Path): What to train on and to write soft labels to: a `.spacy` file or a folder of them.
    output (Path): Folder; it gets one folder `member-<n>` per pipeline. Finished ones are skipped.
    corpus_output (Path): A `.spacy` file, or a folder where every shard keeps its name. But for the soft labels, the
        Docs stay as they are.
    members (int): Number of pipelines.
    processes (int): How many are trained at a time. On the CPU they share its cores: OMP_NUM_THREADS says how many
        threads each has.
    overrides (Optional[Mapping[str, Any]]): Values of the config by dotted name. Those of `paths.train`, `paths.dev`
        and `training.patience` come before what is said here.
    seed (int): Seed of the first one; the others count on from there.
    gpu_id (int): For the trainings and the predictions; -1 is the CPU.
    component (Optional[str]): Name of the component that gives the distributions; None: the first that does.
    progress (bool): Show how far it has come.
    RETURNS (EnsembleReport): What was done.
    RAISES (WeaknerError): For missing input and unusable settings, if a training fails, or if the pipelines give no
        distributions, or distributions over different tags.
    """
    for setting, number in (("members", members), ("processes", processes)):
        check_range(setting, number, 1, None)
    corpus, output, corpus_output = Path(corpus), Path(output), Path(corpus_output)
    folders = [output / f"member-{n}" for n in range(members)]
    check_output([corpus], [output])
    check_output([corpus, *folders], [corpus_output])
    # Whether the GPU is there, and the result may be written, is better known before the hours of training.
    with on_device(gpu_id):
        Shards(corpus, corpus_output, "ensemble", {}, spacy_inputs(corpus))
    shared = _overrides(config, corpus, overrides or {})
    jobs = {folder: {**shared, **dict.fromkeys(SEEDS, seed + n)} for n, folder in enumerate(folders)}
    trained = train_all(
        [Training(config, folder, own) for folder, own in jobs.items()],
        processes=processes,
        gpu_id=gpu_id,
        check=lambda member: _check_member(member, component),
        desc="ensemble",
        progress=progress,
    )
    settings: Dict[str, Any] = {"members": [hash_model(folder / LAST) for folder in folders], "component": component}
    counts: Counter[str] = Counter()
    average = _Average([folder / LAST for folder in folders], component, counts)
    shards = Shards(corpus, corpus_output, "ensemble", settings, spacy_inputs(corpus))
    with on_device(gpu_id):
        report = shards.run(
            average,
            average.vocab,
            prepare=average.prepare,
            memory_zone=average.memory_zone,
            progress=progress,
            counts=counts,
        )
    found = report.counts
    tokens = max(1, found["tokens"])
    return EnsembleReport(
        members=trained,
        docs=report.docs_out,
        tokens=found["tokens"],
        agreement=found["agreed"] / tokens,
        deviation=found["deviation"] / 1e6 / tokens,
        skipped=report.skipped,
    )


def _overrides(config: Path, corpus: Path, overrides: Mapping[str, Any]) -> Dict[str, Any]:
    """What all members have in common."""
    for key in SEEDS:
        if key in overrides:
            raise WeaknerError(Errors.WK431.format(key=key))
    paths = {"paths.train": str(corpus)}
    if not flat_config(config, overrides).get("paths.dev"):
        paths["paths.dev"] = str(corpus)
    # Nor is the end of a training chosen by dev: all members learn for the same time.
    return {**paths, "training.patience": 0, **overrides}


def _check_member(member: Member, component: Optional[str]) -> None:
    TokenPredictor(member.output / LAST, component)


class _Average:
    """The transform.

    models (Sequence[Path]): The members.
    component (Optional[str]): See `ensemble`.
    counts (Counter[str]): Where to count.
    """

    def __init__(self, models: Sequence[Path], component: Optional[str], counts: "Counter[str]") -> None:
        self.models = models
        self.component = component
        self.counts = counts
        self.vocab = Vocab()
        self.predictors: List[TokenPredictor] = []
        self._columns: List[List[int]] = []

    def prepare(self) -> None:
        """Load the members.

        RAISES (WeaknerError): If one cannot be used, or they have different tags.
        """
        self.predictors = [TokenPredictor(model, self.component) for model in self.models]
        first, *others = self.predictors
        for other in others:
            if other.scheme != first.scheme or sorted(other.labels) != sorted(first.labels):
                a, b = (f"{', '.join(p.labels)} ({p.scheme})" for p in (first, other))
                raise WeaknerError(Errors.WK430.format(model=other.model, labels=b, first=first.model, other=a))
        # The same tags may stand in another order.
        self._columns = [[own.labels.index(label) for label in first.labels] for own in self.predictors]

    @contextmanager
    def memory_zone(self) -> Iterator[None]:
        """A zone of all vocabularies: that of the corpus, and those of the members."""
        with ExitStack() as stack:
            stack.enter_context(self.vocab.memory_zone())
            for predictor in self.predictors:
                stack.enter_context(predictor.nlp.memory_zone())
            yield

    def __call__(self, docs: Iterable[Doc]) -> Iterator[Doc]:
        labels, scheme = self.predictors[0].labels, self.predictors[0].scheme
        for batch in minibatch(docs, BATCH_SIZE):
            said = [self._predict(number, batch) for number in range(len(self.predictors))]
            for doc, *rows in zip(batch, *said, strict=True):
                # (n_members, n_tokens, n_labels)
                stacked = numpy.stack(rows)
                self._count(stacked, labels.index("O"))
                mean: Any = stacked.mean(axis=0).astype("float32")
                weak.set_soft_labels(doc, weak.SoftLabels(labels, scheme, mean))
                yield doc

    def _predict(self, number: int, docs: List[Doc]) -> List[NDArray[numpy.float64]]:
        predictor = self.predictors[number]
        result = []
        for doc, rows in zip(docs, predictor(docs), strict=True):
            if not numpy.isfinite(rows).all():
                raise WeaknerError(Errors.WK343.format(text=doc.text[:50], pipeline=predictor.model))
            result.append(rows[:, self._columns[number]])
        return result

    def _count(self, stacked: NDArray[numpy.float64], outside: int) -> None:
        best = stacked.argmax(axis=2)
        self.counts["tokens"] += stacked.shape[1]
        self.counts["agreed"] += int((best == best[0]).all(axis=0).sum())
        # That of 1 - P(O) is that of P(O).
        self.counts["deviation"] += round(float(stacked[:, :, outside].std(axis=0).sum()) * 1e6)
