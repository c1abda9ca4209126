"""Plots as images in an HTML page: narrow enough for a phone, and deterministic."""

import base64
import io
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, Mapping, NamedTuple, Sequence, Tuple

from ..calibration.reliability import Reliability
from .compare import CandidateScores
from .tables import shorten_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

WIDTH = 4.5
# Colors of lines, in order: the contrast is at least 3:1 on light and on dark pages, and the first ones are
# distinguishable for the color-blind. Lines also have names and markers.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#3d94cf", "#8c6bb1", "#7f7f7f")
_LEGEND_LINE = 0.25
_MARKERS = "osD^vPX*"
# Maximum characters of a name above a row, and in a legend, which begins further right.
_NAME_WIDTH, _LEGEND_WIDTH = 40, 34
_STYLE: Dict[str, Any] = {
    "font.size": 12,
    "svg.fonttype": "none",
    "svg.hashsalt": "",
    "text.parse_math": False,  # a name may contain dollar signs
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#8c8c8c",
    "grid.alpha": 0.35,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
}


class Plot(NamedTuple):
    """A plot as an image."""

    title: str
    source: str  # SVG as a data URL
    words: str  # alternative text


def f1_plot(rows: Sequence[CandidateScores]) -> Plot:
    """Plot the F1 of candidates, with confidence intervals if there are any."""
    colors = _colors([row.name for row in rows])
    with _figure(0.8 + 0.5 * len(rows)) as (figure, axes):
        for i, row in enumerate(rows):
            if row.interval is not None:
                axes.plot([row.interval.low, row.interval.high], [i, i], color=colors[row.name], linewidth=2.5)
            axes.plot([row.f1], [i], marker="o", markersize=7, color=colors[row.name])
            # Names are above the rows: at the side, long names would leave no room for the plot.
            name = shorten_line(row.name, _NAME_WIDTH)
            axes.text(0.015, i - 0.27, name, transform=axes.get_yaxis_transform(), va="bottom")
        axes.set_yticks([])
        axes.set_ylim(len(rows) - 0.5, -0.75)
        axes.set_xlabel("F1 (%)")
        description = "; ".join(
            f"{shorten_line(row.name)} {row.f1:.1f}" + (f" ({row.interval.text()})" if row.interval else "")
            for row in rows
        )
        title = "F1 with 95 % intervals" if any(row.interval for row in rows) else "F1"
        return _finish(figure, title, description)


def curve_plot(points: Sequence[Tuple[float, float]]) -> Plot:
    """Plot F1 by the size of the training data."""
    with _figure(3.0) as (figure, axes):
        axes.plot(*zip(*points, strict=True), **_line(0, COLORS[0]))
        axes.set_xlabel("gold sentences")
        axes.set_ylabel("F1 (%)")
        axes.set_xlim(left=0)
        description = "; ".join(f"{n:.0f} sentences {f1:.1f}" for n, f1 in points)
        return _finish(figure, "F1 of gold alone, by number of gold sentences", description)


def training_plot(curves: Mapping[str, Sequence[Tuple[int, float]]], measure: str) -> Plot:
    """Plot a score on dev during trainings, as points (step, percent)."""
    colors = _colors(curves)
    with _figure(3.0 + _LEGEND_LINE * len(curves)) as (figure, axes):
        for i, (name, points) in enumerate(curves.items()):
            axes.plot(*zip(*points, strict=True), label=shorten_line(name, _LEGEND_WIDTH), **_line(i, colors[name]))
        axes.set_xlabel("step")
        axes.set_ylabel(f"{measure} on dev (%)")
        _legend(figure, axes.lines)
        description = "; ".join(f"{shorten_line(name)}: {points[-1][1]:.1f}" for name, points in curves.items())
        return _finish(figure, f"{measure} on dev during training".capitalize(), description)


def reliability_plot(calibration: Dict[str, Reliability]) -> Plot:
    """Plot the share of right spans against their mean score; on the diagonal they are equal."""
    colors = _colors(calibration)
    with _figure(3.6 + _LEGEND_LINE * len(calibration)) as (figure, axes):
        axes.plot([0, 1], [0, 1], color="black", linewidth=1, linestyle=(0, (4, 3)))
        for i, (name, result) in enumerate(calibration.items()):
            points = [(group.score, group.right) for group in result.bins if group.spans]
            if points:
                axes.plot(*zip(*points, strict=True), label=shorten_line(name, _LEGEND_WIDTH), **_line(i, colors[name]))
        axes.set_xlim(-0.03, 1.03)
        axes.set_ylim(-0.03, 1.03)
        axes.set_xlabel("mean score (0 to 1)")
        axes.set_ylabel("share of right spans (0 to 1)")
        _legend(figure, axes.lines[1:])
        description = "; ".join(
            f"{shorten_line(name)}: expected calibration error {group.error:.3f} over {group.spans} spans"
            for name, group in calibration.items()
        )
        return _finish(figure, "Reliability of scores", description)


@contextmanager
def _figure(height: float) -> Iterator[Tuple["Figure", "Axes"]]:
    """Make a figure without reading or changing the state of pyplot."""
    import matplotlib
    from matplotlib.figure import Figure

    style: Dict[Any, Any] = {**matplotlib.rcParamsDefault, **_STYLE}
    # The user's settings must not change the report. The backend belongs to pyplot, which is not used.
    style = {name: value for name, value in style.items() if not name.startswith(("backend", "interactive"))}
    with warnings.catch_warnings(), matplotlib.rc_context(style):
        # Text stays text in SVG, and the page's fonts may have the glyphs that matplotlib's fonts lack.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        yield figure, figure.add_subplot()


def _legend(figure: "Figure", lines: Sequence["Line2D"]) -> None:
    # Not get_legend_handles_labels(), which leaves out names that begin with "_".
    if lines:
        figure.legend(lines, [str(line.get_label()) for line in lines], loc="outside lower left")


def _colors(names: Iterable[str]) -> Dict[str, str]:
    """Return a color for each name, independent of their order."""
    return {name: COLORS[i % len(COLORS)] for i, name in enumerate(sorted(names))}


def _line(i: int, color: str) -> Dict[str, Any]:
    return {
        "color": color,
        "marker": _MARKERS[i % len(_MARKERS)],
        "markersize": 5,
        "linewidth": 1.6,
        "linestyle": "-" if i < len(COLORS) else "--",
    }


def _finish(figure: "Figure", title: str, words: str) -> Plot:
    stream = io.BytesIO()
    figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
    return Plot(title, f"data:image/svg+xml;base64,{base64.b64encode(stream.getvalue()).decode()}", words)
