"""Refuse to start the workflow `own` with files of the demo: a forgotten or misspelt variable keeps its default."""

import sys
from typing import List

DEMO = "corpus/raw/demo/"


def check(arguments: List[str]) -> List[str]:
    """Find variables that still have the demo's values.

    arguments (List[str]): NAME=VALUE of each variable.
    RETURNS (List[str]): What to change; empty if all is well.
    """
    wrong = []
    for name, _, value in (argument.partition("=") for argument in arguments):
        if value == "demo" or value.startswith(DEMO):
            wrong.append(f"'{name}' is still that of the demo ({value}): give --vars.{name} (and check its spelling).")
    return wrong


if __name__ == "__main__":
    problems = check(sys.argv[1:])
    if problems:
        sys.exit("\n".join(problems))
