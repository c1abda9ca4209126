"""Prediction in bfloat16, with which a Transformer is faster on CPUs that have instructions for it."""

from spacy.language import Language
from thinc.api import Model

from .._compat import limit_shape_caches
from ..errors import Errors, WeaknerError
from .transformer_encoder import readers_in


def use_bfloat16(nlp: Language) -> int:
    """Let the Transformers of a pipeline predict in bfloat16. Weights, training and saved files stay in float32, so
    that a loaded pipeline predicts in float32 until this function is called. (A frozen Transformer has a setting.)

    For CPUs only; for a GPU, use the setting `mixed_precision`. On a CPU without instructions for bfloat16 (AVX-512
    BF16, AMX, or those of newer ARM CPUs), prediction becomes slower. Scores differ in their second or third digit.

    nlp (Language): The pipeline; its components are changed.
    RETURNS (int): Number of Transformers.
    RAISES (WeaknerError): If no component runs a Transformer of this package, or one is on a GPU.
    """
    models = [model for _, pipe in nlp.pipeline if isinstance(model := getattr(pipe, "model", None), Model)]
    readers = list(dict.fromkeys(reader for model in models for reader in readers_in(model)))
    reason = ""
    if not readers:
        reason = f"no component runs a Transformer (components: {', '.join(nlp.component_names) or 'none'})"
    for reader in readers:
        if (device := reader.transformer.device).type != "cpu":
            reason = f"the Transformer is on {device}. On a GPU, set 'mixed_precision' in the settings of the encoder"
    if reason:
        raise WeaknerError(Errors.WK358.format(what="bfloat16", reason=reason))
    limit_shape_caches()
    for reader in readers:
        reader.predicts_in_bfloat16 = True
    return len(readers)
