"""Draws what each system does to labels, on one made-up title, and the comparison of the demo: `docs/pictures/*.svg`.

The probabilities in them are made up, as the title is; the comparison is that of the demo.
"""

from pathlib import Path
from typing import Dict, List, NamedTuple, Sequence, Set, Tuple

from drawing import BLUE, BROWN, GREEN, GREY, OCHRE, VERMILION, Canvas, method_color

from spacy_weakner.files import write_text

ROOT = Path(__file__).parent.parent
PICTURES = ROOT / "docs" / "pictures"
WIDTH, LEFT = 700, 196
TOKENS = ("Amber", "Gate", "wool", "coat", "with", "linen", "trim")
LABELS = {"BRAND": BLUE, "MATERIAL": GREEN, "PRODUCT": OCHRE, "ENTITY": BROWN}
# Pixels of a letter at the size in which tokens are written, and beside a token.
LETTER, PADDING = 8.5, 11


class Span(NamedTuple):
    """Tokens with a label.

    start, end (int): The tokens.
    label (str): The label.
    sure (bool): Whether it is drawn full, or dashed.
    note (str): What stands behind the label.
    """

    start: int
    end: int
    label: str
    sure: bool = True
    note: str = ""


class Step(NamedTuple):
    """A row of a picture.

    name (str): What happens.
    more (List[str]): The same, at more length.
    spans (List[Span]): What is labeled after it.
    others (Dict[int, str]): What stands under other tokens.
    note (str): What stands at the end of the row.
    color (str): Color of what makes the labels; empty: none.
    """

    name: str
    more: List[str]
    spans: List[Span]
    others: Dict[int, str] = {}
    note: str = ""
    color: str = ""


BRAND, WOOL, COAT, LINEN = (
    Span(0, 2, "BRAND"),
    Span(2, 3, "MATERIAL"),
    Span(3, 4, "PRODUCT"),
    Span(5, 6, "MATERIAL"),
)


def dashed(span: Span, note: str = "") -> Span:
    """RETURNS (Span): The span, as something that is believed only."""
    return span._replace(sure=False, note=note)


def marks(sign: str, *tokens: int) -> Dict[int, str]:
    """RETURNS (Dict[int, str]): The same sign under several tokens."""
    return dict.fromkeys(tokens, sign)


def edges() -> List[Tuple[float, float]]:
    """RETURNS (List[Tuple[float, float]]): Where each token begins and ends."""
    found, x = [], float(LEFT)
    for token in TOKENS:
        width = max(len(token), 5) * LETTER + 2 * PADDING
        found.append((x, x + width))
        x += width + 4
    return found


def draw_steps(name: str, title: str, steps: Sequence[Step], foot: Sequence[str] = ()) -> None:
    """Draw what becomes of the labels of a sentence.

    name (str): Of the picture.
    title (str): Its title.
    steps (Sequence[Step]): The rows, from top to bottom.
    foot (Sequence[str]): Lines below.
    """
    told = ". ".join(f"{step.name}: {' '.join(step.more)} {say(step)}" for step in steps)
    height, top = 92, 56
    canvas = Canvas(WIDTH, top + height * len(steps) + 22 * len(foot), title, told)
    canvas.text(16, 30, title, size=16, bold=True)
    for i, step in enumerate(steps):
        y = top + i * height
        if i:
            canvas.arrow((92, y - 18), (92, y - 4))
        draw_step(canvas, y, step)
    for i, line in enumerate(foot):
        canvas.text(16, top + height * len(steps) + 6 + 22 * i, line, size=13, color="soft")
    write_text(PICTURES / f"{name}.svg", canvas.svg())


def say(step: Step) -> str:
    """RETURNS (str): What is labeled after a step, in words."""
    found = [
        f"{' '.join(TOKENS[span.start : span.end])} is {span.label}{f' ({span.note})' if span.note else ''}"
        for span in step.spans
    ]
    return ", ".join(found)


def draw_step(canvas: Canvas, y: float, step: Step) -> None:
    """Draw a row."""
    if step.color:
        canvas.box(16, y + 2, 4, 58, step.color)
    canvas.text(28, y + 15, step.name, size=14, bold=True)
    for i, line in enumerate(step.more):
        canvas.text(28, y + 34 + 17 * i, line, size=12, color="soft")
    at = edges()
    for start, end, label, sure, note in step.spans:
        x, width = at[start][0], at[end - 1][1] - at[start][0]
        color = LABELS[label]
        canvas.box(x, y, width, 28, color, radius=5, opacity=0.28 if sure else 0.08, border=color, dashed=not sure)
        canvas.text(x + width / 2, y + 44, label, size=11, bold=True, anchor="middle")
        if note:
            canvas.text(x + width / 2, y + 59, note, size=11, color="soft", anchor="middle")
    for i, token in enumerate(TOKENS):
        canvas.text((at[i][0] + at[i][1]) / 2, y + 19, token, size=14, mono=True, anchor="middle")
    for i, sign in step.others.items():
        for j, line in enumerate(sign.split("\n")):
            canvas.text((at[i][0] + at[i][1]) / 2, y + 44 + 15 * j, line, size=11, color="soft", anchor="middle")
    if step.note:
        canvas.text(LEFT, y + 76, step.note, size=12)


def before_and_after() -> None:
    """What the user brings, and what is packaged."""
    steps = [
        Step(
            "Term list",
            ["finds what it names,", "and some wrong words"],
            [WOOL, Span(6, 7, "PRODUCT")],
            color=OCHRE,
        ),
        Step(
            "Packaged pipeline",
            ["finds more, drops errors,", "gives scores and ids"],
            [
                BRAND._replace(note="0.78"),
                WOOL._replace(note="0.96 · M:12"),
                COAT._replace(note="0.84"),
                LINEN._replace(note="0.61 · M:7"),
            ],
            color=method_color("best"),
        ),
    ]
    draw_steps("before-and-after", "What the list finds, and what is found after training with text and gold", steps)


def needle() -> None:
    """NEEDLE: completion, confidence, loss."""
    steps = [
        Step(
            "Weak labels", ["what a term list finds;", "? is unknown"], [WOOL], marks("?", 0, 1, 3, 4, 5, 6), "", OCHRE
        ),
        Step(
            "Completed",
            ["a model of the gold", "decides where it is silent"],
            [dashed(BRAND), WOOL, dashed(COAT), dashed(LINEN)],
            marks("O", 4, 6),
            color=BLUE,
        ),
        Step(
            "Confidence",
            ["from gold that the", "model has not seen"],
            [dashed(BRAND), WOOL, dashed(COAT), dashed(LINEN)],
            marks("O", 4, 6),
            "All tags together are right with w = 0.8, as such sentences of the gold were.",
            BLUE,
        ),
        Step(
            "Noise-aware loss",
            ["trained together with", "the gold (w = 1)"],
            [BRAND, WOOL, COAT, LINEN],
            marks("O", 4, 6),
            "0.8 of the loss says: these tags; 0.2 of it says: any others.",
            BLUE,
        ),
    ]
    draw_steps("needle", "NEEDLE: weak labels are completed, and trusted as far as they deserve", steps)


def roster() -> None:
    """RoSTER: removal, ensemble, self-training."""
    wrong = Span(6, 7, "PRODUCT")
    color = method_color("RoSTER")
    steps = [
        Step(
            "Weak labels",
            ["at face value: what is", 'not found is "O"'],
            [BRAND, COAT, wrong],
            marks("O", 2, 4, 5),
            "",
            OCHRE,
        ),
        Step(
            "Robust learning",
            ["tags that the model does", "not believe are removed"],
            [BRAND._replace(note="0.9"), COAT._replace(note="0.9")],
            {2: "removed\n0.4", 4: "O\n0.9", 5: "removed\n0.2", 6: "removed\n0.3"},
            color=color,
        ),
        Step(
            "Ensemble",
            ["the mean of models with", "several seeds, softly"],
            [
                BRAND._replace(note="0.9"),
                dashed(WOOL, "0.6"),
                COAT._replace(note="0.9"),
                dashed(LINEN, "0.7"),
            ],
            {4: "O\n0.9", 6: "O\n0.8"},
            color=color,
        ),
        Step(
            "Self-training",
            ["learns what it is sure of,", "also with other words"],
            [BRAND, WOOL, COAT, LINEN],
            marks("O", 4, 6),
            "On the text, and on forms of it with words that a language model predicts.",
            color,
        ),
    ]
    draw_steps("roster", "RoSTER: without gold, wrong tags go and missing ones come back", steps)


def cofee() -> None:
    """CoFEE: anchors, gazetteer, picking, types."""
    color = method_color("CoFEE")
    entity = [Span(0, 2, "ENTITY"), Span(5, 6, "ENTITY")]
    steps = [
        Step("1. Anchors", ["links of web pages say", "what an entity is"], entity, marks("-", 2, 3, 4, 6), "", color),
        Step(
            "2. Gazetteer",
            ["a term list says", "what is of which type"],
            [WOOL],
            marks("-", 0, 1, 3, 4, 5, 6),
            "",
            OCHRE,
        ),
        Step(
            "Picked",
            ["what the model finds now", "are the labels it learns next"],
            [dashed(BRAND), WOOL, dashed(LINEN)],
            marks("-", 3, 4, 6),
            "Again and again, while it gains.",
            color,
        ),
        Step(
            "3. Finer types",
            ["clusters inside each label", "are learned beside it"],
            [
                BRAND._replace(note="cluster 2"),
                WOOL._replace(note="cluster 1"),
                LINEN._replace(note="cluster 1"),
            ],
            marks("-", 3, 4, 6),
            color=color,
        ),
    ]
    draw_steps("cofee", "CoFEE: from entities, to labels, to finer types", steps)


def best() -> None:
    """The recipe "best": source features, heads, combiner."""
    trim = Span(6, 7, "PRODUCT")
    color = method_color("best")
    steps = [
        Step(
            "Term list",
            ["gives features to the", "heads, not the truth"],
            [WOOL, trim],
            marks("-", 0, 1, 3, 4, 5),
            "",
            OCHRE,
        ),
        Step(
            "Head on the gold",
            ["reads words and list,", "proposes with scores"],
            [dashed(BRAND, "0.7"), dashed(WOOL, "0.9"), dashed(COAT, "0.8")],
            marks("-", 4, 5, 6),
            color=method_color("linear with list"),
        ),
        Step(
            "Head on the text",
            ["knows what the list says", "of other text, and no gold"],
            [dashed(WOOL, "0.9"), dashed(LINEN, "0.6")],
            marks("-", 0, 1, 3, 4, 6),
            color=method_color("weak alone"),
        ),
        Step(
            "Combiner",
            ["learned on held-out gold", "whom to believe when"],
            [
                BRAND._replace(note="0.78"),
                WOOL._replace(note="0.96"),
                COAT._replace(note="0.84"),
                LINEN._replace(note="0.61"),
            ],
            {4: "-", 6: "dropped\n0.12"},
            color=color,
        ),
    ]
    foot = ["The scores are ent._.weakner_score: of entities with 0.9, about nine in ten are right."]
    draw_steps("best", "The recipe “best”: list and heads propose, a combiner decides", steps, foot)


def joint() -> None:
    """Joint labeling: one encoder, tags and categories."""
    color = method_color("joint/none")
    told = "One encoder reads few titles with entities and many with a category only; it gives tags and a category."
    canvas = Canvas(WIDTH, 414, "Joint labeling", told)
    canvas.text(16, 30, "Joint labeling: categories of many titles help the entities of few", size=16, bold=True)
    few = Step(
        "Few titles",
        ["with entities and", "a category"],
        [BRAND, WOOL, COAT, LINEN],
        marks("O", 4, 6),
        "category: clothing",
        GREY,
    )
    many = Step("Many titles", ["with a category only"], [], marks("?", *range(7)), "category: clothing", GREY)
    draw_step(canvas, 56, few)
    draw_step(canvas, 156, many)
    canvas.arrow((430, 240), (430, 262))
    canvas.box(196, 262, 468, 34, color, radius=6, opacity=0.25, border=color)
    canvas.text(430, 284, "one encoder, trained on both", size=14, bold=True, anchor="middle")
    for x, head, learns in (
        (300, "tags of the tokens", "CRF; learns from the few"),
        (560, "category of the sentence", "softmax; learns from all"),
    ):
        canvas.arrow((x, 296), (x, 330))
        canvas.box(x - 104, 330, 208, 56, "panel", radius=6, border="line")
        canvas.text(x, 353, head, size=14, bold=True, anchor="middle")
        canvas.text(x, 374, learns, size=12, color="soft", anchor="middle")
    canvas.text(28, 284, "Learning", size=14, bold=True)
    canvas.text(28, 303, "attention over the tokens", size=12, color="soft")
    canvas.text(28, 320, "feeds both heads", size=12, color="soft")
    write_text(PICTURES / "joint.svg", canvas.svg())


def negative_sampling() -> None:
    """Negative sampling: all spans of a sentence."""
    gold, hidden, drawn = {(0, 1), (3, 3)}, {(2, 2), (5, 5)}, {(1, 4), (4, 4), (2, 6)}
    n, size, top, left = len(TOKENS), 42, 104, 80
    open_spans = n * (n + 1) // 2 - len(gold)
    told = (
        f"All {n * (n + 1) // 2} spans of a title. Two are annotated, two are entities that nobody has annotated. "
        f"{len(drawn)} of the other {open_spans} are drawn as negatives; the hidden entities are not among them."
    )
    canvas = Canvas(WIDTH, top + n * size + 46, "Negative sampling", told)
    canvas.text(16, 30, "Negative sampling: few of the unlabeled spans are taken for “no entity”", size=16, bold=True)
    canvas.text(left + n * size / 2, 62, "last token of the span", size=12, color="soft", anchor="middle")
    canvas.text(18, top + n * size / 2, "first token of the span", size=12, color="soft", anchor="middle", turn=-90)
    for i, token in enumerate(TOKENS):
        canvas.text(left + (i + 0.5) * size, top - 12, token, size=12, mono=True, anchor="middle")
        canvas.text(left - 8, top + (i + 0.62) * size, token, size=12, mono=True, anchor="end")
        for j in range(i, n):
            draw_cell(canvas, left + j * size, top + i * size, size, (i, j), gold, hidden, drawn)
    x = 396.0
    rows: List[Tuple[Set[Tuple[int, int]], Set[Tuple[int, int]], Set[Tuple[int, int]], str, str]] = [
        ({(0, 0)}, set(), set(), "annotated entity: learned", "Amber Gate, coat"),
        (set(), set(), {(0, 0)}, f"drawn as a negative: {len(drawn)} of {open_spans}", "others in every step"),
        (set(), {(0, 0)}, set(), "entity that nobody annotated", "wool, linen: seldom drawn, so that"),
        (set(), set(), set(), "not drawn: no say in this step", "nothing is learned from them"),
    ]
    for i, (one, two, three, name, more) in enumerate(rows):
        y = top + 20 + 66.0 * i
        draw_cell(canvas, x, y, size, (0, 0), one, two, three)
        canvas.text(x + 48, y + 14, name, size=14, bold=True)
        canvas.text(x + 48, y + 32, more, size=12, color="soft")
    canvas.text(x + 48, top + 20 + 66 * 2 + 48, "they are seldom learned as “no entity”", size=12, color="soft")
    foot = "If all of them were negatives, the model would learn to miss what the annotators missed."
    canvas.text(16, top + n * size + 30, foot, size=13)
    write_text(PICTURES / "negative-sampling.svg", canvas.svg())


def draw_cell(
    canvas: Canvas,
    x: float,
    y: float,
    size: float,
    span: Tuple[int, int],
    gold: Set[Tuple[int, int]],
    hidden: Set[Tuple[int, int]],
    drawn: Set[Tuple[int, int]],
) -> None:
    """Draw a span: annotated, drawn, hidden or none of these."""
    x, y, size = x + 2, y + 2, size - 4
    if span in gold:
        canvas.box(x, y, size, size, BLUE, radius=4)
        canvas.text(x + size / 2, y + size / 2 + 5, "✓", size=15, color="#ffffff", bold=True, anchor="middle")
    elif span in drawn:
        canvas.box(x, y, size, size, VERMILION, radius=4, opacity=0.3, border=VERMILION)
        canvas.text(x + size / 2, y + size / 2 + 5, "–", size=15, bold=True, anchor="middle")
    elif span in hidden:
        canvas.box(x, y, size, size, GREEN, radius=4, opacity=0.12, border=GREEN, dashed=True)
        canvas.text(x + size / 2, y + size / 2 + 5, "?", size=14, bold=True, anchor="middle")
    else:
        canvas.box(x, y, size, size, "panel", radius=4)


class Row(NamedTuple):
    """A line of the comparison.

    name (str): The candidate.
    f1, low, high (float): F1, and its interval.
    """

    name: str
    f1: float
    low: float
    high: float


# `weasel run all` on the demo: F1 on test, with its 95 % interval.
DEMO = (
    Row("term list", 66.6, 64.8, 68.2),
    Row("gold alone", 85.9, 84.5, 87.4),
    Row("linear with list", 90.0, 88.7, 91.2),
    Row("weak alone", 68.4, 66.7, 70.2),
    Row("list and head", 68.3, 66.6, 70.1),
    Row("combined", 91.4, 90.4, 92.6),
)


def comparison() -> None:
    """Draw the comparison of the demo."""
    rows = DEMO
    left, top, width, low, high = 204, 60, 410, 60.0, 95.0
    bottom = top + 34 * len(rows)
    told = "; ".join(f"{row.name} {row.f1:.1f} ({row.low:.1f} to {row.high:.1f})" for row in rows)
    canvas = Canvas(WIDTH, bottom + 56, "F1 of the candidates on the test set of the demo", told)
    canvas.text(16, 30, "The demo: what each candidate finds on test", size=16, bold=True)
    for tick in range(60, 96, 5):
        x = left + (tick - low) / (high - low) * width
        canvas.line([(x, top - 8), (x, bottom)], "line", width=1)
        canvas.text(x, bottom + 18, str(tick), size=12, color="soft", anchor="middle")
    for i, row in enumerate(rows):
        y, color = top + 34 * i + 14, method_color(row.name) or GREY
        ends = [left + (value - low) / (high - low) * width for value in (row.low, row.f1, row.high)]
        winner = row.f1 == max(each.f1 for each in rows)
        canvas.text(left - 12, y + 5, row.name, size=14, anchor="end", bold=winner)
        canvas.line([(ends[0], y), (ends[2], y)], color, width=5.0)
        canvas.marker(ends[1], y, "page", size=8)
        canvas.marker(ends[1], y, color, size=6)
        canvas.text(left + width + 18, y + 5, f"{row.f1:.1f}", size=14, bold=winner)
    canvas.text(
        left + width / 2, bottom + 42, "F1 (%), with 95 % intervals; the axis begins at 60", size=13, anchor="middle"
    )
    write_text(PICTURES / "comparison.svg", canvas.svg())


def main() -> None:
    """Draw all pictures."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    for draw in (before_and_after, needle, roster, cofee, best, joint, negative_sampling):
        draw()
    comparison()


if __name__ == "__main__":
    main()
