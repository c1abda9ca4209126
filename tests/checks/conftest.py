import json

import pytest
import spacy

from spacy_weakner.checks.check import check as run_checks
from spacy_weakner.checks.findings import Findings

GOLD = [
    {"tokens": ["Anna", "took", "aspirin", str(i), "."], "ents": [[0, 1, "PER"], [2, 3, "DRUG"]]} for i in range(60)
]


@pytest.fixture(scope="session")
def nlp():
    return spacy.blank("xx")


@pytest.fixture
def findings():
    return Findings()


@pytest.fixture
def write(tmp_path):
    """Writes rows, lines or bytes to a file, and gives its path."""

    def write(name, content):
        path = tmp_path / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            lines = (line if isinstance(line, str) else json.dumps(line, ensure_ascii=False) for line in content)
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return path

    return write


@pytest.fixture
def check(write):
    """Checks files that are given as rows (or bytes, or paths), with settings."""

    def check(settings=None, **files):
        suffixes = {"text": ".txt", "terms": ".csv", "sources": ".cfg"}
        paths = {
            name: write(f"{name}{suffixes.get(name, '.jsonl')}", content)
            if isinstance(content, (list, bytes))
            else content
            for name, content in files.items()
        }
        return run_checks(**paths, **{"lang": "xx", **(settings or {})})

    return check


def found(report, level):
    """What a report (or the findings) says on one level: "where: message -> cure"."""
    findings = report.sorted() if isinstance(report, Findings) else report.findings
    return [f"{f.where}: {f.message} -> {f.cure}" for f in findings if f.level == level]
