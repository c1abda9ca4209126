"""Anchors of wikitext, the markup of MediaWiki."""

from html import unescape
from importlib.util import find_spec
from itertools import takewhile
from typing import Any, Callable, Dict, List, Optional

from ...errors import Errors, WeaknerError
from .paragraphs import Paragraph, Paragraphs
from .titles import ARTICLE, HIDDEN, Titles, names

_PARSER = "mwparserfromhell"
_ITEMS = frozenset(["li", "dd", "dt"])
_BLOCKS = _ITEMS | names("p div ul ol dl blockquote center poem hr h1 h2 h3 h4 h5 h6")
# Tables, references, and what holds no text to read.
_DROPPED_BLOCKS = names("table tr td th pre syntaxhighlight source gallery timeline score references")
_DROPPED = _DROPPED_BLOCKS | names(
    "ref math chem ce graph imagemap inputbox templatedata templatestyles categorytree section hiero mapframe maplink "
    "indicator style script"
)


def require_parser() -> None:
    """Check that the parser of wikitext is installed, which the extra "wiki" brings.

    RAISES (WeaknerError): If it is not.
    """
    if find_spec(_PARSER) is None:
        raise WeaknerError(Errors.WK440.format(markup="Wikitext", package=_PARSER))


def wikitext_paragraphs(text: str, titles: Titles) -> Optional[List[Paragraph]]:
    """Read a page. Templates, tables, references and comments are left out; headings and list items are paragraphs of
    their own.

    text (str): Its wikitext.
    titles (Titles): Tells which links lead to articles.
    RETURNS (Optional[List[Paragraph]]): The paragraphs; None if the parser gives up.
    RAISES (WeaknerError): If the parser is not installed.
    """
    require_parser()
    import mwparserfromhell
    from mwparserfromhell.parser import ParserError

    try:
        code = mwparserfromhell.parse(text)
        walker = _Walker(titles)
        walker.walk(code)
    except (ParserError, RecursionError):
        return None
    return walker.paragraphs.finish()


class _Walker:
    """Goes through the nodes of a page.

    titles (Titles): Tells which links lead to articles.
    """

    def __init__(self, titles: Titles) -> None:
        from mwparserfromhell import nodes

        self.titles = titles
        self.paragraphs = Paragraphs()
        # What is not listed here (templates, their arguments, comments) is left out.
        self._handlers: Dict[type, Callable[[Any], None]] = {
            nodes.Text: self._text,
            nodes.Wikilink: self._link,
            nodes.ExternalLink: self._external_link,
            nodes.HTMLEntity: self._entity,
            nodes.Heading: self._heading,
            nodes.Tag: self._tag,
        }
        self._after_anchor = False  # whether an anchor ends where the next node begins
        self._item = False  # whether the line is a list item, which ends with it
        self._line_empty = True

    def walk(self, code: Any) -> None:
        """Go through nodes.

        code (Any): A `Wikicode`.
        """
        for node in code.nodes:
            handler = self._handlers.get(type(node))
            if handler is not None:
                handler(node)
            self._after_anchor = self._after_anchor and handler == self._link
        self._after_anchor = False

    def _text(self, node: Any) -> None:
        # Bold and italics that nothing closes end with their line. To the parser they are text.
        text = str(node.value).replace("'''", "").replace("''", "")
        if self._after_anchor:
            # "[[bus]]es" is shown as one link.
            trail = "".join(takewhile(str.islower, text))
            self.paragraphs.extend_anchor(trail)
            text = text[len(trail) :]
        for number, line in enumerate(text.split("\n")):
            if number:
                self._newline()
            if not _is_switch(line.strip()):
                self._add(line)

    def _link(self, node: Any) -> None:
        self._after_anchor = False
        named = node.text is not None and bool(str(node.text).strip())
        title = unescape(str(node.title)).strip()
        kind = self.titles.kind(title, named)
        if kind == HIDDEN:
            return
        anchor = kind == ARTICLE and self.paragraphs.begin_anchor()
        if named:
            self.walk(node.text)
        elif title.startswith(":"):
            self._add(title[1:])
        else:
            self.walk(node.title)
        # Not sooner: the text of the link may hold others, which are no anchors.
        self._after_anchor = anchor and self.paragraphs.end_anchor()

    def _external_link(self, node: Any) -> None:
        if node.title is not None:
            self.walk(node.title)
        elif not node.brackets:
            self._add(str(node.url))

    def _entity(self, node: Any) -> None:
        # Not node.normalize(), which gives halves of surrogate pairs.
        self._add(unescape(str(node)))

    def _heading(self, node: Any) -> None:
        self._end()
        self.walk(node.title)
        self._end()

    def _tag(self, node: Any) -> None:
        name = str(node.tag).strip().lower()
        block = name in _BLOCKS or name in _DROPPED_BLOCKS
        if block:
            self._end()
        if name in _DROPPED:
            return
        if name == "br":
            self.paragraphs.add(" ")
        elif not node.self_closing:
            self.walk(node.contents)
            if block:
                self._end()
        else:
            # The marks at the beginning of a line: the text follows them.
            self._item = name in _ITEMS

    def _newline(self) -> None:
        if self._item or self._line_empty:
            self._end()
        else:
            self.paragraphs.add("\n")
            self._line_empty = True

    def _add(self, text: str) -> None:
        self.paragraphs.add(text)
        self._line_empty = self._line_empty and not text.strip()

    def _end(self) -> None:
        self.paragraphs.end()
        self._item = False
        self._line_empty = True


def _is_switch(line: str) -> bool:
    """Whether it is a switch of the page, like __NOTOC__."""
    return len(line) > 4 and line.startswith("__") and line.endswith("__")
