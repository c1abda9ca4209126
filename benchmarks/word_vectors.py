"""Word vectors where no fastText files are at hand.

    python benchmarks/word_vectors.py --transformer FOLDER --output VECTORS.vec DIR/oa-mine/*.jsonl
    python benchmarks/word_vectors.py --output VECTORS.vec DIR/ec/train.jsonl DIR/ec/weak.jsonl
    spacy init vectors en VECTORS.vec FOLDER

The words are those of the given files (JSONL, perhaps gzipped, with "tokens"). With a Transformer a word has the mean
of its embeddings of the word's pieces, and nothing is learned from the files. Without one it is learned from them alone
which words (or characters, where these are the tokens) stand near each other: positive pointwise mutual information,
and its largest singular values (Levy and Goldberg 2014). The output is in the text format of fastText.
"""

import argparse
from collections import Counter
from itertools import chain
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Sequence, Tuple

import numpy
import torch
from numpy.typing import NDArray
from tqdm import tqdm

from spacy_weakner.corpus.jsonl import read_rows
from spacy_weakner.files import write_text

WINDOW, SIZE = 5, 100
# Contexts by the power of their frequency, so that rare ones do not stand out.
SMOOTHING = 0.75


def sentences(paths: Iterable[Path]) -> List[Sequence[str]]:
    """RETURNS (List[Sequence[str]]): The tokens of the sentences of the files."""
    return [row.get("tokens", ()) for path in paths for _, row in read_rows(path)]


def embedded(transformer: str, words: Iterable[str]) -> Iterator[Tuple[str, Any]]:
    """Vectors of words by a Transformer.

    transformer (str): Name or folder.
    words (Iterable[str]): The words.
    YIELDS (Tuple[str, Tensor]): A word and its vector, for each word that has pieces.
    """
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(transformer)
    table = AutoModel.from_pretrained(transformer).get_input_embeddings().weight.detach()
    for word in tqdm(words, "words", disable=None):
        pieces = tokenizer(word, add_special_tokens=False)["input_ids"]
        if pieces:
            yield word, table[torch.tensor(pieces)].mean(0)


def learned(text: List[Sequence[str]], words: Iterable[str]) -> Iterator[Tuple[str, Any]]:
    """Vectors of words by what stands near them.

    text (List[Sequence[str]]): The sentences.
    words (Iterable[str]): The words; those that occur once have no vector.
    YIELDS (Tuple[str, ndarray]): A word and its vector, of length 1.
    """
    counts = Counter(chain.from_iterable(text))
    number = {word: i for i, word in enumerate(word for word in words if counts[word] > 1)}
    near = numpy.zeros((len(number), len(number)))
    for sentence in text:
        ids = [number.get(word) for word in sentence]
        for i, first in enumerate(ids):
            for distance, second in enumerate(ids[i + 1 : i + 1 + WINDOW], start=1):
                if first is not None and second is not None:
                    near[first, second] += 1.0 / distance
                    near[second, first] += 1.0 / distance
    left, values, _ = numpy.linalg.svd(information(near))
    rows = left[:, :SIZE] * numpy.sqrt(values[:SIZE])
    rows /= numpy.maximum(numpy.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    yield from zip(number, rows, strict=True)


def information(near: NDArray[numpy.float64]) -> NDArray[numpy.float64]:
    """RETURNS (ndarray): Positive pointwise mutual information of counts, of the same shape."""
    joint = near / near.sum()
    alone = joint.sum(1, keepdims=True)
    context = alone.T**SMOOTHING
    with numpy.errstate(divide="ignore", invalid="ignore"):
        found = numpy.log(joint / (alone * (context / context.sum())))
    return numpy.maximum(numpy.nan_to_num(found, neginf=0.0), 0.0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--transformer", help="without it the vectors are learned from the files")
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    text = sentences(arguments.files)
    # A word with a space in it would be read as two.
    words: Dict[str, None] = dict.fromkeys(word for word in chain.from_iterable(text) if len(word.split()) == 1)
    rows = list(embedded(arguments.transformer, words) if arguments.transformer else learned(text, words))
    if not rows:
        raise SystemExit("the files hold no words")
    lines = [f"{len(rows)} {len(rows[0][1])}"]
    lines += [f"{word} {' '.join(f'{value:.5f}' for value in row.tolist())}" for word, row in rows]
    write_text(arguments.output, "\n".join(lines) + "\n")
    print(f"{len(rows)} words, {len(rows[0][1])} numbers each: {arguments.output}")
