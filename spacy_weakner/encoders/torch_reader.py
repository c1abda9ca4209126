"""A Transformer with its tokenizer, as a torch module that maps windows of subword pieces to vectors of words."""

import json
from functools import lru_cache
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import torch
from torch import Tensor, nn

from .._compat import limit_shape_caches
from ..errors import Errors, WeaknerError, check_range
from .transformer import MIDDLE, ReaderSettings, load_encoder, n_positions, quiet, seeded
from .windows import WindowTokenizer, mark_only_spaces

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
# A batch of windows, padded to one length: ids, types and mask, each (n_windows, length); and the positions of each
# word's first and last piece in the flattened windows, each (n_words,).
PieceTensors = Tuple[Tensor, Tensor, Tensor, Tensor, Tensor]


class TransformerReader(nn.Module):
    """A Transformer that outputs vectors of words.

    transformer (Any): A model of transformers.
    tokenizer (str): Its fast tokenizer, as JSON.
    padding (int): Id of the padding piece.
    settings (ReaderSettings): Settings, which are not stored with the weights.
    RAISES (WeaknerError): If settings of layers are given, but the Transformer has no list of layers, or too few.
    """

    def __init__(self, transformer: Any, tokenizer: str, padding: int, settings: ReaderSettings) -> None:
        super().__init__()
        self.transformer = transformer
        self.padding = padding
        self.settings = settings
        self.predicts_in_bfloat16 = False  # on CPUs, see `use_bfloat16`
        self.width = int(transformer.config.hidden_size) * (2 if settings.pooling == "first_last" else 1)
        # Without private keys, which have local folders and other information on this machine.
        config = json.loads(transformer.config.to_json_string(use_diff=False))
        self.kwargs: Dict[str, Any] = {
            "config": json.dumps({key: value for key, value in config.items() if key[:1] != "_"}),
            "tokenizer": tokenizer,
            "padding": padding,
        }
        self.max_pieces: Optional[int] = n_positions(transformer)
        self.tokenizer = WindowTokenizer(tokenizer)
        self._has_types = int(getattr(transformer.config, "type_vocab_size", 0) or 0) > 1
        # Factors on the learning rate, by name of the parameter.
        self.rates: Dict[str, float] = {}
        if settings.frozen_layers or settings.layer_decay != 1.0:
            self._treat_layers_apart(settings.frozen_layers, settings.layer_decay)

    def save(self, folder: Path) -> None:
        """Write the Transformer and its tokenizer to a folder, as an encoder of Hugging Face."""
        from tokenizers import Tokenizer
        from transformers import PreTrainedTokenizerFast

        tokenizer = Tokenizer.from_str(self.tokenizer.data)
        padding = tokenizer.id_to_token(self.padding)
        with quiet():
            self.transformer.save_pretrained(folder, safe_serialization=True)
            fast: Any = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token=padding)
            fast.save_pretrained(folder)

    def _treat_layers_apart(self, frozen: int, decay: float) -> None:
        """Freeze the embeddings and the lowest layers, and decay learning rates from the top layer down."""
        depth = int(self.transformer.config.num_hidden_layers)
        cure = "Set frozen_layers = 0 and layer_decay = 1.0 in its config, or use another Transformer"
        embeddings = getattr(self.transformer, "embeddings", None)
        if frozen > depth or embeddings is None:
            reason = "its embeddings are not separate" if frozen <= depth else f"it has {depth} layers, not {frozen}"
            raise WeaknerError(Errors.WK353.format(name=type(self.transformer).__name__, reason=f"{reason}. {cure}"))
        layers = _layers_of(self.transformer, cure)
        # Counted from the lowest; parameters outside the layers have the level of the top layer.
        levels = {id(p): n for n, part in enumerate([embeddings, *layers]) for p in part.parameters()}
        for name, parameter in self.named_parameters():
            level = levels.get(id(parameter), depth)
            parameter.requires_grad_(not frozen or level > frozen)
            self.rates[name] = decay ** (depth - level)

    def forward(self, batches: List[PieceTensors]) -> Tensor:
        # One look-up for all batches, since the gradient of each look-up is as large as the vocabulary.
        pieces = self.transformer.get_input_embeddings()(torch.cat([ids.flatten() for ids, *_ in batches]))
        embedded = pieces.split([ids.numel() for ids, *_ in batches])
        # shape: (n_words of all batches, width)
        return torch.cat([self._read(vectors, *batch) for vectors, batch in zip(embedded, batches, strict=True)])

    def _read(self, embedded: Tensor, ids: Tensor, types: Tensor, mask: Tensor, first: Tensor, last: Tensor) -> Tensor:
        inputs = {"inputs_embeds": embedded.view(*ids.shape, -1), "attention_mask": mask, "return_dict": True}
        if self._has_types:
            inputs["token_type_ids"] = types
        dtype = DTYPES.get(self.settings.mixed_precision or "")
        on_cpu = self.settings.mixed_on_cpu and dtype is torch.bfloat16 and cpu_has_bfloat16()
        if self.predicts_in_bfloat16 and not self.training:
            dtype, on_cpu = torch.bfloat16, True
        if on_cpu:
            limit_shape_caches()
        with torch.autocast(ids.device.type, dtype=dtype, enabled=dtype is not None and (ids.is_cuda or on_cpu)):
            hidden = self.transformer(**inputs).last_hidden_state
        # shape: (n_windows * length, hidden size)
        pieces = hidden.flatten(0, 1).float()
        if self.settings.pooling == "mean":
            return _mean(pieces, first, last)
        return pieces[first] if self.settings.pooling == "first" else torch.cat([pieces[first], pieces[last]], dim=1)


@lru_cache(maxsize=1)
def cpu_has_bfloat16() -> bool:
    """RETURNS (bool): True if the CPU has instructions for bfloat16 that torch uses: AVX-512 BF16 or AMX."""
    checks = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    return any(getattr(torch.cpu, name, bool)() for name in checks)


def _mean(pieces: Tensor, first: Tensor, last: Tensor) -> Tensor:
    """Compute the mean of the pieces first..last of every word."""
    counts = last - first + 1
    starts = counts.cumsum(0) - counts
    owners = torch.arange(int(counts.sum()), device=pieces.device)
    # Both functions would check the counts, and so wait for a GPU.
    rows = pieces[torch.repeat_interleave(first - starts, counts, output_size=len(owners)) + owners]
    return torch.segment_reduce(rows, "mean", lengths=counts, unsafe=True)


def _layers_of(transformer: Any, cure: str) -> nn.ModuleList:
    """Find the layers of a Transformer."""
    depth = int(transformer.config.num_hidden_layers)
    lists = [part for part in transformer.modules() if isinstance(part, nn.ModuleList) and len(part) == depth]
    if not lists:
        reason = f"its layers cannot be treated separately. {cure}"
        raise WeaknerError(Errors.WK353.format(name=type(transformer).__name__, reason=reason))
    return lists[0]


def _remove_upper_layers(transformer: Any, layer: int) -> None:
    """Remove the layers above one, so that its output is that of the Transformer."""
    depth = int(transformer.config.num_hidden_layers)
    kept = max(1, depth // 2) if layer == MIDDLE else layer
    check_range("layer", kept, 1, depth)
    if kept < depth:
        del _layers_of(transformer, "Use another Transformer")[kept:]
        transformer.config.num_hidden_layers = kept
        if getattr(transformer.config, "layer_types", None):  # one per layer
            transformer.config.layer_types = transformer.config.layer_types[:kept]


def load_reader(name: str, settings: ReaderSettings, layer: Optional[int] = None) -> TransformerReader:
    """Make a reader from an encoder of Hugging Face.

    name (str): Folder or name of the encoder.
    settings (ReaderSettings): Settings of the reader.
    layer (Optional[int]): Number of the layer whose output is read, counted from 1, `MIDDLE`: that in the middle;
        the layers above it are removed. None: the last layer.
    RETURNS (TransformerReader): The reader.
    RAISES (WeaknerError): If the encoder cannot be loaded, or has no such layer.
    """
    transformer, tokenizer = load_encoder(name)
    if layer is not None:
        _remove_upper_layers(transformer, layer)
    data = mark_only_spaces(tokenizer.backend_tokenizer.to_str())
    return TransformerReader(transformer, data, int(tokenizer.pad_token_id or 0), settings)


def make_reader(config: str, tokenizer: str, padding: int, settings: ReaderSettings) -> TransformerReader:
    """Make a reader from its stored arguments, before its weights are loaded.

    config (str): Config of the Transformer, as JSON.
    tokenizer (str): Its tokenizer, as JSON.
    padding (int): Id of the padding piece.
    settings (ReaderSettings): Settings of the reader.
    RETURNS (TransformerReader): The reader.
    """
    from transformers import AutoConfig, AutoModel

    values = json.loads(config)
    with quiet(), seeded(0):
        made = AutoConfig.for_model(values.pop("model_type"), **values)
        return TransformerReader(AutoModel.from_config(made, trust_remote_code=False), tokenizer, padding, settings)
