"""What is counted of answers."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Set, Tuple

from ...annotations.answers import ASKED, KEY
from ...annotations.rows import RowError, show
from ...annotations.sentences import sentence_key
from .costs import Price

_SHOWN = 3
_MOST = 1 << 53  # tokens; what is more is no count


@dataclass
class Tally:
    """What is in a file of answers.

    rows (int): Answers to the question.
    unparsed (int): Those that could not be read, so that their texts count as not looked at.
    cut (int): Those of them that broke off at the limit of tokens.
    mentions (Counter[str]): Mentions per label.
    others (Counter[str]): Mentions with a label that was not asked for (empty: with none), which were left out, per
        label.
    not_found (int): Mentions that are nowhere in their texts.
    lost (List[str]): The first of those.
    tokens_in, tokens_out (int): Tokens of requests and of answers, to all questions: what was paid for.
    estimated (int): Rows whose tokens the server did not count.
    """

    rows: int = 0
    unparsed: int = 0
    cut: int = 0
    mentions: "Counter[str]" = field(default_factory=Counter)
    others: "Counter[str]" = field(default_factory=Counter)
    not_found: int = 0
    lost: List[str] = field(default_factory=list)
    tokens_in: int = 0
    tokens_out: int = 0
    estimated: int = 0

    def cost(self, price: Price) -> float:
        """RETURNS (float): What all answers have cost."""
        return price.cost(self.tokens_in, self.tokens_out)


class Answered:
    """What has been answered. In memory are hashes of requests and no texts: about 100 bytes each.

    asked (str): The question.
    limit (int): How long answers may be. Those that broke off at a lower limit are to be asked for again.
    """

    def __init__(self, asked: str, limit: int) -> None:
        self.asked = asked
        self.limit = limit
        self.tally = Tally()
        self.answer_tokens = 0
        self._keys: Set[bytes] = set()

    def __contains__(self, key: str) -> bool:
        return bytes.fromhex(key) in self._keys

    def see(self, row: Dict[str, Any]) -> None:
        """Take a row.

        row (Dict[str, Any]): The row; see `annotations.answers`.
        """
        tally = self.tally
        tokens_in, tokens_out = _count(row.get("tokens_in")), _count(row.get("tokens_out"))
        tally.tokens_in += tokens_in
        tally.tokens_out += tokens_out
        tally.estimated += bool(row.get("estimated"))
        if row[ASKED] != self.asked:
            return
        self.answer_tokens += tokens_out
        cut = _count(row.get("cut"))
        if not 0 < cut < self.limit:
            self._keys.add(_digest(row[KEY]))
        tally.rows += 1
        tally.cut += bool(cut)
        mentions = row.get("ents")
        if not isinstance(mentions, list):
            tally.unparsed += 1
            return
        others = row.get("others") or []
        if not isinstance(others, list):
            raise RowError(f"'others' must be a list, got {show(others)}")
        tally.others.update(_pair(other)[1] for other in others)
        text = sentence_key(str(row.get("text")))
        for mention in mentions:
            phrase, label = _pair(mention)
            tally.mentions[label] += 1
            if phrase is not None and sentence_key(phrase) not in text:
                tally.not_found += 1
                if len(tally.lost) < _SHOWN and phrase not in tally.lost:
                    tally.lost.append(phrase)


def _pair(item: Any) -> Tuple[Optional[str], str]:
    """Phrase and label of an item; no phrase where it is a place."""
    phrase: Any = None
    label: Any = None
    if isinstance(item, dict):
        phrase, label = item.get("text", ""), item.get("label")
    elif isinstance(item, list) and len(item) in (2, 3):
        phrase, label = item[0] if len(item) == 2 else None, item[-1]
    if not isinstance(label, str) or not (phrase is None or isinstance(phrase, str)):
        raise RowError(f"this is no mention of 'ask': {show(item)}")
    return phrase, label


def _digest(key: str) -> bytes:
    try:
        return bytes.fromhex(key)
    except ValueError:
        return key.encode("utf-8")


def _count(value: Any) -> int:
    return value if type(value) is int and 0 < value < _MOST else 0
