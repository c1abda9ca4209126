"""Queries a language model for the entities of texts, through any OpenAI-compatible endpoint."""

import threading
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, Optional, Set

from spacy.tokens import Doc

from ...corpus.answers import ASKED, KEY
from ...corpus.formats.reading import Reading, read_corpus
from ...corpus.language import corpus_language
from ...corpus.sentences import sentence_key
from ...errors import Errors, WeaknerError, check_range, one_line
from ...files import check_output, existing
from ...pipelines import NO_SENTENCES
from ...progress import Progress
from ...runtime.hashes import hash_text
from ...runtime.lock import locked
from .cache import Cache, CacheCounts
from .completions import parse_completion
from .config import AskConfig, Request, estimate_request_tokens, estimate_tokens

if TYPE_CHECKING:
    from .client import Client

# This number of consecutive failures means that the server is down.
_MAX_FAILURES = 5
_SHOWN = 60  # characters of a text


@dataclass
class AskReport:
    """Counts of a run or a dry run. `asked` identifies the prompt; `counts` cover the whole file."""

    asked: str
    counts: CacheCounts
    torn: int = 0  # bytes of an unfinished row that was removed
    texts: int = 0  # distinct texts, ignoring case and white space
    duplicates: int = 0
    requests: int = 0  # for all texts
    left: int = 0  # requests without a completion: to be sent (dry run), or remaining (after a run)
    answered: int = 0  # in this run
    failed: int = 0  # in this run; included in `left`
    failure: str = ""  # reason of the last failure
    is_spent: bool = False  # True if the run ended because the budget was spent
    tokens_in: int = 0  # estimates for the requests that are left,
    tokens_out: int = 0  # and for their completions
    cost: Optional[float] = None  # their estimated cost, if there are prices
    spent: Optional[float] = None  # the cost of all completions in the file, if there are prices
    budget_left: Optional[float] = None


def ask(
    texts: Path,
    answers: Path,
    *,
    limit: Optional[int] = None,
    dry_run: bool = False,
    lang: Optional[str] = None,
    tokenizer: Optional[str] = None,
    sentences: Optional[str] = None,
    progress: bool = False,
    **settings: Any,
) -> AskReport:
    """Query a language model for each text of a corpus. Each completion is appended to a file at once, so that a run
    that was stopped or killed can be resumed without paying twice. `label` reads the file as a source with
    `answers = "..."`.

    texts (Path): A corpus in any format; text without annotations is split into sentences as by `label`, but also
        inside terms of lists ("Yahoo! Inc."), where `label` joins the answers.
    answers (Path): The file of completions (JSONL).
    limit (Optional[int]): Send at most this number of distinct texts.
    dry_run (bool): Send nothing and write nothing; only count and estimate.
    lang, tokenizer: See `convert`.
    sentences (Optional[str]): See `convert`, which also takes abbreviations.
    progress (bool): Show progress.
    **settings (Any): The settings of `AskConfig`; `url`, `model` and `labels` are required.
    RETURNS (AskReport): The counts.
    RAISES (WeaknerError): For malformed, empty or missing input and invalid settings; if another run writes to the same
        file; if the server refuses a request or completes none.
    """
    texts, answers = Path(texts), Path(answers)
    config = AskConfig.read(settings)
    check_range("limit", limit, 1, None, optional=True)
    if answers.suffix != ".jsonl":
        raise WeaknerError(Errors.WK305.format(path=answers, expected="a file that ends in .jsonl"))
    existing(texts)
    named = [settings.get("prompt"), settings.get("labels")]
    check_output([texts, *(Path(path) for path in named if isinstance(path, (str, Path)))], [answers])
    with ExitStack() as stack:
        client = None
        if not dry_run:
            from .client import Client

            client = stack.enter_context(closing(Client(config)))
            stack.enter_context(locked(answers))
        cache = stack.enter_context(closing(Cache(answers, config, write=not dry_run)))
        report = AskReport(config.asked, cache.counts, cache.torn)
        language = corpus_language(texts, lang, tokenizer, sentences)
        nlp, splits = language.blank(), language.sentences != NO_SENTENCES
        language.add_sentences(nlp)

        def different() -> Iterator[str]:
            # Read again in each pass, so that memory does not grow with the number of texts.
            docs = read_corpus(texts, nlp, Reading(sentences=splits, misaligned="drop", documents=True))
            return _different(docs, limit, report)

        _estimate(report, Progress(different(), desc="read", unit="text", enabled=progress), config, cache)
        if not report.texts:
            raise WeaknerError(Errors.WK101.format(path=texts))
        if client is not None:
            _Run(report, config, client, cache, progress).send(different())
    if config.has_prices:
        report.spent = _spent(config, cache)
        report.budget_left = None if config.budget is None else max(0.0, config.budget - report.spent)
    return report


def _different(docs: Iterable[Doc], limit: Optional[int], report: AskReport) -> Iterator[str]:
    """Yield the distinct texts, ignoring case and white space; duplicates are counted."""
    seen: Set[str] = set()
    report.duplicates = 0
    for doc in docs:
        text, key = doc.text.strip(), hash_text(sentence_key(doc.text))
        if key in seen:
            report.duplicates += 1
        elif limit is not None and len(seen) >= limit:
            return
        elif text:
            seen.add(key)
            yield text


def _estimate(report: AskReport, texts: Iterable[str], config: AskConfig, cache: Cache) -> None:
    counts, tokens_out = cache.counts, 0.0
    for text in texts:
        report.texts += 1
        usual = counts.answer_tokens / counts.rows if counts.rows else 10 + estimate_tokens(text) // 2
        for request in config.requests(text):
            report.requests += 1
            if request.key not in cache:
                report.left += 1
                report.tokens_in += estimate_request_tokens(request.body)
                tokens_out += min(usual, config.limit or float("inf"))
    report.tokens_out = round(tokens_out)
    if config.has_prices:
        report.cost = config.cost(report.tokens_in, report.tokens_out)


def _spent(config: AskConfig, cache: Cache) -> float:
    return config.cost(cache.counts.tokens_in, cache.counts.tokens_out)


class _Run:
    """A run that sends requests in threads, which write each completion at once."""

    def __init__(self, report: AskReport, config: AskConfig, client: "Client", cache: Cache, progress: bool) -> None:
        self.report = report
        self.config = config
        self.client = client
        self.cache = cache
        done = report.requests - report.left
        self.progress: Progress[None] = Progress(
            total=report.requests, initial=done, desc="ask", unit="request", enabled=progress
        )
        self._lock = threading.Lock()
        self._pending: Dict[Future[None], Request] = {}
        self._failures = 0  # in a row

    def send(self, texts: Iterable[str]) -> None:
        """Send all remaining requests, or as many as the budget allows."""
        with self.progress, ThreadPoolExecutor(self.config.concurrency) as pool:
            try:
                for request in (request for text in texts for request in self.config.requests(text)):
                    if request.key in self.cache:
                        continue
                    while len(self._pending) >= self.config.concurrency:
                        self._collect()
                    budget = self.config.budget
                    if budget is not None and _spent(self.config, self.cache) >= budget:
                        self.report.is_spent = True
                        break
                    self._pending[pool.submit(self._complete, request)] = request
                while self._pending:
                    self._collect()
                if self.report.failed and not self.cache.counts.rows:
                    raise self._hopeless()
            except BaseException:
                # The pool waits for pending requests: they are paid for, and kept.
                self.client.stop()
                raise

    def _collect(self) -> None:
        """Wait for a request, and handle all that are done."""
        from .client import FailedRequest, Scope

        for future in wait(self._pending, return_when=FIRST_COMPLETED).done:
            request = self._pending.pop(future)
            text = one_line(" ".join(request.text.split()), _SHOWN)
            try:
                future.result()
                self._failures = 0
            except FailedRequest as error:
                if error.scope is Scope.ALL:
                    raise WeaknerError(Errors.WK765.format(url=self.client.name, text=text, reason=error)) from None
                self.report.failed += 1
                self.report.failure = f"{error}, about '{text}'" if error.scope is Scope.TEXT else str(error)
                # If other texts were completed, this text is the cause.
                self._failures += not (error.scope is Scope.TEXT and self.cache.counts.rows)
                if self._failures >= _MAX_FAILURES:
                    raise self._hopeless() from None

    def _hopeless(self) -> WeaknerError:
        return WeaknerError(Errors.WK769.format(n=self._failures, reason=self.report.failure))

    def _complete(self, request: Request) -> None:
        config, (content, is_cut, tokens_in, tokens_out) = self.config, self.client.complete(request.body)
        row: Dict[str, Any] = {KEY: request.key, ASKED: config.asked, "model": config.model}
        # The rest of a truncated list is unknown.
        found = None if is_cut else parse_completion(content, list(config.labels))
        row.update(sample=request.sample, text=request.text, ents=None if found is None else found.mentions)
        if found is not None and found.others:
            row["others"] = found.others
        row["answer"] = content
        row["tokens_in"] = estimate_request_tokens(request.body) if tokens_in is None else tokens_in
        row["tokens_out"] = estimate_tokens(content) if tokens_out is None else tokens_out
        if tokens_in is None or tokens_out is None:
            row["estimated"] = True
        if is_cut:
            row["cut"] = config.limit or row["tokens_out"]
        with self._lock:
            self.cache.append(row)
            self.report.answered += 1
            self.report.left -= 1
            self.progress.update()
            if config.has_prices:
                self.progress.note(cost=f"{_spent(config, self.cache):.4g}")
