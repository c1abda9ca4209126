"""The device on which stages load and run pipelines."""

from contextlib import contextmanager
from typing import Iterator

from thinc.api import CupyOps, get_current_ops, require_cpu, require_gpu, set_active_gpu, set_current_ops
from thinc.compat import cupy

from ..errors import Errors, WeaknerError, check_range


def device_name(gpu_id: int) -> str:
    """Return the name of a GPU, or "cpu" for -1."""
    return "cpu" if gpu_id < 0 else str(cupy.cuda.runtime.getDeviceProperties(gpu_id)["name"].decode())


@contextmanager
def on_device(gpu_id: int) -> Iterator[None]:
    """Load and run pipelines on a GPU, or on the CPU (-1, even if a GPU was required before), within the block. The
    former device is restored at the end."""
    check_range("gpu_id", gpu_id, -1, None)
    ops = get_current_ops()
    active = cupy.cuda.Device().id if isinstance(ops, CupyOps) else None
    try:
        try:
            require_cpu() if gpu_id < 0 else require_gpu(gpu_id)
        except (ValueError, RuntimeError) as error:  # no GPU at all, or not this one
            reason = " ".join(str(error).split())
            raise WeaknerError(Errors.WK432.format(gpu_id=gpu_id, reason=reason)) from error
        yield
    finally:
        set_current_ops(ops)
        if active is not None:
            set_active_gpu(active)
