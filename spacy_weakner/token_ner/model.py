"""The token classifier as a Thinc model."""

from typing import Any, List, Optional

from spacy.tokens import Doc
from thinc.api import Dropout, Linear, Model, chain, with_array
from thinc.types import Floats2d

from ..heads.layers import encoder_and_head


def build_token_classifier(
    tok2vec: Model[List[Doc], List[Floats2d]],
    nO: Optional[int] = None,
) -> Model[List[Doc], List[Floats2d]]:
    """Build a token classifier with two linear heads in one layer: the first output is the score for being in an
    entity, the others are the scores of the tags for tokens in an entity (Meng et al. 2021, Appendix C; see
    `distribution`). Registered as `spacy_weakner.TokenClassifier.v1`.

    Dropout is applied to the token vectors, at the rate `training.dropout`.

    tok2vec (Model[List[Doc], List[Floats2d]]): The encoder, or a listener to a shared one.
    nO (Optional[int]): Number of tags, including "O"; inferred at initialization.
    RETURNS (Model[List[Doc], List[Floats2d]]): Scores of each Doc, shape (n_tokens, n_tags).
    """
    head: Model[Any, Any] = with_array(chain(Dropout(), Linear(nO=nO)))
    return encoder_and_head("token_classifier", tok2vec, head)
