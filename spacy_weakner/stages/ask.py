"""Asks a language model for the entities of texts: any endpoint of the OpenAI-compatible form."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Iterator, Mapping, Optional, Union

from ..errors import Errors, WeaknerError, check_range
from ..files import check_output, existing
from ..progress import Progress
from .asking.costs import Budget, Price, estimate_request, guess_answer, most_in_request
from .asking.journal import Journal
from .asking.questions import Question, Request, make_question
from .asking.tally import Answered, Tally
from .asking.texts import Texts


@dataclass
class AskReport:
    """What was asked, or would be.

    asked (str): Tells this question from others in the same file.
    texts (int): Different texts. Case and white space make none different.
    duplicates (int): Texts that are there again.
    requests (int): Requests for all texts.
    left (int): Requests without an answer: those that a dry run would send, or those that remain after a run.
    answered (int): Requests with an answer, of this run.
    failed (int): Requests that got no answer, of this run; they are among those left.
    failure (str): Why the last of those failed.
    is_spent (bool): Whether the run ended since the budget would have been exceeded.
    tokens_in, tokens_out (int): About how many tokens the requests that are left and their answers have.
    cost (Optional[float]): About what those cost; None if the prices are not known.
    most (Optional[float]): What those cost at most; None if the prices are not known, or nothing limits the answers.
    spent (Optional[float]): What all answers in the file have cost; None if the prices are not known.
    budget_left (Optional[float]): What is left of the budget; None if there is none.
    torn (int): Bytes of an unfinished row that was cut off.
    tally (Tally): What is in the file.
    """

    asked: str
    texts: int = 0
    duplicates: int = 0
    requests: int = 0
    left: int = 0
    answered: int = 0
    failed: int = 0
    failure: str = ""
    is_spent: bool = False
    tokens_in: int = 0
    tokens_out: int = 0
    cost: Optional[float] = None
    most: Optional[float] = None
    spent: Optional[float] = None
    budget_left: Optional[float] = None
    torn: int = 0
    tally: Tally = field(default_factory=Tally)


def ask(
    texts: Path,
    answers: Path,
    *,
    url: str,
    model: str,
    labels: Union[str, Path, Mapping[str, str]],
    prompt: Optional[Path] = None,
    samples: int = 1,
    temperature: Optional[float] = None,
    max_tokens: int = 1024,
    structured: bool = False,
    extra: Union[str, Mapping[str, Any], None] = None,
    key_env: Optional[str] = None,
    insecure: bool = False,
    budget: Optional[float] = None,
    price_in: Optional[float] = None,
    price_out: Optional[float] = None,
    concurrency: int = 4,
    timeout: float = 120.0,
    retries: int = 6,
    limit: Optional[int] = None,
    dry_run: bool = False,
    format: Optional[str] = None,
    lang: str = "en",
    tokenizer: Optional[str] = None,
    sentences: bool = True,
    progress: bool = False,
) -> AskReport:
    """Ask a language model about every text of a corpus. Each answer is appended to a file at once, so that a run which
    was stopped, however that happened, goes on where it was, and nothing is paid for twice. `label` reads the file: a
    source with `answers = "..."`.

    A request is known by text, prompt, labels, model, sample number and all that is sent, except for the limit of
    tokens; the address does not count.

    texts (Path): A corpus in any format; text without annotations is split into sentences as by `label`.
    answers (Path): The file of answers (JSONL); see `annotations.answers`.
    url (str): Address of the endpoint up to `/chat/completions`: "http://localhost:8000/v1".
    model (str): Name of the model.
    labels (Union[str, Path, Mapping[str, str]]): The labels to ask for: names with commas between them, or a JSON or
        TOML file (or a mapping) that says what each of them means.
    prompt (Optional[Path]): A file with `{{text}}` and, where they are to be listed, `{{labels}}`. It should ask for
        quoted mentions, like {"entities": [{"text", "label"}]}, or for the text with [mention](LABEL) or
        <LABEL>mention</LABEL> in it. None: the prompt that is built in.
    samples (int): How often every text is asked. `label` takes agreement for a score.
    temperature (Optional[float]): None: 0 for one sample, 0.7 for several.
    max_tokens (int): How long an answer may be, in tokens. One that breaks off there counts as none; with a higher
        limit it is asked for again.
    structured (bool): Let the server enforce the form of the answer ("response_format": "json_schema").
    extra (Union[str, Mapping[str, Any], None]): Further parameters to send, as a JSON object; null removes one.
    key_env (Optional[str]): The environment variable that holds the key. It is never written or shown.
    insecure (bool): Send the key over http:// to other machines, too.
    budget (Optional[float]): What all answers in the file may cost, those of earlier runs included. No request is sent
        that could exceed it.
    price_in (Optional[float]): Price of a million tokens of requests.
    price_out (Optional[float]): The same of answers.
    concurrency (int): How many requests are sent at a time.
    timeout (float): Seconds after which a request is given up, and sent again.
    retries (int): How often a request is sent again (after 429, 5xx, a lost connection), with growing pauses.
    limit (Optional[int]): Ask about at most so many different texts.
    dry_run (bool): Send nothing and write nothing; only count and estimate.
    format (Optional[str]): Format of the corpus, as for `convert`; None: the files tell.
    lang (str): Language of the texts.
    tokenizer (Optional[str]): Name of a registered tokenizer, as for `label`.
    sentences (bool): Split text without annotations into sentences, as for `label`.
    progress (bool): Show how far it has come.
    RETURNS (AskReport): What was asked.
    RAISES (WeaknerError): For malformed, empty or missing input and unusable settings; if another run writes to the
        same answers; if the server refuses a request or answers none.
    """
    texts, answers = Path(texts), Path(answers)
    question = make_question(model, labels, prompt, samples, temperature, max_tokens, structured, extra)
    price = Price(price_in, price_out)
    _check(question, price, budget, concurrency, timeout, retries, limit)
    if answers.suffix != ".jsonl":
        raise WeaknerError(Errors.WK305.format(path=answers, expected="a file that ends in .jsonl"))
    if not (existing(texts).is_file() or texts.is_dir()):
        raise WeaknerError(Errors.WK760.format(path=texts))
    inputs = [path for path in (prompt, labels) if path is not None and not isinstance(path, Mapping)]
    check_output([texts, *(Path(path) for path in inputs if Path(path).is_file())], [answers])
    corpus = Texts(texts, limit, format=format, lang=lang, tokenizer=tokenizer, sentences=sentences)
    endpoint = None
    if not dry_run:
        from .asking.endpoint import Endpoint, read_key

        endpoint = Endpoint(url, read_key(key_env), timeout, retries, concurrency, insecure)
    answered = Answered(question.asked, question.limit or 0)
    with Journal(answers, answered.see, write=not dry_run) as journal:
        report = AskReport(question.asked, torn=journal.torn, tally=answered.tally)
        _plan(report, corpus, question, price, answered, progress)
        money = Budget(budget, answered.tally.cost(price))
        if endpoint is not None:
            try:
                _send(report, corpus, question, price, answered, journal, endpoint, money, concurrency, progress)
            finally:
                endpoint.close()
        report.spent = answered.tally.cost(price) if price.is_known else None
        report.budget_left = money.left
        return report


def _check(
    question: Question,
    price: Price,
    budget: Optional[float],
    concurrency: int,
    timeout: float,
    retries: int,
    limit: Optional[int],
) -> None:
    check_range("concurrency", concurrency, 1, 256)
    check_range("timeout", timeout, 0.001, 86400)
    check_range("retries", retries, 0, 1000)
    optional = {"limit": (limit, 1), "budget": (budget, 0), "price_in": (price.tokens_in, 0)}
    for setting, (value, low) in {**optional, "price_out": (price.tokens_out, 0)}.items():
        if value is not None:
            check_range(setting, value, low, None)
    if budget is not None and not (price.is_known and question.limit is not None):
        raise WeaknerError(Errors.WK770)


def _plan(
    report: AskReport, corpus: Texts, question: Question, price: Price, answered: Answered, progress: bool
) -> None:
    """Count what there is to ask, and estimate what it costs."""
    tally, most_in = answered.tally, 0
    usual = answered.answer_tokens / tally.rows if tally.rows else None
    tokens_out = 0.0
    for text in Progress(corpus, desc="read", unit="text", enabled=progress):
        report.texts += 1
        for request in question.requests(text):
            report.requests += 1
            if request.key not in answered:
                report.left += 1
                report.tokens_in += estimate_request(request.body)
                tokens_out += min(guess_answer(text) if usual is None else usual, question.limit or float("inf"))
                most_in += most_in_request(request.body)
    if not report.texts:
        raise WeaknerError(Errors.WK101.format(path=corpus.path))
    report.duplicates = corpus.duplicates
    report.tokens_out = round(tokens_out)
    if price.is_known:
        report.cost = price.cost(report.tokens_in, report.tokens_out)
        report.most = None if question.limit is None else price.cost(most_in, report.left * question.limit)


def _send(
    report: AskReport,
    corpus: Texts,
    question: Question,
    price: Price,
    answered: Answered,
    journal: Journal,
    endpoint: Any,
    money: Budget,
    concurrency: int,
    progress: bool,
) -> None:
    from .asking.run import Run

    def requests() -> Iterator[Request]:
        for text in corpus:
            yield from (request for request in question.requests(text) if request.key not in answered)

    shown: Progress[None] = Progress(
        total=report.requests,
        initial=report.requests - report.left,
        desc="ask",
        unit="request",
        enabled=progress,
    )
    with shown:
        outcome = Run(question, endpoint, journal, price, money, answered.tally).send(requests(), concurrency, shown)
    report.answered, report.failed, report.failure = outcome.answered, outcome.failed, outcome.failure
    report.is_spent = outcome.is_spent
    report.left -= outcome.answered
