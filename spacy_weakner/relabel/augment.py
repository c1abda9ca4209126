"""Writes an augmented form of each sentence, with words predicted by a masked language model in place of its own
(RoSTER)."""

import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple, Union

import numpy
from numpy.typing import NDArray
from spacy.tokens import Doc
from spacy.util import minibatch
from spacy.vocab import Vocab

from ..corpus import weak
from ..encoders.transformer import encoder_key, load_masked_lm, max_pieces
from ..errors import Errors, WeaknerError, check_range
from ..roster.augmentation import sample
from ..runtime.executor import Executor
from ..runtime.hashes import hash_path, hash_text
from ..runtime.lock import holding
from ..runtime.stage import Report, Stage
from .masked_lm import MAX_PIECES, MaskedWindow, ReplaceableWord, WindowSplitter, WordPredictor

NO_MODEL = "none"
BATCH_SIZE = 32
# Windows are sorted by length within this number of batches.
_SORTED_BATCHES = 8
# Scores that are in memory at a time: with a vocabulary of 250,000 pieces, the scores of 536 words.
_MAX_SCORES = 2**27
# A window with masks, and the index of its Doc.
_Masked = Tuple[int, MaskedWindow]


@dataclass
class AugmentReport(Report):
    """Counts of `augment`, beside those of `Report`."""

    words: int = 0  # tokens of the Docs
    substituted: int = 0  # words that differ in the augmented form
    refused: int = 0  # words that are kept because the prediction is not of their kind
    cut: int = 0  # Docs that were too long for the model and were split
    seconds: float = 0.0
    augmented: bool = False  # False if there was no model, so that no Doc has an augmented form


@holding("output_path")
def augment(
    input_path: Path,
    output_path: Path,
    model: Union[str, Path],
    *,
    mask_rate: float = 0.15,
    top_k: int = 5,
    gpu_id: int = -1,
    seed: int = 0,
    workers: int = 1,
    ray: Optional[str] = None,
    progress: bool = False,
) -> AugmentReport:
    """Replace words by others that fit their context (Meng et al. 2021, Equation 7). A masked language model reads each
    sentence with some words masked. Each word of the augmented form is drawn from the best predictions at its position,
    by their probabilities. Words that were not masked are mostly kept, since the model sees them.

    Only the first piece of a word is masked and replaced. A prediction is refused, and the word kept, if it begins a
    word where the original does not, if only one of the two begins with an upper-case letter, or if it is not text.

    The augmented words are stored beside the Doc's own, one per token (`corpus.weak.get_augmented`); nothing else
    changes. The masks and all draws depend on the seed and on the words of the sentence, not on its position in the
    corpus. (The predictions are only as exact as the arithmetic of the model: their last digits may depend on the
    batch.)

    input_path (Path): A corpus: a `.spacy` file or a folder of them.
    output_path (Path): A `.spacy` file, or a folder in which each shard keeps its name.
    model (Union[str, Path]): Encoder with a head for masked-language modeling: a Hugging Face folder or name, with
        weights as safetensors. "none": no model; the corpus is copied without augmented forms.
    mask_rate (float): Probability that a word is masked.
    top_k (int): Number of best predictions to draw from.
    gpu_id (int): The GPU; -1 is the CPU.
    seed (int): Seed of all draws.
    workers, ray: See `runtime.executor.Executor`.
    progress (bool): Show progress.
    RETURNS (AugmentReport): What was done.
    RAISES (WeaknerError): For missing packages, missing input, invalid settings, and an encoder that cannot be loaded,
        has no head, or predicts non-finite scores.
    """
    check_range("mask_rate", mask_rate, 0.0, 1.0)
    check_range("top_k", top_k, 1, None)
    begin = time.monotonic()
    executor = Executor(workers, ray, gpu_id)
    options = {"mask_rate": mask_rate, "top_k": top_k, "seed": seed}
    make: Callable[[], Stage[AugmentReport]] = WithoutModel
    if str(model) != NO_MODEL:
        make = partial(Augment, str(model), options, executor.gpu_there)
    report = executor.run_on_corpus(make, input_path, output_path, with_thinc=False, progress=progress)
    return replace(report, seconds=time.monotonic() - begin, augmented=str(model) != NO_MODEL)


def _model_key(model: str) -> str:
    folder = Path(model)
    return hash_path(folder.resolve()) if folder.is_dir() else f"{model} {encoder_key(model)}"


class WithoutModel(Stage[AugmentReport]):
    """The stage that only copies."""

    name = "augment"
    report = AugmentReport

    def __init__(self) -> None:
        super().__init__({"model": NO_MODEL}, Vocab())

    def __call__(self, docs: Iterable[Doc]) -> Iterator[Doc]:
        for doc in docs:
            weak.set_augmented(doc, None)  # of an earlier run
            self.stats.words += len(doc)
            yield doc


class Augment(Stage[AugmentReport]):
    """The stage that replaces words, with the options of `augment`: mask_rate, top_k and seed."""

    name = "augment"
    report = AugmentReport

    def __init__(self, model: str, options: Dict[str, Any], gpu_id: int) -> None:
        super().__init__({"model": _model_key(model), **options}, Vocab())
        self.model = model
        self.gpu_id = gpu_id

    def open(self) -> None:
        import torch

        if self.gpu_id >= torch.cuda.device_count():
            raise WeaknerError(Errors.WK432.format(gpu_id=self.gpu_id, reason="torch finds no such GPU"))
        masked_lm = load_masked_lm(self.model)
        self.reader = WindowSplitter(masked_lm, min(MAX_PIECES, max_pieces(masked_lm)))
        self.predictor = WordPredictor(masked_lm, self.settings["top_k"], self.gpu_id)

    def __call__(self, docs: Iterable[Doc]) -> Iterator[Doc]:
        for chunk in minibatch(docs, BATCH_SIZE * _SORTED_BATCHES):
            yield from self._augment(chunk)

    def _augment(self, docs: List[Doc]) -> List[Doc]:
        randoms = [self._draw(doc) for doc in docs]
        words = [[token.text for token in doc] for doc in docs]
        windows: List[_Masked] = []
        for number, read in enumerate(self.reader(docs)):
            self.stats.cut += read.cut
            masked = randoms[number][0] < self.settings["mask_rate"]
            windows.extend((number, self._mask(window, masked)) for window in read.windows)
        for batch in self._batches(windows):
            ids, scores = self.predictor([window for _, window in batch])
            places = [(number, place) for number, window in batch for place in window.places]
            for i in numpy.flatnonzero(~numpy.isfinite(scores).all(axis=1)):
                raise WeaknerError(Errors.WK343.format(pipeline=self.model, text=docs[places[i][0]].text[:50]))
            chosen = sample(scores, numpy.array([randoms[number][1, place.token] for number, place in places]))
            for (number, place), choices, choice in zip(places, ids, chosen, strict=True):
                self._replace(words[number], place, int(choices[choice]))
        for doc, new in zip(docs, words, strict=True):
            weak.set_augmented(doc, new)
            self.stats.words += len(doc)
        return docs

    def _draw(self, doc: Doc) -> NDArray[numpy.float64]:
        """Return two numbers per token, uniform in [0, 1): one for masking, one to select the prediction."""
        digest = hash_text("\n".join([str(self.settings["seed"]), *(token.text for token in doc)]))
        return numpy.random.default_rng(int(digest, 16)).random((2, len(doc)))

    def _mask(self, window: MaskedWindow, masked: NDArray[numpy.bool_]) -> MaskedWindow:
        """Mask the first piece of words."""
        ids = list(window.ids)
        for place in window.places:
            if masked[place.token]:
                ids[place.position] = self.reader.mask
        return MaskedWindow(ids, window.places)

    def _batches(self, windows: List[_Masked]) -> Iterator[List[_Masked]]:
        """Yield batches of similar length whose scores fit into memory. Windows without places are left out."""
        limit = _MAX_SCORES // self.predictor.n_scores
        batch: List[_Masked] = []
        n_places = 0
        for number, window in sorted(windows, key=lambda masked: len(masked[1].ids)):
            if batch and (len(batch) == BATCH_SIZE or n_places + len(window.places) > limit):
                yield batch
                batch, n_places = [], 0
            if window.places:
                batch.append((number, window))
                n_places += len(window.places)
        if batch:
            yield batch

    def _replace(self, words: List[str], place: ReplaceableWord, predicted: int) -> None:
        word = words[place.token]
        new = self.reader.vocabulary.replace(word, place.slot, predicted)
        if new is None:
            self.stats.refused += 1
        elif new != word:
            self.stats.substituted += 1
            words[place.token] = new
