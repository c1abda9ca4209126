"""A bidirectional LSTM over token embeddings."""

from functools import partial
from typing import Any, List, Optional

from spacy.tokens import Doc
from thinc.api import Dropout, Linear, Model, chain, with_array
from thinc.initializers import uniform_init
from thinc.types import Floats2d

from ..encoders.sequences import locked_dropout, skip_empty, torch_sequences
from ..errors import Errors, WeaknerError, check_range


def build_bilstm_encoder(
    embed: Model[List[Doc], List[Floats2d]],
    width: int = 128,
    depth: int = 1,
    projection_width: Optional[int] = None,
    dropout: Optional[float] = None,
    init_range: Optional[float] = None,
) -> Model[List[Doc], List[Floats2d]]:
    """Encode tokens with a bidirectional LSTM:

        x_t = W_1 e_t,  h_t = [forward h_t; backward h_t]

    with dropout before and after the LSTM. Registered as `spacy_weakner.BiLSTMEncoder.v1`; it can replace any
    `tok2vec`. Kruengkrai et al. (2020, Section 2.1) set projection_width to the width of their word vectors, dropout to
    0.5 and init_range to 0.1. (In Flair, which they use, the first dropout is before the projection.)

    embed (Model[List[Doc], List[Floats2d]]): Token embeddings, e.g. `spacy.MultiHashEmbed.v2`.
    width (int): Width d_h of the output; each direction has half of it, so it must be even.
    depth (int): Number of layers.
    projection_width (Optional[int]): Width of x_t. None: no projection, x_t = e_t. (The projection has a bias, as in
        Flair; that of the LSTM could replace it.)
    dropout (Optional[float]): Rate of locked dropout, which has one mask for all tokens of a sentence. None: plain
        dropout, at the rate `training.dropout`.
    init_range (Optional[float]): Initialize the weights of projection and LSTM from U(-init_range, init_range). None:
        as Thinc and torch do by default.
    RETURNS (Model[List[Doc], List[Floats2d]]): Token vectors of each Doc, (n_tokens, width).
    RAISES (WeaknerError): If a size or rate is out of range.
    """
    if width < 2 or width % 2:
        raise WeaknerError(Errors.WK005.format(setting="width", value=width, expected="a positive even number"))
    check_range("depth", depth, 1, None)
    check_range("dropout", dropout, 0.0, 1.0, optional=True)
    check_range("init_range", init_range, 0.0, None, optional=True)
    layers: List[Model[Any, Any]] = [
        _dropout(dropout),
        torch_sequences("bilstm", partial(_make, init_range=init_range), width, width=width, depth=depth),
        _dropout(dropout),
    ]
    if projection_width is not None:
        check_range("projection_width", projection_width, 1, None)
        layers.insert(0, with_array(_projection(projection_width, init_range)))
    encode: Model[Any, Any] = chain(*layers)
    encode.set_dim("nO", width)
    model: Model[Any, Any] = chain(embed, skip_empty(encode))
    return model


def _projection(width: int, init_range: Optional[float]) -> Model[Floats2d, Floats2d]:
    if init_range is None:
        return Linear(nO=width)
    init = partial(uniform_init, lo=-init_range, hi=init_range)
    return Linear(nO=width, init_W=init, init_b=init)


def _dropout(rate: Optional[float]) -> Model[Any, Any]:
    return with_array(Dropout()) if rate is None else locked_dropout(rate)


def _make(init_range: Optional[float] = None, **kwargs: int) -> Any:
    from .torch_model import BiLSTM, draw_weights

    return draw_weights(BiLSTM(**kwargs), init_range)
