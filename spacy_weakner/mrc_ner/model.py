"""The extractor of answers as a Thinc model."""

from typing import Any, Callable, List, Optional, Tuple

from thinc.api import Dropout, Linear, Model, chain
from thinc.types import Floats3d

from ..encoders.queried import Queried
from ..errors import check_range
from ..heads.layers import check_outputs

ConditionedVectors = List[Floats3d]


def build_mrc_extractor(
    encoder: Model[Queried, List[Floats3d]], n_types: int = 0, nO: Optional[int] = None
) -> Model[Queried, List[Floats3d]]:
    """Build an extractor of the spans that answer questions (Li et al. 2020). Registered as
    `spacy_weakner.MRCExtractor.v1`.

    It outputs a vector of each token for each question. The reference "head" computes two scores from a vector: for the
    begin and for the end of an answer. The component calls it, since entity types are learned from the vectors. No
    weights depend on the number of questions, so that questions can be changed at any time.

    Dropout is applied to the vectors, at the rate `training.dropout`.

    encoder (Model[Queried, List[Floats3d]]): `spacy_weakner.QueryContextEncoder.v1`, which reads questions and text
        together, or `spacy_weakner.ConditionedEncoder.v1`, which uses any other encoder.
    n_types (int): Number of entity types. If above 0, a layer (reference "typing") scores them, for
        `spacy_weakner.FineTyping.v1`.
    nO (Optional[int]): The number of scores, 2.
    RETURNS (Model[Queried, List[Floats3d]]): Vectors of each Doc, shape (n_tokens, n_queries, width).
    """
    head: Model[Any, Any] = chain(Dropout(), Linear(nO=nO))
    check_range("n_types", n_types, 0, None)
    model: Model[Any, Any] = Model(
        "mrc_extractor",
        _forward,
        init=_init,
        layers=[encoder, head],
        refs={"tok2vec": encoder, "head": head},
    )
    if n_types:
        typing: Model[Any, Any] = Linear(nO=n_types)
        model.layers.append(typing)
        model.set_ref("typing", typing)
    return model


def _init(model: Model, X: Optional[Queried] = None, Y: Any = None) -> None:
    encoder, head = model.get_ref("tok2vec"), model.get_ref("head")
    if X is None:
        encoder.initialize()
        head.initialize()
        return
    check_outputs(head, 2)
    encoder.initialize(X=X)
    vectors = encoder.predict(X)[0]
    head.initialize(X=vectors[:1, 0], Y=model.ops.alloc2f(1, 2))
    if model.has_ref("typing"):
        width = vectors.shape[2] // encoder.attrs.get("parts", 1)
        model.get_ref("typing").initialize(X=vectors[:1, 0, :width])


def _forward(
    model: Model, asked: Queried, is_train: bool
) -> Tuple[ConditionedVectors, Callable[[ConditionedVectors], Any]]:
    return model.get_ref("tok2vec")(asked, is_train)
