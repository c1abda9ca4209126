"""Layers over sequences of vectors, one sequence per Doc."""

from functools import partial
from typing import Any, Callable, Dict, List, Optional, Tuple

from thinc.api import ArgsKwargs, Model, torch2xp, xp2torch
from thinc.layers.pytorchwrapper import forward
from thinc.types import Floats2d
from thinc.util import get_torch_default_device

from ..batching import split_rows
from ..errors import Errors, WeaknerError
from ..torch_io import TorchShim, module_from_bytes, module_to_bytes

Sequences = List[Floats2d]
Backprop = Callable[[Sequences], Sequences]


def torch_sequences(
    name: str, make: Callable[..., Any], nO: Optional[int] = None, **settings: Any
) -> Model[Sequences, Sequences]:
    """Wrap a torch module as a layer.

    name (str): Name of the layer.
    make (Callable[..., Any]): Makes the module from `input_width` and the settings. The module maps the concatenated
        rows of all sequences, and their lengths (none of them 0), to as many rows. Its attribute `kwargs` has the
        arguments to make it again, `width` the width of its outputs.
    nO (Optional[int]): Width of the outputs, if it is known.
    **settings (Any): Settings of the module; they are stored with it.
    RETURNS (Model[Sequences, Sequences]): Maps (n_tokens, nI) to (n_tokens, nO) for each sequence.
    """
    read = partial(_deserialize, make=make, settings=settings)
    shim = TorchShim(None, serialize_model=module_to_bytes, deserialize_model=read)
    converters = {"convert_inputs": _convert_inputs, "convert_outputs": _convert_outputs}
    module: Model[Any, Any] = Model("pytorch", forward, attrs=converters, shims=[shim], dims={"nI": None, "nO": None})
    return Model(
        name,
        _forward_torch,
        init=partial(_init_torch, make=partial(make, **settings)),
        layers=[module],
        dims={"nO": nO, "nI": None},
    )


def skip_empty(layer: Model[Sequences, Sequences]) -> Model[Sequences, Sequences]:
    """Apply a layer to non-empty sequences only; the outputs of empty ones have the shape (0, nO).

    layer (Model[Sequences, Sequences]): The layer.
    RETURNS (Model[Sequences, Sequences]): The layer for all sequences. If an encoder returns (0, 0) arrays for Docs
        without tokens, their gradients have the same shape.
    """
    nO = layer.get_dim("nO") if layer.has_dim("nO") else None
    return Model(f"skip_empty({layer.name})", _forward_used, init=_init_used, layers=[layer], dims={"nO": nO})


def locked_dropout(rate: float) -> Model[Sequences, Sequences]:
    """Create a dropout layer with one mask per sequence, shared by all its tokens (Gal and Ghahramani 2016; Merity et
    al. 2018).

    rate (float): Share of the features that become 0; independent of `training.dropout`.
    RETURNS (Model[Sequences, Sequences]): The layer.
    """
    # Not an attribute of the model: attributes are stored, and would override the config at load time.
    return Model("locked_dropout", partial(_forward_dropout, rate=rate))


def learned_gate() -> Model[Sequences, Sequences]:
    """Create a layer that multiplies by one learned number, initially 0 (ReZero: Bachlechner et al. 2021, Equation 3),
    so that the preceding layers take effect gradually.

    RETURNS (Model[Sequences, Sequences]): The layer.
    """
    return Model("learned_gate", _forward_gate, init=_init_gate, params={"gate": None})


def _init_torch(model: Model, X: Optional[Sequences] = None, Y: Any = None, *, make: Callable[..., Any]) -> None:
    if X is None:
        return
    model.set_dim("nI", X[0].shape[1])
    module = make(input_width=model.get_dim("nI"))
    model.set_dim("nO", module.width)
    model.layers[0].shims[0]._model = module.to(get_torch_default_device())


def _forward_torch(model: Model, sequences: Sequences, is_train: bool) -> Tuple[Sequences, Backprop]:
    return model.layers[0](sequences, is_train)


def _init_used(model: Model, X: Optional[Sequences] = None, Y: Any = None) -> None:
    layer = model.layers[0]
    if X is not None:
        used = [sequence for sequence in X if len(sequence)]
        X = used or [model.ops.alloc2f(1, X[0].shape[1])]
    layer.initialize(X=X)
    if layer.has_dim("nO"):
        model.set_dim("nO", layer.get_dim("nO"))


def _forward_used(model: Model, sequences: Sequences, is_train: bool) -> Tuple[Sequences, Backprop]:
    used = [i for i, sequence in enumerate(sequences) if len(sequence)]
    outputs = [model.ops.alloc2f(0, model.get_dim("nO")) for _ in sequences]
    if not used:
        return outputs, lambda gradient: sequences
    found, backprop_layer = model.layers[0]([sequences[i] for i in used], is_train)
    for i, output in zip(used, found, strict=True):
        outputs[i] = output

    def backprop(gradient: Sequences) -> Sequences:
        result = list(sequences)
        for i, back in zip(used, backprop_layer([gradient[i] for i in used]), strict=True):
            result[i] = back
        return result

    return outputs, backprop


def _forward_dropout(model: Model, sequences: Sequences, is_train: bool, *, rate: float) -> Tuple[Sequences, Backprop]:
    if not is_train or rate == 0.0:
        return sequences, lambda gradient: gradient
    masks: Any = model.ops.get_dropout_mask((len(sequences), sequences[0].shape[1]), rate)

    def apply(vectors: Sequences) -> Sequences:
        return [rows * mask for rows, mask in zip(vectors, masks, strict=True)]

    return apply(sequences), apply


def _init_gate(model: Model, X: Optional[Sequences] = None, Y: Any = None) -> None:
    model.set_param("gate", model.ops.alloc1f(1))


def _forward_gate(model: Model, sequences: Sequences, is_train: bool) -> Tuple[Sequences, Backprop]:
    gate: Any = model.get_param("gate")

    def backprop(gradient: Sequences) -> Sequences:
        products: Any = [rows * other for rows, other in zip(gradient, sequences, strict=True)]
        model.inc_grad("gate", model.ops.asarray1f([float(sum(product.sum() for product in products))]))
        return [rows * gate for rows in gradient]

    return [rows * gate for rows in sequences], backprop


def _convert_inputs(
    model: Model, sequences: Sequences, is_train: bool
) -> Tuple[ArgsKwargs, Callable[[ArgsKwargs], Sequences]]:
    # One array for all sequences, since every conversion to torch waits for the GPU.
    rows = xp2torch(model.ops.flatten(sequences), requires_grad=is_train)

    def back(gradient: ArgsKwargs) -> Sequences:
        return split_rows(torch2xp(gradient.args[0]), sequences)

    return ArgsKwargs(args=(rows, [len(sequence) for sequence in sequences]), kwargs={}), back


def _convert_outputs(
    model: Model, inputs_outputs: Tuple[Sequences, Any], is_train: bool
) -> Tuple[Sequences, Callable[[Sequences], ArgsKwargs]]:
    sequences, output = inputs_outputs

    def back(gradient: Sequences) -> ArgsKwargs:
        return ArgsKwargs(args=((output,),), kwargs={"grad_tensors": (xp2torch(model.ops.flatten(gradient)),)})

    return split_rows(torch2xp(output), sequences), back


def _deserialize(module: Any, data: bytes, device: Any, make: Callable[..., Any], settings: Dict[str, Any]) -> Any:
    def rebuild(input_width: int, **there: Any) -> Any:
        if there != settings:
            raise WeaknerError(Errors.WK020.format(what="The encoder was trained", there=there, here=settings))
        return make(input_width=input_width, **there)

    return module_from_bytes(data, rebuild, device, None if module is None else module.kwargs)
