"""Static vectors of word pieces as an encoder without weights, for linear models."""

from pathlib import Path
from typing import List, Optional, Union

from spacy.tokens import Doc
from thinc.api import Model, chain, expand_window, with_array
from thinc.types import Floats2d

from ..errors import check_range
from .piece_lookup import PieceLookup


def build_piece_vectors(
    path: Optional[Union[str, Path]] = None, window: int = 1, length: float = 2.0
) -> Model[List[Doc], List[Floats2d]]:
    """Represent every token by a Transformer's static vectors of its word pieces and those of its neighbors:

        e_t = [v_{t - window}; ...; v_t; ...; v_{t + window}],   v_t = length m_t / |m_t|

    where m_t is the mean of the vectors of the pieces of t, and v is 0 beyond the ends of a Doc. There are no weights:
    a head directly on these vectors is a linear model of the words around a token, which also covers unseen words.
    Together with `spacy_weakner.IndicatorFeatures.v1` (`linear` of `spacy_weakner.CRFTagger.v1`), its loss has one
    minimum, which `spacy_weakner.LBFGS.v1` finds. The vectors are stored with the model: the Transformer that they come
    from is no longer needed. Registered as `spacy_weakner.PieceVectors.v1`.

    path (Optional[Union[str, Path]]): Folder of the table of `spacy weakner encoder distill`. It is read when
        the model is initialized.
    window (int): Number of words on either side to use.
    length (float): Length of every v. The longer, the smaller the equivalent weights and the effect of an L2 penalty.
    RETURNS (Model[List[Doc], List[Floats2d]]): Vectors of each Doc, (n_tokens, (2 window + 1) n), n: width of the
        table.
    RAISES (WeaknerError): If a setting is out of range or, at initialization, there is no such table.
    """
    check_range("window", window, 0, None)
    check_range("length", length, 0.0, 1e6)
    lookup = PieceLookup(path, length)
    return chain(lookup, with_array(expand_window(window), pad=window)) if window else lookup
