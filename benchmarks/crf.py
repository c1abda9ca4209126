"""Speed of the CRF against pytorch-crf on the CPU: loss with gradient, and decoding.

    OMP_NUM_THREADS=1 python benchmarks/crf.py [--repetitions 31] [--write]

Both start from the same list of float32 emissions (n_tokens, n_tags) and tag sequences, and pad inside the timed part.
Repetitions of the two are interleaved, and medians compared. `--write` adds the table, with versions and threads, to
docs/evidence/crf.md; a table of the same number of threads is replaced.
"""

import argparse
import re
from pathlib import Path
from typing import List, NamedTuple, Tuple

import numpy
import torch
from timing import conditions, interleave, use_threads
from torch.nn.utils.rnn import pad_sequence
from torchcrf import CRF

from spacy_weakner.crf.decoding import viterbi
from spacy_weakner.crf.kernel import CRFParameters, pad
from spacy_weakner.crf_ner.likelihood import Target
from spacy_weakner.crf_ner.losses import CRFNegativeLogLikelihood

EVIDENCE = Path(__file__).resolve().parent.parent / "docs" / "evidence" / "crf.md"
TITLE = """# Speed of the CRF

`python benchmarks/crf.py --write`: this package's CRF against pytorch-crf on the CPU, in one process, repetitions
interleaved, medians. Loss with gradient: from lists of float32 emissions and tags to the loss and the gradients of
emissions, start, transitions and end, padding included. Decode: from lists of emissions to the best paths.
"""


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


CASES = [Case(), Case(n_tags=9), Case(n_tags=37), Case(length=128), Case(ragged=True)]


def main() -> None:
    """Measure all cases and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=31)
    parser.add_argument("--write", action="store_true", help="add the table to docs/evidence/crf.md")
    arguments = parser.parse_args()
    use_threads()
    table = render([(case, *measure(case, arguments.repetitions)) for case in CASES])
    print(table)
    if arguments.write:
        write(table, torch.get_num_threads(), arguments.repetitions)


def measure(case: Case, repetitions: int) -> Tuple[int, List[float]]:
    """Time one case.

    case (Case): The shape.
    repetitions (int): How often each is run.
    RETURNS (Tuple[int, List[float]]): Number of tokens; median seconds of loss (ours, theirs) and decode (ours,
        theirs).
    """
    random = numpy.random.RandomState(0)
    lengths = random.randint(1, case.length + 1, case.n_sequences) if case.ragged else [case.length] * case.n_sequences
    emissions = [random.normal(size=(n, case.n_tags)).astype("float32") for n in lengths]
    tags = [random.randint(0, case.n_tags, n) for n in lengths]
    targets = [Target(own) for own in tags]
    module = CRF(case.n_tags, batch_first=True)
    parameters = CRFParameters(
        *(
            tensor.detach().double().numpy()
            for tensor in (module.start_transitions, module.transitions, module.end_transitions)
        )
    )
    tensors, labels = [torch.from_numpy(e) for e in emissions], [torch.from_numpy(t) for t in tags]
    loss = CRFNegativeLogLikelihood()

    def torch_loss() -> List[torch.Tensor]:
        module.zero_grad()
        padded, mask = torch_pad(tensors)
        padded.requires_grad_()
        (-module(padded, pad_sequence(labels, batch_first=True), mask, reduction="sum")).backward()
        assert padded.grad is not None  # it was asked for
        return [gradient[:n] for gradient, n in zip(padded.grad, lengths, strict=True)]

    def torch_decode() -> List[List[int]]:
        with torch.no_grad():
            return module.decode(*torch_pad(tensors))

    ours = loss(parameters, emissions, targets).emissions
    numpy.testing.assert_allclose(numpy.concatenate(ours), torch.cat(torch_loss()), atol=1e-4)
    seconds = interleave(
        [
            lambda: loss(parameters, emissions, targets),
            torch_loss,
            lambda: viterbi(parameters, pad(emissions)),
            torch_decode,
        ],
        repetitions,
    )
    return int(sum(lengths)), seconds


def torch_pad(tensors: List[torch.Tensor]) -> Tuple[torch.Tensor, torch.Tensor]:
    """Pad emissions as users of pytorch-crf do."""
    lengths = torch.tensor([len(tensor) for tensor in tensors])
    mask = torch.arange(int(lengths.max()))[None] < lengths[:, None]
    return pad_sequence(tensors, batch_first=True), mask


def render(rows: List[Tuple[Case, int, List[float]]]) -> str:
    """Make the Markdown table: thousands of tokens per second, and how many times as fast."""
    lines = [
        "| sequences | tokens | tags | loss: ours | pytorch-crf | ratio | decode: ours | pytorch-crf | ratio |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for case, n_tokens, (loss, torch_loss, decode, torch_decode) in rows:
        speeds = [f"{n_tokens / s / 1000:.0f} k/s" for s in (loss, torch_loss, decode, torch_decode)]
        length = f"1-{case.length}" if case.ragged else f"{case.length}"
        cells = [f"{case.n_sequences}", length, f"{case.n_tags}", *speeds[:2], f"{torch_loss / loss:.1f}"]
        lines.append("| " + " | ".join([*cells, *speeds[2:], f"{torch_decode / decode:.1f}"]) + " |")
    return "\n".join(lines)


def write(table: str, n_threads: int, repetitions: int) -> None:
    """Put the table on the page, in place of an older one with as many threads."""
    told = conditions(repetitions, "numpy", "torch", "pytorch-crf")
    heading = f"## {n_threads} thread{'s' if n_threads > 1 else ''}"
    text = EVIDENCE.read_text(encoding="utf8") if EVIDENCE.exists() else TITLE
    sections = [part.strip() for part in re.split(r"\n(?=## )", text)[1:]]
    kept = [section for section in sections if section.splitlines()[0] != heading]
    ordered = sorted([*kept, f"{heading}\n\n{table}\n\n{told}"])
    EVIDENCE.write_text("\n\n".join([TITLE.strip(), *ordered]) + "\n", encoding="utf8")


if __name__ == "__main__":
    main()
