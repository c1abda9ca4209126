"""A device that is not there: arrays which, as CuPy's, refuse to become numpy arrays unless they are asked to.

An array holds a numpy array and hands it out through two doors alone, `ops.to_numpy` and DLPack (to torch); nothing
computes with numpy arrays but `asarray`, which copies them to the device. What runs here mixes no arrays of host and
device. With the environment variable WEAKNER_DEVICE=gpu the tests run on a GPU instead.
"""

import operator
import os
import sys
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import Any, Iterator, List
from unittest.mock import patch

import numpy
import thinc.backends
import thinc.util
import torch
from thinc.api import NumpyOps, Ops, get_current_ops, require_cpu, require_gpu, set_current_ops, torch2xp

HOST = NumpyOps()
# True while indices of the host are taken, as other packages use them.
# Random numbers that are not those of the host, as CuPy's.
DRAWS = numpy.random.RandomState(0)


class DeviceArray:
    """An array on the device."""

    __array_ufunc__ = None  # numpy's operators leave the work to those of this class
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, values: Any) -> None:
        assert type(values) is numpy.ndarray
        self._values = values

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("implicit conversion of a device array to numpy")

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any:
        return numpy.require(self._values, requirements="W").__dlpack__(*args, **kwargs)

    def __dlpack_device__(self) -> Any:
        return self._values.__dlpack_device__()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(self._values, name)
        return on_device(found) if callable(found) else wrap(found)

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[Any]:
        return (wrap(numpy.asarray(row)) for row in self._values)

    def __getitem__(self, index: Any) -> Any:
        return wrap(self._values[unwrap(index)])

    def __setitem__(self, index: Any, values: Any) -> None:
        self._values[unwrap(index)] = unwrap(values)

    def __float__(self) -> float:
        return float(self._values)

    def __int__(self) -> int:
        return int(self._values)

    def __bool__(self) -> bool:
        return bool(self._values)

    def __index__(self) -> int:
        return operator.index(self._values)

    def __deepcopy__(self, memo: Any) -> Any:
        return DeviceArray(self._values.copy())

    def __reduce__(self) -> Any:
        return DeviceArray, (self._values,)


def _operator(name: str) -> Any:
    in_place = name.startswith("__i") and name not in ("__invert__",)

    def apply(self: DeviceArray, *others: Any) -> Any:
        result = getattr(self._values, name)(*map(unwrap, others))
        return self if in_place else result if result is NotImplemented else wrap(result)

    return apply


_BINARY = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift"]
_NAMES = [f"{side}{name}" for name in _BINARY for side in ("", "r", "i")]
for _name in [*_NAMES, "lt", "le", "gt", "ge", "eq", "ne", "neg", "pos", "abs", "invert"]:
    setattr(DeviceArray, f"__{_name}__", _operator(f"__{_name}__"))


def wrap(values: Any) -> Any:
    """Results on the device: of scalars of numpy, too, which CuPy leaves there."""
    if isinstance(values, (numpy.ndarray, numpy.generic)):
        return DeviceArray(numpy.asarray(values))
    if isinstance(values, tuple) and not hasattr(values, "_fields"):
        return tuple(map(wrap, values))
    return list(map(wrap, values)) if isinstance(values, list) else values


def unwrap(values: Any) -> Any:
    """Arguments from the device; arrays of the host are refused."""
    if isinstance(values, DeviceArray):
        return values._values
    if isinstance(values, numpy.ndarray):
        raise TypeError("an array of the host among those of the device")
    return type(values)(map(unwrap, values)) if type(values) in (list, tuple) else values


def on_device(function: Any) -> Any:
    """A function of numpy as one of device arrays."""

    def apply(*args: Any, **kwargs: Any) -> Any:
        named = {name: unwrap(value) for name, value in kwargs.items()}
        return wrap(function(*map(unwrap, args), **named))

    return apply


class _Namespace(ModuleType):
    """numpy, or a part of it, for device arrays."""

    def __init__(self, module: Any) -> None:
        super().__init__("device")
        self._module = module

    def __getattr__(self, name: str) -> Any:
        if name == "ndarray":
            return DeviceArray
        if name in ("array", "asarray"):
            return lambda values, *args, **kwargs: DeviceArray(
                getattr(numpy, name)(_on_host(values), *args, **kwargs).copy()
            )
        found = getattr(self._module, name)
        if name in ("load", "save"):  # with which spaCy stores vectors of words, from the host
            return found
        if name == "split":  # at places that are numbers of the host
            return lambda array, places, axis=0: wrap(numpy.split(unwrap(array), places, axis))
        if name == "random":
            return _Namespace(DRAWS)
        return on_device(found) if callable(found) and not isinstance(found, type) else found


def _on_host(values: Any) -> Any:
    if isinstance(values, (list, tuple)):
        return [_on_host(value) for value in values]
    return values._values if isinstance(values, DeviceArray) else values


XP = _Namespace(numpy)


class DeviceOps(Ops):
    """Operations of Thinc, each by its kernel for the CPU."""

    name = "device"
    xp: Any = XP

    def __init__(self, device_type: Any = "gpu", device_id: int = 0, **kwargs: Any) -> None:
        super().__init__("cpu", device_id)
        self.device_type = "gpu"

    def asarray(self, data: Any, dtype: Any = None) -> Any:
        if isinstance(data, torch.Tensor):
            data = data.detach().numpy()
        if isinstance(data, DeviceArray) and dtype in (None, data.dtype):
            return data
        return XP.array(data, dtype=dtype)

    def to_numpy(self, data: Any, *, byte_order: Any = None) -> Any:
        values = data._values.copy() if isinstance(data, DeviceArray) else data
        return HOST.to_numpy(values, byte_order=byte_order)

    def alloc(self, shape: Any, *, dtype: Any = "float32", zeros: bool = True) -> Any:
        return DeviceArray(HOST.alloc(shape, dtype=dtype, zeros=zeros))

    def scatter_add(self, table: Any, indices: Any, values: Any) -> Any:
        HOST.scatter_add(unwrap(table), unwrap(indices), unwrap(values))
        return table

    def unflatten(self, X: Any, lengths: Any, pad: int = 0) -> List[Any]:
        return wrap(HOST.unflatten(unwrap(X), HOST.asarray(_on_host(lengths)), pad))


def _kernel(name: str) -> Any:
    return lambda self, *args, **kwargs: on_device(getattr(HOST, name))(*args, **kwargs)


_GENERIC = ("_", "alloc", "asarray", "reshape", "get_dropout_mask", "minibatch", "multibatch")
for _name in dir(Ops):
    if callable(getattr(HOST, _name)) and _name not in vars(DeviceOps) and not _name.startswith(_GENERIC):
        setattr(DeviceOps, _name, _kernel(_name))


def _to_device(tensor: Any, *, ops: Any = None) -> Any:
    return DeviceArray(tensor.detach().numpy())


@contextmanager
def device() -> Iterator[Ops]:
    """All models that are made meanwhile are on the device; Thinc takes its arrays for CuPy's."""
    if os.environ.get("WEAKNER_DEVICE") == "gpu":  # one that is there
        require_gpu()
        try:
            yield get_current_ops()
        finally:
            require_cpu()
        return
    before, ops = get_current_ops(), DeviceOps()
    users = [module for module in sys.modules.values() if vars(module).get("torch2xp") is torch2xp]
    with ExitStack() as patches:
        patches.enter_context(patch.multiple(thinc.util, has_cupy=True, cupy=XP))
        patches.enter_context(patch.object(thinc.backends, "CupyOps", DeviceOps))
        for module in users:
            patches.enter_context(patch.object(module, "torch2xp", _to_device))
        set_current_ops(ops)
        try:
            yield ops
        finally:
            set_current_ops(before)
