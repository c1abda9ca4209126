"""Results as tables of text, for the terminal and the HTML report."""

from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence

from ..calibration.reliability import Reliability
from ..scores import Counts
from .analyze import Analysis
from .compare import CandidateScores, ranked
from .evaluate import GoldScores, LengthRecall
from .links import WrongLink
from .terms.results import TermAnalysis

ALL = "all"
UNKNOWN = "-"
# Maximum characters of a cell: phrases and names can be as long as a text.
WIDTH = 60
_SCORES = ["P", "R", "F1"]
_COUNTS = ["right", "wrong", "missed"]
_LINKS = {"F1 with ids": "f1", "right ids": "accuracy", "known": "accuracy_known", "unknown": "accuracy_unknown"}
_NOTES = {
    "F1 95 %": "F1 95 %: bootstrap confidence interval over sentences. p: two-sided p-value of the difference.",
    "ECE": "ECE: expected calibration error of the entity scores.",
    "F1 with ids": "Right ids: share of the found gold entities that have a right id. Known, unknown: the same for "
    "entities that are, or are not, terms of the candidate's list.",
}


class Table(NamedTuple):
    """A table; the first `names` columns contain text, the others numbers."""

    title: str
    header: List[str]
    rows: List[List[str]]
    note: str = ""
    names: int = 1

    def without_first(self) -> "Table":
        """Return the table without its first column."""
        return self._replace(header=self.header[1:], rows=[row[1:] for row in self.rows], names=self.names - 1)


def analysis_tables(analysis: Analysis) -> List[Table]:
    """Return all tables of an analysis; without gold, those that need it are left out."""
    gold, sources = analysis.gold, analysis.sources
    columns = ["docs labeled", "docs with spans", "tokens covered", "spans", "phrases", "alone", "overlapping"]
    tables = [
        Table(
            "Sources",
            ["Source", *columns, "several labels"],
            [
                [
                    source.name,
                    _n(source.docs),
                    f"{source.doc_coverage:.1f} %",
                    f"{source.token_coverage:.1f} %",
                    *map(_n, (source.total.spans, source.total.phrases, source.alone)),
                    *map(_n, (source.overlapping, source.ambiguous)),
                ]
                for source in sources
            ],
            "Docs with spans and tokens covered are shares of what the source has labeled. Alone: spans that no other "
            "source overlaps. Overlapping: spans that overlap other spans of the same source. Several labels: places "
            "with more than one label of the source.",
        ),
        Table(
            "Labels of the sources",
            ["Source", "Label", "spans", "phrases", "docs", "tokens"],
            [
                [source.name, label, *map(_n, counts)]
                for source in sources
                for label, counts in source.per_label.items()
            ],
            names=2,
        ),
        Table(
            "Agreement between sources",
            ["Source", "Compared with", "docs", "spans", "same", "other label", "other bounds", "only here"],
            [[overlap.source, overlap.other, *map(_n, overlap[2:])] for overlap in analysis.overlaps],
            "Spans of the first source, in documents that both sources have labeled. Other label: the same bounds with "
            "another label. Other bounds: the spans overlap. Only here: the second source has no span there.",
            names=2,
        ),
    ]
    scored = {source.name: source.gold for source in sources if source.gold is not None}
    tables += evaluation_tables("Source", scored, gold.lengths if gold else ())
    return [*_tables(*tables), *calibration_tables(analysis.calibration)]


def comparison_table(rows: Sequence[CandidateScores], first: Optional[str] = None, title: str = "Candidates") -> Table:
    """Return a table of the candidates' scores over all labels in the order of `ranked`, without empty columns."""
    rows = ranked(rows, first)
    differences = [row.difference for row in rows]
    baseline = next((difference.baseline for difference in differences if difference), None)
    scores = zip(*(_scores(row.counts) for row in rows), strict=True)
    columns: Dict[str, Sequence[Optional[str]]] = {
        "Candidate": [row.name for row in rows],
        **dict(zip(_SCORES, scores, strict=True)),
        "F1 95 %": [row.interval.text() if row.interval else None for row in rows],
        f"vs {baseline}": [f"{d.f1:+.1f} ({d.low:+.1f} to {d.high:+.1f})" if d else None for d in differences],
        "p": [f"{d.p:.3f}" if d else None for d in differences],
        "ECE": [None if row.ece is None else f"{row.ece:.3f}" for row in rows],
        **{name: [_number(row.links[key], 1) if row.links else None for row in rows] for name, key in _LINKS.items()},
        "tokens": [f"{row.token_accuracy:.1f}" for row in rows],
        "sentences": [f"{row.sentence_accuracy:.1f}" for row in rows],
        "words/s": [None if row.words_per_second is None else f"{row.words_per_second:,}" for row in rows],
    }
    shown = {name: cells for name, cells in columns.items() if any(cells)}
    lines = [[cell or UNKNOWN for cell in line] for line in zip(*shown.values(), strict=True)]
    notes = " ".join(note for name, note in _NOTES.items() if name in shown)
    return _tables(Table(title, [*shown], lines, notes))[0]


def term_tables(analysis: TermAnalysis) -> List[Table]:
    """Return tables of the scores of weak labels on gold, and of the worst terms."""
    scores = [("all", analysis.scores), *analysis.per_label.items()]
    if len(analysis.per_source) > 1:
        scores += [(f"source {name}", scored) for name, scored in analysis.per_source.items()]
    rows = [[name, *_scores(one.counts), one.interval.text(), *map(_n, one.counts)] for name, one in scores]
    of_labels = [
        [source, label, *_scores(counts), *map(_n, counts)]
        for source, labels in (analysis.per_source_label.items() if len(analysis.per_source) > 1 else ())
        for label, counts in labels.items()
    ]
    title = f"Weak labels on {analysis.scores.docs} of {analysis.docs} gold documents"
    return _tables(
        Table(title, ["", *_SCORES, "F1 95 %", *_COUNTS], rows),
        Table("Each source alone", ["Source", "Label", *_SCORES, *_COUNTS], of_labels, names=2),
        Table(
            "Worst terms",
            ["Term", "Label", "Source", "wrong", "right", "for example"],
            [[t.term, t.label, t.source, _n(t.wrong), _n(t.right), t.examples[0]] for t in analysis.worst_terms],
            names=3,
        ),
    )


def evaluation_tables(what: str, scored: Mapping[str, GoldScores], gold: Sequence[LengthRecall]) -> List[Table]:
    """Return tables of the scores, kinds of errors, recall by length and frequent errors of sources or candidates."""
    lines = [
        (name, label, scores)
        for name, result in scored.items()
        for label, scores in [*result.per_label.items(), (ALL, result.total)]
    ]
    tables = [
        Table(
            "Scores per label",
            [what, "Label", *_SCORES],
            [[name, label, *_scores(scores.exact)] for name, label, scores in lines],
            "Scores on exact spans, in documents that have gold and that the source has labeled.",
            names=2,
        ),
        Table(
            "Kinds of errors",
            [what, "Label", "right", "boundary", "type", "both", "spurious", "missed"],
            [[name, label, *map(_n, (scores.exact.tp, *scores.errors))] for name, label, scores in lines],
            "Boundary: overlaps gold with the same label. Type: gold has the same bounds with another label. Both: "
            "overlaps only gold with other labels. Spurious: overlaps no gold. Missed: gold that no span overlaps.",
            names=2,
        ),
        Table(
            "Recall by length",
            ["Tokens", "gold", "cumulative", *scored],
            [
                [
                    group.length,
                    _n(group.gold),
                    f"{group.cumulative:.1f} %",
                    *(_number(one.recall if one.gold else None, 1) for one in found),
                ]
                for group, *found in zip(gold, *(result.lengths for result in scored.values()), strict=True)
            ],
            "Recall of gold entities by their number of tokens. Cumulative: share of the entities that are at most "
            "this long; use it to choose a maximum span width.",
        ),
    ]
    for kind in ("false", "missed"):
        phrases = [(name, phrase) for name, result in scored.items() for phrase in getattr(result, kind)]
        rows = [[name, phrase.text, phrase.label, _n(phrase.n), _n(phrase.of)] for name, phrase in phrases]
        header = [what, "Phrase", "Label", kind, "of"]
        tables.append(Table(f"Most frequent {kind} phrases", header, rows, names=3))
    return _tables(*tables)


def link_tables(wrong: Mapping[str, Sequence[WrongLink]]) -> List[Table]:
    """Return a table of the most frequent wrong ids of right entities by candidate; no table if there are none."""
    rows = [
        [name, *(cell or UNKNOWN for cell in link[:-1]), _n(link.n)] for name, links in wrong.items() for link in links
    ]
    header = ["Candidate", "Phrase", "Label", "Id in gold", "Id", "entities"]
    return _tables(Table("Most frequent wrong ids", header, rows, "Among the gold entities that were found.", names=5))


def name_tables(names: Mapping[str, str]) -> List[Table]:
    """Return a table of the preferred names of ids; no table if no name is known."""
    return _tables(Table("Preferred names of these ids", ["Id", "Name"], [[*pair] for pair in names.items()], names=2))


def calibration_tables(calibration: Mapping[str, Reliability]) -> List[Table]:
    """Return a table of the calibration of scores, by the name of their source or candidate."""
    rows = [
        [name, _n(group.spans), _n(group.unscored), _n(group.outside), _number(group.error, 3)]
        for name, group in calibration.items()
    ]
    header = ["Scores of", "spans", "without score", "not in [0, 1]", "ECE"]
    note = "ECE: expected calibration error, the mean absolute difference between score and share of right spans."
    return _tables(Table("Calibration of scores", header, rows, note))


def _scores(counts: Counts) -> List[str]:
    return [f"{value:.1f}" for value in (counts.precision, counts.recall, counts.f1)]


def _n(number: int) -> str:
    return f"{number:,}"


def _number(value: Optional[float], decimals: int) -> str:
    return UNKNOWN if value is None else f"{value:.{decimals}f}"


def _tables(*tables: Table) -> List[Table]:
    """Return the tables that have rows; long cells are cut, and control characters replaced."""
    return [
        table._replace(
            header=list(map(shorten_line, table.header)), rows=[list(map(shorten_line, row)) for row in table.rows]
        )
        for table in tables
        if table.rows
    ]


def shorten_line(text: str, width: int = WIDTH) -> str:
    """Return the text on one line of at most `width` characters, without control characters."""
    text = printable(text)
    return text if len(text) <= width else f"{text[: width - 1]}…"


def printable(text: str) -> str:
    """Return the text on one line, without control characters and characters that cannot be written to a file."""
    return mask(" ".join(text.split()))


def mask(text: str) -> str:
    """Replace unprintable characters; the number of characters stays the same."""
    return "".join(char if char.isprintable() or char in "\n\t" else "\N{REPLACEMENT CHARACTER}" for char in text)
