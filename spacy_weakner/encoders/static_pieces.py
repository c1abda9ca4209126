"""Token embeddings with static vectors of word pieces beside them."""

from pathlib import Path
from typing import Any, List, Optional, Union

from spacy.tokens import Doc
from thinc.api import Linear, Maxout, Model, chain, concatenate, with_array
from thinc.types import Floats2d

from ..errors import check_range
from ..linear.piece_lookup import PieceLookup


def build_static_pieces(
    embed: Model[List[Doc], List[Floats2d]], width: int = 96, path: Optional[Union[str, Path]] = None
) -> Model[List[Doc], List[Floats2d]]:
    """Embed tokens by what a Transformer knows of their word pieces, beside other embeddings:

        e_t = maxout [embed_t; W v_t],   v_t = m_t sqrt(n / |m_t|^2)

    where m_t, n numbers wide, is the mean of the vectors of the pieces of t. So from the beginning words that are alike
    have vectors that are alike, also those that are met for the first time. The vectors are learned no further, and
    stored with the model: the Transformer that they come from is not needed any more (Tulkens and van Dongen, 2024,
    model2vec). Registered as `spacy_weakner.StaticPieces.v1`; `embed` of `spacy.Tok2Vec.v2`.

    embed (Model[List[Doc], List[Floats2d]]): Other embeddings, e.g. `spacy.MultiHashEmbed.v2`: shapes, affixes, and
        what is to be learned of single words.
    width (int): Width of the output, and of W v.
    path (Optional[Union[str, Path]]): Folder of the table of `spacy weakner encoder distill`. It is read when
        the model is initialized.
    RETURNS (Model[List[Doc], List[Floats2d]]): Token embeddings, per Doc (n_tokens, width).
    RAISES (WeaknerError): If the width is out of range; when it is initialized, if there is no such table.
    """
    check_range("width", width, 1, None)
    mix: Model[Any, Any] = with_array(Maxout(width, nP=3, normalize=True, dropout=0.0))
    projected: Any = chain(PieceLookup(path), with_array(Linear(width)))
    beside: Any = concatenate(embed, projected)
    model: Model[Any, Any] = chain(beside, mix)
    model.set_dim("nO", width)
    return model
