"""Encoders of Hugging Face: reading them without executing anything, and publishing those that were trained further.

torch and transformers are imported in the functions, since they are an extra.
"""

from contextlib import contextmanager
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple, Union

from ..errors import Errors, WeaknerError, require
from ..files import existing

_WEIGHTS = "*.safetensors"
_SAFE = {"trust_remote_code": False}


class MaskedLM(NamedTuple):
    """A masked language model: an encoder with a head that predicts words.

    model (Any): A `PreTrainedModel` of transformers, in float32.
    tokenizer (Any): Its fast tokenizer.
    new_head (bool): Whether the head is untrained, because the checkpoint had none.
    """

    model: Any
    tokenizer: Any
    new_head: bool


def load_tokenizer(name: Union[str, Path]) -> Any:
    """Load the tokenizer of an encoder.

    name (Union[str, Path]): Folder or name of the encoder.
    RETURNS (Any): A fast tokenizer of transformers.
    RAISES (WeaknerError): If there is none.
    """
    require("transformers", extra="transformers")
    from transformers import AutoTokenizer

    with _reading(name):
        tokenizer = AutoTokenizer.from_pretrained(str(name), use_fast=True, **_SAFE)
        if not tokenizer.is_fast:
            raise ValueError("it has no fast tokenizer.")
    return tokenizer


def load_encoder(name: Union[str, Path]) -> Tuple[Any, Any]:
    """Load an encoder without any head.

    name (Union[str, Path]): Folder or name of the encoder.
    RETURNS (Tuple[Any, Any]): A `PreTrainedModel` of transformers, in float32, and its fast tokenizer.
    RAISES (WeaknerError): If there is no such encoder, or its weights are not stored as safetensors or do not belong to
        its config.
    """
    require("transformers", extra="transformers")
    import torch
    from transformers import AutoConfig, AutoModel

    tokenizer = load_tokenizer(name)
    with _reading(name), seeded(0):
        config = AutoConfig.from_pretrained(str(name), **_SAFE)
        if config.is_encoder_decoder:
            raise WeaknerError(Errors.WK353.format(name=name, reason="it is an encoder with a decoder"))
        model, info = _load(AutoModel, name, config)
        # A pooler is not used.
        missing = sorted(key for key in info["missing_keys"] if "pooler" not in key.split("."))
        if missing:
            raise WeaknerError(Errors.WK353.format(name=name, reason=f"it lacks the weights {_listed(missing)}"))
    return model.to(torch.float32), tokenizer


def load_masked_lm(name: Union[str, Path], *, train_head: bool = False, seed: int = 0) -> MaskedLM:
    """Load an encoder with its head for masked-language modeling.

    name (Union[str, Path]): Folder or name of the encoder.
    train_head (bool): If the checkpoint has no head, make a new one. Its output layer is tied to the input embeddings,
        so that only a dense layer and a bias begin untrained.
    seed (int): Seed of what is untrained.
    RETURNS (MaskedLM): Model and tokenizer.
    RAISES (WeaknerError): If there is no such encoder, its weights are not stored as safetensors or do not belong to
        its config, it has no mask token, or it has no head and may not get one.
    """
    require("transformers", extra="transformers")
    import torch
    from transformers import AutoConfig, AutoModelForMaskedLM

    tokenizer = load_tokenizer(name)
    if tokenizer.mask_token is None or tokenizer.pad_token is None:
        raise WeaknerError(Errors.WK353.format(name=name, reason="its tokenizer has no mask token or no padding"))
    with _reading(name), seeded(seed):
        config = AutoConfig.from_pretrained(str(name), **_SAFE)
        model, info = _load(AutoModelForMaskedLM, name, config)
        missing: List[str] = sorted(info["missing_keys"])
        # With the prefix or, in older versions, without.
        names = {*model.base_model.state_dict()}
        encoder = [key for key in missing if key.removeprefix(f"{model.base_model_prefix}.") in names]
        if encoder:
            raise WeaknerError(Errors.WK353.format(name=name, reason=f"it lacks the weights {_listed(encoder)}"))
        if missing and not train_head:
            raise WeaknerError(Errors.WK354.format(name=name, missing=_listed(missing)))
        if missing and not config.tie_word_embeddings:
            config.tie_word_embeddings = True
            model, _ = _load(AutoModelForMaskedLM, name, config)
    return MaskedLM(model.to(torch.float32), tokenizer, bool(missing))


def scores_at(model: Any, encoder: Any, chosen: Any, inputs: Dict[str, Any]) -> Any:
    """Scores that the head of a masked language model gives to all pieces of the vocabulary, at some positions alone:
    it costs as much as a small encoder. The head must work piece by piece, as all those of transformers do.

    model (Any): The model, perhaps wrapped for several GPUs.
    encoder (Any): Its encoder, `base_model`.
    chosen (Any): Mask, or rows and columns, of the positions.
    inputs (Dict[str, Any]): Tensors that the model takes.
    RETURNS (Any): Shape (n_chosen, n_pieces).
    """

    def leave_chosen(module: Any, inputs: Any, output: Any) -> None:
        output.last_hidden_state = output.last_hidden_state[chosen].unsqueeze(0)

    hook = encoder.register_forward_hook(leave_chosen)
    try:
        return model(**inputs, return_dict=True).logits[0]
    finally:
        hook.remove()


def encoder_key(name: Union[str, Path]) -> Optional[str]:
    """What tells an encoder that is no folder from others of the same name.

    name (Union[str, Path]): Its name.
    RETURNS (Optional[str]): Its revision, if that is known.
    RAISES (WeaknerError): If there is none.
    """
    require("transformers", extra="transformers")
    from transformers import AutoConfig

    with _reading(name):
        return getattr(AutoConfig.from_pretrained(str(name), **_SAFE), "_commit_hash", None)


def n_positions(model: Any) -> Optional[int]:
    """How many pieces, special ones included, a model has positions for.

    model (Any): A `PreTrainedModel` of transformers.
    RETURNS (Optional[int]): The number; None if there is no limit.
    """
    positions: Optional[int] = getattr(model.config, "max_position_embeddings", None)
    embeddings = getattr(getattr(model.base_model, "embeddings", None), "position_embeddings", None)
    # RoBERTa and its kin count positions from behind that of padding.
    padding = getattr(embeddings, "padding_idx", None)
    return positions - (0 if padding is None else padding + 1) if positions else None


def max_pieces(masked_lm: MaskedLM) -> int:
    """How many pieces, special ones included, a model reads at once.

    masked_lm (MaskedLM): The model.
    RETURNS (int): The number.
    """
    limit: int = masked_lm.tokenizer.model_max_length
    return min(n_positions(masked_lm.model) or limit, limit)


def save_encoder(masked_lm: MaskedLM, source: Union[str, Path], folder: Path) -> None:
    """Store a masked language model so that it can be loaded with its head and without.

    masked_lm (MaskedLM): What was trained.
    source (Union[str, Path]): Folder or name of the encoder that it began as. Weights come from there which the plain
        encoder has and the masked language model does without, like the pooler of BERT; so whoever loads the plain
        encoder gets no warning of missing weights.
    folder (Path): Where to store it.
    RAISES (WeaknerError): If the source cannot be read.
    """
    from transformers import AutoModel

    model = masked_lm.model
    with _reading(source), seeded(0):
        plain, _ = _load(AutoModel, source, model.config)
    used, prefix = model.base_model.state_dict(), model.base_model_prefix
    rest = {f"{prefix}.{key}": value for key, value in plain.state_dict().items() if key not in used}
    with quiet():
        model.save_pretrained(folder, state_dict={**model.state_dict(), **rest}, safe_serialization=True)
        masked_lm.tokenizer.save_pretrained(folder)


@contextmanager
def quiet() -> Iterator[None]:
    """Keep transformers from logging and showing bars of its own."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def _load(kind: Any, name: Union[str, Path], config: Any) -> Any:
    return kind.from_pretrained(str(name), config=config, use_safetensors=True, output_loading_info=True, **_SAFE)


@contextmanager
def _reading(name: Union[str, Path]) -> Iterator[None]:
    """Turn all that can go wrong into one line."""
    folder = Path(name)
    if folder.is_absolute() or len(folder.parts) > 2 or str(name)[:1] == ".":
        existing(folder)  # names have at most two parts
    if folder.is_dir() and not any(folder.glob(_WEIGHTS)):
        if not (folder / "config.json").exists():
            raise WeaknerError(Errors.WK351.format(name=name, reason="the folder has no config.json."))
        raise WeaknerError(Errors.WK352.format(name=name))
    try:
        with quiet():
            yield
    except WeaknerError:
        raise
    # Damaged files fail in json or safetensors, odd configs anywhere in transformers.
    except Exception as error:
        lines = str(error).strip().splitlines()
        if isinstance(error, OSError) and "safetensors" in str(error):
            raise WeaknerError(Errors.WK352.format(name=name)) from error
        raise WeaknerError(Errors.WK351.format(name=name, reason=lines[0] if lines else repr(error))) from error


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Draw from a seed of one's own, and leave the draws of others as they are."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.random.default_generator.manual_seed(seed)
        yield


def _listed(keys: List[str]) -> str:
    return ", ".join(keys[:3]) + (f" and {len(keys) - 3} more" if len(keys) > 3 else "")
