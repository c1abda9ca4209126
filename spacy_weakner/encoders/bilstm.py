"""A bidirectional LSTM over token embeddings."""

from functools import partial
from typing import Any, Callable, List, Optional, Tuple

from spacy.tokens import Doc
from thinc.api import ArgsKwargs, Dropout, Model, PyTorchWrapper_v3, chain, torch2xp, with_array, xp2torch
from thinc.types import Floats2d
from thinc.util import get_torch_default_device

from ..errors import Errors, WeaknerError, check_range
from ..torch_io import module_from_bytes, module_to_bytes

Sequences = List[Floats2d]


def build_bilstm_encoder(
    embed: Model[List[Doc], List[Floats2d]], width: int = 128, depth: int = 1
) -> Model[List[Doc], List[Floats2d]]:
    """Encode tokens with a bidirectional LSTM, with dropout (at the rate `training.dropout`) before and after it.
    Registered as `spacy_weakner.BiLSTMEncoder.v1`; it takes the place of any `tok2vec`.

    embed (Model[List[Doc], List[Floats2d]]): Token embeddings, e.g. `spacy.MultiHashEmbed.v2`.
    width (int): Width of the output; each direction has half of it, so it must be even.
    depth (int): Number of layers.
    RETURNS (Model[List[Doc], List[Floats2d]]): Token vectors, per Doc (n_tokens, width).
    RAISES (WeaknerError): For a width or depth that cannot be.
    """
    if width < 2 or width % 2:
        raise WeaknerError(Errors.WK005.format(setting="width", value=width, expected="a positive even number"))
    check_range("depth", depth, 1, None)
    lstm: Model[Any, Any] = Model(
        "bilstm",
        _forward,
        init=partial(_init, depth=depth),
        layers=[
            PyTorchWrapper_v3(
                None,  # type: ignore[arg-type]
                convert_inputs=_convert_inputs,
                convert_outputs=_convert_outputs,
                serialize_model=_serialize,
                deserialize_model=_deserialize,
            )
        ],
        dims={"nO": width, "nI": None},
    )
    model: Model[Any, Any] = chain(embed, with_array(Dropout()), lstm, with_array(Dropout()))
    model.set_dim("nO", width)
    return model


def _init(model: Model, X: Optional[Sequences] = None, Y: Any = None, *, depth: int) -> None:
    if X is None:
        return
    model.set_dim("nI", X[0].shape[1])
    module = _make(input_width=model.get_dim("nI"), width=model.get_dim("nO"), depth=depth)
    model.layers[0].shims[0]._model = module.to(get_torch_default_device())


def _forward(model: Model, sequences: Sequences, is_train: bool) -> Tuple[Sequences, Callable[[Sequences], Sequences]]:
    # The LSTM reads no empty sequences; they get (0, width) outputs.
    used = [i for i, sequence in enumerate(sequences) if len(sequence)]
    outputs = [model.ops.alloc2f(0, model.get_dim("nO")) for _ in sequences]
    if not used:
        return outputs, lambda gradient: sequences
    encoded, backprop_lstm = model.layers[0]([sequences[i] for i in used], is_train)
    for i, output in zip(used, encoded, strict=True):
        outputs[i] = output

    def backprop(gradient: Sequences) -> Sequences:
        result = list(sequences)
        for i, back in zip(used, backprop_lstm([gradient[i] for i in used]), strict=True):
            result[i] = back
        return result

    return outputs, backprop


def _convert_inputs(
    model: Model, sequences: Sequences, is_train: bool
) -> Tuple[ArgsKwargs, Callable[[ArgsKwargs], Sequences]]:
    tensors = [xp2torch(model.ops.as_contig(s), requires_grad=is_train) for s in sequences]

    def back(gradient: ArgsKwargs) -> Sequences:
        return [torch2xp(tensor) for tensor in gradient.args[0]]  # type: ignore[misc]

    return ArgsKwargs(args=(tensors,), kwargs={}), back


def _convert_outputs(
    model: Model, inputs_outputs: Tuple[Sequences, Any], is_train: bool
) -> Tuple[Sequences, Callable[[Sequences], ArgsKwargs]]:
    sequences, output = inputs_outputs
    flat = torch2xp(output)
    lengths = [len(sequence) for sequence in sequences]
    split = model.ops.unflatten(flat, model.ops.asarray1i(lengths))

    def back(gradient: Sequences) -> ArgsKwargs:
        return ArgsKwargs(args=((output,),), kwargs={"grad_tensors": (xp2torch(model.ops.flatten(gradient)),)})

    return split, back  # type: ignore[return-value]


def _make(**kwargs: int) -> Any:
    from .torch_model import BiLSTM

    return BiLSTM(**kwargs)


def _serialize(module: Any) -> bytes:
    return module_to_bytes(module, module.kwargs if module is not None else {})


def _deserialize(module: Any, data: bytes, device: Any) -> Any:
    return module_from_bytes(data, _make, device, None if module is None else module.kwargs)
