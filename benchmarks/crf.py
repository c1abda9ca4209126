"""Speed of the CRF against pytorch-crf and EDS-NLP's on the CPU: loss with gradient, decoding, marginals.

    python benchmarks/crf.py [--python PYTHON] [--repetitions 31] [--write]

All start from the same list of float32 emissions (n_tokens, n_tags) and tag sequences, and pad inside the timed part;
what they compute is compared first. One thread, CPU seconds. EDS-NLP runs in a process of its own (crf_peer.py), with
the Python of an environment where it is installed; the two processes take turns, and medians are compared. `--write`
replaces the table on docs/evidence/crf.md.
"""

import argparse
import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

import numpy
import torch
from crf_peer import torch_pad
from timing import conditions, interleave
from torch.nn.utils.rnn import pad_sequence
from torchcrf import CRF

from spacy_weakner.crf.decoding import viterbi
from spacy_weakner.crf.kernel import CRFParameters, forward_backward, pad
from spacy_weakner.crf_ner.likelihood import Target
from spacy_weakner.crf_ner.losses import CRFNegativeLogLikelihood

EVIDENCE = Path(__file__).resolve().parent.parent / "docs" / "evidence" / "crf.md"
HEADING = "\n## Thousands of tokens per CPU second\n"
# How often the two processes take turns.
TURNS = 3


class Case(NamedTuple):
    """Shape of a batch.

    n_sequences (int): Sequences.
    length (int): Tokens of each, or of the longest.
    n_tags (int): Tags.
    ragged (bool): Lengths drawn evenly from 1 to `length`.
    """

    n_sequences: int = 64
    length: int = 32
    n_tags: int = 13
    ragged: bool = False


CASES = [Case(), Case(n_tags=9), Case(n_tags=37), Case(length=128), Case(ragged=True), Case(192, n_tags=5)]


def main() -> None:
    """Measure all cases and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", help="of an environment with EDS-NLP; without it its columns stay empty")
    parser.add_argument("--repetitions", type=int, default=31, help="of a turn")
    parser.add_argument("--write", action="store_true", help="put the table on docs/evidence/crf.md")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    told = f"{TURNS} turns, each: {conditions(arguments.repetitions, 'numpy', 'torch', 'pytorch-crf')}"
    if arguments.python:
        version = "from importlib.metadata import version; print('EDS-NLP', version('edsnlp'))"
        told += " " + subprocess.check_output([arguments.python, "-c", version], text=True).strip() + "."
    table = render([(case, measure(case, arguments.repetitions, arguments.python)) for case in CASES])
    print(table, told, sep="\n\n")
    if arguments.write:
        head = EVIDENCE.read_text(encoding="utf8").split(HEADING)[0]
        EVIDENCE.write_text(f"{head}{HEADING}\n{table}\n\n{told}\n", encoding="utf8")


def measure(case: Case, repetitions: int, python: Optional[str]) -> List[float]:
    """Time one case.

    case (Case): The shape.
    repetitions (int): How often each is run in a turn.
    python (Optional[str]): Python of EDS-NLP; None: it is left out.
    RETURNS (List[float]): Thousands of tokens per second: loss and decode, ours and pytorch-crf's in turn, marginals;
        then loss, decode and marginals of EDS-NLP.
    """
    random = numpy.random.RandomState(0)
    lengths = random.randint(1, case.length + 1, case.n_sequences) if case.ragged else [case.length] * case.n_sequences
    emissions = [random.normal(size=(n, case.n_tags)).astype("float32") for n in lengths]
    tags = [random.randint(0, case.n_tags, n) for n in lengths]
    targets = [Target(own) for own in tags]
    module = CRF(case.n_tags, batch_first=True)
    scores = [t.detach().numpy() for t in (module.start_transitions, module.transitions, module.end_transitions)]
    parameters = CRFParameters(*(values.astype("float64") for values in scores))
    tensors, labels = [torch.from_numpy(e) for e in emissions], [torch.from_numpy(t) for t in tags]
    loss = CRFNegativeLogLikelihood()

    def torch_loss() -> torch.Tensor:
        module.zero_grad()
        padded, mask = torch_pad(tensors)
        padded.requires_grad_()
        (-module(padded, pad_sequence(labels, batch_first=True), mask, reduction="sum")).backward()
        assert padded.grad is not None  # it was asked for
        return padded.grad[mask]

    def torch_decode() -> List[List[int]]:
        with torch.no_grad():
            return module.decode(*torch_pad(tensors))

    functions: List[Callable[[], Any]] = [
        lambda: loss(parameters, emissions, targets),
        torch_loss,
        lambda: viterbi(parameters, pad(emissions)),
        torch_decode,
        lambda: forward_backward(parameters, pad(emissions)).token_marginals(),
    ]
    gradient = numpy.concatenate(loss(parameters, emissions, targets).emissions)
    numpy.testing.assert_allclose(gradient, torch_loss(), atol=1e-4)
    given = {"emissions": numpy.concatenate(emissions), "tags": numpy.concatenate(tags), "lengths": lengths}
    given |= dict(zip(CRFParameters._fields, scores, strict=True))
    batch, turns = pad(emissions), []
    marginals = numpy.concatenate(batch.unpad(forward_backward(parameters, batch).token_marginals()))
    paths = numpy.concatenate([path.tags for path in viterbi(parameters, batch)])
    for _ in range(TURNS):
        seconds = interleave(functions, repetitions, time.process_time)
        if python:
            found = run_peer(python, given, repetitions)
            numpy.testing.assert_allclose(gradient, found["gradient"], atol=1e-4)
            numpy.testing.assert_allclose(marginals, found["marginals"], atol=1e-4)
            # Its decoder goes on through the padding.
            assert case.ragged or (paths == found["tags"]).all()
            seconds += found["seconds"].tolist()
        turns.append(seconds)
    return [sum(lengths) / 1000 / seconds for seconds in numpy.median(turns, axis=0)]


def run_peer(python: str, given: Dict[str, Any], repetitions: int) -> Dict[str, numpy.ndarray]:
    """What EDS-NLP computes, and its seconds, in a process of its own."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": ""}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "case.npz"
        numpy.savez(path, **given)
        script = Path(__file__).with_name("crf_peer.py")
        subprocess.run([python, str(script), str(path), str(repetitions)], check=True, env=environment)
        return dict(numpy.load(path))


def render(rows: List[Tuple[Case, List[float]]]) -> str:
    """Make the Markdown table; behind the speed of others, how many times as fast ours is."""
    heads = ["sequences", "tokens", "tags", "loss: ours", "pytorch-crf", "EDS-NLP", "decode: ours", "pytorch-crf"]
    heads += ["EDS-NLP", "marginals: ours", "EDS-NLP"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for case, (loss, torch_loss, decode, torch_decode, marginals, *peer) in rows:
        groups = [[loss, torch_loss, *peer[:1]], [decode, torch_decode, *peer[1:2]], [marginals, *peer[2:]]]
        cells = [f"{case.n_sequences}", f"1-{case.length}" if case.ragged else f"{case.length}", f"{case.n_tags}"]
        for (ours, *others), n in zip(groups, (2, 2, 1), strict=True):
            told = [f"{speed:.0f} ({ours / speed:.1f})" for speed in others]
            cells += [f"{ours:.0f}", *told, *["-"] * (n - len(told))]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
