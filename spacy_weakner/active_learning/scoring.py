"""Scores sentences by their uncertain spans, from pipelines and from weak sources."""

from pathlib import Path
from typing import Dict, Iterator, List, Optional, Sequence, Tuple, Union

import numpy
from numpy.typing import NDArray
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import minibatch

from ..corpus import weak
from ..corpus.docbin import copy_with_groups
from ..corpus.gold import find_gold
from ..corpus.parts import split_doc
from ..corpus.sentences import sentence_key
from ..pipelines import default_component, load_pipeline, run_before
from ..ty import CandidateScorer, Entity, TagScorer
from .choosing import Sentence
from .uncertainty import UncertainSpan, Vote, spans_of_candidates, spans_of_tokens, spans_of_votes, sum_by_label

BATCH_SIZE = 256
# The uncertainties of a sentence are added up and divided by this power of its length: 0 would select the longest
# sentences, and 1 fragments such as lines of tables.
LENGTH_POWER = 0.75


class Model:
    """A trained pipeline: a folder, or the name of an installed package. It reads the words and the weak labels of
    Docs, which may have any vocabulary."""

    def __init__(self, model: Union[str, Path]) -> None:
        self.name = Path(model).name
        self.nlp: Language = load_pipeline(model)
        self._pipe = default_component(self.nlp, lambda pipe: isinstance(pipe, (CandidateScorer, TagScorer)))

    @property
    def gives_probabilities(self) -> bool:
        """True if one of its components gives probabilities."""
        return self._pipe is not None

    @property
    def labels(self) -> List[str]:
        """The labels of its components that set entities."""
        labels = self.nlp.pipe_labels
        return [
            label for name in labels if "doc.ents" in self.nlp.get_pipe_meta(name).assigns for label in labels[name]
        ]

    def uncertain_spans(self, docs: List[Doc]) -> List[List[UncertainSpan]]:
        """Return the uncertain spans of each Doc; none without probabilities."""
        if self._pipe is None:
            return [[] for _ in docs]
        name, pipe = self._pipe
        copies = run_before(self.nlp, name, [self._copy(doc) for doc in docs])
        if isinstance(pipe, CandidateScorer):
            return [spans_of_candidates(candidates) for candidates in pipe.score_candidates(copies)]
        scored = zip(copies, pipe.score_tags(copies), strict=True)
        return [_spans_of_parts(doc, rows, pipe.distribution_labels) for doc, (_, rows) in scored]

    def predict(self, docs: List[Doc]) -> List[Doc]:
        """Return copies of Docs with the entities of the pipeline."""
        return list(self.nlp.pipe([self._copy(doc) for doc in docs]))

    def _copy(self, doc: Doc) -> Doc:
        return copy_with_groups(doc, map(weak.weak_group, weak.weak_sources(doc)), self.nlp.vocab)


class Scorer:
    """A scorer of sentences, which may have labels of weak sources, and candidates with probabilities."""

    def __init__(self, models: Sequence[Model]) -> None:
        self.models = models
        self._read = 0
        self._has_signal = any(model.gives_probabilities for model in models)

    @property
    def no_signal(self) -> bool:
        """True if sentences were read, but there were no probabilities, and no sentence had two voters."""
        return self._read > 0 and not self._has_signal

    def score(self, docs: Iterator[Doc]) -> Iterator[Sentence]:
        for batch in minibatch(docs, BATCH_SIZE):
            votes = [
                {
                    name: Vote(weak.group_entities(doc, weak.weak_group(name)), weak.is_complete(doc, name))
                    for name in weak.weak_sources(doc)
                }
                for doc in batch
            ]
            if len(self.models) + max(map(len, votes)) > 1:
                for n, model in enumerate(self.models, start=1):
                    for i, predicted in enumerate(model.predict(batch)):
                        name = model.name if model.name not in votes[i] else f"{model.name} ({n})"
                        votes[i][name] = Vote(weak.doc_entities(predicted), True)
            of_models = [model.uncertain_spans(batch) for model in self.models]
            for i, doc in enumerate(batch):
                groups = _groups(doc, weak.PREDICTED_PREFIX).values()
                candidates = [pairs for pairs in groups if any(score is not None for _, score in pairs)]
                self._has_signal |= len(votes[i]) > 1 or bool(candidates)
                self._read += 1
                uncertain = [spans[i] for spans in of_models] + [spans_of_candidates(pairs) for pairs in candidates]
                yield _sentence(doc, uncertain, spans_of_votes(votes[i]))


def _spans_of_parts(doc: Doc, rows: NDArray[numpy.floating], tags: Sequence[str]) -> List[UncertainSpan]:
    """Return the uncertain spans of the sentences of a Doc. White space, which is always "O", does not end a span."""
    found = []
    for part in split_doc(doc):
        for span in spans_of_tokens(rows[part.tokens], tags):
            start, end, _ = part.entity((span.start, span.end, span.label))
            found.append(span._replace(start=start, end=end))
    return found


def _sentence(doc: Doc, uncertain: List[List[UncertainSpan]], disputed: List[UncertainSpan]) -> Sentence:
    """Return the sentence of a Doc. The uncertainties of several models are averaged."""
    scale = len(doc) ** LENGTH_POWER
    by_label = sum_by_label(disputed)
    for spans in uncertain:
        for label, uncertainty in sum_by_label(spans).items():
            by_label[label] = by_label.get(label, 0.0) + uncertainty / len(uncertain)
    every = [span for spans in [*uncertain, disputed] for span in spans]
    gold, ids = find_gold(doc), {}
    if gold is not None:
        ids = weak.group_ids(doc, weak.GOLD_GROUP) if weak.GOLD_GROUP in doc.spans else weak.doc_ids(doc)
    return Sentence(
        key=sentence_key(doc.text),
        words=tuple(token.text for token in doc),
        spaces=tuple(bool(token.whitespace_) for token in doc),
        id=weak.get_id(doc),
        score=sum(by_label.values()) / scale,
        by_label={label: uncertainty / scale for label, uncertainty in sorted(by_label.items())},
        span=max(every, key=lambda span: span.uncertainty, default=None),
        groups=_groups(doc, weak.WEAK_PREFIX, weak.PREDICTED_PREFIX),
        ids={**weak.source_ids(doc), **ids},
        gold=() if gold is None else tuple(sorted(gold.entities)),
        known=frozenset() if gold is None else frozenset(range(len(doc))) - gold.missing,
        wrong=tuple(weak.group_entities(doc, weak.WRONG_GROUP)) if weak.WRONG_GROUP in doc.spans else (),
        cats=dict(doc.cats),
        meta=weak.get_meta(doc) or {},
    )


def _groups(doc: Doc, *prefixes: str) -> Dict[str, List[Tuple[Entity, Optional[float]]]]:
    names = [name for name in doc.spans if name.startswith(prefixes)]
    return {
        name: list(zip(weak.group_entities(doc, name), weak.group_scores(doc, name), strict=True)) for name in names
    }
