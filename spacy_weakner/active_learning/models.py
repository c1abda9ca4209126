"""A trained pipeline that is asked what it is sure of."""

from pathlib import Path
from typing import Any, List, Optional, Tuple, Union

from spacy.language import Language
from spacy.tokens import Doc

from ..corpus.docbin import copy_with_groups
from ..corpus.weak import doc_entities, weak_group, weak_sources
from ..pipelines import default_component, load_pipeline, run_before
from ..ty import CandidateScorer, Entity, TokenDistributions
from .places import Place, places_of_candidates, places_of_tokens


class Model:
    """The pipeline.

    model (Union[str, Path]): Its folder, or the name of an installed package.
    RAISES (WeaknerError): If it cannot be loaded.
    """

    def __init__(self, model: Union[str, Path]) -> None:
        self.name = Path(model).name
        self.nlp: Language = load_pipeline(model)
        self._pipe = default_component(self.nlp, _is_sure)

    @property
    def gives_probabilities(self) -> bool:
        """RETURNS (bool): Whether one of its components does."""
        return self._pipe is not None

    def places(self, docs: List[Doc]) -> List[List[Place]]:
        """Where it is not sure.

        docs (List[Doc]): Docs of any vocabulary; only their words are used, and what weak sources say.
        RETURNS (List[List[Place]]): Per Doc; none at all without probabilities.
        """
        if self._pipe is None:
            return [[] for _ in docs]
        name, pipe = self._pipe
        copies = run_before(self.nlp, name, [self._copy(doc) for doc in docs])
        if isinstance(pipe, CandidateScorer):
            return [places_of_candidates(own) for own in pipe.score_candidates(copies)]
        return [places_of_tokens(own, pipe.distribution_labels) for own in pipe.distributions(copies)]

    def entities(self, docs: List[Doc]) -> List[List[Tuple[Entity, Optional[float]]]]:
        """What it predicts.

        docs (List[Doc]): As for `places`.
        RETURNS (List[List[Tuple[Entity, Optional[float]]]]): Per Doc its entities with their probabilities; None where
            there is none.
        """
        result = []
        for doc in self.nlp.pipe([self._copy(doc) for doc in docs]):
            known = doc.ents and doc.ents[0].has_extension("weakner_score")
            scores = [ent._.weakner_score if known else None for ent in doc.ents]
            result.append(list(zip(doc_entities(doc), scores, strict=True)))
        return result

    def _copy(self, doc: Doc) -> Doc:
        return copy_with_groups(doc, map(weak_group, weak_sources(doc)), self.nlp.vocab)


def _is_sure(pipe: Any) -> bool:
    return isinstance(pipe, (CandidateScorer, TokenDistributions))
