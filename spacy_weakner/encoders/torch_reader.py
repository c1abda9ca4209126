"""A Transformer with its tokenizer, as a torch module that maps windows of subword pieces to vectors of words."""

import json
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import torch
from torch import Tensor, nn

from ..errors import Errors, WeaknerError
from .transformer import load_encoder, n_positions, quiet, seeded
from .windows import WindowTokenizer, mark_only_spaces

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
# A batch of windows, padded to one length: ids, types and mask, each (n_windows, length); and the positions of each
# word's first and last piece in the flattened windows, each (n_words,).
Batch = Tuple[Tensor, Tensor, Tensor, Tensor, Tensor]


class ReaderSettings(NamedTuple):
    """The settings of a Reader; see `build_transformer_encoder`."""

    pooling: str
    mixed_precision: Optional[str] = None
    frozen_layers: int = 0
    layer_decay: float = 1.0


class Reader(nn.Module):
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

    def _treat_layers_apart(self, frozen: int, decay: float) -> None:
        """Freeze the embeddings and the lowest layers, and decay learning rates from the top layer down."""
        depth = int(self.transformer.config.num_hidden_layers)
        lists = (part for part in self.transformer.modules() if isinstance(part, nn.ModuleList) and len(part) == depth)
        layers, embeddings = next(lists, None), getattr(self.transformer, "embeddings", None)
        if layers is None or embeddings is None or frozen > depth:
            reason = (
                "its layers cannot be treated separately"
                if frozen <= depth
                else f"it has only {depth} layers, not {frozen}"
            )
            reason += ". Set frozen_layers = 0 and layer_decay = 1.0 in its config, or use another Transformer"
            raise WeaknerError(Errors.WK353.format(name=type(self.transformer).__name__, reason=reason))
        # Counted from the lowest; parameters outside the layers have the level of the top layer.
        levels = {id(p): n for n, part in enumerate([embeddings, *layers]) for p in part.parameters()}
        for name, parameter in self.named_parameters():
            level = levels.get(id(parameter), depth)
            parameter.requires_grad_(not frozen or level > frozen)
            self.rates[name] = decay ** (depth - level)

    def forward(self, batches: List[Batch]) -> Tensor:
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
        with torch.autocast(ids.device.type, dtype=dtype, enabled=dtype is not None and ids.is_cuda):
            hidden = self.transformer(**inputs).last_hidden_state
        # shape: (n_windows * length, hidden size)
        pieces = hidden.flatten(0, 1).float()
        if self.settings.pooling == "mean":
            return _mean(pieces, first, last)
        return pieces[first] if self.settings.pooling == "first" else torch.cat([pieces[first], pieces[last]], dim=1)


def _mean(pieces: Tensor, first: Tensor, last: Tensor) -> Tensor:
    """Compute the mean of the pieces first..last of every word."""
    counts = last - first + 1
    starts = counts.cumsum(0) - counts
    owners = torch.arange(int(counts.sum()), device=pieces.device)
    rows = pieces[torch.repeat_interleave(first - starts, counts) + owners]
    return torch.segment_reduce(rows, "mean", lengths=counts)


def load_reader(name: str, settings: ReaderSettings) -> Reader:
    """Make a reader from an encoder of Hugging Face.

    name (str): Folder or name of the encoder.
    settings (ReaderSettings): Settings of the reader.
    RETURNS (Reader): The reader.
    RAISES (WeaknerError): If the encoder cannot be loaded.
    """
    transformer, tokenizer = load_encoder(name)
    data = mark_only_spaces(tokenizer.backend_tokenizer.to_str())
    return Reader(transformer, data, int(tokenizer.pad_token_id or 0), settings)


def make_reader(config: str, tokenizer: str, padding: int, settings: ReaderSettings) -> Reader:
    """Make a reader from its stored arguments, before its weights are loaded.

    config (str): Config of the Transformer, as JSON.
    tokenizer (str): Its tokenizer, as JSON.
    padding (int): Id of the padding piece.
    settings (ReaderSettings): Settings of the reader.
    RETURNS (Reader): The reader.
    """
    from transformers import AutoConfig, AutoModel

    values = json.loads(config)
    with quiet(), seeded(0):
        made = AutoConfig.for_model(values.pop("model_type"), **values)
        return Reader(AutoModel.from_config(made, trust_remote_code=False), tokenizer, padding, settings)
