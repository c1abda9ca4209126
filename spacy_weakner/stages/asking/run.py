"""Sends requests, several at a time, and keeps what comes back."""

from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, Dict, Iterable, Optional, Set

from ...annotations.answers import ASKED, KEY
from ...errors import Errors, WeaknerError, one_line
from ...progress import Progress
from .costs import Budget, Price, estimate_request, estimate_tokens, most_in_request
from .endpoint import Endpoint, FailedRequest, RefusedRequest, RefusedText, Reply, Stopped
from .journal import Journal
from .parsing import parse_answer
from .questions import Question, Request
from .tally import Tally

# So many requests in a row that fail for good say that the server is down.
_HOPELESS = 5
_SHOWN = 60  # letters of a text


@dataclass
class Outcome:
    """What became of requests.

    answered (int): Requests with an answer, in this run.
    failed (int): Requests without one.
    failure (str): Why the last of those failed.
    is_spent (bool): Whether it ended since the budget would have been exceeded.
    """

    answered: int = 0
    failed: int = 0
    failure: str = ""
    is_spent: bool = False


class Run:
    """A run.

    question (Question): What is asked.
    endpoint (Endpoint): Who is asked.
    journal (Journal): Takes the answers.
    price (Price): What tokens cost.
    budget (Budget): What may be spent.
    tally (Tally): Counts the answers, those of earlier runs included.
    """

    def __init__(
        self, question: Question, endpoint: Endpoint, journal: Journal, price: Price, budget: Budget, tally: Tally
    ) -> None:
        self.question = question
        self.endpoint = endpoint
        self.journal = journal
        self.price = price
        self.budget = budget
        self.tally = tally
        self.outcome = Outcome()
        self._in_a_row = 0
        self._is_refused = False

    def send(self, requests: Iterable[Request], concurrency: int, progress: "Progress[None]") -> Outcome:
        """Send requests until there are no more, or the budget does not suffice for the next one.

        requests (Iterable[Request]): The requests.
        concurrency (int): How many at a time.
        progress (Progress): Shows how many were answered.
        RETURNS (Outcome): What became of them.
        RAISES (WeaknerError): If the server refuses a request, or answers none.
        """
        pending: Set[Future[None]] = set()
        with ThreadPoolExecutor(concurrency) as pool:
            try:
                for request in requests:
                    most = self._most(request)
                    while len(pending) >= concurrency or not self.budget.reserve(most):
                        if not pending:
                            self.outcome.is_spent = True
                            return self.outcome
                        pending = self._collect(pending, progress)
                    pending.add(pool.submit(self._ask, request, most))
                while pending:
                    pending = self._collect(pending, progress)
            except BaseException:
                # Those that are on their way are paid for: their answers are waited for, and kept.
                self.endpoint.stop()
                raise
        if self._is_refused and not self.tally.rows:
            raise self._hopeless()
        return self.outcome

    def _most(self, request: Request) -> float:
        return self.price.cost(most_in_request(request.body), self.question.limit or 0)

    def _ask(self, request: Request, most: float) -> None:
        cost = 0.0
        try:
            reply = self.endpoint.ask(request.body)
            row = self._row(request, reply)
            cost = self.price.cost(row["tokens_in"], row["tokens_out"])
            self.journal.append(row)
        except RefusedRequest as error:
            text = one_line(" ".join(request.text.split()), _SHOWN)
            if error.is_about_text:
                raise RefusedText(f"{error}, about '{text}'") from None
            raise WeaknerError(Errors.WK765.format(url=self.endpoint.name, text=text, reason=error)) from None
        finally:
            self.budget.release(most, cost)

    def _collect(self, pending: "Set[Future[None]]", progress: "Progress[None]") -> "Set[Future[None]]":
        done, left = wait(pending, return_when=FIRST_COMPLETED)
        errors = [future.exception() for future in done]
        # What the server refuses says more than what was stopped for it.
        for error in sorted(errors, key=lambda error: isinstance(error, Stopped)):
            if isinstance(error, FailedRequest):
                self.outcome.failed += 1
                self.outcome.failure = str(error)
                # Where others were answered, it is the text that the server does not like.
                self._in_a_row += not (isinstance(error, RefusedText) and self.tally.rows)
                self._is_refused = isinstance(error, RefusedText)
                if self._in_a_row >= _HOPELESS:
                    raise self._hopeless()
            elif error is not None:
                raise error
            else:
                self.outcome.answered += 1
                self._in_a_row = 0
                progress.update()
                if self.price.is_known:
                    progress.note(cost=f"{self.budget.spent:.4g}")
        return left

    def _hopeless(self) -> WeaknerError:
        return WeaknerError(Errors.WK769.format(n=self._in_a_row, reason=self.outcome.failure))

    def _row(self, request: Request, reply: Reply) -> Dict[str, Any]:
        question = self.question
        # Of a list that breaks off, the rest is not known.
        found = None if reply.is_cut else parse_answer(reply.content, request.text, list(question.labels))
        row: Dict[str, Any] = {KEY: request.key, ASKED: question.asked, "model": question.model}
        row.update(sample=request.sample, text=request.text, ents=None if found is None else found.mentions)
        if found is not None and found.others:
            row["others"] = found.others
        row["answer"] = reply.content
        row["tokens_in"] = _first(reply.tokens_in, estimate_request(request.body))
        row["tokens_out"] = _first(reply.tokens_out, estimate_tokens(reply.content))
        if reply.tokens_in is None or reply.tokens_out is None:
            row["estimated"] = True
        if reply.is_cut:
            row["cut"] = question.limit or row["tokens_out"]
        return row


def _first(count: Optional[int], other: int) -> int:
    return other if count is None else count
