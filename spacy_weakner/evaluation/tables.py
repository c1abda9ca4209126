"""Results laid out as tables of text, for the terminal and for the HTML report."""

from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..calibration.reliability import Reliability
from ..scores import Counts
from .analyze import Analysis, GoldReport
from .compare import Comparison
from .evaluate import GoldScores, LabelScores, LengthRecall, PhraseCount
from .links import name_ids
from .terms.proposal import Proposal
from .terms.tuning import Tuning

ALL = "all"
UNKNOWN = "-"
# Characters of a cell: phrases and names can be as long as a text.
WIDTH = 60
_SCORES = ["P", "R", "F1"]
_COUNTS = ["right", "wrong", "missed"]


class Table(NamedTuple):
    """A table; `names` columns at the left hold names, the others numbers."""

    title: str
    header: List[str]
    rows: List[List[str]]
    note: str = ""
    names: int = 1


def analysis_tables(analysis: Analysis) -> List[Table]:
    """All tables of an analysis; those that need gold are left out where there is none."""
    scored = {source.name: source.gold for source in analysis.sources if source.gold is not None}
    tables = [
        _source_table(analysis),
        _label_table(analysis),
        *([_overlap_table(analysis)] if analysis.overlaps else []),
        *([_gold_table(analysis.gold)] if analysis.gold else []),
        *evaluation_tables("Source", scored, analysis.gold.lengths if analysis.gold else ()),
        *calibration_tables(analysis.calibration),
    ]
    return [_clean(table) for table in tables if table.rows]


def comparison_table(rows: Sequence[Comparison]) -> Table:
    """The candidates over all labels, the best F1 first."""
    baseline = next((row.difference.baseline for row in rows if row.difference), None)
    certain, scored, linked = (
        any(getattr(row, name) is not None for row in rows) for name in ("interval", "ece", "links")
    )
    header, notes = ["Candidate", *_SCORES], []
    if certain:
        header.append("F1 95 %")
        notes.append("F1 95 %: bootstrap confidence interval over sentences. p: two-sided, of the difference.")
    header += [f"vs {baseline}", "p"] if baseline is not None else []
    if scored:
        header.append("ECE")
        notes.append("ECE: expected calibration error of the scores of entities.")
    if linked:
        header += ["F1 with ids", "right ids", "known", "unknown"]
        notes.append("Right ids: of gold entities that are found; known: those that the candidate's term list has.")
    lines = []
    for row in sorted(rows, key=lambda row: -row.counts.f1):
        line = [row.name, *_scores(row.counts)]
        line += [row.interval.text() if row.interval else UNKNOWN] if certain else []
        if row.difference is not None:
            bounds = f"({row.difference.low:+.1f} to {row.difference.high:+.1f})"
            line += [f"{row.difference.f1:+.1f} {bounds}", f"{row.difference.p:.3f}"]
        elif baseline is not None:
            line += [UNKNOWN, UNKNOWN]
        line += [_decimals(row.ece)] if scored else []
        if row.links is not None:
            scores = row.links.scores
            shown = (scores[key] for key in ("f1", "accuracy", "accuracy_known", "accuracy_unknown"))
            line += [UNKNOWN if value is None else f"{value:.1f}" for value in shown]
        line += [f"{row.accuracy.of_tokens:.1f}", f"{row.accuracy.of_sentences:.1f}"]
        lines.append([*line, UNKNOWN if row.words_per_second is None else f"{row.words_per_second:,.0f}"])
    return _clean(Table("Candidates", [*header, "tokens", "sentences", "words/s"], lines, " ".join(notes)))


def tuning_tables(tuning: Tuning) -> List[Table]:
    """Scores of weak labels on gold, the worst terms, and term lists with and without better settings."""
    scores = [("all", tuning.scores), *tuning.per_label.items()]
    if len(tuning.per_source) > 1:
        scores += [(f"source {name}", scored) for name, scored in tuning.per_source.items()]
    tables = [
        Table(
            f"Weak labels on {tuning.scores.docs} of {tuning.docs} gold documents",
            ["", "P", "95 %", "R", "95 %", "F1", "95 %", *_COUNTS],
            [
                [
                    name,
                    *(
                        cell
                        for value, key in zip(_scores(scored.counts), ("p", "r", "f1"), strict=True)
                        for cell in (value, scored.intervals[key].text())
                    ),
                    *map(_n, scored.counts),
                ]
                for name, scored in scores
            ],
        ),
        Table(
            "Worst terms",
            ["Term", "Label", "Source", "wrong", "right", "for example"],
            [[t.term, t.label, t.source, _n(t.wrong), _n(t.right), t.examples[0]] for t in tuning.worst_terms],
            names=3,
        ),
    ]
    return [_clean(table) for table in tables if table.rows]


def proposal_table(proposal: Proposal) -> Table:
    """A term list before and after, and how certain the gain is."""
    rows = [
        [name, *_scores(counts), *map(_n, counts)]
        for name, counts in (("before", proposal.before), ("after", proposal.after))
    ]
    gain = f"{proposal.difference.text()}, on sentences that did not choose the settings."
    return _clean(Table(f"Proposal for '{proposal.source}'", ["", *_SCORES, *_COUNTS], rows, gain))


def evaluation_tables(what: str, scored: Dict[str, GoldScores], gold: Sequence[LengthRecall]) -> List[Table]:
    """Scores against gold, errors, recall by length and frequent errors of sources or candidates (`what`)."""
    lines = [
        (name, label, scores)
        for name, result in scored.items()
        for label, scores in [*result.per_label.items(), (ALL, result.total)]
    ]
    tables = [
        Table(
            "Scores per label",
            [what, "Label", *_SCORES, *(f"token {name}" for name in _SCORES)],
            [[name, label, *_scores(scores.exact), *_scores(scores.tokens)] for name, label, scores in lines],
            "On exact spans, and on tokens with their labels; where gold is known and the source has labeled.",
            names=2,
        ),
        Table(
            "Kinds of errors",
            [what, "Label", "right", "boundary", "type", "both", "spurious", "missed"],
            [[name, label, *_errors(scores)] for name, label, scores in lines],
            "Boundary: overlaps gold of its label. Type: gold has another label. Both: overlaps gold of other labels "
            "only. Spurious: overlaps no gold. Missed: gold that nothing overlaps.",
            names=2,
        ),
        _length_table(scored, gold),
        _phrase_table(what, "Most frequent false phrases", "false", {k: v.false for k, v in scored.items()}),
        _phrase_table(what, "Most frequent missed phrases", "missed", {k: v.missed for k, v in scored.items()}),
    ]
    return [_clean(table) for table in tables if table.rows]


def link_table(
    wrong: Mapping[str, Sequence[Tuple[Tuple[str, str, str, str], int]]], names: Mapping[str, str]
) -> List[Table]:
    """The most frequent wrong ids of right entities by candidate, see `WrongLinks`, with the preferred names of ids; no
    table if there are none."""
    rows = [
        [name, text, label, name_ids(gold, names), name_ids(given, names) if given else UNKNOWN, _n(n)]
        for name, found in wrong.items()
        for (text, label, gold, given), n in found
    ]
    header = ["Candidate", "Phrase", "Label", "Id in gold", "Id", "entities"]
    note = "Of gold entities that are found. The names are those of the candidates' term lists."
    return [_clean(Table("Most frequent wrong ids", header, rows, note, names=5))] if rows else []


def calibration_tables(calibration: Dict[str, Reliability]) -> List[Table]:
    """Calibration of scores, by name of what gives them."""
    if not calibration:
        return []
    summary = [
        [name, _n(group.spans), _n(group.unscored), _n(group.outside), f"{group.error:.3f}"]
        for name, group in calibration.items()
    ]
    # Of one label the summary is enough.
    labels = [
        [name, label, _n(group.spans), _decimals(group.score), _decimals(group.right), f"{group.error:.3f}"]
        for name, result in calibration.items()
        for label, group in result.labels.items()
        if len(result.labels) > 1
    ]
    bins = [
        [name, f"{group.low:.1f} to {group.high:.1f}", _n(group.spans), _decimals(group.score), _decimals(group.right)]
        for name, result in calibration.items()
        for group in result.bins
        if group.spans
    ]
    tables = [
        Table(
            "Calibration of scores",
            ["Scores of", "spans", "without score", "not in [0, 1]", "ECE"],
            summary,
            "ECE, the expected calibration error: how far scores are from the share that is right, on average.",
        ),
        Table(
            "Calibration per label",
            ["Scores of", "Label", "spans", "mean score", "share right", "ECE"],
            labels,
            "Of few spans the ECE is high by chance.",
            names=2,
        ),
        Table("Reliability of scores", ["Scores of", "Score", "spans", "mean score", "share right"], bins, names=2),
    ]
    return [_clean(table) for table in tables if table.rows]


def _source_table(analysis: Analysis) -> Table:
    header = ["Source", "docs labeled", "docs with spans", "tokens covered", "spans", "phrases"]
    header += ["alone", "overlapping", "several labels", "ambiguous phrases"]
    rows = [
        [
            source.name,
            _n(source.docs),
            f"{source.doc_coverage:.1f} %",
            f"{source.token_coverage:.1f} %",
            *map(_n, (source.total.spans, source.total.phrases, source.alone, source.overlapping)),
            *map(_n, (source.ambiguous, source.ambiguous_phrases)),
        ]
        for source in analysis.sources
    ]
    note = (
        "Coverage is a share of what a source has labeled. Alone: no span of another source overlaps it. Overlapping: "
        "spans that overlap others of the same source. Several labels: places to which the source gives more than one. "
        "Ambiguous phrases: those with several labels anywhere in the corpus."
    )
    return Table("Sources", header, rows, note)


def _label_table(analysis: Analysis) -> Table:
    rows = [
        [source.name, label, *map(_n, (report.spans, report.phrases, report.docs, report.tokens))]
        for source in analysis.sources
        for label, report in source.per_label.items()
    ]
    return Table("Labels of the sources", ["Source", "Label", "spans", "phrases", "docs", "tokens"], rows, names=2)


def _overlap_table(analysis: Analysis) -> Table:
    rows = [
        [overlap.source, overlap.other, *map(_n, (overlap.docs, overlap.spans, overlap.same, overlap.conflict))]
        + [_n(overlap.overlapping), _n(overlap.only)]
        for overlap in analysis.overlaps
    ]
    header = ["Source", "Beside", "docs", "spans", "same", "other label", "other bounds", "only here"]
    note = (
        "Spans of the first source, in documents that both have labeled. Other label: the same bounds, a conflict. "
        "Other bounds: the two overlap. Only here: the second source has no span there."
    )
    return Table("Agreement between sources", header, rows, note, names=2)


def _gold_table(gold: GoldReport) -> Table:
    rows = [[label, _n(n)] for label, n in [*gold.labels.items(), (ALL, sum(gold.labels.values()))]]
    note = f"In {_n(gold.docs)} documents; tokens without annotation: {_n(gold.missing)}."
    return Table("Gold entities", ["Label", "entities"], rows, note)


def _length_table(scored: Dict[str, GoldScores], gold: Sequence[LengthRecall]) -> Table:
    rows = []
    for i, group in enumerate(gold):
        classes = [result.lengths[i] for result in scored.values()]
        recalls = [f"{one.recall:.1f}" if one.gold else UNKNOWN for one in classes]
        rows.append([group.length, _n(group.gold), f"{group.cumulative:.1f} %", *recalls])
    note = (
        "Recall of gold entities by their number of tokens. Up to there: share of the entities that are at most so "
        "long, to choose a maximum span width by."
    )
    return Table("Recall by length", ["Tokens", "gold", "up to there", *scored], rows, note)


def _phrase_table(what: str, title: str, kind: str, phrases: Dict[str, Sequence[PhraseCount]]) -> Table:
    rows = [
        [name, phrase.text, phrase.label, _n(phrase.n), _n(phrase.of)]
        for name, top in phrases.items()
        for phrase in top
    ]
    return Table(title, [what, "Phrase", "Label", kind, "of"], rows, names=3)


def _scores(counts: Counts) -> List[str]:
    return [f"{value:.1f}" for value in (counts.precision, counts.recall, counts.f1)]


def _errors(scores: LabelScores) -> List[str]:
    return [_n(scores.exact.tp), *map(_n, scores.errors)]


def _n(number: int) -> str:
    return f"{number:,}"


def _decimals(value: Optional[float]) -> str:
    return UNKNOWN if value is None else f"{value:.3f}"


def _clean(table: Table) -> Table:
    """Cut long cells, and replace what would move a cursor or color a terminal."""
    return table._replace(header=list(map(shorten, table.header)), rows=[list(map(shorten, row)) for row in table.rows])


def shorten(text: str, width: int = WIDTH) -> str:
    """The text on one line of at most so many characters, without control characters."""
    text = printable(text)
    return text if len(text) <= width else f"{text[: width - 1]}…"


def printable(text: str) -> str:
    """The text on one line, without what would move a cursor, or cannot be written to a file."""
    return mask(" ".join(text.split()))


def mask(text: str) -> str:
    """The text with as many characters, those that cannot be printed being replaced."""
    return "".join(char if char.isprintable() or char in "\n\t" else "\N{REPLACEMENT CHARACTER}" for char in text)
