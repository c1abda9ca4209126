"""Charts of the evidence pages, as SVG."""

import math
from pathlib import Path
from typing import Dict, List, Tuple

from drawing import Canvas, method_color, method_colors

from spacy_weakner.files import write_text

# What a bar is drawn in whose method has no color of its own: a variant of the system.
OTHER = "#8a94a3"


def bar_chart(title: str, bars: Dict[str, List[float]], path: Path) -> None:
    """Draw horizontal bars: the mean, and a dot per value.

    title (str): Title.
    bars (Dict[str, List[float]]): Values in 0..100 by name, from top to bottom.
    path (Path): The file.
    """
    step, left, top, width = 26, 190, 40, 420
    bottom = top + len(bars) * step
    several = any(len(values) > 1 for values in bars.values())
    means = {name: sum(values) / len(values) for name, values in bars.items()}
    canvas = Canvas(700, bottom + 52, title, "; ".join(f"{name} {mean:.1f}" for name, mean in means.items()))
    canvas.text(12, 24, title, size=15, bold=True)
    for tick in range(0, 101, 20):
        x = left + tick / 100 * width
        canvas.line([(x, top - 4), (x, bottom)], "line", width=1)
        canvas.text(x, bottom + 17, str(tick), size=12, color="soft", anchor="middle")
    for i, (name, values) in enumerate(bars.items()):
        y, mean = top + i * step, means[name]
        canvas.text(left - 8, y + 15, name, size=13, anchor="end")
        canvas.box(left, y + 2, mean / 100 * width, 18, method_color(name) or OTHER)
        if len(values) > 1:
            for value in values:
                canvas.marker(left + value / 100 * width, y + 11, "page", size=4.5)
                canvas.marker(left + value / 100 * width, y + 11, "ink", size=3)
        canvas.text(left + width + 14, y + 15, f"{mean:.1f}", size=13)
    seeds = "; bars are means, dots are seeds" if several else ""
    canvas.text(left + width / 2, bottom + 38, f"F1 (%){seeds}", size=13, anchor="middle")
    write_text(path, canvas.svg())


def stacked_chart(title: str, bars: Dict[str, List[Tuple[str, float]]], path: Path) -> None:
    """Draw horizontal bars of parts that add up.

    title (str): Title.
    bars (Dict[str, List[Tuple[str, float]]]): By name, from top to bottom: names and sizes of the parts; at most 100.
    path (Path): The file.
    """
    step, left, top, width = 26, 190, 68, 420
    bottom = top + len(bars) * step
    description = "; ".join(
        f"{bar} {', '.join(f'{name} {size:.1f}' for name, size in parts)}" for bar, parts in bars.items()
    )
    canvas = Canvas(700, bottom + 52, title, description)
    canvas.text(12, 24, title, size=15, bold=True)
    for i, name in enumerate(dict.fromkeys(name for parts in bars.values() for name, _ in parts)):
        canvas.box(left + 150 * i, 36, 14, 14, method_color(name) or OTHER)
        canvas.text(left + 150 * i + 20, 48, name if not i else f"+ {name}", size=13)
    for tick in range(0, 101, 20):
        x = left + tick / 100 * width
        canvas.line([(x, top - 4), (x, bottom)], "line", width=1)
        canvas.text(x, bottom + 17, str(tick), size=12, color="soft", anchor="middle")
    for i, (bar, parts) in enumerate(bars.items()):
        y, x = top + i * step, float(left)
        canvas.text(left - 8, y + 15, bar, size=13, anchor="end")
        for name, size in parts:
            canvas.box(x, y + 2, size / 100 * width, 18, method_color(name) or OTHER)
            x += size / 100 * width
        canvas.text(left + width + 14, y + 15, f"{sum(size for _, size in parts):.1f}", size=13)
    canvas.text(left + width / 2, bottom + 38, "F1 (%)", size=13, anchor="middle")
    write_text(path, canvas.svg())


def line_chart(title: str, x_label: str, lines: Dict[str, List[Tuple[float, float]]], path: Path) -> None:
    """Draw something in percent over something, the points evenly spaced.

    title (str): Title.
    x_label (str): What is on the x axis.
    lines (Dict[str, List[Tuple[float, float]]]): x and y (0..100) by name.
    path (Path): The file.
    """
    left, top, width, height, columns = 70, 42, 600, 250, 3
    xs = sorted({x for points in lines.values() for x, _ in points})
    values = [y for points in lines.values() for _, y in points]
    low, high = 10 * math.floor(min(values) / 10), 10 * math.ceil(max(values) / 10 + 1e-9)
    at = {x: left + width * i / max(1, len(xs) - 1) for i, x in enumerate(xs)}
    legend = top + height + 68
    description = "; ".join(
        f"{name}: {', '.join(f'{x:g} {y:.1f}' for x, y in points)}" for name, points in lines.items()
    )
    canvas = Canvas(700, legend + 22 * math.ceil(len(lines) / columns), title, description)
    canvas.text(12, 24, title, size=15, bold=True)
    canvas.text(20, top + height / 2, "F1 (%)", size=13, anchor="middle", turn=-90)
    for tick in range(low, high + 1, 10):
        y = top + height * (high - tick) / (high - low)
        canvas.line([(left, y), (left + width, y)], "line", width=1)
        canvas.text(left - 8, y + 4, str(tick), size=12, color="soft", anchor="end")
    for x in xs[:: max(1, len(xs) // 10)]:
        canvas.text(at[x], top + height + 18, f"{x:g}", size=12, color="soft", anchor="middle")
    canvas.text(left + width / 2, top + height + 40, x_label, size=13, anchor="middle")
    colors = method_colors([*lines])
    for i, (name, points) in enumerate(lines.items()):
        spots = [(at[x], top + height * (high - y) / (high - low)) for x, y in sorted(points)]
        canvas.line(spots, colors[name], width=2.0)
        for x, y in spots:
            canvas.marker(x, y, colors[name], i)
        x, y = left + i % columns * (width / columns), legend + 22 * (i // columns)
        canvas.line([(x, y), (x + 22, y)], colors[name], width=2.0)
        canvas.marker(x + 11, y, colors[name], i)
        canvas.text(x + 30, y + 5, name, size=13)
    write_text(path, canvas.svg())
