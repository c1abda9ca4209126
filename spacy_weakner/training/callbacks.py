"""Several callbacks where a config has room for one."""

from typing import Any, Callable

from spacy.language import Language


class Callbacks:
    """A callback for any section that calls others in their order in the config: `TrainingClock` and `ReduceOnPlateau`
    in `[training.before_update]`, or `LoadWeights` and `LBFGS` in `[initialize.after_init]`.

    *callbacks (Callable): The callbacks: sections with any names, such as [training.before_update.*.clock].
    """

    def __init__(self, *callbacks: Callable) -> None:
        self.callbacks = callbacks

    def __call__(self, nlp: Language, *arguments: Any) -> Language:
        """Call all callbacks, each with the pipeline that the one before returned."""
        for callback in self.callbacks:
            nlp = callback(nlp, *arguments) or nlp
        return nlp
