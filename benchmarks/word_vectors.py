"""Word vectors where no fastText files are at hand: the mean of a Transformer's embeddings of the pieces of a word.

    python benchmarks/word_vectors.py --transformer FOLDER --output VECTORS.vec DIR/oa-mine/*.jsonl
    spacy init vectors en VECTORS.vec FOLDER

The words are those of the given files (JSONL, perhaps gzipped, with "tokens"). Nothing is learned from the files: the
vectors of a Transformer stay as they are. The output is in the text format of fastText.
"""

import argparse
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, Tuple

import torch
from tqdm import tqdm

from spacy_weakner.annotations.jsonl import read_rows
from spacy_weakner.files import write_text


def words(paths: Iterable[Path]) -> Dict[str, None]:
    """RETURNS (Dict[str, None]): The different words of the files, in their order."""
    found: Dict[str, None] = {}
    for path in paths:
        for _, row in read_rows(path):
            found.update(dict.fromkeys(row.get("tokens", ())))
    return found


def vectors(transformer: str, of: Iterable[str]) -> Iterator[Tuple[str, Any]]:
    """Vectors of words.

    transformer (str): Name or folder.
    of (Iterable[str]): The words.
    YIELDS (Tuple[str, Tensor]): A word and its vector, for each word that has pieces.
    """
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(transformer)
    table = AutoModel.from_pretrained(transformer).get_input_embeddings().weight.detach()
    for word in tqdm(of, "words", disable=None):
        pieces = tokenizer(word, add_special_tokens=False)["input_ids"]
        if pieces:
            yield word, table[torch.tensor(pieces)].mean(0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--transformer", required=True)
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    # A word with a space in it would be read as two.
    rows = [(word, row) for word, row in vectors(arguments.transformer, words(arguments.files)) if not word.split()[1:]]
    if not rows:
        raise SystemExit("the files hold no words")
    lines = [f"{len(rows)} {len(rows[0][1])}"]
    lines += [f"{word} {' '.join(f'{value:.5f}' for value in row.tolist())}" for word, row in rows]
    write_text(arguments.output, "\n".join(lines) + "\n")
    print(f"{len(rows)} words, {len(rows[0][1])} numbers each: {arguments.output}")
