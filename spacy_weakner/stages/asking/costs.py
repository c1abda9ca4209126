"""Tokens and what they cost. Only the server counts tokens exactly, with its own tokenizer: before, they are estimated,
or bounded."""

import json
import threading
from typing import Any, Dict, NamedTuple, Optional

_MILLION = 1_000_000
# A message comes with marks of its role around it.
_AROUND = 10


class Price(NamedTuple):
    """What tokens cost.

    tokens_in (Optional[float]): Price of a million tokens of requests; None: not known.
    tokens_out (Optional[float]): The same of answers.
    """

    tokens_in: Optional[float]
    tokens_out: Optional[float]

    @property
    def is_known(self) -> bool:
        """RETURNS (bool): Whether costs can be told."""
        return self.tokens_in is not None and self.tokens_out is not None

    def cost(self, tokens_in: float, tokens_out: float) -> float:
        """RETURNS (float): The cost of some tokens; 0 where a price is not known."""
        return ((self.tokens_in or 0.0) * tokens_in + (self.tokens_out or 0.0) * tokens_out) / _MILLION


def estimate_tokens(text: str) -> int:
    """About how many tokens a text has: one for four characters, or for one that is not ASCII."""
    plain = sum(map(str.isascii, text))
    return -(-plain // 4) + len(text) - plain


def estimate_request(body: Dict[str, Any]) -> int:
    """About how many tokens a request has."""
    return _AROUND + estimate_tokens(_sent(body))


def most_in_request(body: Dict[str, Any]) -> int:
    """More tokens than a request has: none is shorter than a byte."""
    return _AROUND + len(_sent(body).encode("utf-8"))


def guess_answer(text: str) -> int:
    """A guess at the tokens of an answer, before there is any."""
    return 10 + estimate_tokens(text) // 2


class Budget:
    """Money that may be spent, for several threads.

    limit (Optional[float]): How much; None: any amount.
    spent (float): How much is gone.
    """

    def __init__(self, limit: Optional[float], spent: float) -> None:
        self.limit = limit
        self.spent = spent
        self._reserved = 0.0
        self._lock = threading.Lock()

    @property
    def left(self) -> Optional[float]:
        """RETURNS (Optional[float]): How much is left; None: any amount."""
        return None if self.limit is None else max(0.0, self.limit - self.spent)

    def reserve(self, most: float) -> bool:
        """Set aside what a request costs at most.

        most (float): The amount.
        RETURNS (bool): Whether there is as much left.
        """
        with self._lock:
            if self.limit is not None and self.spent + self._reserved + most > self.limit:
                return False
            self._reserved += most
            return True

    def release(self, most: float, cost: float) -> None:
        """Take back what was set aside.

        most (float): The amount.
        cost (float): What was really paid.
        """
        with self._lock:
            self._reserved -= most
            self.spent += cost


def _sent(body: Dict[str, Any]) -> str:
    contents = [str(message.get("content")) for message in body.get("messages", ()) if isinstance(message, dict)]
    schema = body.get("response_format")
    return "".join([*contents, "" if schema is None else json.dumps(schema)])
