import json

import pytest
from typer.testing import CliRunner

from spacy_weakner.cli.app import app

from ..labeling.llm.server import reply, server

__all__ = ["server"]


@pytest.fixture
def invoke(server, tmp_path, monkeypatch):
    (tmp_path / "in.txt").write_text("Anna met Bob\nAnna met Bob\nnothing\n")
    monkeypatch.chdir(tmp_path)

    def invoke(*args):
        options = ["--url", server.url, "--model", "m", "--labels", "PER", "--lang", "xx", *map(str, args)]
        result = CliRunner().invoke(app, ["ask", "in.txt", "answers.jsonl", *options])
        return result, " ".join(result.output.split())

    return invoke


def test_what_is_told(server, invoke, tmp_path):
    prices = ["--price-in", 1, "--price-out", 1, "--max-tokens", 100]
    _, told = invoke("--dry-run", *prices)
    assert "Texts: 2 (duplicates left out: 1); requests: 2" in told
    assert "Requests left to send: 2; about" in told
    assert not (tmp_path / "answers.jsonl").exists()
    said = {"Anna met Bob": [["Anna", "PER"], ["Rex", "PER"], ["Bob", "D\nOG"]], "nothing": "No."}
    server.answer = lambda body, number: reply(json.dumps(said[body["messages"][0]["content"].rpartition("Text: ")[2]]))
    result, told = invoke(*prices)
    assert result.exit_code == 0, told
    assert "2 answers; cost of all answers in the file: 0.0002 answers.jsonl" in told
    assert "Answers in the file: 2; mentions: 2 (PER 2)" in told
    assert "Answers that could not be parsed: 1" in told
    assert "Mentions left out, because their labels were not requested: 1 (D OG 1)" in told
    assert "Mentions that do not occur in their texts: 1 (for example 'Rex')" in told
    with (tmp_path / "answers.jsonl").open("a") as file_:
        file_.write('{"key": "0')
    _, told = invoke(*prices, "--samples", 2, "--budget", 0.0001)
    assert "The row was removed and requested again" in told
    assert "The budget is spent. Requests left: 4; about" in told


def test_errors_are_one_line(server, invoke):
    server.answer = lambda body, number: (400, {}, b'{"error": {"message": "no\\nsuch model"}}')
    result, told = invoke()
    assert result.exit_code == 1 and "400 no such model" in told and "Traceback" not in told
