"""A Python file of the user's own, with registered functions that configs and pipelines name."""

import importlib.util
import os
import sys
from pathlib import Path
from typing import Optional

from .errors import Errors, WeaknerError
from .files import existing

# Environment variable: the file, for the processes that a command starts, too.
OWN_CODE = "WEAKNER_CODE"
_NAME = "weakner_own_code"


def own_code() -> Optional[Path]:
    """The file, if there is one."""
    path = os.environ.get(OWN_CODE)
    return Path(path) if path else None


def import_own_code() -> None:
    """Import the file, if there is one, so that what it registers is known."""
    path = own_code()
    if path is None:
        return
    spec = importlib.util.spec_from_file_location(_NAME, existing(path))
    if spec is None or spec.loader is None:
        raise WeaknerError(Errors.WK108.format(what=f"{path} (--code)", reason="it is no Python file"))
    # Dataclasses look for the module of their class.
    module = sys.modules[_NAME] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise WeaknerError(Errors.WK108.format(what=f"{path} (--code)", reason=reason)) from error
