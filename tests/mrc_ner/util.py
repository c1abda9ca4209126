"""What the tests of mrc_ner share."""

from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy
import spacy
from spacy.language import Language
from spacy.tokens import Doc

from spacy_weakner.encoders.conditioned import build_conditioned_encoder
from spacy_weakner.mrc_ner.boundaries import Boundaries
from spacy_weakner.mrc_ner.component import MRCNer
from spacy_weakner.mrc_ner.model import build_mrc_extractor

from ..util import TOK2VEC, Recorder, fix_seed, make_examples

# Every word is a letter or a word of the tiny BERT.
QUERIES = {"PER": "who is it", "LOC": "where to"}
GROUP = "pred:mrc_ner"
IDS = {"PER": 0, "LOC": 1}


def conditioned(tok2vec: Optional[Dict[str, Any]] = None) -> Dict[str, Any]:
    """Config of an encoder that reads text and questions apart."""
    return {"@architectures": "spacy_weakner.ConditionedEncoder.v1", "tok2vec": tok2vec or TOK2VEC}


def together(path: Any) -> Dict[str, Any]:
    """Config of one that reads them together."""
    return {
        "@architectures": "spacy_weakner.QueryContextEncoder.v1",
        "name": str(path),
        "max_length": 32,
        "stride": 4,
    }


def mrc_config(encoder: Optional[Dict[str, Any]] = None, n_types: int = 0, **settings: Any) -> Dict[str, Any]:
    """Config of a small mrc_ner."""
    model = {
        "@architectures": "spacy_weakner.MRCExtractor.v1",
        "encoder": encoder or conditioned(),
        "n_types": n_types,
    }
    return {"model": model, **settings}


def mrc_pipeline(
    encoder: Optional[Dict[str, Any]] = None,
    seed: int = 0,
    queries: Optional[Dict[str, str]] = None,
    labels: Optional[Sequence[str]] = None,
    **settings: Any,
) -> Language:
    """An initialized pipeline with a small mrc_ner."""
    fix_seed(seed)
    nlp = spacy.blank("xx")
    ner: Any = nlp.add_pipe("mrc_ner", config=mrc_config(encoder, **settings))
    ner.initialize(
        lambda: make_examples(nlp), nlp=nlp, labels=labels or list(queries or QUERIES), queries=queries or QUERIES
    )
    return nlp


def recorded_ner(nlp: Language, **encoder: int) -> Tuple[MRCNer, Recorder]:
    """An initialized component whose encoder gives random vectors and writes down how it is called."""
    recorder = Recorder(**encoder)
    ner = MRCNer(nlp.vocab, build_mrc_extractor(build_conditioned_encoder(recorder.model)))
    ner.initialize(lambda: make_examples(nlp), queries=QUERIES)
    return ner, recorder


def vectors_of(ner: MRCNer, docs: List[Doc]) -> List[Any]:
    """What the model gives of some Docs."""
    return ner.model.predict(ner.model_inputs(docs))


def without_spans(wanted: Any, known: Any) -> Boundaries:
    """A target of which only the boundaries matter."""
    return Boundaries(wanted, known, numpy.zeros((0, 3), dtype="int64"))


def give_scores(nlp: Language, scores: Any) -> None:
    """Make the component believe in these log-odds (n_tokens, n_labels, 2), whatever it reads."""
    ner: Any = nlp.get_pipe("mrc_ner")
    ner._scores = lambda vectors, model=None: [numpy.asarray(scores)[: len(own)] for own in vectors]


def log_odds(probabilities: Any) -> Any:
    """The inverse of the logistic function."""
    p = numpy.asarray(probabilities, dtype="float64")
    return numpy.log(p) - numpy.log1p(-p)


def table(n_tokens: int, **by_label: List[Tuple[int, int]]) -> Any:
    """Log-odds under which PER and LOC begin and end where the given spans do, and nowhere else."""
    scores = numpy.full((n_tokens, 2, 2), -9.0)
    for k, label in enumerate(QUERIES):
        for start, end in by_label.get(label, []):
            scores[start, k, 0] = scores[end - 1, k, 1] = 9.0
    return scores


def empty_pipe(nlp, **settings):
    """An mrc_ner that is not initialized."""
    return nlp.add_pipe("mrc_ner", config=mrc_config(**settings))
