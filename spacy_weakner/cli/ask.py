"""`spacy weakner ask`"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Iterator, Optional

import typer
from wasabi import msg

from ._util import Format, Lang, Sentences, Tokenizer, listing, reporting, say

if TYPE_CHECKING:
    from ..labeling.llm.ask import AskReport


def ask_cli(
    texts: Annotated[Path, typer.Argument(help="Corpus: file or folder, in any format")],
    answers: Annotated[Path, typer.Argument(help="File of the answers (.jsonl); a later run continues it")],
    url: Annotated[str, typer.Option(help="Address up to /chat/completions, like http://localhost:8000/v1")],
    model: Annotated[str, typer.Option(help="Name of the model")],
    labels: Annotated[str, typer.Option(help="Comma-separated labels, or a .json or .toml file that describes each")],
    prompt: Annotated[
        Optional[Path], typer.Option(help="File with {{text}} and {{labels}} in it (default: built in)")
    ] = None,
    samples: Annotated[int, typer.Option(help="Number of answers per text; their agreement becomes the score")] = 1,
    temperature: Annotated[
        Optional[float], typer.Option(help="Sampling temperature (default: 0 for one sample, 0.7 for several)")
    ] = None,
    max_tokens: Annotated[int, typer.Option(help="Most tokens of an answer")] = 1024,
    structured: Annotated[
        bool, typer.Option("--structured", help="Let the server enforce the form of the answer (JSON schema)")
    ] = False,
    extra: Annotated[
        Optional[str], typer.Option(help="Further parameters to send, as a JSON object; null removes one")
    ] = None,
    key_env: Annotated[Optional[str], typer.Option(help="Environment variable that holds the key")] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Send the key over http:// to other machines, too")
    ] = False,
    budget: Annotated[
        Optional[float], typer.Option(help="Most that all answers in the file may cost; needs both prices")
    ] = None,
    price_in: Annotated[Optional[float], typer.Option(help="Price of a million tokens of requests")] = None,
    price_out: Annotated[Optional[float], typer.Option(help="Price of a million tokens of answers")] = None,
    concurrency: Annotated[int, typer.Option(help="Number of requests at a time")] = 4,
    timeout: Annotated[float, typer.Option(help="Seconds before a request is repeated")] = 120.0,
    retries: Annotated[int, typer.Option(help="Number of repetitions of a failed request")] = 6,
    limit: Annotated[Optional[int], typer.Option(help="Most different texts to annotate")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Send nothing: only count requests, and estimate tokens and cost")
    ] = False,
    format: Format = None,
    lang: Lang = "en",
    tokenizer: Tokenizer = None,
    sentences: Sentences = True,
) -> None:
    """Annotate texts with a language model; 'label' reads the answers as a source."""
    options = dict(locals())  # what the command takes is what the function takes
    with reporting():
        from ..labeling.llm.ask import ask

        report = ask(**options, progress=True)
        again = f" ({report.duplicates} more are there again)" if report.duplicates else ""
        msg.info(f"Texts: {report.texts}{again}; requests: {report.requests}; prompt: {report.asked}")
        if dry_run:
            say("info", f"Left to send: {report.left}{_estimate(report)}")
        else:
            say("good", f"{report.answered} answers{_spent(report)}", answers)
        if report.counts.rows:
            msg.info(f"Answers in the file: {report.counts.rows}; mentions: {listing(report.counts.mentions)}")
        for warning in _warnings(report, dry_run):
            say("warning", warning)


def _estimate(report: "AskReport") -> str:
    text = f"; about {report.tokens_in} tokens, and {report.tokens_out} of answers"
    if report.cost is not None:
        text += f"; cost: about {_money(report.cost)}"
    if report.most is not None:
        text += f", at most {_money(report.most)}"
    if report.budget_left is not None:
        text += f"; left of the budget: {_money(report.budget_left)}"
    return text


def _spent(report: "AskReport") -> str:
    text = "" if report.spent is None else f"; cost of all in the file: {_money(report.spent)}"
    return text if report.budget_left is None else f"{text}; left of the budget: {_money(report.budget_left)}"


def _money(amount: float) -> str:
    return f"{amount:.2f}" if amount >= 1 else f"{amount:.4f}"


def _short(text: str) -> str:
    """What a model says, on one line."""
    return " ".join(text.split())[:40]


def _warnings(report: "AskReport", dry_run: bool) -> Iterator[str]:
    """What was lost, and what is left."""
    counts = report.counts
    if report.torn:
        yield (
            f"The file ends in the middle of a row ({report.torn} bytes), which a run did not write to the end"
            f"{'' if dry_run else ': it was removed, and asked for again'}"
        )
    if counts.cut:
        yield f"Answers that broke off at the limit of tokens: {counts.cut}. They count as none: raise --max-tokens"
    if counts.unparsed > counts.cut:
        yield (
            f"Answers that could not be read: {counts.unparsed - counts.cut}. Their texts count as not looked at. See "
            "'answer' in the rows whose 'ents' are null"
        )
    if counts.others:
        shown = ", ".join(f"{_short(label) or '(none)'} {n}" for label, n in counts.others.most_common(10))
        yield f"Mentions left out, with labels that were not asked for: {counts.others.total()} ({shown})"
    if counts.not_found:
        shown = ", ".join(repr(_short(phrase)) for phrase in counts.lost)
        yield f"Mentions that are not in their texts: {counts.not_found} (such as {shown})"
    if counts.estimated:
        yield f"Answers whose tokens the server did not count, so that they are estimated: {counts.estimated}"
    if report.failed:
        yield f"Requests that failed: {report.failed} ({report.failure}). Run the same command again to send them"
    if report.is_spent:
        yield f"The budget does not suffice for another request. Requests left: {report.left}{_estimate(report)}"
