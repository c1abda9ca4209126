"""EDS-NLP's CRF on one case of crf.py, in an environment where it is installed; `crf.py --python` calls it.

    PYTHON benchmarks/crf_peer.py FILE.npz REPETITIONS

The file has emissions, tags, lengths and the parameters. It is replaced by median CPU seconds of loss with gradient,
decoding and marginals, and by what they have computed, to be compared.
"""

import sys
import time
from typing import List, Tuple

import numpy
import torch
from timing import interleave
from torch.nn.utils.rnn import pad_sequence


def main() -> None:
    """Measure, and write what was found."""
    from edsnlp.pipes.trainable.layers.crf import LinearChainCRF  # type: ignore[import-not-found]

    torch.set_num_threads(1)
    path, repetitions = sys.argv[1], int(sys.argv[2])
    given = {name: torch.from_numpy(values) for name, values in numpy.load(path).items()}
    lengths = given["lengths"].tolist()
    emissions, labels = given["emissions"].split(lengths), given["tags"].split(lengths)
    n_tags = len(given["start"])
    module = LinearChainCRF(torch.zeros(n_tags, n_tags, dtype=torch.bool))
    module.start_transitions.data, module.transitions.data = given["start"], given["transitions"]
    module.end_transitions.data = given["end"]

    # Its emissions have an axis of labels, with a chain for each: here one.
    def loss() -> torch.Tensor:
        module.zero_grad()
        padded, mask = torch_pad(emissions)
        padded.requires_grad_()
        one_hot = pad_sequence(labels, batch_first=True, padding_value=-1)[:, :, None, None] == torch.arange(n_tags)
        module(padded[:, :, None], mask, one_hot).sum().backward()
        assert padded.grad is not None  # it was asked for
        return padded.grad[mask]

    def decode() -> torch.Tensor:
        with torch.no_grad():
            padded, mask = torch_pad(emissions)
            return module.decode(padded[:, :, None], mask)[:, :, 0][mask]

    def marginals() -> torch.Tensor:
        # Each token's are log-probabilities but for a constant.
        with torch.no_grad():
            padded, mask = torch_pad(emissions)
            return module.marginal(padded[:, :, None], mask).softmax(-1)[:, :, 0][mask]

    seconds = interleave([loss, decode, marginals], repetitions, time.process_time)
    numpy.savez(path, seconds=seconds, gradient=loss(), tags=decode(), marginals=marginals())


def torch_pad(tensors: List[torch.Tensor]) -> Tuple[torch.Tensor, torch.Tensor]:
    """Pad emissions, batch first, with their mask."""
    lengths = torch.tensor([len(tensor) for tensor in tensors])
    mask = torch.arange(int(lengths.max()))[None] < lengths[:, None]
    return pad_sequence(tensors, batch_first=True), mask


if __name__ == "__main__":
    main()
