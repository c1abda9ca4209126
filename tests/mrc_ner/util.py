"""What the tests of mrc_ner share."""

import math
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy
import spacy
from spacy.language import Language
from spacy.tokens import Doc

from spacy_weakner.annotations.weak import group_entities
from spacy_weakner.encoders.conditioned import build_conditioned_encoder
from spacy_weakner.mrc_ner.component import MRCNer
from spacy_weakner.mrc_ner.model import build_mrc_extractor

from ..span_ner.util import add_group
from ..util import TOK2VEC, Recorder, fix_seed, make_doc, make_example, make_examples

# Every word is a letter or a word of the tiny BERT.
QUERIES = {"PER": "who is it", "LOC": "where to"}
GROUP = "pred:mrc_ner"
IDS = {"PER": 0, "LOC": 1}
# Nested, crossing, with a shared start, with a shared end, one inside another with nothing shared.
OVERLAPPING = [
    ("a b c d e f", [(0, 2, "LOC"), (0, 4, "PER"), (0, 6, "LOC"), (1, 3, "PER")]),
    ("g h i j k", [(0, 1, "PER"), (0, 3, "PER"), (2, 5, "PER"), (3, 5, "PER")]),
    ("l m n", []),
]


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


def mrc_config(
    encoder: Optional[Dict[str, Any]] = None, n_types: int = 0, match_width: int = 0, **settings: Any
) -> Dict[str, Any]:
    """Config of a small mrc_ner."""
    model = {
        "@architectures": "spacy_weakner.MRCExtractor.v1",
        "encoder": encoder or conditioned(),
        "n_types": n_types,
        "match_width": match_width,
    }
    return {"model": model, **settings}


def mrc_pipeline(
    encoder: Optional[Dict[str, Any]] = None,
    seed: int = 0,
    queries: Optional[Dict[str, str]] = None,
    labels: Optional[Sequence[str]] = None,
    **settings: Any,
) -> Language:
    """An initialised pipeline with a small mrc_ner."""
    fix_seed(seed)
    nlp = spacy.blank("xx")
    ner: Any = nlp.add_pipe("mrc_ner", config=mrc_config(encoder, **settings))
    ner.initialize(
        lambda: make_examples(nlp), nlp=nlp, labels=labels or list(queries or QUERIES), queries=queries or QUERIES
    )
    return nlp


def recorded_ner(nlp: Language, **encoder: int) -> Tuple[MRCNer, Recorder]:
    """An initialised component whose encoder gives random vectors and writes down how it is called."""
    recorder = Recorder(**encoder)
    ner = MRCNer(nlp.vocab, build_mrc_extractor(build_conditioned_encoder(recorder.model)))
    ner.initialize(lambda: make_examples(nlp), queries=QUERIES)
    return ner, recorder


def vectors_of(ner: MRCNer, docs: List[Doc]) -> List[Any]:
    """What the model gives of some Docs."""
    return ner.model.predict(ner.model_inputs(docs))


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
    """An mrc_ner that is not initialised."""
    return nlp.add_pipe("mrc_ner", config=mrc_config(**settings))


def matching_pipeline(examples=None, match_width=8, queries=None, **settings):
    """An initialised pipeline with a matcher that learns from the group "x"; the scores of boundaries are not all 0."""
    fix_seed(0)
    nlp = spacy.blank("xx")
    config = mrc_config(match_width=match_width, **{"spans_key": "x", "nested": True, **settings})
    ner = nlp.add_pipe("mrc_ner", config=config)
    ner.initialize(lambda: examples(nlp) if examples else overlapping(nlp), nlp=nlp, queries=queries or QUERIES)
    return nlp


def overlapping(nlp):
    """The sentences with their entities in the group "x"."""
    examples = [make_example(nlp, text) for text, _ in OVERLAPPING]
    for example, (_, entities) in zip(examples, OVERLAPPING, strict=True):
        add_group(example.reference, "x", entities)
    return examples


def found_in(nlp, text):
    """The candidates of a text."""
    return group_entities(nlp(make_doc(nlp, text, annotated=False)), GROUP)


def odds_by_hand(matcher, vectors, span):
    """m tanh(W [e_i; e_j] + b) + c, from the concatenation."""
    start, end, k = span
    (first, last), score = (layer.layers[1] for layer in matcher.layers[:2]), matcher.layers[2]
    both = numpy.concatenate([vectors[start, k], vectors[end - 1, k]]).astype("float64")
    w = numpy.concatenate([first.get_param("W"), last.get_param("W")], axis=1)
    hidden = numpy.tanh(w @ both + first.get_param("b") + last.get_param("b"))
    return float((score.get_param("W") @ hidden + score.get_param("b"))[0])


def loss_by_hand(matcher, vectors, pairs, weight):
    """The sum over sentences and questions of the mean over their pairs."""
    total = 0.0
    for own, to in zip(vectors, pairs, strict=True):
        for k in range(2):
            values = []
            for span, wanted in zip(to.spans.tolist(), to.wanted, strict=True):
                if span[2] == k:
                    p = 1 / (1 + math.exp(-odds_by_hand(matcher, own, span)))
                    values.append(-math.log(p if wanted else 1 - p))
            total += sum(values) / len(values) if values else 0.0
    return weight * total
