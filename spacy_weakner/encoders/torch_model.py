"""Encoders as torch modules."""

from typing import Any, Dict, List

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_sequence, unpack_sequence


class BiLSTM(nn.Module):
    """Bidirectional LSTM over sequences of different lengths.

    input_width (int): Width of the inputs.
    width (int): Width of the outputs; each direction has half of it.
    depth (int): Number of layers.
    """

    def __init__(self, input_width: int, width: int, depth: int) -> None:
        super().__init__()
        self.kwargs: Dict[str, Any] = {"input_width": input_width, "width": width, "depth": depth}
        self.lstm = nn.LSTM(input_width, width // 2, depth, bidirectional=True)

    def forward(self, sequences: List[Tensor]) -> Tensor:
        # sequences: each (n_tokens, input_width), n_tokens > 0
        packed = pack_sequence(sequences, enforce_sorted=False)
        output, _ = self.lstm(packed)
        # shape: (sum of n_tokens, width)
        return torch.cat(unpack_sequence(output))
