"""When two sentences are the same, whatever their case and white space."""


def sentence_key(text: str) -> str:
    """What makes sentences equal: the text without case and white space."""
    return "".join(text.casefold().split())
