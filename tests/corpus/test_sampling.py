import gzip
from random import Random

import pytest

from spacy_weakner.corpus.sampling import SampledLines

LINES = [f"line {i} {'x' * (i % 7)}" for i in range(1, 1001)]


def test_small_files_are_read_whole(tmp_path):
    (tmp_path / "a.txt").write_text("\n".join(LINES))
    lines = SampledLines(tmp_path / "a.txt", 1000)
    assert [text for _, text in lines] == LINES
    assert (lines.note, lines.estimate(1000)) == ("", 1000)
    assert [place for place, _ in lines][-1] == 1000


@pytest.mark.parametrize("pack, suffix", [(bytes, ""), (gzip.compress, ".gz")])
def test_of_large_files_the_first_lines_are_read(tmp_path, pack, suffix):
    path, draw = tmp_path / f"a.txt{suffix}", Random(0)
    many = [f"line {draw.random()}" for _ in range(60_000)]
    path.write_bytes(pack("\n".join(many).encode()))
    lines = SampledLines(path, 20_000)
    assert [text for _, text in lines] == many[:20_000]
    assert lines.note == "the first 20,000 lines"
    assert lines.estimate(20_000) == pytest.approx(60_000, rel=0.1)


@pytest.mark.parametrize("data, expected", [(b"", []), (b"\xef\xbb\xbfa\r\n\r\nb", ["a", "", "b"])])
def test_edges(tmp_path, data, expected):
    (tmp_path / "a.txt").write_bytes(data)
    assert [text for _, text in SampledLines(tmp_path / "a.txt", 10)] == expected
