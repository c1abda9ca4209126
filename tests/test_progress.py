"""How far work has come, as logs and terminals show it."""

import io
import subprocess
import sys
from types import SimpleNamespace

import pytest
from tqdm import std

from spacy_weakner import progress as module
from spacy_weakner.progress import Progress


@pytest.fixture
def clock(monkeypatch):
    """Time passes as it is told to."""
    now = SimpleNamespace(seconds=100.0)
    monkeypatch.setattr(std, "time", lambda: now.seconds)
    return now


class Terminal(io.StringIO):
    def isatty(self):
        return True


def lines(capsys):
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err.splitlines()


def run(clock, n, seconds, **settings):
    seen = []
    for i in Progress(range(n), **settings):
        clock.seconds += seconds
        seen.append(i)
    assert seen == list(range(n))


def test_a_line_at_every_tenth(clock, capsys):
    run(clock, 1000, 0.0049, desc="short work is quiet")
    run(clock, 0, 1, desc="y")
    run(clock, 10, 100, enabled=False)
    assert lines(capsys) == []
    run(clock, 50, 2, desc="train", unit="step")
    found = lines(capsys)
    assert found[0] == "train: 10 % (5 of 50 steps), 00:10, 01:30 to go"
    assert [line.split()[1] for line in found] == [f"{i}0" for i in range(1, 11)]


def test_nobody_knows_how_much_there_is(clock, capsys):
    for _ in Progress(iter(range(50)), desc="docs", unit="doc"):
        clock.seconds += 1
    assert lines(capsys) == ["docs: 30 docs, 00:30", "docs: 50 docs, 00:50"]


def test_updates_by_hand_and_what_was_done_before(clock, capsys):
    with Progress(total=1000, desc="adapt", unit="step", initial=900) as bar:
        clock.seconds += 10
        bar.update(50)
        bar.note(loss=1.0)
        clock.seconds += 10
        bar.update(50)
        assert bar.done == 1000
    assert lines(capsys) == ["adapt: 100 % (1,000 of 1,000 steps), 00:20"]
    # An error shows how far it came, and parts of one count.
    with pytest.raises(KeyError), Progress(total=100, desc="x", unit="doc") as bar:
        clock.seconds += 10
        bar.update(10)
        bar.update(4.5)
        raise KeyError
    assert [line.split()[1] for line in lines(capsys)] == ["10", "14"]


def test_what_is_done_is_never_rounded_up_and_may_be_more_than_expected(clock, capsys):
    with Progress(total=4, desc="train", unit="training") as bar:
        for n in (2.6, 2.4):
            clock.seconds += 10
            bar.update(n)
    assert lines(capsys) == [
        "train: 65 % (2 of 4 trainings), 00:10, 00:05 to go",
        "train: 125 % (5 of 4 trainings), 00:20",
    ]


def test_nothing_is_shown_where_there_is_nowhere_to_show_it(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    assert [list(Progress(range(3), enabled=enabled)) for enabled in (False, True)] == [[0, 1, 2]] * 2


def test_it_does_not_choose_how_processes_are_started():
    code = "import multiprocessing as m\nfrom spacy_weakner.progress import Progress\n"
    code += "list(Progress(range(3), desc='x'))\nm.set_start_method('spawn')"
    subprocess.run([sys.executable, "-c", code], check=True, stderr=subprocess.PIPE)


def test_a_bar_in_a_terminal(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(module, "_BAR_SECONDS", 0)
    assert [*Progress(range(3), enabled=False)] == [0, 1, 2] and sys.stderr.getvalue() == ""
    with Progress(total=4, desc="sweep", unit="training") as bar:
        bar.note(loss=0.5)
        bar._bar.mininterval = 0
        bar.update(2)
    shown = sys.stderr.getvalue()
    assert "sweep" in shown and "2/4" in shown and "loss=0.5" in shown
    assert "\n" not in shown.strip()
