"""The hand that draws all pictures: colors that light and dark pages and the color-blind can take, the same one for a
method wherever it stands, and a canvas that writes SVG, the same bytes for the same picture."""

import re
from html import escape
from typing import Dict, List, Sequence, Tuple

from spacy_weakner.evaluation.plots import COLORS

BLUE, VERMILION, GREEN, PINK, OCHRE, SKY, PURPLE, GREY = COLORS
PLUM, BROWN, ROSE = "#aa4499", "#a66a3f", "#cc6677"
# What a method does with labels decides on its color; the first pattern that fits counts.
METHODS: Tuple[Tuple[str, str], ...] = (
    (r"term list|match|source:.*|dictionary|list|terms", OCHRE),
    (r"gold|gold alone|gold\d+|(tagger_)?supervised|(ner|tagger)_only/.*|spacy_ner", GREY),
    (r"weak alone|wsl|(weak_)?naive.*|distant_ce|single_ce|all_negatives", PINK),
    (r"(weak_)?partial.*|missing_.*", PURPLE),
    (r"sst|gold\d+_weak|.* with list", SKY),
    (r"needle.*|NEEDLE", BLUE),
    (r"negative sampling|uniform.*", GREEN),
    (r"weighted|weighted_with_o|weighted_oracle.*", VERMILION),
    (r"roster|RoSTER|full", PLUM),
    (r"cofee|CoFEE|mrc|pretrained", BROWN),
    (r"joint.*|pretrained/.*", ROSE),
    (r"best|combined.*|list and head|suggest", VERMILION),
)
# What a picture is made of, on light and on dark pages.
ROLES: Dict[str, Tuple[str, str]] = {
    "ink": ("#1b1b1f", "#e6e6ea"),
    "soft": ("#5c5c66", "#a0a0ab"),
    "line": ("#d0d0d8", "#44444e"),
    "page": ("#ffffff", "#16161a"),
    "panel": ("#f3f3f7", "#23232a"),
}
FONT = "system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
MONO = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"


def method_colors(names: Sequence[str]) -> Dict[str, str]:
    """A color for each method of a picture.

    names (Sequence[str]): Names of the methods.
    RETURNS (Dict[str, str]): The color that a method has everywhere; one that no other has here, as far as there are
        enough, for names that are not known and for a second method of the same kind.
    """
    wanted: Dict[str, str] = {}
    for name in names:
        color = method_color(name)
        if color and color not in wanted.values():
            wanted[name] = color
    free = [color for color in (*COLORS, PLUM, BROWN, ROSE) if color not in wanted.values()] or [*COLORS]
    rest = [name for name in names if name not in wanted]
    wanted.update({name: free[i % len(free)] for i, name in enumerate(rest)})
    return {name: wanted[name] for name in names}


def method_color(name: str) -> str:
    """RETURNS (str): The color that a method has everywhere; empty if it is not known."""
    return next((color for pattern, color in METHODS if re.fullmatch(pattern, name)), "")


class Canvas:
    """Draws on a card of its own, which is light, or dark where the reader's system is.

    width, height (int): Its size in pixels.
    title (str): What it shows, for those who do not see it.
    text (str): The same at length.
    """

    def __init__(self, width: int, height: int, title: str, text: str = "") -> None:
        self.width, self.height, self.title, self.description = width, height, title, text
        self._parts: List[str] = []

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        color: str = "ink",
        size: int = 14,
        anchor: str = "start",
        bold: bool = False,
        mono: bool = False,
        turn: int = 0,
    ) -> None:
        """Write a line.

        x, y (float): Where its baseline begins, is centered or ends.
        text (str): The line.
        color (str): A role, or a color.
        size (int): Size of the font in pixels.
        anchor (str): "start", "middle" or "end".
        bold, mono (bool): The face.
        turn (int): Degrees by which it is turned.
        """
        more = ' font-weight="600"' if bold else ""
        more += f' font-family="{MONO}"' if mono else ""
        more += f' text-anchor="{anchor}"' if anchor != "start" else ""
        more += f' transform="rotate({turn} {_number(x)} {_number(y)})"' if turn else ""
        where = f'x="{_number(x)}" y="{_number(y)}"'
        self._parts.append(f'<text {where} font-size="{size}"{more} {_paint("fill", color)}>{escape(text)}</text>')

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        color: str,
        *,
        radius: float = 0,
        opacity: float = 1.0,
        border: str = "",
        dashed: bool = False,
    ) -> None:
        """Draw a rectangle.

        x, y, width, height (float): Where.
        color (str): A role, a color, or "none".
        radius (float): Of its corners.
        opacity (float): Of what fills it.
        border (str): Role or color of its border; empty: it has none.
        dashed (bool): Dash the border.
        """
        where = " ".join(
            f'{name}="{_number(value)}"'
            for name, value in (("x", x), ("y", y), ("width", width), ("height", height), ("rx", radius))
            if name != "rx" or value
        )
        more = f' fill-opacity="{opacity:g}"' if opacity < 1 else ""
        more += ' stroke-width="1.5"' if border else ""
        more += ' stroke-dasharray="4 3"' if dashed else ""
        self._parts.append(f"<rect {where} {_paint('fill', color, border)}{more}/>")

    def line(self, points: Sequence[Tuple[float, float]], color: str, *, width: float = 1.5) -> None:
        """Draw a line through points."""
        where = " ".join(f"{_number(x)},{_number(y)}" for x, y in points)
        stroke = f'{_paint("stroke", color)} stroke-width="{_number(width)}"'
        self._parts.append(f'<polyline points="{where}" fill="none" {stroke}/>')

    def arrow(self, start: Tuple[float, float], end: Tuple[float, float], color: str = "soft") -> None:
        """Draw an arrow, level or upright."""
        (x1, y1), (x2, y2) = start, end
        dx, dy = (x2 > x1) - (x2 < x1), (y2 > y1) - (y2 < y1)
        self.line([start, (x2 - 6 * dx, y2 - 6 * dy)], color)
        corners = [(x2, y2), (x2 - 8 * dx - 4 * dy, y2 - 8 * dy - 4 * dx), (x2 - 8 * dx + 4 * dy, y2 - 8 * dy + 4 * dx)]
        where = " ".join(f"{_number(x)},{_number(y)}" for x, y in corners)
        self._parts.append(f'<polygon points="{where}" {_paint("fill", color)}/>')

    def marker(self, x: float, y: float, color: str, shape: int = 0, size: float = 4) -> None:
        """Draw a point in one of four shapes."""
        if shape % 4 == 0:
            where = f'cx="{_number(x)}" cy="{_number(y)}" r="{_number(size)}"'
            self._parts.append(f"<circle {where} {_paint('fill', color)}/>")
            return
        outline = (
            ((-1, -1), (1, -1), (1, 1), (-1, 1)),
            ((0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)),
            ((0, -1.2), (1.2, 0.9), (-1.2, 0.9)),
        )[shape % 4 - 1]
        corners = " ".join(f"{_number(x + size * dx)},{_number(y + size * dy)}" for dx, dy in outline)
        self._parts.append(f'<polygon points="{corners}" {_paint("fill", color)}/>')

    def svg(self) -> str:
        """RETURNS (str): The picture."""
        dark = "".join(
            f".{role}{{fill:{color}}}.{role}-s{{stroke:{color}}}" for role, (_, color) in sorted(ROLES.items())
        )
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" height="{self.height}" '
            f'viewBox="0 0 {self.width} {self.height}" font-family="{FONT}" role="img">'
        )
        about = f"<title>{escape(self.title)}</title>"
        about += f"\n<desc>{escape(self.description)}</desc>" if self.description else ""
        style = f"<style>@media (prefers-color-scheme: dark){{{dark}}}</style>"
        card = f'<rect width="{self.width}" height="{self.height}" rx="8" {_paint("fill", "page")}/>'
        return "\n".join([head, about, style, card, *self._parts, "</svg>\n"])


def _paint(what: str, color: str, border: str = "") -> str:
    # Attributes give way to the style, so that what knows no dark pages draws on a light one.
    both = [(what, color), ("stroke", border)][: 2 if border else 1]
    classes = [f"{each}-s" if name == "stroke" else each for name, each in both if each in ROLES]
    values = " ".join(f'{name}="{ROLES[each][0] if each in ROLES else each}"' for name, each in both)
    return f'class="{" ".join(classes)}" {values}' if classes else values


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
