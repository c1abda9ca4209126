"""The span classifier as a Thinc model."""

from typing import Any, Callable, List, Optional, Tuple

from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d

from ..errors import check_range
from ..heads.layers import as_given, with_votes
from .scoring import build_span_scorer
from .votes import build_span_votes

Vectors = List[Floats2d]


def build_span_classifier(
    tok2vec: Model[List[Doc], List[Floats2d]],
    hidden_width: int = 256,
    nO: Optional[int] = None,
    votes: Optional[Model[List[Doc], List[Floats2d]]] = None,
) -> Model[List[Doc], List[Floats2d]]:
    """Build a classifier of spans (Li et al. 2021, Equations 3 and 4). Registered as `spacy_weakner.SpanClassifier.v1`.

    Its output are the vectors of the tokens. Which spans are scored is decided later, by the sampling of negatives or
    by the decoder, so the scorer (reference "head") is called from there: see `scoring.py`. So are the votes of
    sources: see `votes.py`.

    There is dropout on the token vectors; its rate is `training.dropout`.

    tok2vec (Model[List[Doc], List[Floats2d]]): The encoder, or a listener to a shared one.
    hidden_width (int): Width of the scorer's hidden layer.
    nO (Optional[int]): Number of labels, "O" included; found at initialisation.
    votes (Optional[Model[List[Doc], List[Floats2d]]]): What sources say, e.g. `spacy_weakner.SourceVotes.v1`, added to
        the scores of spans; these start at zero then.
    RETURNS (Model[List[Doc], List[Floats2d]]): Token vectors, per Doc (n_tokens, width).
    RAISES (WeaknerError): For a hidden width below 1.
    """
    check_range("hidden_width", hidden_width, 1, None)
    head = build_span_scorer(hidden_width, nO, start_at_zero=votes is not None)
    of_spans = None if votes is None else build_span_votes(votes.attrs["settings"])
    return with_votes(Model("span_classifier", _forward, init=_init), tok2vec, head, of_spans)


def _init(model: Model, X: Optional[List[Doc]] = None, Y: Optional[List[Floats2d]] = None) -> None:
    tok2vec, head = model.get_ref("tok2vec"), model.get_ref("head")
    tok2vec.initialize(X=X)
    if X is None or Y is None:
        head.initialize()
        return
    vectors: Any = tok2vec.predict(X)
    spans = model.ops.asarray2i([[0, 1]])
    head.initialize(X=(vectors[0], spans), Y=Y[0][:1])
    if model.has_ref("votes"):
        model.get_ref("votes").initialize(Y=Y[0][:1])


def _forward(model: Model, docs: List[Doc], is_train: bool) -> Tuple[Vectors, Callable[[Vectors], Any]]:
    vectors, backprop_vectors = model.get_ref("tok2vec")(docs, is_train)

    def backprop(gradient: Vectors) -> Any:
        return backprop_vectors(as_given(gradient, vectors))

    return vectors, backprop
