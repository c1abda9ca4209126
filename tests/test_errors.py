import ast
import string
from pathlib import Path

import spacy_weakner
from spacy_weakner.errors import Errors, Warnings

MESSAGES = {code: text for owner in (Errors, Warnings) for code, text in vars(owner).items() if code.startswith("WK")}


def test_messages_are_used_and_get_their_fields():
    used = set()
    for path in Path(spacy_weakner.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            used.update({node.attr} if isinstance(node, ast.Attribute) else ())
            if isinstance(node, ast.Call) and isinstance(call := node.func, ast.Attribute) and call.attr == "format":
                text = MESSAGES.get(getattr(call.value, "attr", ""))
                given = {keyword.arg for keyword in node.keywords}
                fields = {field for _, field, _, _ in string.Formatter().parse(text or "") if field is not None}
                assert text is None or None in given or given == fields, (path, node.lineno)
    assert {*MESSAGES} <= used
