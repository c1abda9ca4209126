"""`spacy weakner anchors`"""

from typing import Any

from ..labeling.anchors.anchors import AnchorsReport, anchors
from ._command import command
from ._util import listing, new_app, say

app = new_app()


@command(app, anchors, without=["label", "max_length", "shard_size"])
def show(report: AnchorsReport, given: Any) -> None:
    say("good", f"{report.docs} sentences, {report.tokens} tokens, {report.anchors} anchors", given.output_path)
    say("info", f"Articles: {report.pages}; skipped: {report.redirects} redirects, {report.other} other pages")
    left_out = f"{report.few} with too few anchors, {report.long} too long, {report.duplicates} duplicates"
    say("info", f"Sentences left out: {left_out}")
    if report.misaligned:
        say("warning", f"Anchors dropped because they do not end at token boundaries: {report.misaligned}")
    if report.unreadable:
        say("warning", f"Pages skipped: {listing(report.skipped)}; the first: {report.unreadable[0]}")
