"""Trains a component to the minimum of its loss, before the first update of `spacy train`.

For models with few relevant weights, above all a CRF on indicator features: it takes seconds, needs no learning rate,
and finds the unique weights that minimize the penalized loss.
"""

import time
from itertools import islice
from typing import Any, Dict, List, Optional, Tuple

import numpy
from numpy.typing import NDArray
from spacy.language import Language
from spacy.training import Example
from spacy.util import logger
from thinc.api import set_dropout_rate

from ..batching import group_by_length
from ..caching import caching_outputs
from ..errors import Errors, WeaknerError, check_range
from ..heads.head import TrainableHead, TrainingBatch
from ..heads.layers import is_listener
from ..linear.sparse import indicator_rows
from ..progress import Progress
from ..sources.features import weak_marked
from ..ty import CorpusReader
from .annotating import annotated
from .flat import FlatWeights, Vector

# Size of the batches in an evaluation.
PADDED_TOKENS = 4000
# Number of updates from which the curvature is estimated.
HISTORY = 8
# Maximum number of evaluations in an iteration; nearly all iterations need one.
MAX_EVALUATIONS = 25
# Number of iterations in which the loss has to decrease by the tolerance.
PERIOD = 10
_NONE: NDArray[numpy.int64] = numpy.zeros(0, dtype="int64")


class LBFGS:
    """A callback for `[initialize.after_init]` that minimizes

        sum of the loss over all sentences + l2 / 2 * |w - w_0|^2

    over all weights w of a component, including its encoder, where w_0 are the initial weights, by L-BFGS with a line
    search for the strong Wolfe conditions (Nocedal and Wright 2006). It is deterministic: there is no dropout (an
    encoder in PyTorch with its own dropout uses the same mask in every evaluation), and losses that sample negatives
    sample the same ones.

    No further training is needed: `training.max_steps = 1` with a learning rate of 0 evaluates and saves.

    corpus (CorpusReader): The sentences; kept in memory with their features, about 700 bytes per token, and
        4 for each dimension of a frozen encoder or of static vectors.
    l2 (float): L2 penalty of the distance from the initial weights.
    max_iterations (int): Maximum number of iterations.
    tolerance (float): Stop if ten iterations reduce the sum by at most this share of it.
    component (Optional[str]): Name of the component; None: the only one in the pipeline that this package trains.
    max_examples (int): Raise an error if the corpus has more sentences, since it may be infinite.
    RAISES (WeaknerError): If a setting is out of range.
    """

    def __init__(
        self,
        corpus: CorpusReader,
        l2: float = 0.1,
        max_iterations: int = 200,
        tolerance: float = 0.01,
        component: Optional[str] = None,
        max_examples: int = 1_000_000,
    ) -> None:
        check_range("l2", l2, 0.0, None)
        check_range("max_iterations", max_iterations, 1, None)
        check_range("tolerance", tolerance, 0.0, None)
        check_range("max_examples", max_examples, 1, None)
        self.corpus = corpus
        self.l2 = l2
        self.max_iterations = max_iterations
        self.tolerance = tolerance
        self.component = component
        self.max_examples = max_examples

    def __call__(self, nlp: Language) -> Language:
        """Train the component."""
        name, pipe = _find_head(nlp, self.component)
        if pipe.needs_clock:
            raise WeaknerError(
                f"spacy_weakner.LBFGS.v1 cannot train '{name}': what it learns changes with the progress of training "
                "(weighted sampler, teacher). Turn these settings off, or remove LBFGS from [initialize.after_init]."
            )
        examples = self._read(nlp, name, pipe)
        groups = group_by_length([len(eg.predicted) for eg in examples], PADDED_TOKENS)
        batches = [pipe.read_batch([examples[i] for i in group]) for group in groups]
        started = time.monotonic()
        with caching_outputs(pipe.model), weak_marked(examples):
            set_dropout_rate(pipe.model, 0.0)
            objective = PenalizedLoss(pipe, batches, self.l2)
            first, last, iterations = minimize(objective, self.max_iterations, self.tolerance)
        seconds = time.monotonic() - started
        message = "L-BFGS: %s learned from %d sentences: %.2f after %d iterations, %.2f at the start (%.1f s)"
        logger.info(message, name, len(examples), last, iterations, first, seconds)
        return nlp

    def _read(self, nlp: Language, name: str, pipe: TrainableHead) -> List[Example]:
        examples = list(islice(self.corpus(nlp), self.max_examples + 1))
        if len(examples) > self.max_examples:
            raise WeaknerError(
                f"The corpus of spacy_weakner.LBFGS.v1 has more than {self.max_examples} sentences (max_examples). It "
                "is kept in memory, so it must be finite. Set a limit in its reader, or raise max_examples."
            )
        _, examples = pipe.split_examples(list(annotated(nlp, name, examples)))
        examples = [eg for eg in examples if len(eg.predicted)]
        if not examples:
            raise WeaknerError(Errors.WK101.format(path="the corpus of spacy_weakner.LBFGS.v1"))
        return examples


class PenalizedLoss:
    """The penalized loss of a component as a function of all its weights; `l2` penalizes the distance from the current
    ones. The component keeps the weights of the last evaluation."""

    def __init__(self, pipe: TrainableHead, batches: List[TrainingBatch[Any]], l2: float) -> None:
        import torch

        self.pipe = pipe
        self.batches = batches
        self.l2 = l2
        self.weights = FlatWeights(pipe.model, _used_rows(pipe, batches))
        self.start = self.weights.read()
        # Those of GPUs only if one is used, since reading them occupies all.
        on_gpu = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
        self._states = numpy.random.get_state(), torch.get_rng_state(), on_gpu

    def __call__(self, values: Vector) -> Tuple[float, Vector]:
        """Compute the objective at some weights, and its gradient."""
        import torch

        pipe, total = self.pipe, 0.0
        self.weights.write(values)
        self.weights.clear_gradient()
        # Losses and layers use global random generators. Reset them, so that this is a function of the weights.
        numpy.random.set_state(self._states[0])
        torch.set_rng_state(self._states[1])
        torch.cuda.set_rng_state_all(self._states[2])
        for batch in self.batches:
            loss, backprop = pipe.forward_loss(batch)
            pipe.check_loss(loss)
            backprop()
            total += loss * batch.n_sentences  # heads return the mean, and backpropagate the gradient of the sum
        away = values - self.start
        total += self.l2 / 2 * float(away @ away)
        return total, self.weights.read_gradient() + self.l2 * away


def minimize(objective: PenalizedLoss, max_iterations: int, tolerance: float) -> Tuple[float, float, int]:
    """Minimize an objective, and set the component's weights to the minimum. Returns the initial and the final value,
    and the number of iterations."""
    import torch

    point = torch.from_numpy(objective.start.copy()).requires_grad_()
    # Its own stopping rules are absolute, and disabled; the loop below has relative ones.
    optimizer = torch.optim.LBFGS(
        [point],
        max_iter=1,
        history_size=HISTORY,
        tolerance_grad=0.0,
        tolerance_change=0.0,
        line_search_fn="strong_wolfe",
    )
    optimizer.param_groups[0]["max_eval"] = MAX_EVALUATIONS
    last: List[Any] = []

    def evaluate() -> Any:
        values = point.detach().numpy()
        # Every step begins at the point where the one before ended: do not evaluate it again.
        if not last or not numpy.array_equal(values, last[0]):
            last[:] = [values.copy(), *objective(values)]
        point.grad = torch.from_numpy(last[2].copy())
        return torch.tensor(last[1], dtype=torch.float64)

    losses: List[float] = [float(evaluate())]
    progress: Progress[Any] = Progress(total=max_iterations, desc="L-BFGS", unit="iteration")
    with progress:
        while len(losses) <= max_iterations and last[2].any():
            optimizer.step(evaluate)
            losses.append(float(evaluate()))
            progress.update()
            progress.note(loss=f"{losses[-1]:.2f}")
            if len(losses) > PERIOD and losses[-1 - PERIOD] - losses[-1] <= tolerance * abs(losses[-1]):
                break
    objective.weights.write(last[0])
    objective.weights.clear_gradient()
    return losses[0], losses[-1], len(losses) - 1


def _used_rows(pipe: TrainableHead, batches: List[TrainingBatch[Any]]) -> Dict[int, NDArray[numpy.int64]]:
    # Weights of features that never occur do not change, so most of a table is not in the vector. Tables of the same
    # size share their used rows: superfluous rows only cost time.
    used: Dict[int, NDArray[numpy.int64]] = {}
    for features in pipe.model.walk():
        rows = indicator_rows(features)
        if rows is None:
            continue
        for batch in batches:
            found = features.predict(pipe.model_inputs(batch.texts.docs))
            ids = [features.ops.to_numpy(rows_of_doc).ravel().astype("int64") for rows_of_doc in found]
            used[rows] = numpy.unique(numpy.concatenate([used.get(rows, _NONE), *ids]))
    return used


def _find_head(nlp: Language, name: Optional[str]) -> Tuple[str, TrainableHead]:
    heads = {found: pipe for found, pipe in nlp.pipeline if isinstance(pipe, TrainableHead) and name in (None, found)}
    if len(heads) != 1:
        wanted = "exactly one that this package trains" if name is None else f"'{name}', trained by this package"
        raise WeaknerError(
            f"spacy_weakner.LBFGS.v1 needs a component to train: {wanted}; the pipeline has: "
            f"{', '.join(nlp.pipe_names) or 'none'}. Name one as 'component' in [initialize.after_init]."
        )
    ((found, pipe),) = heads.items()
    settings = nlp.config.get("training", {})
    fixed = {*settings.get("frozen_components", ())} & {*settings.get("annotating_components", ())}
    encoders = {name for name, other in nlp.components if found in getattr(other, "listening_components", ())}
    if is_listener(pipe.model) and not (encoders and encoders <= fixed):
        raise WeaknerError(
            f"spacy_weakner.LBFGS.v1 cannot train '{found}' together with the encoder that it listens to. Freeze the "
            "encoder (add it to frozen_components and annotating_components in [training]), or give the component an "
            "encoder of its own."
        )
    return found, pipe
