"""Calibrates the probabilities of a trained pipeline on held-out gold."""

import math
from pathlib import Path
from typing import Callable, NamedTuple, Optional, Union

from spacy.tokens import Doc
from spacy.training import Example

from ..annotations.corpus import read_docs
from ..annotations.entities import set_entities
from ..annotations.gold import find_gold
from ..errors import Errors, WeaknerError
from ..files import atomic_path, check_output
from ..training.entities import EntityHead
from .runtime.devices import on_device
from .runtime.lock import holding
from .runtime.predictions import Predictor

# Where temperatures are sought, and how exactly.
LOWEST, HIGHEST, STEPS = 0.05, 20.0, 20
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


class TemperatureReport(NamedTuple):
    """What was found.

    component (str): Name of the calibrated component.
    temperature (float): Its temperature.
    before (float): Mean negative log-likelihood of the gold at the temperature it had.
    after (float): The same at the new one.
    docs (int): Docs with complete gold.
    """

    component: str
    temperature: float
    before: float
    after: float
    docs: int

    @property
    def at_bound(self) -> bool:
        """RETURNS (bool): Whether the temperature is as low or as high as was tried."""
        return self.temperature < LOWEST * 1.01 or self.temperature > HIGHEST / 1.01


@holding("output_path")
def fit_temperature(
    output_path: Path, model: Union[str, Path], gold: Path, *, component: Optional[str] = None, gpu_id: int = -1
) -> TemperatureReport:
    """Divide a component's scores by the temperature under which held-out gold is most likely (Guo et al. 2017), so
    that its probabilities mean what they say. What is predicted stays the same.

    output_path (Path): Folder for the calibrated pipeline.
    model (Union[str, Path]): The pipeline.
    gold (Path): Gold that it was not trained on: a `.spacy` file or a folder of them. It is held in memory.
    component (Optional[str]): Name of the component; None: the first that can be calibrated.
    gpu_id (int): GPU for the predictions; -1 is the CPU.
    RETURNS (TemperatureReport): What was found.
    RAISES (WeaknerError): For missing input, a pipeline without such a component, or no complete gold.
    """
    output_path = Path(output_path)
    check_output([Path(gold), *([Path(model)] if Path(model).exists() else [])], [output_path])
    if output_path.exists():
        raise WeaknerError(Errors.WK300.format(path=output_path))
    with on_device(gpu_id):
        asked = Predictor(
            model,
            component,
            lambda pipe: isinstance(pipe, EntityHead),
            "has probabilities that can be calibrated",
            "a head for entities",
        )
        nlp, name, pipe = asked.nlp, asked.name, asked.pipe
        docs = list(filter(complete, read_docs(Path(gold), nlp.vocab)))
        if not docs:
            raise WeaknerError(Errors.WK342.format(path=gold))
        examples = [Example(copy, doc) for copy, doc in zip(asked.bare(docs), docs, strict=True)]
        try:
            loss = pipe.held_out_loss(examples)
        except KeyError as error:
            labels = ", ".join(pipe.labels)
            raise WeaknerError(
                Errors.WK003.format(name=name, kind="entity", label=error.args[0], labels=labels)
            ) from error
        before = loss(pipe.temperature)
        best = find_temperature(loss)
        pipe.set_temperature(best)
        with atomic_path(output_path) as temporary:
            nlp.to_disk(temporary)
        return TemperatureReport(name, best, before, loss(best), len(examples))


def complete(doc: Doc) -> bool:
    """Whether everything is known about the entities of a Doc with tokens; its gold becomes `doc.ents` then."""
    found = find_gold(doc)
    if not len(doc) or found is None or found.missing:
        return False
    set_entities(doc, sorted(found.entities), [True] * len(doc))
    return True


def find_temperature(loss: Callable[[float], float]) -> float:
    """The temperature under which held-out gold is most likely.

    loss (Callable[[float], float]): How unlikely it is at a temperature: see `EntityHead.held_out_loss`.
    RETURNS (float): From `LOWEST` to `HIGHEST`.
    """
    return math.exp(minimize(lambda x: loss(math.exp(x)), math.log(LOWEST), math.log(HIGHEST), STEPS))


def minimize(function: Callable[[float], float], low: float, high: float, steps: int) -> float:
    """Golden-section search for the minimum of a function that falls and then rises.

    function (Callable[[float], float]): The function.
    low (float): Where to begin.
    high (float): Where to end.
    steps (int): How often the interval shrinks, by 0.62 each time.
    RETURNS (float): The middle of the last interval.
    """
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = function(left), function(right)
    for _ in range(steps):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = function(right)
    return (low + high) / 2.0
