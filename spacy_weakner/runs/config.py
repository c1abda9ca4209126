"""Training configs: their values, their differences from other settings, and the conversion of passes to updates."""

import math
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional

from spacy.language import DEFAULT_CONFIG
from spacy.util import load_config

from ..configs.compose import flatten
from ..configs.recipes import sizes_of
from ..corpus.docbin import stream_docs
from ..errors import Errors, WeaknerError
from ..files import existing

CORPORA = ("paths.train", "paths.dev")
SEEDS = ("training.seed", "system.seed")
# The Transformer of a config, or the pipeline whose encoder it uses.
TRANSFORMER = "paths.transformer"
_UPDATES, _EVALUATION, _EPOCHS = "training.max_steps", "training.eval_frequency", "training.max_epochs"
_PATIENCE, _RATE = "training.patience", "training.optimizer.learn_rate"
# Numbers of updates that a config chooses for its own `max_steps`.
_IN_PROPORTION = (
    "training.before_update.interval",
    "training.optimizer.learn_rate.warmup_steps",
    "training.optimizer.learn_rate.total_steps",
)


def flat_config(config: Path, overrides: Mapping[str, Any]) -> Dict[str, Any]:
    """Return the values of a config by dotted name, with overrides. Variables are not resolved; a section is an empty
    dictionary."""
    return _read(config, overrides, interpolate=False)


def resolved_config(config: Path, overrides: Mapping[str, Any]) -> Dict[str, Any]:
    """Return the values with variables resolved; `paths.train` and `paths.dev` are placeholders unless set."""
    known = flat_config(config, overrides)
    unset: Dict[str, Any] = {key: f"<{key}>" for key in CORPORA if key in known and not known[key]}
    return _read(config, {**unset, **overrides}, interpolate=True)


def _read(config: Path, overrides: Mapping[str, Any], interpolate: bool) -> Dict[str, Any]:
    try:
        return flatten(load_config(existing(Path(config)), overrides=dict(overrides), interpolate=interpolate))
    except (WeaknerError, OSError):
        raise
    except Exception as error:  # of many kinds, if the config is damaged
        reason = " ".join(str(error).split())
        raise WeaknerError(Errors.WK108.format(what=f"the config {config}", reason=reason)) from error


def train_corpus(config: Path, overrides: Mapping[str, Any]) -> Path:
    """Return the corpus `paths.train` of a config."""
    path = corpus_path(config, overrides, "paths.train")
    if path is None:
        raise WeaknerError(Errors.WK364.format(config=config, reason="no corpus to train on. Give --paths.train"))
    return existing(path, "paths.train")


def corpus_path(config: Path, overrides: Mapping[str, Any], key: str) -> Optional[Path]:
    """Return one of the `CORPORA` of a config, with variables resolved; None if it is not set."""
    is_set = flat_config(config, overrides).get(key)
    return Path(resolved_config(config, overrides)[key]) if is_set else None


def check_overrides(config: Path, overrides: Mapping[str, Any]) -> None:
    """Refuse overrides of settings in [training] and [system] that do not exist, which spaCy ignores."""
    known = flat_config(config, {})
    for key in overrides:
        section, _, name = key.partition(".")
        if section in ("training", "system") and "." not in name and name not in DEFAULT_CONFIG[section]:
            check_setting(config, known, key)


def check_setting(config: Path, known: Mapping[str, Any], key: str) -> None:
    """Refuse a setting that is not among the `known` values of a config."""
    if key not in known:
        reason = f"no setting '{key}'. Correct its name, or add it to the config"
        raise WeaknerError(Errors.WK364.format(config=config, reason=reason))


def config_differences(
    config: Path,
    *,
    lang: str,
    tokenizer: Optional[str] = None,
    size: Optional[str] = None,
    transformer: Optional[str] = None,
) -> List[str]:
    """Return the differences between a config and the settings of the corpora: a pipeline that tokenizes differently
    from its training corpus finds less than it has learned. What is None is not compared."""
    values = flat_config(config, {})
    found = []
    if values.get("nlp.lang") != lang:
        found.append(f"its language is '{values.get('nlp.lang')}', not '{lang}'")
    configured = values.get("nlp.tokenizer.@tokenizers")
    if tokenizer is not None and configured != tokenizer:
        found.append(f"its tokenizer is '{configured}', not '{tokenizer}'")
    names = [str(value) for key, value in values.items() if key.endswith("@architectures")]
    is_on_transformer = any(kind in name for name in names for kind in ("Transformer", "QueryContext", "Frozen"))
    named = values.get(TRANSFORMER)
    if None not in (transformer, named) and named != transformer:
        found.append(f"its Transformer is '{named}', not '{transformer}'")
    pieces = any("Pieces" in name or "PieceVectors" in name for name in names)
    if size is not None and is_on_transformer != bool({"transformer", "frozen"} & {*sizes_of(size)}):
        found.append(f"its encoder is {'a' if is_on_transformer else 'not a'} Transformer, but the size is '{size}'")
    elif size is not None and pieces != size.endswith("static"):
        found.append(f"it has {'' if pieces else 'no '}vectors of word pieces, but the size is '{size}'")
    return found


def words_per_update(config: Path, overrides: Mapping[str, Any]) -> float:
    """Return the number of words per update of a config, including padding."""
    values = flat_config(config, overrides)
    size = values.get("training.batcher.size")
    kind = str(values.get("training.batcher.@batchers", ""))
    if "training.batcher.size.@schedules" in values:
        reason = "a schedule of batch sizes. Set one number: --training.batcher.size 1000"
        raise WeaknerError(Errors.WK364.format(config=config, reason=reason))
    if not isinstance(size, (int, float)) or size <= 0 or not ("by_words" in kind or "by_padded" in kind):
        reason = (
            f"batches ([training.batcher], {kind or 'none'}) that are not counted in words, so the size of an update "
            "is unknown. Use spacy.batch_by_words.v1 or spacy.batch_by_padded.v1"
        )
        raise WeaknerError(Errors.WK364.format(config=config, reason=reason))
    return float(size)  # accumulate_gradient splits a batch, and does not enlarge it


def check_passes(passes: float, overrides: Mapping[str, Any]) -> None:
    """Check a number of passes before anything is read."""
    if not 0.0 < passes < math.inf:
        raise WeaknerError(Errors.WK005.format(setting="passes", value=passes, expected="more than 0"))
    for key in (_UPDATES, _EPOCHS):
        if overrides.get(key, -1) not in (0, -1):  # values for no limit in spaCy
            where, instead = "without a number of passes", ", or leave out that number"
            raise WeaknerError(Errors.WK331.format(setting=key, where=where, instead=instead))


def updates_of(config: Path, corpus: Path, passes: float, overrides: Mapping[str, Any]) -> Dict[str, Any]:
    """Return overrides for a training that reads its corpus `passes` times and is evaluated once, at the end, unless
    `training.eval_frequency` is given. (spaCy also evaluates after the first update.) Unless they are given, the
    interval of renewals and the steps of the learning rate's schedule keep their share of the training."""
    n_words = sum(map(len, stream_docs(corpus)))
    # A batch ends at the end of the corpus.
    updates_per_pass = max(1, math.ceil(n_words / words_per_update(config, overrides)))
    updates = math.ceil(passes * updates_per_pass)
    found: Dict[str, Any] = {_UPDATES: updates, _EVALUATION: overrides.get(_EVALUATION, updates)}
    if _EVALUATION not in overrides:
        found[_PATIENCE] = overrides.get(_PATIENCE, 0)  # without evaluations, nothing seems to improve
    # 0 or -1 as the number of updates is no limit: see `check_passes`.
    values = flat_config(config, {key: value for key, value in overrides.items() if key != _UPDATES})
    if values.get(_RATE) == 0:
        reason = f"a learning rate ({_RATE}) of 0: its weights are fitted before the updates, so leave out the passes"
        raise WeaknerError(Errors.WK364.format(config=config, reason=reason))
    configured = values.get(_UPDATES)
    if values.get(_EPOCHS) != -1:  # -1 streams the corpus
        found[_EPOCHS] = 0  # the config's own limit on passes could come first
    for key in _IN_PROPORTION:
        chosen = values.get(key)
        if key not in overrides and isinstance(chosen, int) and isinstance(configured, int) and chosen * configured > 0:
            found[key] = max(1, round(chosen * updates / configured))
    return found
