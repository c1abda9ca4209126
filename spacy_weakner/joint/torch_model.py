"""Encoders as torch modules. Each maps the concatenated rows of all sequences, and their lengths (none of them 0), to
as many rows."""

from typing import Any, Dict, List, Optional, Tuple, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid
from torch.nn.utils.rnn import pack_sequence, pad_sequence, unpack_sequence

ModuleT = TypeVar("ModuleT", bound=nn.Module)


class BiLSTM(nn.Module):
    """A bidirectional LSTM.

    input_width (int): Width of the inputs.
    width (int): Width of the outputs; each direction has half of it.
    depth (int): Number of layers.
    """

    def __init__(self, input_width: int, width: int, depth: int) -> None:
        super().__init__()
        self.kwargs: Dict[str, Any] = {"input_width": input_width, "width": width, "depth": depth}
        self.width = width
        self.lstm = nn.LSTM(input_width, width // 2, depth, bidirectional=True)

    def forward(self, vectors: Tensor, lengths: List[int]) -> Tensor:
        # vectors: (n_tokens, input_width)
        packed = pack_sequence(vectors.split(lengths), enforce_sorted=False)
        output, _ = self.lstm(packed)
        # shape: (n_tokens, width)
        return torch.cat(unpack_sequence(output))


class SoftAttention(nn.Module):
    """Soft attention, which weights tokens by their importance in the sentence (Kruengkrai et al. 2020, Equation 4,
    without its residual):

        H (x) a,  a = a~ / sum_j a~_j,  a~ = sigmoid(w_2 g + b_2),  g = tanh(W_3 H^T + b_3)

    input_width (int): Width d_h of inputs and outputs.
    """

    def __init__(self, input_width: int) -> None:
        super().__init__()
        self.kwargs: Dict[str, Any] = {"input_width": input_width}
        self.width = input_width
        self.hidden = nn.Linear(input_width, input_width)  # W_3, b_3
        self.evidence = nn.Linear(input_width, 1)  # w_2, b_2

    def forward(self, vectors: Tensor, lengths: List[int]) -> Tensor:
        # shapes: (n_sentences, length, d_h); (n_sentences, length)
        H, mask = pad_vectors(vectors, lengths)
        evidence = self.evidence(torch.tanh(self.hidden(H))).squeeze(-1)
        # Dividing by the sum equals the softmax of the logarithms, in which small sigmoids do not underflow.
        a = logsigmoid(evidence).masked_fill(~mask, -torch.inf).softmax(-1)
        return without_padding(H * a.unsqueeze(-1), lengths)


class SelfAttention(nn.Module):
    """Multi-head self-attention with temperatures that may be learned (Kruengkrai et al. 2020, Equations 5 to 7,
    without the residual):

        concat(head_1, ..., head_n) W^O,  head_j = softmax(Q_j K_j^T / delta) V_j
        delta = min(ReLU(w_4 H^T + b_4), sqrt(d_h / n)) + 1

    input_width (int): Width d_h of inputs and outputs.
    heads (int): Number n of heads.
    scale (str): The temperature delta: "learned" as above, one for each querying token; "scaled": sqrt(d_h / n);
        "unscaled": 1.
    bias (bool): Whether the four linear layers have biases.
    dropout (float): Rate of dropout on the weights of the softmax.
    """

    def __init__(self, input_width: int, heads: int, scale: str, bias: bool = False, dropout: float = 0.0) -> None:
        super().__init__()
        # Without the dropout, since weights can be loaded with any rate.
        self.kwargs: Dict[str, Any] = {"input_width": input_width, "heads": heads, "scale": scale, "bias": bias}
        self.width = input_width
        self.heads = heads
        self.scale = scale
        self.dropout = nn.Dropout(dropout)
        self.query = nn.Linear(input_width, input_width, bias=bias)
        self.key = nn.Linear(input_width, input_width, bias=bias)
        self.value = nn.Linear(input_width, input_width, bias=bias)
        self.output = nn.Linear(input_width, input_width, bias=bias)
        if scale == "learned":
            self.temperature = nn.Linear(input_width, 1)  # w_4, b_4

    def forward(self, vectors: Tensor, lengths: List[int]) -> Tensor:
        # shapes: (n_sentences, length, d_h); (n_sentences, length)
        H, mask = pad_vectors(vectors, lengths)
        Q, K, V = self._split(self.query(H)), self._split(self.key(H)), self._split(self.value(H))
        # shape: (n_sentences, n, length, length): the querying token, the attended token
        scores = Q @ K.transpose(-1, -2) / self._delta(H)
        weights = scores.masked_fill(~mask[:, None, None, :], -torch.inf).softmax(-1)
        # shape: (n_sentences, length, d_h)
        heads = (self.dropout(weights) @ V).transpose(1, 2).flatten(2)
        return self.output(without_padding(heads, lengths))

    def _split(self, vectors: Tensor) -> Tensor:
        # shape: (n_sentences, n, length, d_h / n)
        return vectors.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def _delta(self, H: Tensor) -> Tensor:
        cap = (self.width / self.heads) ** 0.5
        if self.scale == "learned":
            # shape: (n_sentences, 1, length, 1): for each querying token, the same for all heads
            return (torch.relu(self.temperature(H)).clamp(max=cap) + 1).unsqueeze(1)
        return H.new_tensor(cap if self.scale == "scaled" else 1.0)


def pad_vectors(vectors: Tensor, lengths: List[int]) -> Tuple[Tensor, Tensor]:
    """Pad sequences.

    vectors (Tensor): Shape (n_tokens, width): the rows of all sequences.
    lengths (List[int]): Number of tokens of each sequence.
    RETURNS (Tuple[Tensor, Tensor]): Shape (n_sequences, length, width); and a mask of tokens, (n_sequences, length).
    """
    padded = pad_sequence(vectors.split(lengths), batch_first=True)
    places = torch.arange(padded.shape[1], device=padded.device)
    return padded, places < torch.tensor(lengths, device=padded.device)[:, None]


def without_padding(padded: Tensor, lengths: List[int]) -> Tensor:
    """Return the rows of all sequences: the inverse of `pad_vectors`. (A mask would wait for a GPU.)"""
    return torch.cat([rows[:n] for rows, n in zip(padded, lengths, strict=True)])


def draw_weights(module: ModuleT, bound: Optional[float]) -> ModuleT:
    """Initialize all weights of a module from U(-bound, bound).

    module (ModuleT): The module.
    bound (Optional[float]): The bound; None: do not change the weights.
    RETURNS (ModuleT): The module.
    """
    if bound is not None:
        for parameter in module.parameters():
            nn.init.uniform_(parameter, -bound, bound)
    return module
