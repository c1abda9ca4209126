"""Plots as SVG that can stand in an HTML page: narrow enough for a phone, in the colors of the page's text, and the
same bytes for the same numbers."""

import io
import re
import warnings
from contextlib import contextmanager
from html import escape
from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, List, NamedTuple, Sequence, Tuple

from ..calibration.reliability import Reliability
from ..needle.confidence import Calibration
from ..scores import Counts
from .compare import CandidateScores
from .evaluate import LengthRecall
from .tables import shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 4.5
# In the order in which lines get them: at least 3:1 on light and on dark pages, and the first ones differ for the
# color-blind. Names and markers stand beside them.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#3d94cf", "#8c6bb1", "#7f7f7f")
_LEGEND_LINE = 0.25
# What is drawn in this color gets that of the page's text, in light and in dark.
_INK = "#010203"
_MARKERS = "osD^vPX*"
# Characters of a name above a row, and in a legend, which begins further right.
_NAME_WIDTH, _LEGEND_WIDTH = 40, 34
_STYLE: Dict[str, Any] = {
    "font.size": 12,
    "svg.fonttype": "none",
    "text.parse_math": False,  # a name may hold dollar signs
    "text.color": _INK,
    "axes.edgecolor": _INK,
    "axes.labelcolor": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.titlesize": 11,
    "grid.color": "#8c8c8c",
    "grid.alpha": 0.35,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "xtick.color": _INK,
    "ytick.color": _INK,
}


class Plot(NamedTuple):
    """A plot."""

    title: str
    svg: str  # an `<svg>` element, with the same in words for those who do not see it


def f1_plot(rows: Sequence[CandidateScores], key: str) -> Plot:
    """F1 of candidates, with confidence intervals where there are any."""
    colors = _colors([row.name for row in rows])
    with _figure(0.8 + 0.5 * len(rows), key) as (figure, axes):
        for i, row in enumerate(rows):
            f1, color = row.f1, colors[row.name]
            if row.interval is not None:
                axes.plot([row.interval.low, row.interval.high], [i, i], color=color, linewidth=2.5)
            axes.plot([f1], [i], marker="o", markersize=7, color=color)
        _name_rows(axes, [row.name for row in rows])
        axes.set_xlabel("F1 (%)")
        description = "; ".join(
            f"{shorten(row.name)} {row.f1:.1f}" + (f" ({row.interval.text()})" if row.interval else "") for row in rows
        )
        title = "F1 with 95 % intervals" if any(row.interval for row in rows) else "F1"
        return _finish(figure, title, description, key)


def curve_plot(points: Sequence[Tuple[float, float]], key: str) -> Plot:
    """F1 by the size of the training data."""
    with _figure(3.0, key) as (figure, axes):
        axes.plot(*zip(*points, strict=True), **_line(0, COLORS[0]))
        axes.set_xlabel("gold sentences")
        axes.set_ylabel("F1 (%)")
        axes.set_xlim(left=0)
        description = "; ".join(f"{n:.0f} sentences {f1:.1f}" for n, f1 in points)
        return _finish(figure, "Gold alone, by the amount of gold", description, key)


def length_plot(lengths: Dict[str, List[LengthRecall]], key: str) -> Plot:
    """Recall by the length of gold entities."""
    colors = _colors(lengths)
    with _figure(3.0 + _LEGEND_LINE * len(lengths), key) as (figure, axes):
        for i, (name, classes) in enumerate(lengths.items()):
            known = [(x, point.recall) for x, point in enumerate(classes) if point.gold]
            axes.plot(*zip(*known, strict=True), label=shorten(name, _LEGEND_WIDTH), **_line(i, colors[name]))
        names = [point.length for point in next(iter(lengths.values()))]
        axes.set_xticks(range(len(names)), names)
        axes.set_ylim(-3, 103)
        axes.set_xlabel("tokens of the gold entity")
        axes.set_ylabel("recall (%)")
        _legend(figure, axes)
        description = "; ".join(
            f"{shorten(name)}: " + ", ".join(f"{point.length} {point.recall:.0f}" for point in classes if point.gold)
            for name, classes in lengths.items()
        )
        return _finish(figure, "Recall by length", description, key)


def precision_recall_plot(counts: Dict[str, Counts], key: str) -> Plot:
    """Precision and recall as bars."""
    with _figure(0.9 + 0.7 * len(counts), key) as (figure, axes):
        names = list(counts)
        for i, (label, offset) in enumerate((("precision", -0.1), ("recall", 0.12))):
            values = [getattr(total, label) for total in counts.values()]
            axes.barh([y + offset for y in range(len(names))], values, height=0.2, color=COLORS[i], label=label)
        _name_rows(axes, names)
        axes.set_xlim(0, 100)
        axes.set_xlabel("%")
        _legend(figure, axes, columns=2)
        description = "; ".join(
            f"{shorten(name)}: precision {total.precision:.1f}, recall {total.recall:.1f}"
            for name, total in counts.items()
        )
        return _finish(figure, "Precision and recall", description, key)


def reliability_plot(calibration: Dict[str, Reliability], key: str, title: str = "Reliability of scores") -> Plot:
    """Share of right spans against their mean score; on the diagonal both are equal."""
    colors = _colors(calibration)
    with _figure(3.6 + _LEGEND_LINE * len(calibration), key) as (figure, axes):
        axes.plot([0, 1], [0, 1], color=_INK, linewidth=1, linestyle=(0, (4, 3)))
        for i, (name, result) in enumerate(calibration.items()):
            points = [(group.score, group.right) for group in result.bins if group.spans]
            if points:
                axes.plot(*zip(*points, strict=True), label=shorten(name, _LEGEND_WIDTH), **_line(i, colors[name]))
        axes.set_xlim(-0.03, 1.03)
        axes.set_ylim(-0.03, 1.03)
        axes.set_xlabel("mean score (0 to 1)")
        axes.set_ylabel("share that is right (0 to 1)")
        _legend(figure, axes)
        description = "; ".join(
            f"{shorten(name)}: expected calibration error {group.error:.3f} over {group.spans} spans"
            for name, group in calibration.items()
        )
        return _finish(figure, title, description, key)


def steps_plot(calibration: Calibration, key: str) -> Plot:
    """From the score of a sentence to the chance that its predicted tags are right (Figure 5 of Jiang et al. 2021)."""
    edges, values, counts = calibration.steps
    with _figure(3.2, key) as (figure, axes):
        axes.stairs(
            [100 * value for value in values], _bounds(list(edges)), baseline=None, color=COLORS[0], linewidth=2
        )
        axes.set_ylim(-3, 103)
        axes.set_xlabel(f"{calibration.score.replace('_', ' ')} per word")
        axes.set_ylabel(f"{calibration.unit}s that are right (%)")
        steps = [f"{100 * value:.1f} % of {count}" for value, count in zip(values, counts, strict=True)]
        description = f"From the lowest to the highest scores: {'; '.join(steps)}"
        return _finish(figure, "Score and confidence", description, key)


def _bounds(edges: List[float]) -> List[float]:
    # The outermost steps have no end of their own.
    if not edges:
        return [0.0, 1.0]
    margin = max((edges[-1] - edges[0]) * 0.1, 1e-3)
    return [edges[0] - margin, *edges, edges[-1] + margin]


@contextmanager
def _figure(height: float, key: str) -> Iterator[Tuple["Figure", "Axes"]]:
    """A figure of its own, so that nothing of pyplot's state is read or changed."""
    import matplotlib
    from matplotlib.figure import Figure

    style: Dict[Any, Any] = {**matplotlib.rcParamsDefault, **_STYLE, "svg.hashsalt": key}
    # A user's own settings must not change the report; the backend belongs to pyplot, which is not used.
    style = {name: value for name, value in style.items() if not name.startswith(("backend", "interactive"))}
    with warnings.catch_warnings(), matplotlib.rc_context(style):
        # Text stays text: the page's fonts may well have the glyphs that matplotlib's lack.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        yield figure, figure.add_subplot()


def _name_rows(axes: "Axes", names: Sequence[str]) -> None:
    """Write a name above each row: at the side long names would leave no room for the plot."""
    for i, name in enumerate(names):
        axes.text(0.015, i - 0.27, shorten(name, _NAME_WIDTH), transform=axes.get_yaxis_transform(), va="bottom")
    axes.set_yticks([])
    axes.set_ylim(len(names) - 0.5, -0.75)


def _colors(names: Iterable[str]) -> Dict[str, str]:
    """A color for each name: the same ones in plots of the same names, whatever their order."""
    return {name: COLORS[i % len(COLORS)] for i, name in enumerate(sorted(names))}


def _line(i: int, color: str) -> Dict[str, Any]:
    return {
        "color": color,
        "marker": _MARKERS[i % len(_MARKERS)],
        "markersize": 5,
        "linewidth": 1.6,
        "linestyle": "-" if i < len(COLORS) else "--",
    }


def _legend(figure: "Figure", axes: "Axes", columns: int = 1) -> None:
    # Not get_legend_handles_labels(), which leaves out names that begin with "_".
    drawn: List[Any] = [*axes.lines, *axes.containers]
    # matplotlib's own labels of what has none are "_child0", "_container0" and so on.
    unnamed = re.compile(r"_(child|container|line)\d+|_nolegend_")
    shown = [artist for artist in drawn if not unnamed.fullmatch(str(artist.get_label()))]
    if shown:
        labels = [str(artist.get_label()) for artist in shown]
        figure.legend(shown, labels, loc="outside lower left", ncols=columns)


def _finish(figure: "Figure", title: str, description: str, key: str) -> Plot:
    stream = io.StringIO()
    figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return Plot(title, _inline(stream.getvalue(), title, description, key))


def _inline(svg: str, title: str, description: str, key: str) -> str:
    """Make an SVG file an element of a page."""
    element = svg[svg.index("<svg") :]
    element = re.sub(r"<metadata>.*?</metadata>\s*|<style.*?</style>\s*|<!--.*?-->\s*", "", element, flags=re.DOTALL)
    view = re.search(r'viewBox="[^"]+"', element)
    # Text and attributes hold no "<" or ">" of their own, so this finds tags only, never words of a user.
    element = re.sub(r"<[^>]+>", lambda tag: _inline_tag(tag[0], key), element[element.index(">") + 1 :])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" role="img" '
        f'aria-labelledby="{key}-title {key}-desc" {view[0] if view else ""}>\n'
        f'<title id="{key}-title">{escape(title)}</title>\n<desc id="{key}-desc">{escape(description)}</desc>'
        f"{element.rstrip()}\n"
    )


def _inline_tag(tag: str, key: str) -> str:
    tag = re.sub(r'\bid="', f'id="{key}-', tag)
    tag = re.sub(r'\bhref="#', f'href="#{key}-', tag).replace("url(#", f"url(#{key}-")
    tag = re.sub(rf"\b(fill|stroke): {_INK}", r"\1: currentColor", tag)
    return re.sub(r"font-family: [^;\"]+;? ?", "", tag)  # that of the page
