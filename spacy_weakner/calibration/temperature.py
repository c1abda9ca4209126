"""Calibrates the probabilities of a trained pipeline on held-out gold."""

import math
from pathlib import Path
from typing import Callable, NamedTuple, Optional, Union

from ..runtime.devices import on_device
from ..runtime.lock import holding
from .held_out import HeldOut

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
    component (Optional[str]): Name of the component; None: the head that writes the entities.
    gpu_id (int): GPU for the predictions; -1 is the CPU.
    RETURNS (TemperatureReport): What was found.
    RAISES (WeaknerError): For missing input, a pipeline without such a component, or no complete gold.
    """
    output_path = Path(output_path)
    with on_device(gpu_id):
        held_out = HeldOut.read(output_path, model, gold, component, "has probabilities that can be calibrated")
        pipe = held_out.pipe
        loss = pipe.held_out_loss(held_out.examples)
        before = loss(pipe.temperature)
        best = find_temperature(loss)
        pipe.set_temperature(best)
        held_out.save(output_path)
        return TemperatureReport(held_out.name, best, before, loss(best), len(held_out.examples))


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
