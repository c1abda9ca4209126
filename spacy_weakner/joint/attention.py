"""Attention over the token vectors of any encoder."""

from functools import partial
from typing import Any, Dict, List, Optional

from spacy.tokens import Doc
from thinc.api import Model, chain
from thinc.api import residual as add_input
from thinc.types import Floats2d

from ..encoders.sequences import learned_gate, locked_dropout, skip_empty, torch_sequences
from ..errors import Errors, WeaknerError, check_choice, check_range

SOFT = "soft"
SCALES = ("scaled", "unscaled", "learned")


def build_attention_encoder(
    tok2vec: Model[List[Doc], List[Floats2d]],
    kind: str = "learned",
    heads: int = 8,
    dropout: float = 0.5,
    residual: bool = True,
    init_range: Optional[float] = None,
    gate: bool = False,
    bias: bool = False,
    weight_dropout: float = 0.0,
) -> Model[List[Doc], List[Floats2d]]:
    """Apply attention between the tokens of a sentence (Kruengkrai et al. 2020, Section 2.2):

        H' = H + dropout(attention(H))

    where the attention depends on the kind:

        soft      a weight for every token, computed from its vector alone (Equation 4)
        scaled    multi-head self-attention (Equation 5) whose softmax has the temperature sqrt(d_h / n)
        unscaled  the same with the temperature 1
        learned   the same with a temperature for every token, computed from its vector (Equation 7)

    Registered as `spacy_weakner.AttentionEncoder.v1`; it can replace any `tok2vec`, shared or not. The reference
    "tok2vec" is the encoder below. Equation 7 has a temperature per token without specifying which: here it is that of
    the querying token (a row of QK^T), the same for all heads.

    tok2vec (Model[List[Doc], List[Floats2d]]): Any encoder: H, (n_tokens, d_h) for each Doc.
    kind (str): "soft", "scaled", "unscaled" or "learned".
    heads (int): Number n of heads, which divides d_h; no effect on "soft".
    dropout (float): Rate of locked dropout on the output of attention, with one mask for all tokens of a sentence.
    residual (bool): Whether H is added.
    init_range (Optional[float]): Initialize the weights of the attention from U(-init_range, init_range); in the paper
        this applies to all parameters of the model, with 0.1. None: as torch does by default.
    gate (bool): Multiply the output of attention by a learned number, initially 0. Then H' is initially equal to H, and
        untrained attention does not disturb an encoder that an earlier stage has trained. Not in the paper; for its
        effect see docs/evidence/joint.md.
    bias (bool): Whether queries, keys, values and outputs have biases; no effect on "soft", which has them. The paper
        has them, since it uses "The Annotated Transformer" with its defaults (Section 3.2).
    weight_dropout (float): Rate of dropout on the weights of the softmax; no effect on "soft". In the paper 0.1, for
        the same reason.
    RETURNS (Model[List[Doc], List[Floats2d]]): H', (n_tokens, d_h) for each Doc.
    RAISES (WeaknerError): If a setting is out of range.
    """
    check_choice("kind", kind, (SOFT, *SCALES))
    check_range("heads", heads, 1, None)
    check_range("dropout", dropout, 0.0, 1.0)
    check_range("weight_dropout", weight_dropout, 0.0, 1.0)
    check_range("init_range", init_range, 0.0, None, optional=True)
    make = partial(_make, init_range=init_range)
    settings: Dict[str, Any] = {}
    if kind != SOFT:
        settings = {"heads": heads, "scale": kind, "bias": bias}
        make = partial(make, dropout=weight_dropout)
    attention = torch_sequences("attention", make, tok2vec.maybe_get_dim("nO"), **settings)
    if gate and not residual:
        raise WeaknerError(Errors.WK005.format(setting="gate", value=gate, expected="false if 'residual' is false"))
    gated: Model[Any, Any] = chain(attention, learned_gate()) if gate else attention
    attend: Model[Any, Any] = chain(gated, locked_dropout(dropout))
    model: Model[Any, Any] = chain(tok2vec, skip_empty(add_input(attend) if residual else attend))
    model.set_ref("tok2vec", tok2vec)
    return model


def _make(input_width: int, init_range: Optional[float] = None, **settings: Any) -> Any:
    from .torch_model import SelfAttention, SoftAttention, draw_weights

    if input_width % settings.get("heads", 1):
        expected = f"a number that divides the width of the encoder, {input_width}"
        raise WeaknerError(Errors.WK005.format(setting="heads", value=settings["heads"], expected=expected))
    attention = SelfAttention if settings else SoftAttention
    return draw_weights(attention(input_width, **settings), init_range)
