"""The extractor of answers as a Thinc model."""

from typing import Any, Callable, List, Optional, Tuple

from spacy.tokens import Doc
from thinc.api import Dropout, Linear, Model, chain
from thinc.types import Floats3d

from ..encoders.queried import Queried

Vectors = List[Floats3d]


def build_mrc_extractor(
    encoder: Model[Queried, List[Floats3d]], nO: Optional[int] = None
) -> Model[List[Doc], List[Floats3d]]:
    """Build an extractor that finds the spans which answer questions. Registered as `spacy_weakner.MRCExtractor.v1`.

    Its output are the vectors of the tokens, one for each question. The reference "head" makes two scores of each: that
    an answer begins there, and that one ends there. It is called from the component, since some of what is learned is
    learned from the vectors. Nothing depends on the number of questions, so that they can be changed at any time; they
    stand in the attribute "queries".

    There is dropout on the vectors; its rate is `training.dropout`.

    encoder (Model[Queried, List[Floats3d]]): `spacy_weakner.QueryContextEncoder.v1`, which reads questions and text
        together, or `spacy_weakner.ConditionedEncoder.v1`, on any other encoder.
    nO (Optional[int]): The number of scores, 2.
    RETURNS (Model[List[Doc], List[Floats3d]]): Vectors, per Doc (n_tokens, n_queries, width).
    """
    head: Model[Any, Any] = chain(Dropout(), Linear(nO=nO))
    return Model(
        "mrc_extractor",
        _forward,
        init=_init,
        layers=[encoder, head],
        refs={"tok2vec": encoder, "head": head},
        attrs={"queries": []},
    )


def _init(model: Model, X: Optional[List[Doc]] = None, Y: Any = None) -> None:
    encoder, head = model.get_ref("tok2vec"), model.get_ref("head")
    if X is None:
        encoder.initialize()
        head.initialize()
        return
    asked = Queried(X, model.attrs["queries"])
    encoder.initialize(X=asked)
    vectors = encoder.predict(asked)[0]
    head.initialize(X=vectors[:1, 0], Y=model.ops.alloc2f(1, 2))


def _forward(model: Model, docs: List[Doc], is_train: bool) -> Tuple[Vectors, Callable[[Vectors], Any]]:
    return model.get_ref("tok2vec")(Queried(docs, model.attrs["queries"]), is_train)
