import gzip

import pytest

from spacy_weakner.corpus.sampling import SampledLines
from spacy_weakner.errors import WeaknerError

LINES = [f"line {i} {'x' * (i % 7)}" for i in range(1, 1001)]


def test_small_files_are_read_whole(tmp_path):
    (tmp_path / "a.txt").write_text("\n".join(LINES))
    lines = SampledLines(tmp_path / "a.txt", 900)
    assert [text for _, text in lines] == LINES
    assert (lines.note, lines.total) == ("", 1000)
    assert [place for place, _ in lines][-1] == 1000


def test_large_files_are_read_evenly(tmp_path):
    (tmp_path / "a.txt").write_text("\n".join(LINES))
    lines = SampledLines(tmp_path / "a.txt", 100)
    texts = [text for _, text in lines]
    assert texts[:50] == LINES[:50]
    assert set(texts) <= set(LINES)
    numbers = [int(text.split()[1]) for text in texts[50:]]
    assert max(b - a for a, b in zip([50, *numbers], numbers, strict=False)) < 60 and numbers[-1] > 940
    assert 900 < lines.total < 1100
    assert lines.note.startswith(f"looked at {len(texts)} of about ")


def test_packed_files_cannot_be_read_from_their_middle(tmp_path):
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress("\n".join(LINES).encode()))
    lines = SampledLines(tmp_path / "a.txt.gz", 100)
    assert [text for _, text in lines] == LINES[:100]
    assert lines.note == "looked at the first 100 lines"


def test_a_bad_byte_far_behind_is_named_with_its_line(tmp_path):
    bad = [*LINES[:500], "caf\udce9", *LINES[500:]] * 3
    (tmp_path / "a.txt").write_bytes("\n".join(bad).encode("utf-8", "surrogateescape"))
    with pytest.raises(WeaknerError, match=r"WK104.*line (501|1502|2503),"):
        list(SampledLines(tmp_path / "a.txt", 2400))


@pytest.mark.parametrize("data, expected", [(b"", []), (b"\xef\xbb\xbfa\r\n\r\nb", ["a", "", "b"])])
def test_edges(tmp_path, data, expected):
    (tmp_path / "a.txt").write_bytes(data)
    assert [text for _, text in SampledLines(tmp_path / "a.txt", 10)] == expected
