"""Colors of plots."""

import numpy
import pytest

from spacy_weakner.evaluation.plots import COLORS

# How the color-blind see colors (Machado et al. 2009, severity 1), in linear RGB.
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


@pytest.mark.parametrize("color", COLORS)
def test_colors_are_seen_on_light_and_dark(color):
    assert all(contrast(color, page) >= 3 for page in ("#ffffff", "#16161a"))


@pytest.mark.parametrize("blindness", BLIND)
def test_the_first_colors_differ_for_the_color_blind(blindness):
    seen = [numpy.clip(numpy.array(BLIND[blindness]) @ linear(color), 0, 1) ** (1 / 2.2) for color in COLORS[:4]]
    distances = [numpy.abs(one - other).max() for i, one in enumerate(seen) for other in seen[:i]]
    assert min(distances) > 0.15
