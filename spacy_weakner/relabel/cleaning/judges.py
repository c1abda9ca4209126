"""Who judges a Doc: a pipeline that was not trained on it."""

import json
from pathlib import Path
from typing import Dict, List, Optional, Sequence, Tuple

import numpy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.vocab import Vocab

from ...corpus.docbin import read_docs
from ...corpus.weak import get_id
from ...errors import Errors, WeaknerError
from ...runs.train import FOLDS, read_folds
from ...runtime.hashes import hash_file, hash_model, hash_text
from ...runtime.predictions import TokenPredictor
from .suspicion import OUTSIDE, Rows


class Judges:
    """The pipelines of a cross-fit, each of which judges its fold; or one pipeline that judges everything.

    judge (str): The folder of `train --folds`, or a pipeline.
    component (Optional[str]): Name of the component that gives the distributions; None: the last that does.
    RAISES (WeaknerError): If the folder holds damaged folds.
    """

    def __init__(self, judge: str, component: Optional[str]) -> None:
        self.judge = judge
        self.component = component
        is_crossfit = (Path(judge) / FOLDS).is_file()
        self.folds: List[Tuple[str, Optional[Path]]] = [*read_folds(Path(judge))] if is_crossfit else [(judge, None)]
        self.predictors: List[TokenPredictor] = []
        self.labels: Tuple[str, ...] = ()
        self._number: Dict[str, int] = {}

    def hashes(self) -> List[List[Optional[str]]]:
        """RETURNS (List[List[Optional[str]]]): What tells these judges from others."""
        return [[hash_model(model), None if corpus is None else hash_file(corpus)] for model, corpus in self.folds]

    def open(self) -> None:
        """Load the pipelines.

        RAISES (WeaknerError): If one cannot be loaded, or gives no distributions.
        """
        self.predictors = [TokenPredictor(model, self.component) for model, _ in self.folds]
        entities = {_label(tag) for predictor in self.predictors for tag in predictor.labels} - {OUTSIDE}
        self.labels = (OUTSIDE, *sorted(entities))
        self._number = {}
        for number, (_, corpus) in enumerate(self.folds):
            if corpus is not None:
                self._number.update((_key(doc), number) for doc in read_docs(corpus, Vocab()))

    def zones(self) -> List[Language]:
        """RETURNS (List[Language]): What a memory zone is opened of while they judge."""
        return [predictor.nlp for predictor in self.predictors]

    def __call__(self, docs: Sequence[Doc]) -> List[Rows]:
        """Judge Docs.

        docs (Sequence[Doc]): The Docs.
        RETURNS (List[NDArray]): Per Doc (n_tokens, n_labels), columns as in `labels`; NaN where its judge does not know
            the label.
        RAISES (WeaknerError): For a Doc that is in none of the folds, and for probabilities that are not numbers.
        """
        result: List[Rows] = [numpy.zeros((0, len(self.labels)))] * len(docs)
        numbers = [self._judge_of(doc) for doc in docs]
        for number, predictor in enumerate(self.predictors):
            own = [i for i, judge in enumerate(numbers) if judge == number]
            for i, rows in zip(own, predictor([docs[i] for i in own]), strict=True):
                if not numpy.isfinite(rows).all():
                    raise WeaknerError(Errors.WK343.format(text=docs[i].text[:50], pipeline=predictor.model))
                result[i] = self._merge(rows, predictor.labels)
        return result

    def _judge_of(self, doc: Doc) -> Optional[int]:
        if not len(doc):
            return None
        if self.folds[0][1] is None:
            return 0
        number = self._number.get(_key(doc))
        if number is None:
            raise WeaknerError(Errors.WK725.format(folder=self.judge, text=doc.text[:50]))
        return number

    def _merge(self, rows: Rows, tags: Sequence[str]) -> Rows:
        """Sum up the tags of each label."""
        result = numpy.full((len(rows), len(self.labels)), numpy.nan)
        for column, label in enumerate(self.labels):
            own = [i for i, tag in enumerate(tags) if _label(tag) == label]
            if own:
                result[:, column] = rows[:, own].sum(axis=1)
        return result


def _label(tag: str) -> str:
    return tag if tag == OUTSIDE else tag[2:]


def _key(doc: Doc) -> str:
    """What a Doc and its copy in a fold have in common: identifier, tokens and labels."""
    tokens = [(token.text_with_ws, token.ent_iob, token.ent_type_) for token in doc]
    return hash_text(json.dumps([get_id(doc), tokens]))
