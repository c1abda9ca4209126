"""Check that a Transformer's tokenizer knows the texts: it cannot distinguish the words that it does not know."""

import json
from collections import Counter
from pathlib import Path
from typing import Sequence

from ..corpus.counts import show_value
from ..linear.pieces import TOKENIZER, load_tokenizer
from .findings import Findings, listed, percent

LIMIT = 500  # texts that are cut into pieces
_MUCH = 0.05  # share of unknown pieces that is worth a warning
_SHOWN = 5


def check_pieces(folder: Path, texts: Sequence[str], where: str, findings: Findings) -> None:
    """Count the pieces of some texts that a Transformer in a folder does not know; one without a fast tokenizer is not
    checked."""
    if not (folder / TOKENIZER).is_file():
        return
    try:
        data = (folder / TOKENIZER).read_text(encoding="utf-8")
        tokenizer, model = load_tokenizer(data), json.loads(data)["model"]
    except (ImportError, OSError, ValueError, KeyError):  # reported when it is loaded; the extra by `check_size`
        return
    unknown = model.get("unk_id", tokenizer.token_to_id(model.get("unk_token") or ""))
    words: Counter[str] = Counter()
    total = 0
    for text in texts[:: -(-len(texts) // LIMIT) or 1]:
        try:
            found = tokenizer.encode(text, add_special_tokens=False)
        except Exception as error:  # the library raises nothing more precise
            message = f"Its tokenizer cannot read {show_value(text)}: {error}."
            findings.error(where, message, "Repair its tokenizer.json, or give another Transformer.")
            return
        total += len(found.ids)
        pieces = zip(found.ids, found.offsets, strict=True)
        words.update(text[start:end] for piece, (start, end) in pieces if piece == unknown)
    if words.total() > _MUCH * total:
        most = listed([f"'{word}'" for word, _ in words.most_common(_SHOWN)])
        message = f"Its tokenizer does not know {percent(words.total(), total)} of the words, such as {most}."
        findings.warning(where, message, "Give a Transformer of the language of the texts, or leave it out.")
