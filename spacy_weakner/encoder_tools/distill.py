"""Takes vectors of word pieces from a Transformer, for encoders that are small and begin with knowing words."""

from collections import Counter
from pathlib import Path
from typing import NamedTuple, Optional, Sequence, Tuple, Union

import numpy

from ..corpus.formats.reading import input_files, read_corpus
from ..errors import Errors, WeaknerError, check_range
from ..files import atomic_path, check_output
from ..linear.pieces import PieceTable, Vectors, cut, half, load_tokenizer
from ..pipelines import blank_pipeline
from ..progress import Progress
from ..runtime.lock import holding
from .distilling.fit import fit_pieces, means, principal, similarity
from .distilling.reader import LoneWords

# Of several pieces, the most frequent ones; to learn from and, every so-many-th, to measure by.
_MAX_WORDS, _HELD_OUT = 20_000, 20
# Chosen on words of train that were held out, BC5CDR and CoNLL-2003: 0.1 to 0.3 give the same.
_STRENGTH = 0.3
Word = Tuple[int, ...]


class PiecesReport(NamedTuple):
    """What was made.

    pieces (int): Pieces in the table.
    width (int): Width of their vectors.
    words (int): Different words of the corpora.
    cut (int): Those of several pieces that the vectors were fitted to.
    held_out (int): Further ones that were held out, to measure by.
    before (float): Mean cosine of what the Transformer says of these and the mean of the vectors of their pieces, each
        piece read by itself.
    after (float): The same once they are fitted, before directions are left out.
    """

    pieces: int
    width: int
    words: int
    cut: int
    held_out: int
    before: float
    after: float


@holding("output_path")
def distil_pieces(
    inputs: Sequence[Path],
    output_path: Path,
    model: Union[str, Path],
    *,
    width: int = 256,
    overwrite: bool = False,
    gpu_id: int = -1,
    lang: str = "en",
    tokenizer: Optional[str] = None,
    format: Optional[str] = None,
    progress: bool = False,
) -> PiecesReport:
    """Make a table of vectors of word pieces, for `spacy_weakner.PieceVectors.v1` and
    `spacy_weakner.StaticPieces.v1`. A Transformer reads every piece of
    its vocabulary alone (Tulkens and van Dongen, 2024, model2vec), and the words of the corpora that have several
    pieces. The vectors are those of the pieces, without the mean over words, and then fitted: means over pieces shall
    come near what the Transformer says of the words (`distilling.fit.fit_pieces`). Of all directions those stay in
    which words differ most.

    inputs (Sequence[Path]): Corpora in any format; labels are not looked at.
    output_path (Path): Folder for the table, in the form of model2vec; written whole or not at all.
    model (Union[str, Path]): The Transformer: a folder of Hugging Face or a name, with weights as safetensors.
    width (int): Width of the vectors, at most; never more than the Transformer's.
    overwrite (bool): Replace a folder that exists.
    gpu_id (int): The GPU; -1 is the CPU.
    lang, tokenizer, format: See `convert`.
    progress (bool): Show how far it has come.
    RETURNS (PiecesReport): What was made.
    RAISES (WeaknerError): If there is no such Transformer or GPU, an input cannot be read, or the output is there, or
            is an input or the Transformer.
    """
    check_range("width", width, 1, None)
    check_range("gpu_id", gpu_id, -1, None)
    output_path = Path(output_path)
    paths = [Path(path) for path in inputs]
    there = [Path(model)] if Path(model).exists() else []
    check_output([*there, *paths, *(file_ for path in paths for file_, _ in input_files(path, format))], [output_path])
    if output_path.exists() and not overwrite:
        raise WeaknerError(Errors.WK314.format(path=output_path, exists="exists"))
    read = LoneWords(model, gpu_id)
    cutter = load_tokenizer(read.tokenizer.backend_tokenizer.to_str())
    words: Counter[Word] = Counter()
    different = set()
    nlp = blank_pipeline(lang, tokenizer)
    for path in paths:
        for doc in Progress(
            read_corpus(path, nlp, format=format), desc=f"pieces {path.name}", unit="doc", enabled=progress
        ):
            for token in doc:
                if not token.is_space:
                    different.add(token.orth)
                    words[tuple(cut(cutter, token.text))] += 1
    if not any(0 < len(word) <= read.longest for word in words):
        raise WeaknerError(Errors.WK101.format(path=", ".join(map(str, paths))))
    vectors, report = _fit(read, words, width, progress)
    table = half(vectors)
    if not numpy.isfinite(table).all():
        raise WeaknerError(Errors.WK732.format(name=model, reason="its vectors do not fit into half precision"))
    with atomic_path(output_path) as folder:
        folder.mkdir()
        PieceTable(cutter.to_str(), table).save(folder)
    return report._replace(words=len(different))


def _fit(read: LoneWords, words: "Counter[Word]", width: int, progress: bool) -> Tuple[Vectors, PiecesReport]:
    alone = read([[piece] for piece in range(read.n_pieces)], progress=progress, desc="pieces")
    several = [word for word, _ in words.most_common() if 1 < len(word) <= read.longest][:_MAX_WORDS]
    held_out, fitted_to = several[::_HELD_OUT], [word for i, word in enumerate(several) if i % _HELD_OUT]
    said = read(several, progress=progress)
    known, unseen = said[[i % _HELD_OUT > 0 for i in range(len(said))]], said[::_HELD_OUT]
    single = sorted({word[0] for word in words if len(word) == 1})
    centre = numpy.concatenate([alone[single], said]).mean(axis=0)
    vectors = alone - centre
    before = similarity(means(vectors, held_out), unseen - centre)
    vectors = fit_pieces(vectors, fitted_to, known - centre, _STRENGTH)
    after = similarity(means(vectors, held_out), unseen - centre)
    if width < vectors.shape[1]:
        vectors = vectors @ principal(means(vectors, list(words)), width)
    report = PiecesReport(len(vectors), vectors.shape[1], 0, len(fitted_to), len(held_out), before, after)
    return numpy.ascontiguousarray(vectors), report
