"""Trains one config with several seeds, and averages what the pipelines say about the corpus (RoSTER)."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Union

import numpy
from numpy.typing import NDArray
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import minibatch
from spacy.vocab import Vocab

from ..annotations import weak
from ..errors import Errors, WeaknerError, check_range
from ..files import check_output
from .runtime.config_values import flat_config
from .runtime.devices import on_device
from .runtime.hashes import hash_model
from .runtime.length import check_passes, updates_of
from .runtime.lock import holding
from .runtime.predictions import TokenPredictor
from .runtime.shards import Shards
from .runtime.stage import Report, Stage
from .runtime.training import LAST, Member
from .runtime.trainings import Training, check_trainings, train_all

BATCH_SIZE = 256
SEEDS = ("system.seed", "training.seed")


@dataclass
class EnsembleReport(Report):
    """What was trained and averaged, beside what `Report` tells.

    tokens (int): Tokens of the Docs written.
    agreed (int): Those whose most likely tag is the same to all members.
    total_deviation (float): Sum over the tokens of the standard deviation of P(entity) = 1 - P(O) between the members.
    members (List[Member]): The pipelines; each says whether it was finished already.
    """

    tokens: int = 0
    agreed: int = 0
    total_deviation: float = 0.0
    members: List[Member] = field(default_factory=list)

    @property
    def agreement(self) -> float:
        """RETURNS (float): Share of the tokens whose most likely tag is the same to all members."""
        return self.agreed / max(1, self.tokens)

    @property
    def deviation(self) -> float:
        """RETURNS (float): Mean deviation over the tokens: the lower, the less do predictions depend on the seed."""
        return self.total_deviation / max(1, self.tokens)


@holding("output", "corpus_output")
def ensemble(
    config: Path,
    corpus: Path,
    output: Path,
    corpus_output: Path,
    *,
    members: int = 5,
    passes: Optional[float] = None,
    processes: int = 1,
    overrides: Optional[Mapping[str, Any]] = None,
    seed: int = 0,
    gpu_id: int = -1,
    ray: Optional[str] = None,
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
    passes (Optional[float]): How often each of them reads the corpus: its updates follow from that, and it is evaluated
        once, at the end, unless `training.eval_frequency` is given. Labels at face value are over-fitted where a small
        corpus is read as often as a large one needs. None: as long as the config says.
    processes (int): How many are trained at a time. On the CPU they share its cores: OMP_NUM_THREADS says how many
        threads each has.
    overrides (Optional[Mapping[str, Any]]): Values of the config by dotted name. Those of `paths.train`, `paths.dev`
        and `training.patience` come before what is said here.
    seed (int): Seed of the first one; the others count on from there.
    gpu_id (int): For the trainings and the predictions; -1 is the CPU.
    ray (Optional[str]): Address of a Ray cluster that trains them, see `train_all`. The predictions are made here, with
        it on the CPU.
    component (Optional[str]): Name of the component that gives the distributions; None: the last that does.
    progress (bool): Show how far it has come.
    RETURNS (EnsembleReport): What was done.
    RAISES (WeaknerError): For missing input and unusable settings, if a training fails, or if the pipelines give no
        distributions, or distributions over different tags.
    """
    check_range("members", members, 1, None)
    check_trainings(processes, ray)
    if passes is not None:
        check_passes(passes, overrides or {})
    corpus, output, corpus_output = Path(corpus), Path(output), Path(corpus_output)
    folders = [output / f"member-{n}" for n in range(members)]
    check_output([corpus], [output])
    check_output([corpus, *folders], [corpus_output])
    # Whether the GPU is there, and the result may be written, is better known before the hours of training.
    device = gpu_id if ray is None else -1
    with on_device(device):
        shards = Shards(Average.name, corpus, corpus_output)
    shared = _overrides(config, corpus, overrides or {})
    if passes is not None:
        shared.update(updates_of(config, corpus, passes, shared))
    jobs = {folder: {**shared, **dict.fromkeys(SEEDS, seed + n)} for n, folder in enumerate(folders)}
    trained = train_all(
        [Training(config, folder, own) for folder, own in jobs.items()],
        processes=processes,
        gpu_id=gpu_id,
        ray=ray,
        check=lambda member: _check_member(member, component),
        desc="ensemble",
        progress=progress,
    )
    with on_device(device):
        report = shards.run(Average([folder / LAST for folder in folders], component), progress=progress)
    return replace(report, members=trained)


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


class Average(Stage[EnsembleReport]):
    """The stage that averages.

    models (Sequence[Path]): The members.
    component (Optional[str]): See `ensemble`.
    """

    name = "ensemble"
    report = EnsembleReport

    def __init__(self, models: Sequence[Path], component: Optional[str]) -> None:
        super().__init__({"members": [hash_model(model) for model in models], "component": component}, Vocab())
        self.models = models
        self.component = component
        self.predictors: List[TokenPredictor] = []
        self._columns: List[List[int]] = []

    def open(self) -> None:
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

    def zones(self) -> List[Union[Vocab, Language]]:
        return [self.vocab, *(predictor.nlp for predictor in self.predictors)]

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
        self.stats.tokens += stacked.shape[1]
        self.stats.agreed += int((best == best[0]).all(axis=0).sum())
        # That of 1 - P(O) is that of P(O).
        self.stats.total_deviation += float(stacked[:, :, outside].std(axis=0).sum())
