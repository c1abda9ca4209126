"""`spacy weakner ask`"""

from pathlib import Path
from typing import Annotated, Any, Iterator, Optional

import typer

from ..labeling.llm.ask import AskReport, ask
from ..labeling.llm.config import AskConfig
from ._command import command
from ._util import listing, new_app, say

app = new_app()


@command(
    app,
    ask,
    settings={AskConfig: AskConfig.model_fields},
    without=["limit", "temperature", "retries", "timeout"],  # the temperature is a parameter to send (--extra)
    labels=Annotated[str, typer.Option()],
    prompt=Annotated[Optional[Path], typer.Option()],
    extra=Annotated[Optional[str], typer.Option()],
)
def show(report: AskReport, given: Any) -> None:
    again = f" (duplicates left out: {report.duplicates})" if report.duplicates else ""
    say("info", f"Texts: {report.texts}{again}; requests: {report.requests}; prompt: {report.asked}")
    if given.dry_run:
        say("info", f"Requests left to send: {report.left}{_estimate(report)}")
    else:
        say("good", f"{report.answered} answers{_spent(report)}", given.answers)
    if report.counts.rows:
        say("info", f"Answers in the file: {report.counts.rows}; mentions: {listing(report.counts.mentions)}")
    for warning in _warnings(report, given.dry_run):
        say("warning", warning)


def _estimate(report: AskReport) -> str:
    text = f"; about {report.tokens_in} input tokens and {report.tokens_out} output tokens"
    if report.cost is not None:
        text += f"; cost: about {_money(report.cost)}"
    if report.budget_left is not None:
        text += f"; remaining budget: {_money(report.budget_left)}"
    return text


def _spent(report: AskReport) -> str:
    text = "" if report.spent is None else f"; cost of all answers in the file: {_money(report.spent)}"
    return text if report.budget_left is None else f"{text}; remaining budget: {_money(report.budget_left)}"


def _money(amount: float) -> str:
    return f"{amount:.2f}" if amount >= 1 else f"{amount:.4f}"


def _short(text: str) -> str:
    """Shorten the answer of a model to one line."""
    return " ".join(text.split())[:40]


def _warnings(report: AskReport, dry_run: bool) -> Iterator[str]:
    """Yield warnings about lost answers and requests that are left."""
    counts = report.counts
    if report.torn:
        yield (
            f"The file ends in the middle of a row ({report.torn} bytes), because a run was interrupted"
            f"{'' if dry_run else '. The row was removed and requested again'}"
        )
    if counts.cut:
        yield f"Answers cut off at the token limit: {counts.cut}. They count as missing answers: raise --max-tokens"
    if counts.unparsed > counts.cut:
        yield (
            f"Answers that could not be parsed: {counts.unparsed - counts.cut}. Their texts count as unlabeled. See "
            "'answer' in the rows whose 'ents' is null"
        )
    if counts.others:
        shown = ", ".join(f"{_short(label) or '(none)'} {n}" for label, n in counts.others.most_common(10))
        yield f"Mentions left out, because their labels were not requested: {counts.others.total()} ({shown})"
    if counts.not_found:
        shown = ", ".join(repr(_short(phrase)) for phrase in counts.lost)
        yield f"Mentions that do not occur in their texts: {counts.not_found} (for example {shown})"
    if counts.estimated:
        yield f"Answers with estimated token counts, because the server gave none: {counts.estimated}"
    if report.failed:
        yield f"Requests that failed: {report.failed} ({report.failure}). Run the same command again to repeat them"
    if report.is_spent:
        yield f"The budget is spent. Requests left: {report.left}{_estimate(report)}"
