"""Formulas as MathML, which browsers draw themselves: no script and no network is needed to read them."""

from typing import Any, Dict

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx


def inline(translator: Any, node: nodes.math) -> None:
    """Write a formula in a line."""
    translator.body.append(convert(node.astext(), display="inline"))
    raise nodes.SkipNode


def block(translator: Any, node: nodes.math_block) -> None:
    """Write a formula of its own; a long one scrolls in its box."""
    translator.body.append(
        f'<div class="math" style="overflow: auto hidden">{convert(node.astext(), display="block")}</div>'
    )
    raise nodes.SkipNode


def setup(app: Sphinx) -> Dict[str, Any]:
    """Called by Sphinx."""
    app.add_html_math_renderer("mathml", inline_renderers=(inline, None), block_renderers=(block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
