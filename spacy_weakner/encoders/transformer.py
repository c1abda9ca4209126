"""Loads encoders of Hugging Face without executing their code, and saves further trained ones.

torch and transformers are imported in the functions: torch is slow to import, and transformers is an optional extra.
"""

from contextlib import contextmanager
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple, Union

from ..errors import Errors, WeaknerError, require
from ..files import existing

_WEIGHTS = "*.safetensors"
_TOKENIZERS = ("tokenizer.json", "vocab.*", "*.model", "merges.txt", "*.tiktoken")
# The number of the layer in the middle of a Transformer, whatever its depth.
MIDDLE = 0
_SAFE = {"trust_remote_code": False}


class MaskedLM(NamedTuple):
    """A masked language model: an encoder with a head that predicts words.

    model (Any): A `PreTrainedModel` of transformers, in float32.
    tokenizer (Any): Its fast tokenizer.
    new_head (bool): True if the head is untrained, since the checkpoint has none.
    """

    model: Any
    tokenizer: Any
    new_head: bool


class ReaderSettings(NamedTuple):
    """The settings of a `TransformerReader`; see `build_transformer_encoder`."""

    pooling: str
    mixed_precision: Optional[str] = None
    frozen_layers: int = 0
    layer_decay: float = 1.0
    mixed_on_cpu: bool = False  # True if "bf16" also applies on CPUs that have instructions for it


def load_encoder_tokenizer(name: Union[str, Path]) -> Any:
    """Load the tokenizer of an encoder.

    name (Union[str, Path]): Folder or name of the encoder.
    RETURNS (Any): A fast tokenizer of transformers.
    RAISES (WeaknerError): If the encoder has no fast tokenizer.
    """
    require("transformers", extra="transformers")
    from transformers import AutoTokenizer

    with _reading(name):
        folder = Path(name)
        if folder.is_dir() and not any(path for pattern in _TOKENIZERS for path in folder.glob(pattern)):
            raise ValueError("the folder has no tokenizer (tokenizer.json)")
        tokenizer = AutoTokenizer.from_pretrained(str(name), use_fast=True, **_SAFE)
        if not tokenizer.is_fast:
            raise ValueError("it has no fast tokenizer")
    return tokenizer


def load_encoder(name: Union[str, Path]) -> Tuple[Any, Any]:
    """Load an encoder without any head.

    name (Union[str, Path]): Folder or name of the encoder.
    RETURNS (Tuple[Any, Any]): A `PreTrainedModel` of transformers, in float32, and its fast tokenizer.
    RAISES (WeaknerError): If there is no such encoder, or its weights are not stored as safetensors or do not fit its
        config.
    """
    require("transformers", extra="transformers")
    import torch
    from transformers import AutoConfig, AutoModel

    tokenizer = load_encoder_tokenizer(name)
    with _reading(name), seeded(0):
        config = AutoConfig.from_pretrained(str(name), **_SAFE)
        if config.is_encoder_decoder:
            raise WeaknerError(Errors.WK353.format(name=name, reason="it is an encoder-decoder model"))
        model, info = _load(AutoModel, name, config)
        # A pooler is not used.
        missing = sorted(key for key in info["missing_keys"] if "pooler" not in key.split("."))
        if missing:
            raise WeaknerError(Errors.WK353.format(name=name, reason=f"it lacks the weights {_listed(missing)}"))
    _check_pieces(name, model, tokenizer)
    return model.to(torch.float32), tokenizer


def load_masked_lm(name: Union[str, Path], *, train_head: bool = False, seed: int = 0) -> MaskedLM:
    """Load an encoder with its head for masked-language modeling.

    name (Union[str, Path]): Folder or name of the encoder.
    train_head (bool): If the checkpoint has no head, make a new one. Its output layer is tied to the input embeddings,
        so that only a dense layer and a bias are untrained.
    seed (int): Seed of untrained weights.
    RETURNS (MaskedLM): Model and tokenizer.
    RAISES (WeaknerError): If there is no such encoder, its weights are not stored as safetensors or do not fit its
        config, it has no mask token, or it has no head and `train_head` is False.
    """
    require("transformers", extra="transformers")
    import torch
    from transformers import AutoConfig, AutoModelForMaskedLM

    tokenizer = load_encoder_tokenizer(name)
    if tokenizer.mask_token is None or tokenizer.pad_token is None:
        raise WeaknerError(Errors.WK353.format(name=name, reason="its tokenizer has no mask token or no padding"))
    with _reading(name), seeded(seed):
        config = AutoConfig.from_pretrained(str(name), **_SAFE)
        model, info = _load(AutoModelForMaskedLM, name, config)
        missing: List[str] = sorted(info["missing_keys"])
        # Keys have the prefix, except in older versions of transformers.
        names = {*model.base_model.state_dict()}
        encoder = [key for key in missing if key.removeprefix(f"{model.base_model_prefix}.") in names]
        if encoder:
            raise WeaknerError(Errors.WK353.format(name=name, reason=f"it lacks the weights {_listed(encoder)}"))
        if missing and not train_head:
            raise WeaknerError(Errors.WK354.format(name=name, missing=_listed(missing)))
        if missing and not config.tie_word_embeddings:
            config.tie_word_embeddings = True
            model, _ = _load(AutoModelForMaskedLM, name, config)
    _check_pieces(name, model, tokenizer, tokenizer.mask_token_id)
    return MaskedLM(model.to(torch.float32), tokenizer, bool(missing))


def scores_at(model: Any, encoder: Any, chosen: Any, inputs: Dict[str, Any]) -> Any:
    """Compute a masked language model's scores of all pieces of the vocabulary, only at some positions: its head costs
    as much as a small encoder. The head must process positions separately, as all those of transformers do.

    model (Any): The model, which may be wrapped for several GPUs.
    encoder (Any): Its encoder, `base_model`.
    chosen (Any): Mask, or rows and columns, of the positions.
    inputs (Dict[str, Any]): Input tensors of the model.
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
    """Return a key that identifies the version of an encoder that is not a local folder.

    name (Union[str, Path]): Name of the encoder.
    RETURNS (Optional[str]): Its revision, if known.
    RAISES (WeaknerError): If there is no such encoder.
    """
    require("transformers", extra="transformers")
    from transformers import AutoConfig

    with _reading(name):
        return getattr(AutoConfig.from_pretrained(str(name), **_SAFE), "_commit_hash", None)


def n_positions(model: Any) -> Optional[int]:
    """Return the number of positions of a model, for pieces including special ones.

    model (Any): A `PreTrainedModel` of transformers.
    RETURNS (Optional[int]): The number; None if there is no limit.
    """
    positions: Optional[int] = getattr(model.config, "max_position_embeddings", None)
    embeddings = getattr(getattr(model.base_model, "embeddings", None), "position_embeddings", None)
    # In RoBERTa and similar models, positions start after the padding index.
    padding = getattr(embeddings, "padding_idx", None)
    return positions - (0 if padding is None else padding + 1) if positions else None


def max_pieces(masked_lm: MaskedLM) -> int:
    """Return the maximum number of pieces, including special ones, of an input.

    masked_lm (MaskedLM): The model.
    RETURNS (int): The number.
    """
    limit: int = masked_lm.tokenizer.model_max_length
    return min(n_positions(masked_lm.model) or limit, limit)


def save_encoder(masked_lm: MaskedLM, source: Union[str, Path], folder: Path) -> None:
    """Store a masked language model so that it can be loaded with its head and without.

    masked_lm (MaskedLM): The trained model.
    source (Union[str, Path]): Folder or name of the original encoder. Weights that the plain encoder has and the masked
        language model lacks, like the pooler of BERT, are copied from it, so that loading the plain encoder gives no
        warning of missing weights.
    folder (Path): Folder to write.
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
    """Disable the logging and the progress bars of transformers."""
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


def _check_pieces(name: Union[str, Path], model: Any, tokenizer: Any, mask: Optional[int] = None) -> None:
    """Refuse a tokenizer with pieces that the encoder does not know: it was probably made for another one. Special
    pieces that are not used, such as a mask, need no embedding."""
    used = {tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.unk_token_id, tokenizer.pad_token_id, mask}
    unused = {*tokenizer.all_special_ids} - used
    rows = len(model.get_input_embeddings().weight)
    pieces = 1 + max((id_ for id_ in tokenizer.get_vocab().values() if id_ not in unused), default=-1)
    if rows < pieces:
        reason = f"its tokenizer has {pieces:,} pieces, of which {pieces - rows:,} have no embedding"
        raise WeaknerError(Errors.WK353.format(name=name, reason=reason))


@contextmanager
def _reading(name: Union[str, Path]) -> Iterator[None]:
    """Turn all errors in loading an encoder into a WeaknerError."""
    folder = Path(name)
    if folder.is_absolute() or len(folder.parts) > 2 or str(name)[:1] == ".":
        existing(folder)  # names have at most two parts
    if folder.is_dir() and not any(folder.glob(_WEIGHTS)):
        if not (folder / "config.json").exists():
            raise WeaknerError(Errors.WK351.format(name=name, reason="the folder has no config.json"))
        raise WeaknerError(Errors.WK352.format(name=name))
    try:
        with quiet():
            yield
    except WeaknerError:
        raise
    # Damaged files raise errors in json or safetensors, unusual configs anywhere in transformers.
    except Exception as error:
        lines = str(error).strip().splitlines()
        if isinstance(error, OSError) and "safetensors" in str(error):
            raise WeaknerError(Errors.WK352.format(name=name)) from error
        reason = (lines[0] if lines else repr(error)).rstrip(".")
        raise WeaknerError(Errors.WK351.format(name=name, reason=reason)) from error


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Use a separate random seed for torch, and restore the random state afterwards."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.random.default_generator.manual_seed(seed)
        yield


def _listed(keys: List[str]) -> str:
    return ", ".join(keys[:3]) + (f" and {len(keys) - 3} more" if len(keys) > 3 else "")
