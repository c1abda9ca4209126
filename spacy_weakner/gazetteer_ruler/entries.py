"""Terms with their tokens, and which of them the settings let through."""

from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple


class Entry(NamedTuple):
    """A term with its tokens: all that matching needs, so that nothing is tokenised again at load.

    label (str): Entity label.
    text (str): The term as it was read.
    tokens (Tuple[str, ...]): The values of the matched attribute, without white space tokens.
    exact (Optional[Tuple[str, ...]]): The tokens as written, where they differ and the rule for short
        acronyms might want them.
    """

    label: str
    text: str
    tokens: Tuple[str, ...]
    exact: Optional[Tuple[str, ...]]

    def to_row(self) -> Dict[str, Any]:
        """What is stored of the entry."""
        row: Dict[str, Any] = {"label": self.label, "term": self.text, "tokens": list(self.tokens)}
        return row if self.exact is None else {**row, "exact": list(self.exact)}

    @classmethod
    def from_row(cls, row: Dict[str, Any]) -> "Entry":
        """The entry that `to_row` stored."""
        exact = tuple(row["exact"]) if "exact" in row else None
        return cls(row["label"], row["term"], tuple(row["tokens"]), exact)


class SortedEntries(NamedTuple):
    """Entries by what the settings say about them.

    plain (List[Entry]): Matched on the component's attribute.
    exact (List[Entry]): Matched in exact case.
    short (List[Entry]): Skipped: too few characters.
    stop (List[Entry]): Skipped: on the stop list.
    empty (List[Entry]): Skipped: no tokens.
    """

    plain: List[Entry]
    exact: List[Entry]
    short: List[Entry]
    stop: List[Entry]
    empty: List[Entry]

    def sizes(self) -> Dict[str, int]:
        """The number of entries of each kind."""
        return {kind: len(entries) for kind, entries in self._asdict().items()}


def sort_entries(
    entries: Iterable[Entry], *, acronym_length: int, stop: Sequence[str], min_length: int
) -> SortedEntries:
    """Apply the settings of the component; see `make_gazetteer_ruler` for their meaning.

    entries (Iterable[Entry]): The entries.
    acronym_length (int): The longest acronym that must match in exact case; 0 for none.
    stop (Sequence[str]): Terms to skip.
    min_length (int): Number of characters below which a term is skipped.
    RETURNS (SortedEntries): Each entry under one kind.
    """
    sorted_ = SortedEntries([], [], [], [], [])
    stopped = {_folded(text) for text in stop}
    for entry in entries:
        if len(entry.text) < min_length:
            sorted_.short.append(entry)
        elif stopped and _folded(entry.text) in stopped:
            sorted_.stop.append(entry)
        elif not entry.tokens:
            sorted_.empty.append(entry)
        elif len(entry.text) <= acronym_length and has_inner_capital(entry.text):
            sorted_.exact.append(entry)
        else:
            sorted_.plain.append(entry)
    return sorted_


def has_inner_capital(text: str) -> bool:
    """Whether there is an upper-case letter after the first character, as in "AIDS" and "pH"."""
    return any(character.isupper() for character in text[1:])


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()
