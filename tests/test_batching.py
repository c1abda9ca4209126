"""Groups of sequences that are about as long."""

import pytest

from spacy_weakner.batching import group_by_length


@pytest.mark.parametrize(
    "lengths, padded, expected",
    [
        ([], 10, []),
        ([0, 0], 10, []),
        ([3, 1, 2], 10, [[1, 2, 0]]),
        ([3, 1, 0, 2], 6, [[1, 3], [0]]),
        ([5, 5, 5], 10, [[0, 1], [2]]),
        ([99, 1], 10, [[1], [0]]),
    ],
)
def test_groups(lengths, padded, expected):
    assert group_by_length(lengths, padded) == expected
