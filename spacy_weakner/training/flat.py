"""All weights of a model as one vector."""

from typing import Any, Iterable, List, Mapping, NamedTuple, Optional

import numpy
from numpy.typing import NDArray
from thinc.api import Model

from ..linear.sparse import NAME as SPARSE

Vector = NDArray[numpy.float32]


class _Weights(NamedTuple):
    # A parameter of a Thinc layer, and which of its rows are used; None: all.
    node: Model
    name: str
    rows: Optional[Any]

    def _of(self, array: Any) -> Any:
        return array if self.rows is None else array[self.rows]

    def read(self) -> Vector:
        return self.node.ops.to_numpy(self._of(self.node.get_param(self.name))).ravel()

    def read_gradient(self) -> Vector:
        if not self.node.has_grad(self.name):
            return numpy.zeros(self._of(self.node.get_param(self.name)).size, dtype="float32")
        return self.node.ops.to_numpy(self._of(self.node.get_grad(self.name))).ravel()

    def clear_gradient(self) -> None:
        if self.node.has_grad(self.name):
            self.node.get_grad(self.name).fill(0.0)

    def write(self, values: Vector) -> None:
        param: Any = self.node.get_param(self.name)
        shaped: Any = values.reshape(self._of(param).shape)
        given = self.node.ops.asarray(shaped)
        if self.rows is None:
            param[...] = given
        else:
            param[self.rows] = given


class _TorchWeights(NamedTuple):
    # A parameter of a torch module.
    tensor: Any

    def read(self) -> Vector:
        return self.tensor.detach().cpu().float().numpy().ravel()

    def read_gradient(self) -> Vector:
        if self.tensor.grad is None:
            return numpy.zeros(self.tensor.numel(), dtype="float32")
        return self.tensor.grad.detach().cpu().float().numpy().ravel()

    def clear_gradient(self) -> None:
        self.tensor.grad = None

    def write(self, values: Vector) -> None:
        import torch

        with torch.no_grad():
            self.tensor.copy_(torch.as_tensor(values).reshape(self.tensor.shape))


class FlatWeights:
    """The weights of a model as one float32 vector on the host. `rows` maps the size of a table of indicator features
    to its used rows; its other rows are left out."""

    def __init__(self, model: Model, rows: Optional[Mapping[int, Iterable[int]]] = None) -> None:
        used = {size: model.ops.asarray(list(used_rows), dtype="int64") for size, used_rows in (rows or {}).items()}
        self._parts: List[Any] = []
        for node in model.walk():
            used_rows = used.get(node.get_dim("nI")) if node.name == SPARSE else None
            self._parts += [_Weights(node, name, used_rows) for name in node.param_names if node.has_param(name)]
            for shim in node.shims:
                parameters = getattr(shim._model, "parameters", None)
                if parameters is not None:
                    self._parts += [_TorchWeights(tensor) for tensor in parameters() if tensor.requires_grad]
        self._ends = numpy.cumsum([len(part.read()) for part in self._parts])

    def read(self) -> Vector:
        return numpy.concatenate([part.read() for part in self._parts])

    def write(self, values: Vector) -> None:
        for part, part_values in zip(self._parts, numpy.split(values, self._ends[:-1]), strict=True):
            part.write(part_values)

    def read_gradient(self) -> Vector:
        return numpy.concatenate([part.read_gradient() for part in self._parts])

    def clear_gradient(self) -> None:
        for part in self._parts:
            part.clear_gradient()
