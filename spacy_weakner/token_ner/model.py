"""The token classifier as a Thinc model."""

from typing import Any, List, Optional

from spacy.tokens import Doc
from thinc.api import Dropout, Model, chain, with_array
from thinc.types import Floats2d, Ints2d

from ..heads.layers import encoder_and_head, output_layer
from ..linear.sparse import linear_scores, scores_of_tokens


def build_token_classifier(
    tok2vec: Model[List[Doc], List[Floats2d]],
    nO: Optional[int] = None,
    source_features: Optional[Model[List[Doc], List[Floats2d]]] = None,
    linear: Optional[Model[List[Doc], List[Ints2d]]] = None,
) -> Model[List[Doc], List[Floats2d]]:
    """Build a classifier of tokens with two linear heads in one layer: the first output says whether a token belongs to
    an entity, the others which tag it has if it does (Meng et al. 2021, Appendix C; see `distribution`). Registered as
    `spacy_weakner.TokenClassifier.v1`.

    There is dropout on the token vectors; its rate is `training.dropout`.

    tok2vec (Model[List[Doc], List[Floats2d]]): The encoder, or a listener to a shared one.
    nO (Optional[int]): Number of tags, with "O"; found at initialization.
    source_features (Optional[Model[List[Doc], List[Floats2d]]]): What sources say, e.g.
        `spacy_weakner.SourceFeatures.v1`, added to the scores; these start at zero then, as with `linear`.
    linear (Optional[Model[List[Doc], List[Ints2d]]]): Features of the words, e.g.
        `spacy_weakner.IndicatorFeatures.v1`, whose weights start at zero and are added to the scores.
    RETURNS (Model[List[Doc], List[Floats2d]]): Scores, per Doc (n_tokens, n_tags).
    RAISES (WeaknerError): If `linear` gives no indicator features.
    """
    dense: Model[Any, Any] = with_array(chain(Dropout(), output_layer(nO, source_features, linear)))
    head: Model[Any, Any] = scores_of_tokens(tok2vec, dense, nO)
    return encoder_and_head("token_classifier", tok2vec, head, source_features, linear_scores(linear, nO))
