"""A trained pipeline: its uncertain spans, and its entities."""

from pathlib import Path
from typing import Any, List, Optional, Tuple, Union

from spacy.language import Language
from spacy.tokens import Doc

from ..corpus.docbin import copy_with_groups
from ..corpus.weak import doc_entities, weak_group, weak_sources
from ..pipelines import default_component, load_pipeline, run_before
from ..ty import CandidateScorer, Entity, TagScorer
from .uncertainty import UncertainSpan, spans_of_candidates, spans_of_tokens


class Model:
    """The pipeline: a folder, or the name of an installed package. Of the Docs that it gets, which may have any
    vocabulary, it reads words and the labels of weak sources."""

    def __init__(self, model: Union[str, Path]) -> None:
        self.name = Path(model).name
        self.nlp: Language = load_pipeline(model)
        self._pipe = default_component(self.nlp, _gives_probabilities)

    @property
    def gives_probabilities(self) -> bool:
        """True if one of its components does."""
        return self._pipe is not None

    def uncertain_spans(self, docs: List[Doc]) -> List[List[UncertainSpan]]:
        """Per Doc its uncertain spans; none without probabilities."""
        if self._pipe is None:
            return [[] for _ in docs]
        name, pipe = self._pipe
        copies = run_before(self.nlp, name, [self._copy(doc) for doc in docs])
        if isinstance(pipe, CandidateScorer):
            return [spans_of_candidates(candidates) for candidates in pipe.score_candidates(copies)]
        return [spans_of_tokens(rows, pipe.distribution_labels) for _, rows in pipe.score_tags(copies)]

    def entities(self, docs: List[Doc]) -> List[List[Tuple[Entity, Optional[float]]]]:
        """Per Doc its entities with their probabilities; None where there is none."""
        result = []
        for doc in self.nlp.pipe([self._copy(doc) for doc in docs]):
            known = doc.ents and doc.ents[0].has_extension("weakner_score")
            scores = [ent._.weakner_score if known else None for ent in doc.ents]
            result.append(list(zip(doc_entities(doc), scores, strict=True)))
        return result

    def _copy(self, doc: Doc) -> Doc:
        return copy_with_groups(doc, map(weak_group, weak_sources(doc)), self.nlp.vocab)


def _gives_probabilities(pipe: Any) -> bool:
    return isinstance(pipe, (CandidateScorer, TagScorer))
