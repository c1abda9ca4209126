"""Torch modules in Thinc models, and their serialization: safetensors instead of `torch.save`, which uses pickle."""

import os
import sys
from typing import Any, Callable, Dict, Optional

import srsly
from thinc.api import ArgsKwargs, PyTorchShim


def _use_one_thread() -> None:
    """After a fork (`n_process`), torch would wait forever for its threads, which exist only in the parent."""
    use_threads = getattr(sys.modules.get("torch"), "set_num_threads", None)
    if use_threads is not None:
        use_threads(1)


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_use_one_thread)


class TorchShim(PyTorchShim):
    """Thinc's shim, with thread-safe prediction."""

    def predict(self, inputs: ArgsKwargs) -> Any:
        import torch

        # Thinc's shim returns to training mode, including dropout, while another thread may still be predicting.
        self._model.eval()
        with torch.no_grad():
            return self._model(*inputs.args)


def module_to_bytes(module: Any, kwargs: Optional[Dict[str, Any]] = None, half: bool = False) -> bytes:
    """Serialize a torch module with the kwargs that rebuild it (None: its attribute `kwargs`), with `half` in half
    precision; None gives no bytes."""
    if module is None:
        return b""
    from safetensors.torch import save

    tensors = {name: tensor.detach().cpu() for name, tensor in module.state_dict().items()}
    if half:
        halved = {name: tensor.half() for name, tensor in tensors.items() if tensor.is_floating_point()}
        for name, tensor in halved.items():
            if tensor.isfinite().sum() < tensors[name].isfinite().sum():
                raise ValueError(f"the weights '{name}' are too large for half precision")
        tensors.update(halved)
    # Clones, since safetensors refuses tensors that share memory.
    state = save({name: tensor.contiguous().clone() for name, tensor in tensors.items()})
    return srsly.msgpack_dumps({"kwargs": module.kwargs if kwargs is None else kwargs, "state": state})


def module_from_bytes(
    data: bytes, make: Callable[..., Any], device: Any, expected: Optional[Dict[str, Any]] = None
) -> Any:
    """Rebuild a torch module with a function that takes its kwargs. Raise a `ValueError` if it was built with other
    kwargs than expected."""
    if not data:
        return None
    from safetensors.torch import load

    stored = srsly.msgpack_loads(data)
    if expected is not None and stored["kwargs"] != expected:
        raise ValueError(f"sizes differ: expected {expected}, but stored {stored['kwargs']}")
    module = make(**stored["kwargs"])
    # With the stored dtype, which may differ from that of a new module.
    module.load_state_dict(load(stored["state"]), assign=True)
    return module.to(device)
