"""The precision of torch's matrix products in training."""

from typing import Callable, Optional

from spacy.language import Language

from .._compat import limit_shape_caches
from ..errors import check_choice
from ..ty import PRECISIONS


def make_matmul_precision(precision: Optional[str] = None) -> Callable[[Language], Language]:
    """Create the callback for `[initialize.before_init]`; registered as `spacy_weakner.MatmulPrecision.v1`.

    The precision applies to all of torch's matrix products in this process, including evaluations on dev: with "high"
    and "medium", recent GPUs round factors to TF32; with "medium", CPUs with units for it (AMX) round them to bfloat16.
    Sums, weights and all other operations stay in float32. Loaded pipelines predict in full precision. With "high" and
    "medium", `limit_shape_caches` bounds the memory on a CPU.

    precision (Optional[str]): "highest", "high" or "medium", as in `torch.set_float32_matmul_precision`; None: not
        changed.
    RETURNS (Callable[[Language], Language]): The callback.
    RAISES (WeaknerError): If the value is not one of these.
    """
    check_choice("precision", precision, PRECISIONS, optional=True)

    def set_precision(nlp: Language) -> Language:
        if precision in ("high", "medium"):
            limit_shape_caches()
        if precision is not None:
            import torch

            torch.set_float32_matmul_precision(precision)
        return nlp

    return set_precision
