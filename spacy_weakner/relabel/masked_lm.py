"""Input of a masked language model, built from sentences, and its predictions."""

import math
from itertools import groupby
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

import numpy
from numpy.typing import NDArray
from spacy.tokens import Doc

from ..encoders.queried import spaced
from ..encoders.transformer import MaskedLM, scores_at
from ..encoders.windows import WindowTokenizer, mark_only_spaces
from ..linear.pieces import special_pieces
from ..roster.augmentation import Slot, Vocabulary

# Longer sentences are split: more context would be expensive and add little.
MAX_PIECES = 512


class ReplaceableWord(NamedTuple):
    """A word that can be replaced: its token, the position of its first piece in the window, and that piece."""

    token: int
    position: int
    slot: Slot


class MaskedWindow(NamedTuple):
    """A sentence or a part of it as model input: its pieces, special ones included, and the words that can be
    replaced."""

    ids: List[int]
    places: List[ReplaceableWord]


class Read(NamedTuple):
    """The windows of a sentence: usually one, none if it has no pieces. `cut` is True if it was too long for one."""

    windows: List[MaskedWindow]
    cut: bool


class _Word(NamedTuple):
    """The pieces of a token: their ids, and the start and end of each in the token."""

    token: int
    ids: List[int]
    starts: List[int]
    ends: List[int]


class WindowSplitter:
    """A splitter of sentences into windows of at most `limit` pieces, special ones included."""

    def __init__(self, masked_lm: MaskedLM, limit: int) -> None:
        tokenizer = masked_lm.tokenizer
        self._tokenizer = tokenizer.backend_tokenizer
        # It may have been stored with truncation or padding.
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        entries: Dict[str, int] = tokenizer.get_vocab()
        tokens: List[Optional[str]] = [None] * (max(entries.values()) + 1)
        for token, i in entries.items():
            tokens[i] = token
        special = {*tokenizer.all_special_ids, *tokenizer.added_tokens_decoder}
        self.vocabulary = Vocabulary(tokens, special, _is_uncased(self._tokenizer))
        self.mask: int = tokenizer.mask_token_id
        windows = WindowTokenizer(mark_only_spaces(self._tokenizer.to_str()))
        self._words, self._blank = windows.whole, windows.blank
        self._before, self._after = special_pieces(self._tokenizer, tokenizer.mask_token)
        self._room = limit - len(self._before) - len(self._after)

    def __call__(self, docs: List[Doc]) -> List[Read]:
        """Split sentences into windows of pieces. White space is skipped."""
        tokens = [[token.i for token in doc if token.text.strip()] for doc in docs]
        texts = [[spaced(doc, i, self._blank) for i in given] for doc, given in zip(docs, tokens, strict=True)]
        encodings = self._words.encode_batch(texts, is_pretokenized=True, add_special_tokens=False)
        result = []
        for doc, given, encoding in zip(docs, tokens, encodings, strict=True):
            by_word = groupby(range(len(encoding.ids)), key=encoding.word_ids.__getitem__)
            words = [_word(encoding, doc, given[i], list(positions)) for i, positions in by_word]
            n_pieces = sum(len(word.ids) for word in words)
            windows = [self._window(doc, part) for part in self._split(words, n_pieces)]
            result.append(Read(windows, n_pieces > self._room))
        return result

    def _split(self, words: List[_Word], n_pieces: int) -> Iterator[List[_Word]]:
        """Yield parts that fit into a window, of similar length: a short rest would have little context."""
        size = math.ceil(n_pieces / max(1, math.ceil(n_pieces / self._room)))
        part: List[_Word] = []
        n = 0
        for word in words:
            if part and n + len(word.ids) > size:
                yield part
                part, n = [], 0
            part.append(word)
            n += len(word.ids)
        if part:
            yield part

    def _window(self, doc: Doc, words: List[_Word]) -> MaskedWindow:
        ids, places = list(self._before), []
        for word in words:
            found = self.vocabulary.find_slot(word.ids, word.starts, word.ends)
            if found is not None:
                places.append(ReplaceableWord(word.token, len(ids) + found.number, found))
            ids.extend(word.ids)
        # A single word that is too long for the model loses its end.
        ids = ids[: len(self._before) + self._room]
        return MaskedWindow([*ids, *self._after], [place for place in places if place.position < len(ids)])


class WordPredictor:
    """A predictor of the `top_k` best words of a masked language model."""

    def __init__(self, masked_lm: MaskedLM, top_k: int, gpu_id: int) -> None:
        import torch

        self._device = torch.device("cpu" if gpu_id < 0 else f"cuda:{gpu_id}")
        self._model = masked_lm.model.to(self._device).eval()
        self._padding: int = masked_lm.tokenizer.pad_token_id
        self.n_scores: int = self._model.config.vocab_size
        self._top_k = min(top_k, self.n_scores)

    def __call__(self, windows: List[MaskedWindow]) -> Tuple[NDArray[numpy.int64], NDArray[numpy.float32]]:
        """Return ids and scores for all places of some windows, in their order. Shape (n_places, top_k)."""
        import torch

        shape = (len(windows), max(len(window.ids) for window in windows))
        ids, known = numpy.full(shape, self._padding), numpy.zeros(shape, dtype="int64")
        for row, window in enumerate(windows):
            ids[row, : len(window.ids)], known[row, : len(window.ids)] = window.ids, 1
        rows = [row for row, window in enumerate(windows) for _ in window.places]
        columns = [place.position for window in windows for place in window.places]
        given = {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(known)}
        given = {name: tensor.to(self._device) for name, tensor in given.items()}
        chosen = (torch.tensor(rows, device=self._device), torch.tensor(columns, device=self._device))
        with torch.inference_mode():
            logits = scores_at(self._model, self._model.base_model, chosen, given)
            scores, best = logits.float().topk(self._top_k)
        return best.cpu().numpy(), scores.cpu().numpy()


def _is_uncased(tokenizer: Any) -> bool:
    if tokenizer.normalizer is None:
        return False
    text = tokenizer.normalizer.normalize_str("A")
    return "a" in text and "A" not in text


def _word(encoding: Any, doc: Doc, token: int, positions: List[int]) -> _Word:
    offsets = [encoding.offsets[i] for i in positions]
    shift = len(spaced(doc, token)) - len(doc[token].text)
    starts = [max(0, start - shift) for start, _ in offsets]
    return _Word(token, [encoding.ids[i] for i in positions], starts, [max(0, end - shift) for _, end in offsets])
