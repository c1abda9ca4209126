"""An earlier state of a component's model, to learn from."""

from copy import deepcopy
from typing import Any, Optional

from thinc.api import Model

from ..errors import Errors, WeaknerError, check_range


class Teacher:
    """A snapshot of a model, renewed by the training clock.

    decay (float): How much of the old teacher stays at a renewal: 0 replaces it, and above that the teacher is a moving
        average of the weights (Tarvainen and Valpola 2017).
    RAISES (WeaknerError): If it is not between 0 and 1.
    """

    def __init__(self, decay: float = 0.0) -> None:
        check_range("teacher_decay", decay, 0.0, 1.0)
        self.decay = decay
        self.model: Optional[Model] = None

    def renew(self, model: Model) -> None:
        """Take over the weights of a model.

        model (Model): The model; not changed later by what happens to the teacher, nor the other way round.
        """
        if self.decay == 0.0:
            self.model = None  # there are never three at a time
        if self.model is None:
            self.model = deepcopy(model)
            return
        for own, new in zip(self.model.walk(), model.walk(), strict=True):
            for name in own.param_names:
                if own.has_param(name):
                    mixed = self.decay * own.get_param(name) + (1.0 - self.decay) * new.get_param(name)
                    own.set_param(name, mixed)
            for old_shim, new_shim in zip(own.shims, new.shims, strict=True):
                self._mix(old_shim._model, new_shim._model)

    def _mix(self, old: Any, new: Any) -> None:
        # Parameters of torch modules; whole numbers, such as position ids, do not change.
        theirs = new.state_dict()
        old.load_state_dict(
            {
                key: self.decay * value + (1.0 - self.decay) * theirs[key] if value.is_floating_point() else value
                for key, value in old.state_dict().items()
            }
        )


def require_own_encoder(name: str, model: Model) -> None:
    """Refuse a model that listens to another component's encoder, of which no snapshot can be taken.

    name (str): Name of the component.
    model (Model): Its model.
    RAISES (WeaknerError): If it listens.
    """
    if any(hasattr(node, "upstream_name") for node in model.walk()):
        raise WeaknerError(Errors.WK028.format(name=name))
