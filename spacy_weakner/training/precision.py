"""How exactly torch multiplies matrices while a pipeline is trained."""

import os
from typing import Callable

from spacy.language import Language

from ..errors import check_choice

PRECISIONS = ("highest", "high", "medium")
CACHE = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"


def make_matmul_precision(precision: str = "highest") -> Callable[[Language], Language]:
    """Create the callback for `[initialize.before_init]`; registered as `spacy_weakner.MatmulPrecision.v1`.

    All of torch's matrix products in this process get that precision: with "high" recent GPUs round factors to TF32,
    with "medium" CPUs that have units for it (AMX) round them to bfloat16. Sums, weights and all else stay float32.

    precision (str): "highest", "high" or "medium", as in `torch.set_float32_matmul_precision`.
    RETURNS (Callable[[Language], Language]): The callback.
    RAISES (WeaknerError): For another value.
    """
    check_choice("precision", precision, PRECISIONS)

    def set_precision(nlp: Language) -> Language:
        import torch

        torch.set_float32_matmul_precision(precision)
        if precision != "highest":
            # On CPUs scratch memory is kept for every shape that was seen: gigabytes, for the 1,024 that are usual.
            os.environ.setdefault(CACHE, "64")
        return nlp

    return set_precision
