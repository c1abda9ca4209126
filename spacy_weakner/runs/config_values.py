"""What stands in the config of a training."""

from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Tuple

from spacy.util import load_config
from thinc.api import Config

from ..errors import Errors, WeaknerError
from ..files import existing


def config_differences(
    config: Path, *, lang: str, tokenizer: Optional[str] = None, size: Optional[str] = None
) -> List[str]:
    """Compare a config with settings that corpora were made with: a pipeline that splits texts otherwise than its
    training corpus finds less than it has learned.

    config (Path): The config.
    lang (str): Code of the language.
    tokenizer (Optional[str]): Name of the tokenizer; None: that of the language.
    size (Optional[str]): Size of the encoder; None: any.
    RETURNS (List[str]): What differs, in words; empty if nothing does.
    """
    values = flat_config(config, {})
    found = []
    if values.get("nlp.lang") != lang:
        found.append(f"its language is '{values.get('nlp.lang')}', and not '{lang}'")
    own = values.get("nlp.tokenizer.@tokenizers")
    if tokenizer is not None and own != tokenizer:
        found.append(f"its tokenizer is '{own}', and not '{tokenizer}'")
    names = [str(value) for key, value in values.items() if key.endswith("@architectures")]
    transformer = any("Transformer" in name or "QueryContext" in name for name in names)
    pieces = any("Pieces" in name or "PieceVectors" in name for name in names)
    if size is not None and transformer != (size in ("transformer", "gpu")):
        found.append(f"its encoder is {'a' if transformer else 'no'} Transformer, and the size is '{size}'")
    elif size is not None and pieces != size.endswith("static"):
        found.append(f"it has {'' if pieces else 'no '}vectors of word pieces, and the size is '{size}'")
    return found


def flat_config(config: Path, overrides: Mapping[str, Any]) -> Dict[str, Any]:
    """Read a config; variables in it stay as they are.

    config (Path): The config.
    overrides (Mapping[str, Any]): Values by dotted name.
    RETURNS (Dict[str, Any]): Its values by dotted name; sections stand for themselves too, as empty dictionaries.
    RAISES (WeaknerError): If it cannot be read with these overrides.
    """
    return _read(config, overrides, interpolate=False)


def resolved_config(config: Path, overrides: Mapping[str, Any]) -> Dict[str, Any]:
    """The same with what variables stand for. Those of `paths.train` and `paths.dev` stay, unless they are given."""
    known = flat_config(config, overrides)
    unset: Dict[str, Any] = {key: f"<{key}>" for key in ("paths.train", "paths.dev") if key in known}
    return _read(config, {**unset, **overrides}, interpolate=True)


def corpus_of(config: Path, overrides: Mapping[str, Any]) -> Path:
    """The corpus that a config trains on, `paths.train`.

    RAISES (WeaknerError): If none is given, or it is missing.
    """
    value = flat_config(config, overrides).get("paths.train")
    if not value:
        raise WeaknerError(Errors.WK713.format(config=config))
    return existing(Path(value), "paths.train")


def _read(config: Path, overrides: Mapping[str, Any], interpolate: bool) -> Dict[str, Any]:
    try:
        return _flat(load_config(existing(Path(config)), overrides=dict(overrides), interpolate=interpolate))
    except (WeaknerError, OSError):
        raise
    except Exception as error:  # of many kinds: what spaCy and the parser say to a damaged config
        reason = " ".join(str(error).split())
        raise WeaknerError(Errors.WK365.format(config=config, reason=reason)) from error


def words_per_update(config: Path, overrides: Mapping[str, Any]) -> float:
    """How many words an update of a config takes in, those of padding included.

    config (Path): The config.
    overrides (Mapping[str, Any]): Values by dotted name.
    RETURNS (float): Tokens.
    RAISES (WeaknerError): If its batches are not counted in words.
    """
    values = flat_config(config, overrides)
    size = values.get("training.batcher.size")
    kind = str(values.get("training.batcher.@batchers", ""))
    if not isinstance(size, (int, float)) or size <= 0 or not ("by_words" in kind or "by_padded" in kind):
        raise WeaknerError(Errors.WK683.format(config=config, kind=kind or "none"))
    return float(size)  # accumulate_gradient divides it, and does not add to it


def _flat(config: Config) -> Dict[str, Any]:
    flat: Dict[str, Any] = {}
    pending: List[Tuple[str, Any]] = list(config.items())
    while pending:
        key, value = pending.pop()
        if isinstance(value, dict):
            flat[key] = {}
            pending.extend((f"{key}.{name}", own) for name, own in value.items())
        else:
            flat[key] = value
    return flat
