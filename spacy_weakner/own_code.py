"""A Python file of the user with registered functions that configs and pipelines name."""

import importlib.util
import os
import sys
from pathlib import Path
from typing import Optional

from .errors import Errors, WeaknerError
from .files import existing

# Environment variable with the file, which is also set for the processes that a command starts.
OWN_CODE = "WEAKNER_CODE"
_NAME = "weakner_own_code"


def own_code() -> Optional[Path]:
    """Return the file, or None."""
    path = os.environ.get(OWN_CODE)
    return Path(path) if path else None


def import_own_code() -> None:
    """Import the file, if there is one, so that its functions are registered."""
    path = own_code()
    if path is None:
        return
    spec = importlib.util.spec_from_file_location(_NAME, existing(path))
    if spec is None or spec.loader is None:
        raise WeaknerError(Errors.WK108.format(what=f"{path} (--code)", reason="it is not a Python file"))
    # Dataclasses look up the module of their class.
    module = sys.modules[_NAME] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise WeaknerError(Errors.WK108.format(what=f"{path} (--code)", reason=reason)) from error
