import random

import pytest

from spacy_weakner.span_ner.candidates import enumerate_spans, span_index, widest, without

from .util import all_spans

WIDTHS = [None, 1, 3, 20]
LENGTHS = range(13)


@pytest.mark.parametrize("max_width", WIDTHS)
@pytest.mark.parametrize("n_tokens", LENGTHS)
def test_without_leaves_the_others_in_order(n_tokens, max_width):
    spans = all_spans(n_tokens, max_width)
    drawn = random.Random(n_tokens)
    groups = [drawn.sample(spans, len(spans) // 3) for _ in range(2)]
    left = without(len(spans), [span_index(group, n_tokens, max_width) for group in groups])
    assert [spans[i] for i in left] == [span for span in spans if span not in groups[0] + groups[1]]


@pytest.mark.parametrize("n_tokens, expected", [(0, 0), (7, 7), (1000, 1000), (4000, 250), (100_000, 10), (10**7, 10)])
def test_where_any_width_is_allowed_long_texts_have_a_bound(n_tokens, expected):
    assert widest(n_tokens) == expected


def test_a_long_text_of_any_width():
    spans = enumerate_spans(100_000)
    assert len(spans) < 1_000_000 and (spans[:, 1] - spans[:, 0]).max() == 10
    places = span_index(spans[[0, 5000, -1]].tolist(), 100_000)
    assert places.tolist() == [0, 5000, len(spans) - 1]


def test_the_enumeration_is_shared_and_cannot_be_written_to():
    spans = enumerate_spans(4, 2)
    with pytest.raises(ValueError, match="read-only"):
        spans[0] = 0
