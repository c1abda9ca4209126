"""What is said in two modules belongs below both."""

import ast
from collections import defaultdict
from pathlib import Path

import pytest

import spacy_weakner

pytestmark = pytest.mark.slow

PACKAGE = Path(spacy_weakner.__file__).parent
LINES = 10


def code_lines(text):
    """Lines of code by number, without their indentation. Imports are left out, since what is shared is imported alike;
    docstrings and comments, since arguments that mean the same are explained alike; and blank lines."""
    left_out = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            left_out.update(range(node.lineno, node.end_lineno + 1))
        elif isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
            left_out.update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    lines = ((number, line.strip()) for number, line in enumerate(text.splitlines(), start=1))
    return [(n, line) for n, line in lines if line and n not in left_out and not line.startswith("#")]


def common_runs(texts, length=LINES):
    """Where the same lines stand in several texts, one after the other: sets of (name, line)."""
    places = defaultdict(set)
    for name, text in texts.items():
        lines = code_lines(text)
        for i in range(len(lines) - length + 1):
            places[tuple(line for _, line in lines[i : i + length])].add((name, lines[i][0]))
    return [found for found in places.values() if len({name for name, _ in found}) > 1]


def test_no_ten_lines_stand_in_two_modules():
    texts = {str(path.relative_to(PACKAGE)): path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    assert common_runs(texts) == []
