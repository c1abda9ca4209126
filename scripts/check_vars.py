"""Refuse files of the demo where a user's own are meant: a forgotten or misspelt variable keeps its default."""

import sys
from typing import List

DEMO = ("corpus/raw/demo/", "assets/demo/")
DEMO_OR_OWN = "--demo-or-own"


def check(arguments: List[str]) -> List[str]:
    """Find variables that still have the demo's values.

    arguments (List[str]): NAME=VALUE of each variable; and perhaps "--demo-or-own", if the files may all be the
        demo's. Then the run may have any name; that of own files must not be the demo's.
    RETURNS (List[str]): What to change; empty if all is well.
    """
    pairs = [argument.partition("=") for argument in arguments if argument != DEMO_OR_OWN]
    files = [value for name, _, value in pairs if name != "run"]
    empty = [name for name, _, value in pairs if not value]
    if empty:
        return [f"'{name}' is empty: give --vars.{name}." for name in empty]
    demo = [(name, value) for name, _, value in pairs if value == "demo" or value.startswith(DEMO)]
    if DEMO_OR_OWN in arguments and all(value.startswith(DEMO) for value in files):
        return []
    return [
        f"'{name}' is still that of the demo ({value}): give --vars.{name} (and check its spelling)."
        for name, value in demo
    ]


if __name__ == "__main__":
    problems = check(sys.argv[1:])
    if problems:
        sys.exit("\n".join(problems))
