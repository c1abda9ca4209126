"""Tables of a Transformer's stored embeddings."""

import numpy
import pytest
from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_weakner.encoder_tools.embeddings import write_embeddings
from spacy_weakner.linear.pieces import cut, load_tokenizer, read_pieces

from ..util import needs_transformers

pytestmark = needs_transformers
WORDS = ["anna", "bob", "newer", "smiths", "yorker", "xyz"]


@pytest.mark.parametrize("width", [16, 4])
def test_distances_between_words(tiny_bert, tmp_path, width):
    from transformers import AutoModel

    write_embeddings(tiny_bert, [Doc(Vocab(), [*WORDS, " ", "anna"]), Doc(Vocab(), [])], tmp_path / "out", width)
    table = read_pieces(tmp_path / "out")
    embeddings = AutoModel.from_pretrained(str(tiny_bert)).get_input_embeddings().weight.detach().numpy()
    assert table.vectors.shape == (len(embeddings), width)
    cutter = load_tokenizer(table.tokenizer)
    embedded, stored = (
        numpy.stack([x[cut(cutter, word)].mean(axis=0) for word in WORDS]) for x in (embeddings, table.vectors)
    )
    embedded = embedded - embedded.mean(axis=0)
    assert stored.mean(axis=0) == pytest.approx(0, abs=1e-2)
    if width == 16:
        # The directions are turned, and nothing is lost.
        assert stored @ stored.T == pytest.approx(embedded @ embedded.T, abs=1e-2)
    else:
        # What is lost is as little as possible.
        kept, every = (stored**2).sum(), numpy.linalg.svd(embedded)[1] ** 2
        assert kept == pytest.approx(every[:width].sum(), rel=1e-2) and kept < every.sum()
