"""Distills a Transformer into vectors of subwords (pieces), for small encoders that need information on words before
training."""

from collections import Counter
from pathlib import Path
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy

from ..corpus.counts import RowCounts
from ..corpus.language import corpus_language
from ..encoders.transformer import load_encoder, n_positions
from ..errors import Errors, WeaknerError, check_range
from ..linear.pieces import Float32s, count_pieces, cut, load_tokenizer, special_pieces
from ..progress import Progress
from ..runtime.output import made_folder, making
from .embeddings import piece_table
from .reading import stream_text
from .subword_vectors import fit_pieces, means, principal, products, similarity

# Of words with several pieces, the most frequent ones are used, and one in _HELD_OUT is held out.
_MAX_WORDS, _HELD_OUT = 20_000, 20
# Chosen on held-out words of the training sets of BC5CDR and CoNLL-2003: 0.1 to 0.3 give the same result.
_STRENGTH = 0.3
_BATCH = 256
Word = Tuple[int, ...]


class DistillReport(NamedTuple):
    """The table, and the quality of the fit."""

    pieces: int
    width: int  # width of their vectors
    words: int  # distinct words of the corpora
    cut: int  # words of several pieces that the vectors were fitted to
    held_out: int  # further words, held out to measure the fit
    # Mean cosine between the Transformer's vectors of the held-out words and the means of their pieces' vectors, where
    # each piece was encoded alone.
    before: float
    after: float  # the same after fitting, before the dimensions are reduced
    remarks: Sequence[str] = ()  # on what was read


class LoneWords:
    """A Transformer that encodes words without context: the vector of a word is the mean of the last layer over its
    pieces."""

    def __init__(self, name: Union[str, Path], gpu_id: int = -1) -> None:
        model, tokenizer = load_encoder(name)
        import torch

        if gpu_id >= torch.cuda.device_count():
            raise WeaknerError(Errors.WK432.format(gpu_id=gpu_id, reason="torch finds no such GPU"))
        self._device = torch.device("cpu" if gpu_id < 0 else f"cuda:{gpu_id}")
        self._model = model.to(self._device).eval()
        # Many models have a tokenizer that pads each text to a fixed length.
        self.cutter = load_tokenizer(tokenizer.backend_tokenizer.to_str())
        self.n_pieces = count_pieces(self.cutter)
        self._before, self._after = special_pieces(self.cutter, "a")
        self._first = len(self._before)
        n_special = self._first + len(self._after)
        self.longest = (n_positions(model) or n_special + 65) - n_special
        if len(model.get_input_embeddings().weight) < self.n_pieces:
            raise WeaknerError(Errors.WK353.format(name=name, reason="its tokenizer has pieces without embeddings"))

    def __call__(self, words: Sequence[Sequence[int]], *, progress: bool = False, desc: str = "words") -> Float32s:
        """Return the vectors of words, each of at least one and at most `longest` pieces. Shape (n_words, width)."""
        import torch

        # Words of the same length form a batch, so that none is padded.
        order = sorted(range(len(words)), key=lambda i: (len(words[i]), i))
        vectors = numpy.zeros((len(words), self._model.config.hidden_size), dtype="float32")
        bar = Progress[Any](total=len(words), desc=desc, unit="word", enabled=progress)
        with bar, torch.no_grad():
            for batch in _by_length(order, words):
                n = len(words[batch[0]])
                rows = [[*self._before, *words[i], *self._after] for i in batch]
                ids = torch.tensor(rows, device=self._device)
                hidden = self._model(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state
                vectors[batch] = hidden[:, self._first : self._first + n].mean(dim=1).float().cpu().numpy()
                bar.update(len(batch))
        return vectors


def _by_length(order: Sequence[int], words: Sequence[Sequence[int]]) -> List[List[int]]:
    batches: List[List[int]] = []
    for i in order:
        if not batches or len(batches[-1]) == _BATCH or len(words[batches[-1][0]]) != len(words[i]):
            batches.append([])
        batches[-1].append(i)
    return batches


@making("output_path", "inputs", "model", folder=True)
def distill(
    inputs: Sequence[Path],
    output_path: Path,
    model: Union[str, Path],
    *,
    width: int = 256,
    overwrite: bool = False,
    gpu_id: int = -1,
    lang: Optional[str] = None,
    progress: bool = False,
) -> DistillReport:
    """Make a table of word-piece vectors, for `spacy_weakner.PieceVectors.v1` and `spacy_weakner.StaticPieces.v1`. A
    Transformer encodes each piece of its vocabulary alone (Tulkens and van Dongen, 2024, model2vec), and the words of
    the corpora that have several pieces. The piece vectors are centered on the mean over words, and then fitted, so
    that their means come near the Transformer's vectors of whole words (`subword_vectors.fit_pieces`). The dimensions
    in which words differ most are kept.

    inputs (Sequence[Path]): Corpora in any format; labels are not used.
    output_path (Path): Folder for the table, in the format of model2vec; written whole or not at all.
    model (Union[str, Path]): The Transformer: a Hugging Face folder or name, with weights as safetensors.
    width (int): Maximum width of the vectors; never more than the width of the Transformer.
    overwrite (bool): Replace an output that was edited.
    gpu_id (int): The GPU; -1 is the CPU.
    lang: See `convert`.
    progress (bool): Show progress.
    RETURNS (DistillReport): The table, and the quality of the fit.
    RAISES (WeaknerError): If there is no such Transformer or GPU, an input cannot be read, or the output exists, or is
        an input or the Transformer.
    """
    check_range("width", width, 1, None)
    check_range("gpu_id", gpu_id, -1, None)
    output_path = Path(output_path)
    paths = [Path(path) for path in inputs]
    read = LoneWords(model, gpu_id)
    texts: Counter[str] = Counter()
    counts = RowCounts()
    for path in paths:
        nlp = corpus_language(path, lang).blank()
        for doc in Progress(stream_text(path, nlp, counts), desc=f"pieces {path.name}", unit="doc", enabled=progress):
            texts.update(token.text for token in doc if not token.is_space)
    words: Counter[Word] = Counter()
    for text, n in texts.items():
        words[tuple(cut(read.cutter, text))] += n
    if not any(0 < len(word) <= read.longest for word in words):
        raise WeaknerError(Errors.WK101.format(path=", ".join(map(str, paths))))
    vectors, report = _fit(read, words, width, progress)
    table = piece_table(model, read.cutter, vectors)
    with made_folder(output_path) as folder:
        folder.mkdir()
        table.save(folder)
    return report._replace(words=len(texts), remarks=counts.remarks)


def _fit(read: LoneWords, words: "Counter[Word]", width: int, progress: bool) -> Tuple[Float32s, DistillReport]:
    alone = read([[piece] for piece in range(read.n_pieces)], progress=progress, desc="pieces")
    several = [word for word, _ in words.most_common() if 1 < len(word) <= read.longest][:_MAX_WORDS]
    held_out, fitted_to = several[::_HELD_OUT], [word for i, word in enumerate(several) if i % _HELD_OUT]
    whole = read(several, progress=progress)
    known, unseen = whole[[i % _HELD_OUT > 0 for i in range(len(whole))]], whole[::_HELD_OUT]
    single = sorted({word[0] for word in words if len(word) == 1})
    center = numpy.concatenate([alone[single], whole]).mean(axis=0)
    vectors = alone - center
    before = similarity(means(vectors, held_out), unseen - center)
    vectors = fit_pieces(vectors, fitted_to, known - center, _STRENGTH)
    after = similarity(means(vectors, held_out), unseen - center)
    if width < vectors.shape[1]:
        vectors = vectors @ principal(products(vectors, [word for word in words if word]), width)
    report = DistillReport(len(vectors), vectors.shape[1], 0, len(fitted_to), len(held_out), before, after)
    return numpy.ascontiguousarray(vectors), report
