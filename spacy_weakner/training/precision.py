"""How exactly torch multiplies matrices in a process that trains."""

from typing import Callable, Optional

from spacy.language import Language

from .._compat import limit_shape_caches
from ..errors import check_choice
from ..ty import PRECISIONS


def make_matmul_precision(precision: Optional[str] = None) -> Callable[[Language], Language]:
    """Create the callback for `[initialize.before_init]`; registered as `spacy_weakner.MatmulPrecision.v1`.

    All of torch's matrix products in this process get that precision, those of scores on dev too: with "high" and
    "medium" recent GPUs round factors to TF32, with "medium" CPUs that have units for it (AMX) round them to bfloat16.
    Sums, weights and all else stay float32. Pipelines that are loaded predict as exactly as ever. With "high" and
    "medium", `limit_shape_caches` bounds the memory on a CPU.

    precision (Optional[str]): "highest", "high" or "medium", as in `torch.set_float32_matmul_precision`; None: nothing
        is set.
    RETURNS (Callable[[Language], Language]): The callback.
    RAISES (WeaknerError): For another value.
    """
    if precision is not None:
        check_choice("precision", precision, PRECISIONS)

    def set_precision(nlp: Language) -> Language:
        if precision in ("high", "medium"):
            limit_shape_caches()
        if precision is not None:
            import torch

            torch.set_float32_matmul_precision(precision)
        return nlp

    return set_precision
