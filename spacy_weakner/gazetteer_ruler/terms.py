"""Reads term lists: CSV, TSV, Excel, JSONL, rows of spaCy's rulers, plain text; all but Excel also with `.gz`."""

import csv
import json
import re
from functools import partial
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from ..corpus.records import MAX_ID_LENGTH
from ..errors import Errors, WeaknerError
from ..files import parse_json, read_lines
from .forms import folded, has_inner_capital
from .spreadsheet import EXCEL, ChangedCell, read_sheet

MAX_LENGTH = 1000  # characters; a longer text is a sentence or a broken row, not a term
ACRONYM_LENGTH = 5  # default of the component's `acronym_length`
_GIVE_LABEL = "give 'label' (--term-label; in a sources file: term_label) for the whole list"
_GIVE_COLUMNS = "give the names that it has (--term-columns term=NAME,label=NAME; in a sources file: term_columns)"
# Delimiters of columns, by the suffix of the file name; and those that a header may have instead.
DELIMITERS = {".csv": ",", ".tsv": "\t"}
OTHER_DELIMITERS = ",;\t|"
# Suffixes of tables.
TABLES = (*DELIMITERS, EXCEL)
# The first line of a table that names the delimiter, for Excel.
_DECLARED = re.compile(r'("?)sep=(.)\1\s*', re.I)
_QUOTED = re.compile(r'"((?:[^"]|"")*)"')
_EXACT_KEYS = ("ORTH", "TEXT")
_TOKEN_KEYS = (*_EXACT_KEYS, "LOWER")
# Columns and keys with the id of a term's concept; in a cell, "|" separates several ids.
ID_KEYS = ("id", "kb_id", "concept_id", "code", "cui", "ent_id")
# Column and key with the preferred name of this concept.
NAME_KEY = "name"
# Column and key with further terms of the same label and concept.
SYNONYMS_KEY = "synonyms"
# Separates synonyms in a cell; a line break always does.
SEPARATOR = "|"
# Column and key that declares a term binding: always an entity, or never one.
BINDING_KEY = "binding"
MUST, NEVER = "must", "never"
# Keys that columns of other names can be mapped to.
COLUMN_KEYS = ("label", "term", SYNONYMS_KEY, "id", NAME_KEY, BINDING_KEY)
# Column and key with a reviewer's answer, which `suggest --review-terms` leaves empty, and the answers.
ANSWER_KEY = "accept"
_ANSWERS = {"yes": True, "y": True, "true": True, "1": True, "no": False, "n": False, "false": False, "0": False}


class Term(NamedTuple):
    """A term of a list: a phrase with its label and concept."""

    label: str
    text: str  # the phrase, without white space around it
    exact: bool = False  # True if it matches in exact case only, whatever attribute is compared
    # Id of its concept; empty if it is unknown. A term of several concepts occurs several times in a list.
    id: str = ""
    name: str = ""  # preferred name of this concept; empty: the first one in other rows, else its first term
    binding: str = ""  # "must" or "never": see the component `binding_terms`


# Terms as a component takes them: a reader; strings, pairs (label, term), triples (label, term, id) and rows; or lists
# by label.
TermInput = Union[
    Callable[[], Iterable[Term]],
    Sequence[Union[str, Tuple[Any, ...], List[Any], Dict[str, Any]]],
    Mapping[str, Sequence[str]],
]
# The line of a row (for error messages), the reviewer's answer, the arguments of `make_terms`, and synonyms.
_Row = Tuple[Any, ...]
_RowReader = Callable[[Path, Optional[str], Mapping[str, str]], Iterator[_Row]]
# A label, and the text as written or in any case.
TermKey = Tuple[str, str]


class BadTerm(ValueError):
    """An error for a row that is not a term; readers add the place to the message."""


def make_term_list(
    path: Path,
    label: Optional[str] = None,
    columns: str = "",
    synonyms_separator: str = SEPARATOR,
    normalize_labels: bool = False,
) -> Callable[[], Iterator[Term]]:
    """Create a reader of a term list. The file is read when the component is initialized, not before.

    path (Path): The file. Its suffix determines the format: `.csv` and `.tsv` (a header with the columns `label`
        and `term`, and perhaps `synonyms`, one of ids and `name`; others are ignored; also separated by `;` or `|` if
        the header is), `.xlsx` (the same in the first sheet), `.jsonl` (`{"label", "term", "synonyms", "id", "name"}`,
        or patterns of spaCy's rulers) or `.txt` (one term per line); all but `.xlsx` also with `.gz`.
    label (Optional[str]): Label of terms that have none in the file.
    columns (str): Names of columns or keys in the file, such as `term=Bezeichnung,id=Code,synonyms=Synonyme`.
    synonyms_separator (str): What separates the synonyms in a cell.
    normalize_labels (bool): Write labels in capitals, with "_" in place of other signs than letters and digits.
    RETURNS (Callable[[], Iterator[Term]]): The reader.
    """
    return partial(read_lists, [Path(path)], label, columns, synonyms_separator, normalize_labels, every=True)


def read_terms(path: Path, *settings: Any, **more: Any) -> Iterator[Term]:
    """Stream the terms of a file; see `read_lists` and, for the arguments, `make_term_list`."""
    return read_lists([Path(path)], *settings, **more)


def read_binding(paths: Sequence[Path], *settings: Any, **more: Any) -> Iterator[Term]:
    """Stream the binding terms of several files, including those that are never entities."""
    every = (row for path in paths for row in _read_answered(path, *settings, **more))
    return (term for _, answer, term in every if term.binding == NEVER or (term.binding and answer))


def rejected_keys(term: Term) -> List[TermKey]:
    """Return the keys of the terms that a term with "never" rejects: as it is written, and in any case."""
    return [(term.label, form(term.text)) for form in (str, folded)]


def term_key(term: Term) -> TermKey:
    """Return the key by which a term is rejected: "no" for "aids" does not reject "AIDS", which matches in exact
    case."""
    is_acronym = len(term.text) <= ACRONYM_LENGTH and has_inner_capital(term.text)
    return term.label, term.text if is_acronym else folded(term.text)


def read_lists(
    paths: Sequence[Path], *settings: Any, stop: Iterable[str] = (), every: bool = False, **more: Any
) -> Iterator[Term]:
    """Stream the terms of several files, including duplicates and binding ones, without those that a row rejects for
    the same label: in a column `accept`, the answer "yes" adds a term, "no" rejects it, and without an answer the row
    is ignored; in a column `binding`, "never" rejects it. With `every`, terms with "never" are yielded too. Raises an
    error if a term with "must" is rejected, or is one of `stop`."""
    refused: Dict[TermKey, str] = {}
    for path in paths:
        for line, answer, term in _read_answered(path, *settings, **more):
            if answer is False:
                how = f"'{NEVER}'" if term.binding == NEVER else f"not accepted ('{ANSWER_KEY}')"
                for key in rejected_keys(term):
                    refused.setdefault(key, f"{how} in line {line} of {path}")
    stopped = dict.fromkeys(map(folded, stop), "a term of the setting 'stop' of its source")
    for path in paths:
        for line, answer, term in _read_answered(path, *settings, **more):
            why = refused.get(term_key(term)) if refused else None
            if answer and term.binding == MUST and (against := why or stopped.get(folded(term.text))):
                raise _line_error(path, line, _contradiction(term, against))
            if (answer and why is None) or (every and term.binding == NEVER):
                yield term


def _contradiction(term: Term, against: str) -> str:
    return f"'{term.text}' ({term.label}) is '{MUST}' here, but {against}. Decide for one."


def _read_answered(
    path: Path,
    label: Optional[str] = None,
    columns: str = "",
    synonyms_separator: str = SEPARATOR,
    normalize_labels: bool = False,
) -> Iterator[Tuple[int, Optional[bool], Term]]:
    """Yield the terms of a file, each with its line and whether it is accepted (None: not answered yet)."""
    empty = True
    for line, given, row_label, text, *fields, synonyms in _format_reader(path)(path, label, parse_columns(columns)):
        try:
            answer = _parse_answer(given)
            label_ = label if _is_blank(row_label) else row_label
            texts = [text, *_read_synonyms(synonyms, synonyms_separator)]
            terms = [term for text in texts for term in make_terms(label_, text, *fields)]
        except BadTerm as error:
            raise _line_error(path, line, str(error)) from error
        empty = False
        for term in terms:
            labeled = term._replace(label=normalized(term.label)) if normalize_labels else term
            yield line, answer and term.binding != NEVER, labeled
    if empty:
        raise WeaknerError(Errors.WK200.format(path=path))


def parse_columns(text: str) -> Dict[str, str]:
    """Parse names of columns, such as `term=Name,id=Code`, as a mapping of these names, in lower case, to the keys
    that are read."""
    pairs = [part.partition("=") for part in re.split(r",(?=\s*\w+\s*=)", text)] if text else []
    columns = {name.strip().lower(): key.strip() for key, _, name in pairs}
    keys = [*columns.values()]
    if "" in columns or len({*keys}) < len(pairs) or not {*keys} <= {*COLUMN_KEYS}:
        expected = (
            f"KEY=COLUMN, separated by commas, with these keys, each for another column: {', '.join(COLUMN_KEYS)}"
        )
        raise WeaknerError(Errors.WK005.format(setting="term_columns", value=repr(text), expected=expected))
    return columns


def rename(titles: Iterable[str], columns: Mapping[str, str]) -> List[str]:
    """Return titles or keys as they are read: mapped, so that no other column has these keys."""
    titles = list(titles)
    keys = {columns.get(title.lower()) for title in titles}
    return [columns.get(title.lower(), "" if title in keys else title) for title in titles]


def normalized(label: str) -> str:
    """Return a label in capitals, with "_" in place of other signs than letters and digits."""
    return re.sub(r"[\W_]+", "_", label).strip("_").upper() or label


def _parse_answer(given: Any) -> Optional[bool]:
    if given is None:
        return True  # the file has no such column
    answer = str(given).strip().lower()
    if answer and answer not in _ANSWERS:
        raise BadTerm(f"'{ANSWER_KEY}' is {given!r}. Write yes or no, or leave it empty.")
    return _ANSWERS.get(answer)


def make_terms(
    label: Any, text: Any, exact: bool = False, ids: Any = None, names: Any = None, binding: Any = None
) -> List[Term]:
    """Check and strip the fields of a row; return a term for each of its ids. Raises `BadTerm` if label or term is
    empty, or a field is not a string, too long, longer than a line, or has an unknown value."""
    for what, value in (("label", label), ("term", text)):
        if value is not None and not isinstance(value, str):
            raise BadTerm(f"the {what} {value!r} is not a string. Put it in quotes.")
    if _is_blank(text):
        raise BadTerm("the term is empty. Fill it in, or remove the row.")
    if _is_blank(label):
        raise BadTerm(f"the label is empty. Fill it in, or {_GIVE_LABEL}.")
    declared = str(binding or "").strip().lower()
    if declared not in ("", MUST, NEVER):
        raise BadTerm(f"'{BINDING_KEY}' is {binding!r}. Write {MUST} or {NEVER}, or leave it empty.")
    term = Term(label.strip(), text.strip(), exact, binding=declared)
    if any(end in part for part in term[:2] for end in "\r\n"):  # more likely a broken table than a phrase
        raise BadTerm(
            f"{json.dumps(term[:2], ensure_ascii=False)[:100]} contains a line break. Write label and term on one line."
        )
    if len(term.text) > MAX_LENGTH:
        raise BadTerm(f"the term is {len(term.text)} characters long (at most {MAX_LENGTH}). Shorten or remove it.")
    identifiers = _read_ids(ids)
    named = zip(identifiers, _read_names(names, identifiers), strict=True)
    terms = [term._replace(id=identifier, name=name) for identifier, name in named] or [term]
    try:
        "".join(part for term in terms for part in (term.label, term.text, term.id, term.name)).encode("utf-8")
    except UnicodeEncodeError as error:  # JSON can contain half a surrogate pair, which no Doc can contain
        raise BadTerm(f"the row contains an invalid character ({error.reason}). Correct its \\u escapes.") from error
    return terms


def _read_ids(ids: Any) -> List[str]:
    """Return the ids of a row, given as one or several strings or numbers."""
    found: Dict[str, None] = {}
    for value in ids if isinstance(ids, list) else [ids]:
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            raise BadTerm(f"the id {value!r} is not a string. Put it in quotes.")
        for identifier in map(str.strip, str(value).split("|")):
            if len(identifier) > MAX_ID_LENGTH:
                raise BadTerm(f"the id is {len(identifier)} characters long (at most {MAX_ID_LENGTH}). Shorten it.")
            if any(character in "\r\n\0" for character in identifier):
                raise BadTerm(f"the id {identifier[:100]!r} contains a line break. Write it on one line.")
            if identifier:
                found.setdefault(identifier)
    return list(found)


def _read_synonyms(synonyms: Any, separator: str) -> List[str]:
    """Return the further terms of a row, given as a list, or in one string."""
    if isinstance(synonyms, str):
        synonyms = [part for line in synonyms.splitlines() for part in (line.split(separator) if separator else [line])]
    if not isinstance(synonyms, (list, type(None))):
        raise BadTerm(f"the synonyms {synonyms!r:.100} are not a list or a string. Write a list of strings.")
    return [text for text in synonyms or () if not _is_blank(text)]


def _read_names(names: Any, ids: Sequence[str]) -> List[str]:
    """Return the preferred name of each id of a row; "" for ids without a name."""
    if not ids or _is_blank(names):
        return [""] * len(ids)
    if not isinstance(names, str) or len(names) > MAX_LENGTH or any(character in "\r\n\0" for character in names):
        raise BadTerm(f"the name {names!r:.100} is not a string of one line and at most {MAX_LENGTH} characters.")
    found = list(map(str.strip, names.split("|"))) if len(ids) > 1 else [names.strip()]
    if len(found) != len(ids):
        raise BadTerm(f"{len(ids)} ids have {len(found)} names. Give each id a name, separated by '|', or give none.")
    return found


def term_row(term: Term) -> Dict[str, Any]:
    """Return the row of a term in the format that `term_fields` reads."""
    ids = {key: value for key, value in (("id", term.id), (NAME_KEY, term.name)) if value}
    if term.exact:
        return {"label": term.label, "pattern": [{"ORTH": word} for word in term.text.split(" ")], **ids}
    return {"label": term.label, "term": term.text, **ids}


def term_fields(row: Any) -> Tuple[Any, ...]:
    """Read a row `{"label", "term"}`, or a pattern of spaCy's rulers `{"label", "pattern"}`, perhaps with `id`, `name`
    and `binding`, as arguments of `make_terms`. Raises `BadTerm` for other rows."""
    if not isinstance(row, dict):
        raise BadTerm(f'expected an object like {{"label": ..., "term": ...}}, got {type(row).__name__}.')
    ids = next((row[key] for key in ID_KEYS if row.get(key) is not None), None)
    more = ids, row.get(NAME_KEY), row.get(BINDING_KEY)
    if "term" in row:
        return (row.get("label"), row["term"], False, *more)
    if "pattern" not in row:
        raise BadTerm(f'the row has no "term" (or "pattern"), only: {", ".join(map(str, row)) or "nothing"}. Add it.')
    pattern = row["pattern"]
    text, exact = _pattern_fields(pattern) if isinstance(pattern, list) else (pattern, False)
    return (row.get("label"), text, exact, *more)


def iter_terms(source: TermInput, name: str, label: Optional[str] = None) -> Iterator[Term]:
    """Yield terms from a reader; from strings, pairs (label, term) or rows (as in JSONL); or from lists by label. Raise
    an error, after the last one, if a term is declared both "must" and "never"."""
    rows: Any = source() if callable(source) else source
    if isinstance(rows, Mapping):
        rows = _by_label(rows, name)
    elif isinstance(rows, (str, bytes)) or not isinstance(rows, Iterable):
        raise WeaknerError(Errors.WK671.format(name=name, reason=f"{rows!r} is none of these"))
    where, must = f"The terms of '{name}'", []
    never: Dict[TermKey, int] = {}
    for i, row in enumerate(rows, start=1):
        try:
            terms = _terms(row, label)
        except BadTerm as error:
            raise WeaknerError(Errors.WK103.format(path=where, place=f"entry {i}", reason=error)) from error
        must += [(i, term) for term in terms if term.binding == MUST]
        never.update((key, i) for term in terms if term.binding == NEVER for key in rejected_keys(term))
        yield from terms
    for i, term in must:
        if (against := never.get(term_key(term))) is not None:
            reason = _contradiction(term, f"'{NEVER}' in entry {against}")
            raise WeaknerError(Errors.WK103.format(path=where, place=f"entry {i}", reason=reason))


def _by_label(terms: Mapping[Any, Any], name: str) -> Iterator[Tuple[Any, Any]]:
    for label, texts in terms.items():
        if isinstance(texts, (str, bytes, Mapping)) or not isinstance(texts, Iterable):
            reason = f"the value of the key {label!r} is {texts!r}, which is not a list"
            raise WeaknerError(Errors.WK671.format(name=name, reason=reason))
        for text in texts:
            yield label, text


def _terms(row: Any, label: Optional[str]) -> List[Term]:
    # The validation of a config turns a Term into a plain tuple.
    if isinstance(row, str):
        return make_terms(label, row)
    if isinstance(row, (tuple, list)) and len(row) == 3 and not isinstance(row[2], bool):
        row = (*row[:2], False, row[2])
    is_tuple = isinstance(row, (tuple, list)) and (len(row) == 2 or (2 < len(row) < 7 and isinstance(row[2], bool)))
    label_, text, *rest = row if is_tuple else term_fields(row)
    if label is not None and text == label != label_:
        raise BadTerm(f"the term is '{text}', which is the label of the list. A pair is (label, term): swap them.")
    texts = [text, *_read_synonyms(row.get(SYNONYMS_KEY) if isinstance(row, dict) else None, SEPARATOR)]
    label_ = label if _is_blank(label_) else label_
    return [term for text in texts for term in make_terms(label_, text, *rest)]


# Formats: each yields rows (see `_Row`); `make_terms` checks label and term.


def find_delimiter(path: Path, columns: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return the delimiter of a table: as its first line declares it (`sep=;`), or the one that separates the column
    of the terms in its header, or else that of the suffix."""
    first = next((line for _, line in _lines(path)), "")
    declared, usual = _DECLARED.fullmatch(first), DELIMITERS[format_suffix(path)]
    if declared:
        return declared[2]
    headers = ((d, rename([_title(cell) for cell in first.split(d)], columns)) for d in (usual, *OTHER_DELIMITERS))
    return next((d for d, titles in headers if "term" in titles), usual)


def read_term_rows(
    path: Path, delimiter: Optional[str] = None, columns: Mapping[str, str] = MappingProxyType({})
) -> Iterator[Tuple[int, List[str]]]:
    """Stream the rows of a table. Blank rows are skipped, and no field contains a line break. Between tabs, quotes are
    ordinary characters, except around a whole field, as spreadsheets write them."""
    if format_suffix(path) == EXCEL:
        yield from read_sheet(path)
        return
    delimiter = delimiter or find_delimiter(path, columns)
    for i, (number, line) in enumerate(_lines(path)):
        if i == 0 and _DECLARED.fullmatch(line):
            continue
        if delimiter == "\t":
            cells = [_unquoted(cell) for cell in line.split(delimiter)]
        else:
            try:
                cells = next(csv.reader([line], delimiter=delimiter, strict=True))
            except csv.Error as error:
                reason = (
                    f"{error}. A field that begins with a quote must end with one in the same line; double all others."
                )
                raise _line_error(path, number, reason) from error
        if any(cell.strip() for cell in cells):
            yield number, cells


def _title(cell: str) -> str:
    return cell.strip(' "').lower()


def _unquoted(cell: str) -> str:
    quoted = _QUOTED.fullmatch(cell)
    return cell if quoted is None else quoted[1].replace('""', '"')


def _lines(path: Path) -> Iterator[Tuple[int, str]]:
    """Yield the non-blank lines with their numbers. Lines may end in CR alone, as old spreadsheets write them."""
    lines = (line for part in read_lines(path) for line in part.split("\r"))
    return ((number, line) for number, line in enumerate(lines, start=1) if line.strip())


def _table_rows(path: Path, label: Optional[str], columns: Mapping[str, str]) -> Iterator[_Row]:
    found: Optional[Tuple[int, Optional[int]]] = None
    width, places = 0, []
    for line, row in read_term_rows(path, columns=columns):
        if found is None:
            width = len(row)
            titles = [_title(cell) for cell in row]
            missing = [name for name in columns if name not in titles]
            titles = rename(titles, columns)
            if missing and ANSWER_KEY not in titles:  # `suggest --review-terms` writes other columns than those mapped
                reason = f"no column '{missing[0]}', only: {', '.join(row)}. Correct term_columns (--term-columns)."
                raise _line_error(path, line, reason)
            found, is_header = _columns(path, line, row, titles, label)
            named = titles if is_header else []
            repeated = [title for title in {*COLUMN_KEYS, *ID_KEYS} if named.count(title) > 1]
            if repeated:
                reason = f"several columns '{min(repeated)}', of which one could be read. Rename the others."
                raise _line_error(path, line, reason)
            places = [
                named.index(title) if title in named else None
                for title in (ANSWER_KEY, id_title(titles), NAME_KEY, BINDING_KEY, SYNONYMS_KEY)
            ]
            if is_header:
                continue
        if len(row) != width:
            reason = f"{len(row)} columns here, but {width} in the first row."
            delimiter = find_delimiter(path, columns)
            cure = (
                "A term cannot contain a tab." if delimiter == "\t" else f"Put a term with a '{delimiter}' in quotes."
            )
            raise _line_error(path, line, f"{reason} {cure}")
        text, label_ = found
        answer, *more = (None if place is None else row[place] for place in places)
        read = answer, None if label_ is None else row[label_], row[text], False, *more
        for cell in read:
            if isinstance(cell, ChangedCell):
                raise WeaknerError(Errors.WK103.format(path=path, place=cell.place, reason=cell.why))
        yield line, *read


def id_title(titles: Sequence[str]) -> Optional[str]:
    """Return the title of the column of the ids among titles as they are read, if there is one."""
    return next((name for name in ID_KEYS if name in titles), None)


def _columns(
    path: Path, line: int, row: List[str], names: List[str], label: Optional[str]
) -> Tuple[Tuple[int, Optional[int]], bool]:
    """Find the columns of the term and the label, and whether the first row is a header."""
    if "term" in names and ("label" in names or label is not None):
        return (names.index("term"), names.index("label") if "label" in names else None), True
    if len(names) == 1 and label is not None:
        if other := _other_delimiter(path):
            what, titles = ("a tab" if other == "\t" else f"'{other}'"), ", ".join(row[0].split(other))
            reason = (
                f"{what} occurs equally often in each row, so this is a table, but its header has no column 'term': "
                f"{titles}. Write 'term' and, if there are labels, 'label' above their columns, separated by {what}, "
                f"or {_GIVE_COLUMNS}. If each row is one term, rename the file to .txt."
            )
            raise _line_error(path, line, reason)
        return (0, None), False
    needed = "a column 'term'" if label is not None else "the columns 'label' and 'term'"
    hint = ""
    if any(delimiter in name for name in names for delimiter in OTHER_DELIMITERS):
        # Do not suggest to give a label: each whole row would become a term.
        hint = ", separated like the columns of the other rows (by a comma, semicolon, tab or '|')"
    elif label is None and (len(names) == 1 or "term" in names):
        hint = f", or {_GIVE_LABEL}"
    elif label is None:
        hint = f"; 'term' is enough if you {_GIVE_LABEL}"
    if len(names) > 1:
        hint += f", or {_GIVE_COLUMNS}"
    reason = f"the header needs {needed}, but has: {', '.join(row)}. Add a first row with the names{hint}."
    raise _line_error(path, line, reason)


def _other_delimiter(path: Path) -> Optional[str]:
    """Return the delimiter that all of several rows contain equally often, if there is one. Commas are not counted:
    "DMH, 1,2-" is a term."""
    for delimiter in OTHER_DELIMITERS[1:] if format_suffix(path) in DELIMITERS else "":
        numbers = [line.count(delimiter) for _, line in islice(_lines(path), 2)]
        if len(numbers) > 1 and numbers[1] and all(line.count(delimiter) == numbers[1] for _, line in _lines(path)):
            return delimiter
    return None


def _jsonl_rows(path: Path, label: Optional[str], columns: Mapping[str, str]) -> Iterator[_Row]:
    missing, i = {*columns}, 0
    for i, line in _lines(path):
        try:
            row = parse_json(line)
            if columns and isinstance(row, dict):
                missing -= {*columns} if ANSWER_KEY in row else {*map(str.lower, row)}
                row = dict(zip(rename(row, columns), row.values(), strict=True))
            fields = term_fields(row)
            answer = row.get(ANSWER_KEY, True)
            yield i, "" if answer is None else answer, *fields, row.get(SYNONYMS_KEY)
        except json.JSONDecodeError as error:
            reason = f"not valid JSON ({error.msg}, column {error.colno}). Write one object per line."
            raise _line_error(path, i, reason) from error
        except BadTerm as error:
            raise _line_error(path, i, str(error)) from error
    if i and missing:
        names = ", ".join(sorted(missing))
        raise _line_error(path, i, f"no row up to here has the key '{names}'. Correct term_columns (--term-columns).")


def _text_rows(path: Path, label: Optional[str], columns: Mapping[str, str]) -> Iterator[_Row]:
    for i, line in _lines(path):
        if label is None:
            raise _line_error(path, i, f"plain text has no labels. G{_GIVE_LABEL[1:]}.")
        if "\t" in line.strip():
            reason = (
                "a term cannot contain a tab. If tabs separate columns, rename the file to .tsv; otherwise remove them."
            )
            raise _line_error(path, i, reason)
        yield i, None, None, line, False, None, None, None, None


_FORMATS: Dict[str, _RowReader] = {**dict.fromkeys(TABLES, _table_rows), ".jsonl": _jsonl_rows, ".txt": _text_rows}


def format_suffix(path: Path) -> str:
    """Return the suffix that determines the format of a file, which may be compressed."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


def _format_reader(path: Path) -> _RowReader:
    suffix = format_suffix(path)
    if suffix not in _FORMATS:
        cure = f"Rename it to one of {', '.join(_FORMATS)} (all but {EXCEL} also with .gz)"
        raise WeaknerError(Errors.WK105.format(path=path, cure=cure))
    return _FORMATS[suffix]


def _pattern_fields(pattern: List[Any]) -> Tuple[str, bool]:
    """Join a token pattern that spells a phrase; with the keys ORTH and TEXT, it matches in exact case."""
    words, keys = [], set()
    for token in pattern:
        items = list(token.items()) if isinstance(token, dict) else []
        key = str(items[0][0]).upper() if len(items) == 1 else ""
        if key not in _TOKEN_KEYS or not isinstance(items[0][1], str):
            raise BadTerm(
                f"the token pattern {json.dumps(token, ensure_ascii=False)} is not a plain word (one of "
                f"{', '.join(_TOKEN_KEYS)} with a string). Write the phrase as a string, or keep this "
                "pattern in a 'span_ruler'."
            )
        words.append(items[0][1])
        keys.add(key in _EXACT_KEYS)
    if len(keys) > 1:
        raise BadTerm(
            f"the token pattern compares some words exactly ({', '.join(_EXACT_KEYS)}) and others in lower case. Use "
            "one key for all, or keep this pattern in a 'span_ruler' (a source with 'patterns')."
        )
    return " ".join(words), keys == {True}


def _line_error(path: Path, line: int, reason: str) -> WeaknerError:
    return WeaknerError(Errors.WK103.format(path=path, place=f"line {line}", reason=reason))


def _is_blank(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())
