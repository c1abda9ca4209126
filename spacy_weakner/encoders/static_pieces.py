"""Token embeddings combined with static vectors of word pieces."""

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
    """Embed tokens by a Transformer's static vectors of their word pieces, combined with other embeddings:

        e_t = maxout [embed_t; W v_t],   v_t = m_t sqrt(n / |m_t|^2)

    where m_t, of width n, is the mean of the vectors of the pieces of t. So similar words, including unseen ones, have
    similar vectors from the start of training. The vectors are not trained, and stored with the model: the Transformer
    that they come from is no longer needed (Tulkens and van Dongen, 2024, model2vec). Registered as
    `spacy_weakner.StaticPieces.v1`, for `embed` of `spacy.Tok2Vec.v2`.

    embed (Model[List[Doc], List[Floats2d]]): Other embeddings, e.g. `spacy.MultiHashEmbed.v2`, for shapes, affixes, and
        trained embeddings of words.
    width (int): Width of the output, and of W v.
    path (Optional[Union[str, Path]]): Folder of the table of `spacy weakner encoder distill`. It is read when
        the model is initialized.
    RETURNS (Model[List[Doc], List[Floats2d]]): Token embeddings of each Doc, (n_tokens, width).
    RAISES (WeaknerError): If the width is out of range or, at initialization, there is no such table.
    """
    check_range("width", width, 1, None)
    mix: Model[Any, Any] = with_array(Maxout(width, nP=3, normalize=True, dropout=0.0))
    projected: Any = chain(PieceLookup(path), with_array(Linear(width)))
    beside: Any = concatenate(embed, projected)
    model: Model[Any, Any] = chain(beside, mix)
    model.set_dim("nO", width)
    return model
