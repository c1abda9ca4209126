import json

import pytest

from spacy_weakner.labeling.llm.ask import ask

from .server import server

__all__ = ["server"]


@pytest.fixture
def run(server, tmp_path):
    """Asks about texts; gives the report and the rows."""

    def run(texts=("Anna met Bob", "Paris rocks", "nothing here"), **options):
        (tmp_path / "in.txt").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
        options = {
            "url": server.url,
            "model": "small",
            "labels": "PER,LOC",
            "sentences": "none",
            "lang": "xx",
            **options,
        }
        report = ask(tmp_path / "in.txt", tmp_path / "answers.jsonl", **options)
        return report, rows(tmp_path)

    return run


def rows(folder):
    path = folder / "answers.jsonl"
    # An unfinished row does not end.
    lines = path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []
    return [json.loads(line) for line in lines]
