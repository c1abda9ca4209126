"""What a Transformer says of words that stand alone."""

from pathlib import Path
from typing import Any, List, Sequence, Union

import numpy

from ...encoders.transformer import load_encoder, n_positions
from ...errors import Errors, WeaknerError
from ...linear.pieces import Vectors, count_pieces
from ...progress import Progress

_BATCH = 256


class LoneWords:
    """Reads words without context: the vector of a word is the mean of the last layer over its pieces.

    name (Union[str, Path]): Folder or name of the Transformer.
    gpu_id (int): The GPU; -1 is the CPU.
    RAISES (WeaknerError): If there is no such Transformer, or GPU.
    """

    def __init__(self, name: Union[str, Path], gpu_id: int = -1) -> None:
        model, self.tokenizer = load_encoder(name)
        import torch

        if gpu_id >= torch.cuda.device_count():
            raise WeaknerError(Errors.WK357.format(gpu_id=gpu_id, count=torch.cuda.device_count()))
        self._device = torch.device("cpu" if gpu_id < 0 else f"cuda:{gpu_id}")
        self._model = model.to(self._device).eval()
        self.n_pieces = count_pieces(self.tokenizer.backend_tokenizer)
        probe = self._with_specials([self.n_pieces])
        self._first = probe.index(self.n_pieces)
        self.longest = (n_positions(model) or len(probe) + 64) - len(probe) + 1
        if model.get_input_embeddings().num_embeddings < self.n_pieces:
            raise WeaknerError(Errors.WK732.format(name=name, reason="its tokenizer has pieces without embeddings"))

    def _with_specials(self, pieces: Sequence[int]) -> List[int]:
        ids: List[int] = self.tokenizer.build_inputs_with_special_tokens(list(pieces))
        return ids

    def __call__(self, words: Sequence[Sequence[int]], *, progress: bool = False, desc: str = "words") -> Vectors:
        """Read words.

        words (Sequence[Sequence[int]]): Pieces of each, at least one and at most `longest`.
        progress (bool): Show how far it has come.
        desc (str): What they are.
        RETURNS (Vectors): Shape (n_words, width).
        """
        import torch

        # Those of a length together, so that none is padded.
        order = sorted(range(len(words)), key=lambda i: (len(words[i]), i))
        vectors = numpy.zeros((len(words), self._model.config.hidden_size), dtype="float32")
        bar = Progress[Any](total=len(words), desc=desc, unit="word", enabled=progress)
        with bar, torch.no_grad():
            for batch in _of_a_length(order, words):
                n = len(words[batch[0]])
                ids = torch.tensor([self._with_specials(words[i]) for i in batch], device=self._device)
                hidden = self._model(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state
                vectors[batch] = hidden[:, self._first : self._first + n].mean(dim=1).float().cpu().numpy()
                bar.update(len(batch))
        return vectors


def _of_a_length(order: Sequence[int], words: Sequence[Sequence[int]]) -> List[List[int]]:
    batches: List[List[int]] = []
    for i in order:
        if not batches or len(batches[-1]) == _BATCH or len(words[batches[-1][0]]) != len(words[i]):
            batches.append([])
        batches[-1].append(i)
    return batches
