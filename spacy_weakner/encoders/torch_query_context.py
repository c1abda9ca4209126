"""The Transformer of `query_context` as a torch module, with its tokenizer."""

import json
from typing import Any, Dict, Optional, Tuple

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn

from .transformer import load_encoder, n_positions, quiet


class Reader(nn.Module):
    """A Transformer whose output are vectors of words.

    transformer (Any): A model of transformers.
    tokenizer (str): Its fast tokenizer, as JSON.
    padding (int): Id of the piece that pads.
    """

    def __init__(self, transformer: Any, tokenizer: str, padding: int) -> None:
        super().__init__()
        self.transformer = transformer
        self.padding = padding
        self.width = int(transformer.config.hidden_size)
        self.kwargs: Dict[str, Any] = {
            "config": transformer.config.to_json_string(use_diff=False),
            "tokenizer": tokenizer,
            "padding": padding,
        }
        self.max_pieces: Optional[int] = n_positions(transformer)
        self.tokenizer = self._make_tokenizer()
        self._truncating: Dict[Tuple[int, int], Tokenizer] = {}
        self._has_types = int(getattr(transformer.config, "type_vocab_size", 0) or 0) > 1

    def _make_tokenizer(self) -> Tokenizer:
        made = Tokenizer.from_str(self.kwargs["tokenizer"])
        made.no_padding()
        made.no_truncation()
        # "[SEP]" in a text is no separator.
        made.encode_special_tokens = True
        return made

    def truncating_tokenizer(self, max_length: int, stride: int) -> Tokenizer:
        """The tokenizer that cuts texts, not questions, into windows. Truncation is part of a tokenizer's state, which
        threads share, so that there is one for each."""
        key = (max_length, stride)
        if key not in self._truncating:
            made = self._make_tokenizer()
            made.enable_truncation(max_length, stride=stride, strategy="only_second", direction="right")
            self._truncating[key] = made
        return self._truncating[key]

    def forward(self, ids: Tensor, types: Tensor, mask: Tensor, first: Tensor, last: Tensor) -> Tensor:
        # ids, types, mask: (n_readings, length); first, last: (n_words,), positions in the flattened readings
        more = {"token_type_ids": types} if self._has_types else {}
        hidden = self.transformer(input_ids=ids, attention_mask=mask, return_dict=True, **more).last_hidden_state
        flat = hidden.flatten(0, 1)
        # shape: (n_words, 2 * width)
        return torch.cat([flat[first], flat[last]], dim=1).float()


def load_reader(name: str) -> Reader:
    """Make a reader of an encoder of Hugging Face.

    name (str): Folder or name.
    RETURNS (Reader): It.
    RAISES (WeaknerError): If it cannot be loaded.
    """
    transformer, tokenizer = load_encoder(name)
    return Reader(transformer, tokenizer.backend_tokenizer.to_str(), int(tokenizer.pad_token_id or 0))


def make_reader(config: str, tokenizer: str, padding: int) -> Reader:
    """Make a reader without weights, as it was stored.

    config (str): Config of the Transformer, as JSON.
    tokenizer (str): Its tokenizer, as JSON.
    padding (int): Id of the piece that pads.
    RETURNS (Reader): It.
    """
    from transformers import AutoConfig, AutoModel

    values = json.loads(config)
    with quiet():
        made = AutoConfig.for_model(values.pop("model_type"), **values)
        return Reader(AutoModel.from_config(made, trust_remote_code=False), tokenizer, padding)
