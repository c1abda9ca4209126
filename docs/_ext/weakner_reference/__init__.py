"""The part of the reference that is read off the code while the site is built. Each directive is a function that gives
Markdown, which tests read too."""

from typing import Any, Callable, ClassVar, Dict, List, Type

from docutils import nodes  # type: ignore[import-untyped]
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from . import api, commands, factories, messages, registered


class Reference(SphinxDirective):
    """Parses the Markdown that a function makes of the directive's arguments."""

    optional_arguments = 1
    function: ClassVar[Callable[..., str]]

    def run(self) -> List[nodes.Node]:
        """RETURNS (List[nodes.Node]): What stands in the place of the directive."""
        try:
            text = type(self).function(*self.arguments)
        except (KeyError, TypeError, ValueError, ImportError) as error:
            raise self.error(f"'{self.name}' knows nothing of {self.arguments}: {error}") from error
        return self.parse_text_to_nodes(text, allow_section_headings=True)


DIRECTIVES: Dict[str, Callable[..., str]] = {
    "factory": factories.render,
    "registered": registered.render,
    "commands": commands.render,
    "messages": messages.render,
    "api": api.render,
}


def setup(app: Sphinx) -> Dict[str, Any]:
    """Register the directives.

    app (Sphinx): The application.
    RETURNS (Dict[str, Any]): What Sphinx wants to know.
    """
    for name, function in DIRECTIVES.items():
        kind: Type[Reference] = type(f"{name.title()}Directive", (Reference,), {"function": staticmethod(function)})
        app.add_directive(name, kind)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
