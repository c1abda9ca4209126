"""Predictions for each Doc by a pipeline that was not trained on it."""

import json
from pathlib import Path
from typing import Dict, List, Optional, Sequence, Tuple

import numpy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..corpus.docbin import read_docs
from ..corpus.weak import get_id
from ..errors import Errors, WeaknerError
from ..runs.train import FOLDS, read_folds
from ..runtime.hashes import hash_file, hash_model, hash_text
from ..runtime.predictions import TagPredictor
from ..ty import Floats
from .confident_learning import OUTSIDE


class HeldOutModels:
    """The pipelines of `train --folds`, each of which predicts its fold; or one pipeline that predicts everything."""

    def __init__(self, model: str, component: Optional[str]) -> None:
        self.model = model
        self.component = component
        is_folds = (Path(model) / FOLDS).is_file()
        self.folds: List[Tuple[str, Optional[Path]]] = [*read_folds(Path(model))] if is_folds else [(model, None)]
        self.predictors: List[TagPredictor] = []
        self.labels: Tuple[str, ...] = ()
        self._number: Dict[str, int] = {}

    def hashes(self) -> List[List[Optional[str]]]:
        return [[hash_model(model), None if corpus is None else hash_file(corpus)] for model, corpus in self.folds]

    def open(self) -> None:
        self.predictors = [TagPredictor(model, self.component) for model, _ in self.folds]
        entities = {_label(tag) for predictor in self.predictors for tag in predictor.labels} - {OUTSIDE}
        self.labels = (OUTSIDE, *sorted(entities))
        self._number = {}
        for number, (_, corpus) in enumerate(self.folds):
            if corpus is not None:
                self._number.update((doc_key(doc), number) for doc in read_docs(corpus, Vocab()))

    def zones(self) -> List[Language]:
        """Return the pipelines, whose strings a memory zone frees."""
        return [predictor.nlp for predictor in self.predictors]

    def __call__(self, docs: Sequence[Doc]) -> List[Floats]:
        """Return the distributions per Doc, (n_tokens, n_labels), with the columns of `labels`; NaN if the pipeline
        does not have the label."""
        result: List[Floats] = [numpy.zeros((0, len(self.labels)))] * len(docs)
        numbers = [self._fold_of(doc) for doc in docs]
        for number, predictor in enumerate(self.predictors):
            chosen = [i for i, fold in enumerate(numbers) if fold == number]
            for i, rows in zip(chosen, predictor.distributions([docs[i] for i in chosen]), strict=True):
                result[i] = self._merge(rows, predictor.labels)
        return result

    def _fold_of(self, doc: Doc) -> Optional[int]:
        if not len(doc):
            return None
        if self.folds[0][1] is None:
            return 0
        number = self._number.get(doc_key(doc))
        if number is None:
            raise WeaknerError(Errors.WK725.format(folder=self.model, text=doc.text[:50]))
        return number

    def _merge(self, rows: Floats, tags: Sequence[str]) -> Floats:
        """Sum the probabilities of the tags of each label."""
        result = numpy.full((len(rows), len(self.labels)), numpy.nan)
        for column, label in enumerate(self.labels):
            columns = [i for i, tag in enumerate(tags) if _label(tag) == label]
            if columns:
                result[:, column] = rows[:, columns].sum(axis=1)
        return result


def _label(tag: str) -> str:
    return tag if tag == OUTSIDE else tag[2:]


def doc_key(doc: Doc) -> str:
    """Return a hash of identifier, tokens and labels, which a Doc shares with its copy in a fold."""
    tokens = [(token.text_with_ws, token.ent_iob, token.ent_type_) for token in doc]
    return hash_text(json.dumps([get_id(doc), tokens]))
