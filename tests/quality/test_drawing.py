"""The hand that draws pictures."""

import xml.etree.ElementTree as ElementTree

import numpy
import pytest

from spacy_weakner.quality.drawing import COLORS, METHODS, ROLES, Canvas, method_color, method_colors

# How the colour-blind see colours (Machado et al. 2009, severity 1), in linear RGB.
BLIND = {
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
}


def linear(color):
    values = numpy.array([int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return numpy.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def contrast(one, other):
    light = sorted(float(linear(color) @ [0.2126, 0.7152, 0.0722]) for color in (one, other))
    return (light[1] + 0.05) / (light[0] + 0.05)


@pytest.mark.parametrize("color", sorted({*COLORS, *(color for _, color in METHODS)}))
def test_colors_are_seen_on_light_and_dark(color):
    assert all(contrast(color, page) >= 3 for page in ROLES["page"])


@pytest.mark.parametrize("blindness", BLIND)
def test_the_first_colors_differ_for_the_colour_blind(blindness):
    seen = [numpy.clip(numpy.array(BLIND[blindness]) @ linear(color), 0, 1) ** (1 / 2.2) for color in COLORS[:4]]
    distances = [numpy.abs(one - other).max() for i, one in enumerate(seen) for other in seen[:i]]
    assert min(distances) > 0.15


def test_text_is_read_on_its_page():
    for light_or_dark in (0, 1):
        page, panel = (ROLES[name][light_or_dark] for name in ("page", "panel"))
        assert (
            min(contrast(ROLES[name][light_or_dark], each) for name in ("ink", "soft") for each in (page, panel)) > 4.5
        )


def test_a_method_has_its_color_wherever_it_stands():
    assert method_color("term list") == method_color("match") == method_color("source:llm")
    assert method_colors(["a", "gold alone"])["gold alone"] == method_colors(["gold alone"])["gold alone"]
    assert method_color("nobody knows it") == ""


def test_colors_of_one_picture_differ_as_long_as_there_are_enough():
    names = ["uniform", "uniform_twice", "x", "y", "gold alone", "term list"]
    colors = method_colors(names)
    assert list(colors) == names and len({*colors.values()}) == len(names)
    assert len(method_colors([str(i) for i in range(30)])) == 30


def test_a_picture_is_escaped_and_the_same_every_time():
    pictures = []
    for _ in range(2):
        canvas = Canvas(100, 50, "<script>", 'a & "b"')
        canvas.text(1, 2.25, "<b>", bold=True, mono=True, anchor="end", turn=90)
        canvas.box(1, 2, 3, 4, "panel", radius=2, opacity=0.5, border="ink", dashed=True)
        canvas.line([(0, 1), (2.5, 3)], "#112233", dashed=True)
        canvas.arrow((0, 0), (20, 0))
        for shape in range(5):
            canvas.marker(1, 2, "soft", shape)
        pictures.append(canvas.svg())
    assert pictures[0] == pictures[1] and "<script>" not in pictures[0] and "<b>" not in pictures[0]
    root = ElementTree.fromstring(pictures[0])
    assert [child.tag.rpartition("}")[2] for child in root][:3] == ["title", "desc", "style"]
    assert "prefers-color-scheme: dark" in root[2].text
    rects = [child for child in root if child.tag.endswith("rect")]
    assert rects[1].get("class") == "panel ink-s" and rects[1].get("stroke-dasharray")
