import pytest
from typer.testing import CliRunner

from spacy_weakner.cli.app import app
from spacy_weakner.encoder_tools.adapt import AdaptReport

REPORT = AdaptReport(90, 10, 1000, 1300, 2, 60, 3.0, 2.0, 12.3, 20, True, True)


def invoke(*args):
    return CliRunner().invoke(app, ["encoder", "adapt", *map(str, args)])


def fake(monkeypatch, report=REPORT):
    seen = {}

    def adapt(inputs, output_path, model, **settings):
        seen.update(settings, inputs=[str(path) for path in inputs], output=str(output_path), model=model)
        return report

    monkeypatch.setattr("spacy_weakner.encoder_tools.adapt.adapt", adapt)
    return seen


def test_the_report_is_printed(monkeypatch):
    fake(monkeypatch)
    output = " ".join(invoke("a", "out", "--model", "m").output.split())
    for part in ("already finished", "90 texts", "10 texts; in total 1000 tokens, 1300 pieces", "split: 2"):
        assert part in output
    for part in ("60, from step 20 on, in 12 s", "from scratch", "3.000 before, 2.000 after (perplexity 20.1, 7.4)"):
        assert part in output


def test_one_process_speaks_for_all(monkeypatch):
    fake(monkeypatch)
    monkeypatch.setenv("RANK", "1")
    assert invoke("a", "out", "--model", "m").output == ""


@pytest.mark.parametrize("args, message", [(["none.txt"], "WK100"), (["none.txt", "--batch-size", "0"], "WK005")])
def test_errors_are_one_line(tmp_path, args, message):
    pytest.importorskip("accelerate")
    result = invoke(tmp_path / args[0], tmp_path / "out", "--model", tmp_path, *args[1:])
    assert result.exit_code == 1 and message in result.stderr and len(result.stderr.splitlines()) == 1
