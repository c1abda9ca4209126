"""Transformers inside Thinc's models. transformers is not imported here: what holds one has imported it."""

import sys
from typing import Any, Iterator, Set

from thinc.api import Model


def transformers_in(model: Model) -> Iterator[Any]:
    """Find the Transformers that a model runs itself; not those that it listens to.

    model (Model): The model.
    YIELDS (Any): Each `PreTrainedModel` once; of parts in another one, the whole.
    """
    if "transformers" not in sys.modules:
        return
    from torch import nn
    from transformers import PreTrainedModel

    seen: Set[int] = set()
    for node in model.walk():
        for shim in node.shims:
            whole = getattr(shim, "_model", None)
            for module in whole.modules() if isinstance(whole, nn.Module) else ():
                if isinstance(module, PreTrainedModel) and id(module) not in seen:
                    seen.update(map(id, module.modules()))
                    yield module
