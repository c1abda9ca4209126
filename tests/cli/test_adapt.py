from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from spacy_weakner.cli.app import app
from spacy_weakner.cli.encoder import show_adapt
from spacy_weakner.encoder_tools.adapt import AdaptReport

REPORT = AdaptReport(90, 10, 1000, 1300, 2, 60, 3.0, 2.0, 12.3, 20, True, True)


def invoke(*args):
    return CliRunner().invoke(app, ["encoder", "adapt", *map(str, args)])


def printed(capsys):
    show_adapt(REPORT, SimpleNamespace(output_path="out"))
    return " ".join(capsys.readouterr().out.split())


def test_the_report_is_printed(capsys):
    output = printed(capsys)
    for part in ("already finished", "90 texts", "10 texts; in total 1000 tokens, 1300 pieces", "split: 2"):
        assert part in output
    for part in ("60, from step 20 on, in 12 s", "from scratch", "3.000 before, 2.000 after (perplexity 20.1, 7.4)"):
        assert part in output


def test_one_process_speaks_for_all(monkeypatch, capsys):
    monkeypatch.setenv("RANK", "1")
    assert printed(capsys) == ""


@pytest.mark.parametrize("args, message", [(["none.txt"], "WK100"), (["none.txt", "--batch-size", "0"], "WK005")])
def test_errors_are_one_line(tmp_path, args, message):
    pytest.importorskip("accelerate")
    result = invoke(tmp_path / args[0], tmp_path / "out", "--model", tmp_path, *args[1:])
    assert result.exit_code == 1 and message in result.stderr and len(result.stderr.splitlines()) == 1
