"""Prediction in bfloat16, with which a Transformer is faster on CPUs that have instructions for it.

torch is imported in the functions, since it is slow to import and not needed to load spaCy.
"""

import sys
from functools import lru_cache, partial
from typing import Any, Iterator, Set

from spacy.language import Language
from thinc.api import Model

from .._compat import limit_shape_caches
from ..errors import Errors, WeaknerError


def use_bfloat16(nlp: Language) -> int:
    """Let the Transformers of a pipeline predict in bfloat16. Weights, training and saved files stay in float32, so
    that a loaded pipeline predicts in float32 until this function is called. (A frozen Transformer has a setting.)

    For CPUs only; for a GPU, use the setting `mixed_precision`. On a CPU without instructions for bfloat16 (AVX-512
    BF16, AMX, or those of newer ARM CPUs), prediction becomes slower. Scores differ in their second or third digit.

    nlp (Language): The pipeline; its components are changed.
    RETURNS (int): Number of Transformers.
    RAISES (WeaknerError): If there is no Transformer, or one is on a GPU.
    """
    models = [model for _, pipe in nlp.pipeline if isinstance(model := getattr(pipe, "model", None), Model)]
    found = [module for model in models for module in transformers_in(model)]
    if not found:
        names = ", ".join(nlp.component_names) or "none"
        raise WeaknerError(
            Errors.WK358.format(what="bfloat16", reason=f"no component runs a Transformer (components: {names})")
        )
    for module in found:
        if module.device.type != "cpu":
            cure = "On a GPU, set 'mixed_precision' in the settings of the encoder"
            raise WeaknerError(
                Errors.WK358.format(what="bfloat16", reason=f"the Transformer is on {module.device}. {cure}")
            )
    limit_shape_caches()
    for module in found:
        if getattr(module.forward, "func", None) is not _forward:
            module.forward = partial(_forward, module.forward)
    return len(found)


@lru_cache(maxsize=1)
def cpu_has_bfloat16() -> bool:
    """RETURNS (bool): True if the CPU has instructions for bfloat16 that torch uses: AVX-512 BF16 or AMX."""
    import torch

    checks = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    return any(getattr(torch.cpu, name, bool)() for name in checks)


def _forward(forward: Any, *args: Any, **kwargs: Any) -> Any:
    """Call the forward method of a Transformer; in bfloat16 for prediction. (Thinc's `mixed_precision` is for GPUs.)"""
    import torch

    if forward.__self__.training:
        return forward(*args, **kwargs)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return _in_float32(forward(*args, **kwargs))


def _in_float32(output: Any) -> Any:
    """Convert all tensors in the output of a Transformer to float32, for the layers after it."""
    import torch

    if torch.is_tensor(output):
        return output.float() if output.dtype is torch.bfloat16 else output
    if isinstance(output, dict):  # such as the outputs of transformers
        for key in list(output):
            output[key] = _in_float32(output[key])
    elif isinstance(output, tuple):
        return tuple(map(_in_float32, output))
    return output


def transformers_in(model: Model) -> Iterator[Any]:
    """Find the Transformers that a model runs itself; not those that it listens to. transformers is imported only if it
    has been imported before.

    model (Model): The model.
    YIELDS (Any): Each outermost `PreTrainedModel` once.
    """
    if "transformers" not in sys.modules:
        return
    from torch import nn
    from transformers import PreTrainedModel

    seen: Set[int] = set()
    for node in model.walk():
        for shim in node.shims:
            whole = getattr(shim, "_model", None)
            for module in whole.modules() if isinstance(whole, nn.Module) else ():
                if isinstance(module, PreTrainedModel) and id(module) not in seen:
                    seen.update(map(id, module.modules()))
                    yield module
