"""`spacy weakner suggest`"""

import shlex
from typing import Any, Union

from ..active_learning.suggest import N_SENTENCES, SuggestReport, suggest
from ..active_learning.terms import TermReport
from ..corpus.formats.names import FORMATS
from ..evaluation.tables import shorten_line
from ._command import command
from ._util import listing, new_app, say, show_remarks, show_table

app = new_app()
_SHOWN = 10


@command(app, suggest, without=["seed"])
def show(report: Union[SuggestReport, TermReport], given: Any) -> None:
    if isinstance(report, TermReport):
        _show_terms(report, given)
    else:
        _show_sentences(report, given)
    show_remarks(report.remarks)


def _show_terms(report: TermReport, given: Any) -> None:
    new = [term for term in report.terms if term.in_list == "no"]
    say("good", f"{len(new)} terms to add, and {len(report.terms) - len(new)} in the lists to check", given.output_path)
    say("info", f"Left out: {report.known} already in the lists, {report.refuted} that are not entities in gold")
    rows = [
        (found.label, shorten_line(found.term), str(found.mentions), shorten_line(found.against))
        for found in new[:_SHOWN]
    ]
    show_table(("label", "term", "mentions", "against"), rows, 4)
    say("info", "Write yes or no into the column 'accept', and give the file as an additional --terms.")


def _show_sentences(report: SuggestReport, given: Any) -> None:
    say("good", f"{len(report.sentences)} sentences of {report.read}", given.output_path)
    if given.output_path.suffix.lower() in FORMATS["html"].outputs:
        name = shlex.quote(f"{given.output_path.stem}-answers.jsonl")
        say("info", f"Open it in a browser, and convert what 'Save' downloads: spacy weakner convert {name} more.jsonl")
    left_out = {
        "annotated": report.annotated,
        "excluded": report.excluded,
        "copies": report.copies,
        "nearly the same as a chosen one": report.near,
        "empty": report.empty,
    }
    say("info", f"Left out: {listing({what: number for what, number in left_out.items() if number})}")
    if report.partial:
        say("info", f"Suggested with the entities of their incomplete gold: {report.partial}")
    say("info", f"Sentences by uncertain label: {', '.join(f'{k} {v}' for k, v in report.labels.items()) or 'none'}")
    rows = [
        (f"{sentence.score:.2f}", shorten_line(sentence.why), shorten_line(sentence.text))
        for sentence in report.sentences[:_SHOWN]
    ]
    show_table(("score", "uncertain", "sentence"), rows, 3)
    if len(report.sentences) < (given.n or N_SENTENCES):
        say("warning", f"{given.n or N_SENTENCES} sentences were requested, but there are no more that differ enough")
    if report.certain:
        say("warning", f"Sentences without uncertainty, because there were no others: {report.certain}")
    if report.lost:
        lost = ", ".join(f"{what} {k}" for what, k in report.lost.items())
        say("warning", f"Lost, because the format cannot store it: {lost}")
