"""What others say, as it may stand in a message."""

_LONGEST = 200


def one_line(text: str) -> str:
    """A text on one line, shortened; what cannot be printed is escaped.

    text (str): The text.
    RETURNS (str): The line.
    """
    words = " ".join(text.split())
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in words[: _LONGEST + 1])
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 3]}..."
