"""What the benchmarks of speed share."""

import os
import platform
import random
import time
from importlib.metadata import version
from statistics import median
from typing import Callable, List

import torch

# What random sentences are made of.
WORDS = ("the", "of", "market", "president", "company", "London", "said", "match", "against", "percent", "Smith")


def use_threads() -> None:
    """Let torch use as many threads as OMP_NUM_THREADS says."""
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", torch.get_num_threads())))


def random_words(seed: float, n: int) -> List[str]:
    """The same words for the same seed."""
    draw = random.Random(seed)
    return [draw.choice(WORDS) for _ in range(n)]


def interleave(
    functions: List[Callable[[], object]], repetitions: int, clock: Callable[[], float] = time.perf_counter
) -> List[float]:
    """Run functions in turn.

    functions (List[Callable[[], object]]): What to time.
    repetitions (int): How often, after one run to warm up.
    clock (Callable[[], float]): What tells seconds.
    RETURNS (List[float]): Median seconds of each.
    """
    seconds: List[List[float]] = [[] for _ in functions]
    for repetition in range(repetitions + 1):
        for function, own in zip(functions, seconds, strict=True):
            start = clock()
            function()
            if repetition > 0:
                own.append(clock() - start)
    return [median(own) for own in seconds]


def conditions(repetitions: int, *packages: str) -> str:
    """What a page says of how it was measured.

    repetitions (int): Number of repetitions that the medians are of.
    packages (str): Packages whose versions matter.
    RETURNS (str): One line.
    """
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    machine = f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores"
    load = f"load average {os.getloadavg()[0]:.1f}"
    return f"Median of {repetitions}; {torch.get_num_threads()} thread(s); {versions}; {machine}, {load}."
