"""The page of best.py: its tables, its pictures, and the table that the evidence opens with."""

import re
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from charts import line_chart, stacked_chart
from common import EVIDENCE, mean_and_spread

from spacy_weakner.files import write_text
from spacy_weakner.project.rules import COMBINED, GOLD_ALONE, TERM_LIST

BEST, OLDER, MATCH, HEAD = "best", "older", "match", "linear with list"
# What a project packages that has gold alone.
ALONE = "alone"
# Columns that differ in the term list alone have one row of it.
SAME_GOLD = {"bc5cdr-half": "bc5cdr", "bc5cdr-independent": "bc5cdr"}
# Columns whose text is from another source: only in the table of students, below those with text of their own.
OTHER_TEXT = ("conll03-wikipedia", "bc5cdr-half-pubmed")
# Gold beside list and text, against more gold alone.
FEWEST, FEW, MANY = 50, 100, 1000
STUDENTS = ("frozen-speed", "frozen-mpnet-speed")
CURVE, CURVES = "linear", ("bc5cdr-half", "conll03")
# F1 of students on dev, by how much text they learn from (students.md).
STUDENTS_BY_TEXT: Dict[str, List[Tuple[float, float]]] = {
    "conll03": [(0, 74.9), (1000, 80.3), (4000, 81.3), (13700, 81.4)],
    "conll03, WikiNEuRal": [(0, 74.9), (4000, 77.8), (11500, 77.3)],
    "bc5cdr-half, PubMed": [(0, 71.3), (1000, 73.4), (4000, 75.8), (16000, 77.8)],
}
# The same without word vectors and copies in other case.
PLAIN = "linear-plain"
BEGIN, END = "<!-- the first table -->\n", "<!-- its end -->\n"
Rows = List[Dict[str, Any]]


def write(rows: Rows, terms: Mapping[str, str]) -> None:
    """Write page and pictures, and the first table of the evidence.

    rows (Rows): All rows.
    terms (Mapping[str, str]): From columns to where their term lists come from, in the order of the tables.
    """
    draw(rows, [*terms])
    first = EVIDENCE / "README.md"
    before, _, rest = first.read_text(encoding="utf-8").partition(BEGIN)
    write_text(first, before + BEGIN + fewer(rows, [*terms]) + "\n" + END + rest.partition(END)[2])
    for name in ("best", "best-details"):
        write_text(EVIDENCE / f"{name}.md", page(name, rows, terms))


def draw(rows: Rows, columns: Sequence[str]) -> None:
    """Draw where F1 comes from, what more text brings to students, and what more gold brings."""
    parts: Dict[str, List[Tuple[str, float]]] = {}
    for column in columns:
        reached, segments = 0.0, []
        for name, method in ((TERM_LIST, MATCH), (HEAD, HEAD), (COMBINED, COMBINED)):
            f1 = mean(rows, "linear", column, 250, method)
            if f1 is not None:
                segments.append((name, max(0.0, f1 - reached)))
                reached = max(reached, f1)
        if len(segments) == 3:
            parts[column] = segments
    stacked_chart("Where F1 comes from: 250 gold sentences, linear", parts, EVIDENCE / "best-parts.svg")
    title = "Students of MPNet-base, 250 gold sentences: F1 on dev"
    line_chart(title, "sentences of text", STUDENTS_BY_TEXT, EVIDENCE / "best-students.svg")
    for column in CURVES:
        sizes = sorted({row["strong"] for row in rows if row["encoder"] == CURVE and row["dataset"] == column})
        lines = {
            name: [(float(n), f1) for n in sizes if (f1 := mean(rows, CURVE, column, n, method)) is not None]
            for name, method in ((TERM_LIST, MATCH), (GOLD_ALONE, GOLD_ALONE), (BEST, BEST))
        }
        title = f"{column}: F1 on test"
        line_chart(title, "gold sentences", lines, EVIDENCE / f"best-{column}.svg")


def mean(rows: Rows, encoder: str, column: str, gold: int, method: str) -> Optional[float]:
    """RETURNS (Optional[float]): F1 over the samples; None if there is none."""
    wanted = {"encoder": encoder, "dataset": column, "strong": gold, "method": method}
    found = [row["f1"] for row in rows if wanted.items() <= row.items()]
    return sum(found) / len(found) if found else None


def fewer(rows: Rows, columns: Sequence[str]) -> str:
    """A table: few gold sentences with list and text, and many alone."""
    lines = [
        f"| data | size | list alone | {FEW} gold, list and text | {MANY:,} gold alone | difference |",
        "|---|---|---|---|---|---|",
    ]
    for column in columns:
        for encoder in ("linear", "linear-static", "minilm", "frozen", "frozen-mpnet", *STUDENTS):
            few = mean(rows, encoder, column, FEW, BEST)
            # A student is linear.
            without = "linear" if encoder in STUDENTS else encoder
            many = mean(rows, without, SAME_GOLD.get(column, column), MANY, ALONE)
            if few is not None and many is not None:
                alone = mean(rows, "linear", column, FEW, MATCH) or 0.0
                lines.append(f"| {column} | {encoder} | {alone:.1f} | {few:.1f} | {many:.1f} | {few - many:+.1f} |")
    return "\n".join(lines)


def page(name: str, rows: Rows, terms: Mapping[str, str]) -> str:
    """Fill a page."""
    text = (EVIDENCE / f"{name}.template.md").read_text(encoding="utf-8")
    columns = [name for name in terms if any(row["dataset"] == name for row in rows)]
    with_own_text = [name for name in columns if name not in OTHER_TEXT]
    text = re.sub(r"\{([a-z-]+)-(\d+)\}", lambda found: scores(rows, found[1], int(found[2]), with_own_text), text)
    text = (
        text.replace("{without}", without(rows, columns))
        .replace("{made}", made(rows))
        .replace("{collected}", collected(rows, terms))
    )
    for name, gold in (("students", 250), ("students-few", FEW), ("students-fewest", FEWEST)):
        text = text.replace(f"{{{name}}}", students(rows, columns, gold))
    return text.replace("{chosen}", chosen(rows))


def students(rows: Rows, columns: Sequence[str], gold: int) -> str:
    """A table: what is packaged without a Transformer, as its student, and with it, from the same sample."""
    rows = [row for row in rows if row["seed"] == 0]
    encoders = ("linear", "frozen-speed", "frozen", "frozen-mpnet-speed", "frozen-mpnet")
    names = ["linear", "student of MiniLM", "MiniLM", "student of MPNet-base", "MPNet-base"]
    names += [f"linear, {MANY:,} gold alone"] if gold == FEW else []
    lines = [f"| data | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    for column in columns:
        found = [mean(rows, encoder, column, gold, BEST) for encoder in encoders]
        if gold == FEW:
            found.append(mean(rows, "linear", SAME_GOLD.get(column, column), MANY, ALONE))
        if found[1] is not None or found[3] is not None:
            lines.append(f"| {column} | {' | '.join('' if f1 is None else f'{f1:.1f}' for f1 in found)} |")
    return "\n".join(lines)


def packaged(rows: Rows) -> Rows:
    """What projects of today's sizes have packaged."""
    return [row for row in rows if row["method"] == BEST and row["encoder"] != PLAIN]


def made(rows: Rows) -> str:
    """Which rows are older than the rule."""
    old = sum(bool(row.get("older")) for row in packaged(rows))
    if not old:
        return ""
    return (
        f'{old} rows of this page are of earlier projects ("{OLDER}" in the last table), with other students, and none '
        "in the combination; what would be packaged now was chosen again from their scores."
    )


def without(rows: Rows, columns: Sequence[str]) -> str:
    """A table: without word vectors and copies in other case, and with them."""
    lines = [
        "| data | gold alone: without | gold alone: with | packaged: without | packaged: with |",
        "|---|---|---|---|---|",
    ]
    for column in columns:
        cells = []
        for method in (GOLD_ALONE, BEST):
            of = {"dataset": column, "strong": 250, "method": method}
            pairs = [
                {row["seed"]: row["f1"] for row in rows if {**of, "encoder": encoder}.items() <= row.items()}
                for encoder in (PLAIN, "linear")
            ]
            seeds = pairs[0].keys() & pairs[1].keys()
            cells += [f"{sum(pair[seed] for seed in seeds) / len(seeds):.1f}" for pair in pairs if seeds]
        if cells:
            lines.append(f"| {column} | {' | '.join(cells)} |")
    return "\n".join(lines)


def collected(rows: Rows, terms: Mapping[str, str]) -> str:
    """What was packaged in the columns of such lists, beside gold alone."""
    found = {(row["dataset"], row["method"]): row["f1"] for row in rows if row["seed"] == 0 and row["strong"] == 250}
    names = [name for name, source in terms.items() if source in ("gold", "mixed") and (name, BEST) in found]
    return "; ".join(
        f"`{name}` {found[name, BEST]:.1f} packaged, {found[name, GOLD_ALONE]:.1f} gold alone" for name in names
    )


def scores(rows: Rows, encoder: str, gold: int, columns: List[str]) -> str:
    """A table of F1: a line per method, a column per data set."""
    some = [row for row in rows if row["encoder"] == encoder and row["strong"] == gold and row["method"] != ALONE]
    if not some:
        return "(not measured)"
    columns = [column for column in columns if any(row["dataset"] == column for row in some)]
    methods = sorted({row["method"] for row in some}, key=lambda name: (name != MATCH, name == BEST, name))
    lines = [f"| F1 | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    for method in methods:
        cells = []
        for column in columns:
            found = [row["f1"] for row in some if row["method"] == method and row["dataset"] == column]
            cells.append(mean_and_spread(found) if found else "")
        lines.append(f"| {TERM_LIST if method == MATCH else method} | {' | '.join(cells)} |")
    return "\n".join(lines)


def chosen(rows: Rows) -> str:
    """What was packaged, how sure it says it is, and how long it took."""
    heads = ["data", "size", "gold", "seed", "chosen", "F1 in cross-validation", "F1 on test", "calibration error"]
    heads += ["words/s", "minutes", "CPU minutes"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for row in sorted(packaged(rows), key=lambda row: (row["encoder"], row["strong"], row["dataset"], row["seed"])):
        error = "-" if row["ece"] is None else f"{row['ece']:.3f}"
        name = row["dataset"] + (f" ({OLDER})" if row.get("older") else "")
        cells = [name, row["encoder"], row["strong"], row["seed"], row["chosen"]]
        known = row["chosen_f1"][row["chosen"]]
        cells += ["-" if known is None else f"{known:.1f}", f"{row['f1']:.1f}", error, f"{row['words_per_second']:,}"]
        cells += [f"{row['seconds'] / 60:.1f}", f"{row['cpu_seconds'] / 60:.1f}"]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)
