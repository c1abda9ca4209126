"""How long a training is, said by how often it reads its corpus."""

import math
from pathlib import Path
from typing import Any, Dict, Mapping

from ..corpus.docbin import stream_docs
from ..errors import Errors, WeaknerError
from .config_values import flat_config, words_per_update

_UPDATES, _EVALUATION, _EPOCHS = "training.max_steps", "training.eval_frequency", "training.max_epochs"


def check_passes(passes: float, overrides: Mapping[str, Any]) -> None:
    """Check a number of passes, before anything is read.

    passes (float): The number.
    overrides (Mapping[str, Any]): Values of the config by dotted name.
    RAISES (WeaknerError): If it is none that can be, or these give the number of updates too.
    """
    if not 0.0 < passes < math.inf:
        raise WeaknerError(Errors.WK005.format(setting="passes", value=passes, expected="more than 0"))
    for key in (_UPDATES, _EPOCHS):
        if overrides.get(key, -1) not in (0, -1):  # no end, in spaCy's words
            raise WeaknerError(Errors.WK710.format(key=key))


def updates_of(config: Path, corpus: Path, passes: float, overrides: Mapping[str, Any]) -> Dict[str, Any]:
    """So many updates that all words of a corpus are read about so often, with one evaluation at their end (spaCy has
    another after the first), unless something else is given.

    config (Path): Config of the training.
    corpus (Path): What it is trained on.
    passes (float): How often that is read.
    overrides (Mapping[str, Any]): Values of the config by dotted name.
    RETURNS (Dict[str, Any]): Further values.
    RAISES (WeaknerError): If the batches of the config are not counted in words.
    """
    n_words = sum(map(len, stream_docs(corpus)))
    # A batch ends with the corpus.
    in_a_pass = max(1, math.ceil(n_words / words_per_update(config, overrides)))
    updates = math.ceil(passes * in_a_pass)
    found: Dict[str, Any] = {_UPDATES: updates, _EVALUATION: overrides.get(_EVALUATION, updates)}
    if flat_config(config, overrides).get(_EPOCHS) != -1:  # which streams the corpus
        found[_EPOCHS] = 0  # an end that the config gives in passes itself could come first
    return found
