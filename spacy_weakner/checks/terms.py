"""Checks of term lists: terms that match nearly everything, nothing, or with several labels."""

import json
import re
import shlex
from collections import Counter, defaultdict
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import AbstractSet, Any, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple
from zlib import crc32

from ..corpus.jsonl import read_rows
from ..corpus.sentences import INNER_END, inner_starts
from ..encodings import undoubled
from ..errors import WeaknerError, shorten
from ..gazetteer_ruler.forms import folded, normal_form
from ..gazetteer_ruler.spreadsheet import EXCEL, other_sheets
from ..gazetteer_ruler.terms import (
    ANSWER_KEY,
    COLUMN_KEYS,
    DELIMITERS,
    OTHER_DELIMITERS,
    SEPARATOR,
    SYNONYMS_KEY,
    TABLES,
    Term,
    format_suffix,
    id_title,
    parse_columns,
    read_term_rows,
    rename,
)
from ..labeling.sources import TermSource
from .corpora import CheckedSentence
from .findings import Findings, listed, plural
from .language import DOUBLED, stop_words
from .matching import MatchCounts, MatchedTexts, check_glued, check_variants, count_in_gold, count_in_texts
from .text import MARKUP

LIMIT = 100_000  # terms that are checked one by one; labels are counted for all terms
_SHOWN = 5
_AS_IN_TEXT = "Write these terms as in the text: all of their characters are compared."
_ENOUGH = 5  # matches that are enough to judge a single term
# Kinds of terms that may match too much.
_DOUBTFUL = {
    "symbols": "without any letter or digit",
    "digits": "without any letter",
    "letter": "of one character",
    "stop": "among the stop words of '{lang}'",
}
_LETTER = re.compile(r"[^\W\d_]")
_DIGIT = re.compile(r"[^\W_]")
_SEVERAL = re.compile(r"[^\W\d_]{2}\W*[;|]\s*[^\W\d_]{2}|\S\s*[;|]\s+\S")  # but not "t(9;22)" or "HLA-A|B"
# What lists add to names: "asthma (disorder)", but not "heart failure (HF)"; regular expressions, wildcards and "?" in
# place of a letter, but not "Guess?" or "HLA-A*02"; quotes; marks of list items, but not "1. FC Köln".
_ADDED = {
    "with a qualifier at the end": re.compile(r".*\S\s+(\([^()]*[a-z]{4}[^()]*\)|\[[^\[\]]*[a-z]{4}[^\[\]]*\])"),
    "like regular expressions, or with a lost letter": re.compile(
        r".*(\\[bBdDsSwW]|\.[*+]|\][*+?{]|\(\?[:!=<i]|[a-z]{3}\*$|[a-z]\?[a-z]|-\?\w).*"
    ),
    "in quotes": re.compile(r"[\"'“”„«‹‘`].*[\"'”“»›’`]"),
    "with a mark of a list": re.compile(r"[-*•–#]\s.*|.*[,;]"),
}
# What pandas, R, Python, databases and Excel write into cells without a value.
_EMPTY = re.compile(r"nan|NaN|NaT|NA|N/A|None|none|NULL|null|<NA>|#(N/A|NAME\?|REF!|VALUE!|DIV/0!|NUM!|NULL!)")
# What they make of whole numbers, and Excel of names such as "SEPT2" and "2310009E13".
_MONTH = "(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_CHANGED = {
    "id": re.compile(r"\d+\.0|\d(\.\d+)?[Ee]\+\d+"),
    "term": re.compile(rf"\d\d?-{_MONTH}(-\d+)?|{_MONTH}-\d\d|\d(\.\d+)?E\+\d+"),
}
_DECIMAL = re.compile(r"\d+\.\d*[1-9]\d*")  # such as the codes of ICD-9, of which some end in ".0"
_LABELS = 0.2  # maximum share of distinct values in a column of labels
# Usual titles of columns (letters and digits in lower case), and what they contain.
_TITLES = {
    "label": "label labels type typ category kategorie class klasse semantictype entitytype",
    "term": "term name names phrase title titel bezeichnung begriff benennung preflabel preferredterm preferredname",
    SYNONYMS_KEY: "synonym synonyms synonyme synonymes aliases alias altlabel altlabels",
    "id": "id code kode cui uri identifier kbid conceptid entid",
}
_KEYS = {title: key for key, titles in _TITLES.items() for title in titles.split()}
_SEPARATORS = (SEPARATOR, ";", ",")  # of synonyms in a cell
_ROWS = 1000  # of a table that are looked at
_LEAST_TITLE = 3  # characters of a title that the name of the file begins with
_PATTERN = "pattern"  # of spaCy's rulers


def check_terms(source: TermSource, where: str, lang: str, seen: MatchedTexts, findings: Findings) -> Dict[str, int]:
    labels: Counter[str] = Counter()
    terms: List[Term] = []
    ids: Set[str] = set()
    share = 1
    try:
        for term in source.read():
            labels[term.label] += 1
            ids.update([term.id] if term.id else [])
            if _number(term) % share == 0:
                terms.append(term)
            if len(terms) > LIMIT:
                share *= 2
                terms = [term for term in terms if _number(term) % share == 0]
        for path in source.files:
            _check_columns(path, source, where, findings)
    except WeaknerError as error:
        cure = "" if source.term_columns else _guess_columns(Path(source.path), source.term_label)
        findings.error(where, str(error), cure)
    if share > 1:
        message = (
            f"Large list: labels are counted in all {labels.total():,} terms, but only {len(terms):,} were checked."
        )
        findings.info(where, message)
    stop = {folded(term) for term in source.stop}
    used = [t for t in terms if len(t.text) >= source.min_length and folded(t.text) not in stop]
    _check_texts(used, where, findings)
    _check_cells(terms, where, findings)
    _check_kinds(used, where, source, lang, seen, findings)
    _check_repeated(used, where, source.ambiguity, findings)
    if ids:
        names = source.labels or {}
        _check_gold_ids(ids, {names.get(label, label) for label in labels}, seen.gold, where, findings)
    possible = dict.fromkeys(term.text for term in used if INNER_END.search(term.text))
    divided = [text for text in possible if inner_starts([token.text for token in seen.nlp.tokenizer(text)])]
    if divided:
        message = f"{plural(len(divided), 'term')} with the end of a sentence inside: {_shown(divided)}."
        findings.info(where, f"{message} Raw text is not split there.")
    check_glued(used, source, where, seen, findings)
    check_variants(used, source, where, seen.nlp, [*seen.texts, *(s.text for s in seen.gold)], findings)
    return dict(labels)


def _number(term: Term) -> int:
    """Return the same number for all terms with one text, so that a sample has all of them or none."""
    return crc32(folded(term.text).encode("utf-8", "surrogatepass"))


def _check_columns(path: Path, source: TermSource, where: str, findings: Findings) -> None:
    """Name the columns (or keys) and sheets of a list that are not read, another separator of its synonyms, and a title
    that is read as a term."""
    columns = parse_columns(source.term_columns)
    table = _rows(path, columns)
    names = next(table, [])
    titles = rename(names, columns)
    if len(names) == 1 and titles[0] != "term" and format_suffix(path) in TABLES:
        is_title = _usual_key(names[0]) or names[0] == (source.term_label or "").lower()
        if is_title or (len(names[0]) >= _LEAST_TITLE and path.name.lower().startswith(names[0])):
            cure = f"If it is the title of the column: --term-columns {shlex.quote(f'term={names[0]}')}."
            findings.warning(where, f"{path}: the first row, '{names[0]}' (in lower case), is read as a term.", cure)
    # `suggest --review-terms` writes other columns for reviewers.
    if not {"term", _PATTERN} & {*titles} or ANSWER_KEY in titles:
        return
    read = {*COLUMN_KEYS, _PATTERN, id_title(titles)}
    unread = [name for name, title in zip(names, titles, strict=True) if name and title not in read]
    if unread:
        tell = findings.warning if SYNONYMS_KEY in map(_usual_key, unread) else findings.info
        what = "columns" if format_suffix(path) in TABLES else "keys"
        message = f"{path}: {what} that are not read: {', '.join(unread)}."
        cure = "If one of them has synonyms, add it to term_columns: --term-columns synonyms=COLUMN."
        tell(where, message, cure)
    if SYNONYMS_KEY in titles:
        place = titles.index(SYNONYMS_KEY)
        rows = [row for row in islice(table, _ROWS) if len(row) == len(titles)]
        cells = [row[place] for row in rows if isinstance(row[place], str)]
        usual = sum(source.synonyms_separator in cell for cell in cells)
        for mark in _SEPARATORS:
            n = sum(mark in cell for cell in cells)
            if mark == source.synonyms_separator or n <= (usual if mark == "," else 0):  # commas are in terms, too
                continue
            message = f"{path}: '{mark}' is in {n} of {len(cells):,} cells with synonyms."
            if n > usual:
                cure = f"If it separates them: --synonyms-separator '{mark}' (in a sources file: synonyms_separator)."
            else:
                cure = f"If it separates them, replace it by '{source.synonyms_separator}', as in {usual} other cells."
            findings.warning(where, message, cure)
    if sheets := other_sheets(path) if format_suffix(path) == EXCEL else []:
        findings.info(where, f"{path}: only the first sheet is read, not: {', '.join(sheets)}.")


def _rows(path: Path, columns: Mapping[str, str]) -> Iterator[List[Any]]:
    """Yield the titles of a table or the keys of JSONL, and then the rows; nothing for other lists."""
    if format_suffix(path) in TABLES:
        table = (row for _, row in read_term_rows(path, columns=columns))
        yield [cell.strip().lower() for cell in next(table, [])]
        yield from table
    elif format_suffix(path) == ".jsonl":
        rows = [row for _, row in islice(read_rows(path), _ROWS)]
        keys = list(dict.fromkeys(key for row in rows for key in row))
        yield keys
        yield from ([row.get(key) for key in keys] for row in rows)


def _usual_key(title: str) -> str:
    """Return the key that a column of this title usually has; "" for an unusual title."""
    return _KEYS.get(re.sub(r"[\W_]+", "", title.lower()), "")


def _check_texts(terms: Sequence[Term], where: str, findings: Findings) -> None:
    """Report terms that are not written as in text."""
    texts = list(dict.fromkeys(term.text for term in terms))
    marked = [text for text in texts if MARKUP.search(text)]
    several = [text for text in texts if _SEVERAL.search(text) and not MARKUP.search(text)]
    doubled = [text for text in texts if undoubled(text) != text]
    for found, what, cure in (
        (doubled, "in a wrong encoding", DOUBLED),
        (
            several,
            "that may be several terms in one cell",
            "Write one row per term, or synonyms into a column of their own (synonyms_separator).",
        ),
        (marked, "with HTML entities or tags", _AS_IN_TEXT),
        *(([t for t in texts if kind.fullmatch(t)], what, _AS_IN_TEXT) for what, kind in _ADDED.items()),
    ):
        if found:
            findings.warning(where, f"{plural(len(found), 'term')} {what}: {_shown(found)}.", cure)


def _check_cells(terms: Sequence[Term], where: str, findings: Findings) -> None:
    """Report values that a program has probably written in place of others."""
    has_decimals = any(_DECIMAL.fullmatch(term.id) for term in terms)
    empty, changed = (dict[str, None]() for _ in range(2))
    for term in terms:
        for what, value in (("term", term.text), ("label", term.label), ("id", term.id), ("name", term.name)):
            shown = value if what == "term" else f"{term.text} ({what} {value})"
            if _EMPTY.fullmatch(value) and (what != "term" or value.lower() not in ("na", "none", "null")):
                empty[shown] = None
            elif what in _CHANGED and _CHANGED[what].fullmatch(value) and not (has_decimals and value.endswith(".0")):
                changed[shown] = None
    for found, what, cure in (
        (empty, "that programs write for empty cells", "Empty these cells, unless the value is a real name or code."),
        (changed, "that spreadsheets make of names and numbers", "Export these columns as text."),
    ):
        if found:
            findings.warning(where, f"{plural(len(found), 'value')} {what}: {_shown([*found])}.", cure)


def _check_kinds(
    terms: Sequence[Term], where: str, source: TermSource, lang: str, seen: MatchedTexts, findings: Findings
) -> None:
    kinds: Dict[str, List[Term]] = {}
    stops = {folded(word) for word in stop_words(lang)}
    for term in terms:
        kind = _kind(term.text, stops, seen.longest)
        if kind:
            kinds.setdefault(kind, []).append(term)
    long = [term.text for term in kinds.pop("long", [])]
    if long:
        message = f"{plural(len(long), 'term')} with more words than any text: {_shown(long)}."
        cure = "They never match. If they are descriptions instead of names, shorten or remove them."
        findings.warning(where, message, cure)
    doubtful = [term for kind in _DOUBTFUL for term in kinds.get(kind, [])]
    if not doubtful:
        return
    judges = seen.judges()
    if judges:
        report = partial(_report_by_gold, count_in_gold(doubtful, terms, source, judges, seen))
    else:
        report = partial(_report_by_text, count_in_texts(doubtful, source, seen))
    for kind, what in _DOUBTFUL.items():
        found = list(dict.fromkeys(term.text for term in kinds.get(kind, [])))
        if found:
            report(findings, where, found, what.format(lang=lang))


def _report_by_gold(counts: MatchCounts, findings: Findings, where: str, found: Sequence[str], what: str) -> None:
    """Report terms with more wrong than right matches; terms with few matches are judged by the whole kind."""
    spellings: Dict[str, str] = {}  # of several spellings with the same matches, the first
    for text in found:
        spellings.setdefault(folded(text), text)
    right, wrong = ({key: matches[key] for key in spellings} for matches in counts)
    n_right, n_wrong = sum(right.values()), sum(wrong.values())
    bad = [
        key
        for key in spellings
        if wrong[key] > right[key] and (n_wrong > n_right or right[key] + wrong[key] >= _ENOUGH)
    ]
    if not bad:
        message = f"{plural(len(spellings), 'term')} {what}: {_shown([*spellings.values()])}."
        every = f"Right matches in gold: {n_right:,} of {n_right + n_wrong:,}."
        findings.info(where, f"{message} {every}")
        return
    shown = [f"{spellings[key]} ({right[key]} right, {wrong[key]} wrong)" for key in bad]
    message = f"{plural(len(bad), 'term')} {what}, more often wrong than right in gold: {_shown(shown)}."
    findings.warning(where, message, f"Remove them, or set {_stop([spellings[key] for key in bad])}.")


def _report_by_text(matches: "Counter[str]", findings: Findings, where: str, found: Sequence[str], what: str) -> None:
    """Report the terms of a kind with their matches, without a judgment."""
    often = sorted(found, key=lambda text: -matches[folded(text)])
    shown = [f"{text} ({plural(matches[folded(text)], 'match', 'matches')} in the text)" for text in often]
    message = f"{plural(len(often), 'term')} {what}: {_shown(shown)}."
    cure = f"They may be right: check their matches. To exclude terms that match wrongly, set {_stop(often)}."
    findings.warning(where, message, cure)


def _stop(texts: Sequence[str]) -> str:
    few = ", ".join(json.dumps(text, ensure_ascii=False) for text in texts[:_SHOWN])
    return f"stop = [{few}{', ...' if len(texts) > _SHOWN else ''}]"


def _kind(text: str, stops: AbstractSet[str], longest: int) -> str:
    if not _LETTER.search(text):
        return "digits" if _DIGIT.search(text) else "symbols"
    # A single ideogram may well be a name.
    if len(text) == 1 and text < "\u2e80":
        return "letter"
    if folded(text) in stops:
        return "stop"
    return "long" if longest and len(text.split()) > longest else ""


def _check_repeated(terms: Sequence[Term], where: str, ambiguity: str, findings: Findings) -> None:
    labels, labels_of_id, ids = (defaultdict[str, Dict[str, None]](dict) for _ in range(3))
    for term in terms:
        form = _form(term)
        labels[form].setdefault(term.label)
        if term.id:
            labels_of_id[term.id].setdefault(term.label)
            ids[f"{form} ({term.label}"].setdefault(term.id)
    several, several_of_id = (
        [f"{key} ({', '.join(sorted(found))})" for key, found in by_key.items() if len(found) > 1]
        for by_key in (labels, labels_of_id)
    )
    if several and ambiguity == "all":
        message = f"{plural(len(several), 'term')} with several labels: {_shown(several)}."
        cure = 'Keep one label per term, or set ambiguity = "first" (the first in the list) or "drop" (no match).'
        findings.warning(where, message, cure)
    repeated = len(terms) - len({(_form(term), term.label, term.id) for term in terms})
    if repeated:
        count = plural(repeated, "repeated term")
        findings.info(where, f"{count} (ignoring case and variant characters); each counts once.")
    if several_of_id:
        message = f"{plural(len(several_of_id), 'id')} with several labels: {_shown(several_of_id)}."
        findings.warning(where, message, "Use one label per id, unless its terms should have several labels.")
    ambiguous = [f"{text}: {', '.join(found)})" for text, found in ids.items() if len(found) > 1]
    if ambiguous:
        message = f"{plural(len(ambiguous), 'term')} with several ids: {_shown(ambiguous)}."
        findings.info(where, f"{message} The first id is used, unless the document names another one.")


def _check_gold_ids(
    ids: AbstractSet[str], labels: AbstractSet[str], gold: Sequence[CheckedSentence], where: str, findings: Findings
) -> None:
    """Count the gold entities, with labels of the list, whose ids the list lacks."""
    n, lacking = 0, Counter[str]()
    for sentence in gold:
        for (start, end, label), gold_ids in sentence.ids.items():
            if label in labels:
                n += 1
                if ids.isdisjoint(gold_ids[0].split("|")):
                    lacking[f"{gold_ids[0]} ({' '.join(sentence.words[start:end])})"] += 1
    if not lacking:
        return
    shown = _shown([phrase for phrase, _ in lacking.most_common()])
    message = f"{lacking.total():,} of {n:,} gold entities with ids have ids that are not in the list: {shown}."
    if lacking.total() < n:
        findings.info(where, f"{message} No pipeline with this list can assign these ids.")
    else:
        cure = "Use the same ids in gold and list, or give the list that contains these concepts."
        findings.warning(where, message, cure)


def _form(term: Term) -> str:
    return normal_form(" ".join(term.text.split()))


def _shown(found: Sequence[str]) -> str:
    return listed([shorten(text, 60) for text in found], _SHOWN)


# Lists without column names, or with other names


def _guess_columns(path: Path, term_label: Optional[str]) -> str:
    """Return advice on the names of the columns that a table probably needs; empty if its own are right."""
    tables = {}
    delimiters = (DELIMITERS.get(format_suffix(path), ""), *OTHER_DELIMITERS)
    for other in delimiters if format_suffix(path) in TABLES else ():
        with suppress(WeaknerError, OSError):
            tables[other] = [row for _, row in islice(read_term_rows(path, other), _ROWS)]
    if not tables:
        return ""

    def fit(delimiter: str) -> Tuple[int, int]:
        # How many rows have as many columns as the first; of equals, the one with the fewest labels.
        table = tables[delimiter]
        n = sum(1 < len(row) == len(table[0]) for row in table)
        return n, -min((len({*column}) for column in zip(*table, strict=False)), default=0)

    delimiter = max(tables, key=fit)
    rows = tables[delimiter]
    wanted = {"term"} if term_label else {"label", "term"}
    if len(rows) < 2 or len(rows[0]) < 2 or wanted <= {cell.strip().lower() for cell in rows[0]}:
        return ""
    width = len(rows[0])
    body = [row for row in rows[1:] if len(row) == width]
    different = [len({row[i] for row in body}) for i in range(width)]
    keys = list(map(_usual_key, rows[0]))
    places = {key: keys.index(key) for key in keys if key}
    free = [i for i in range(width) if not keys[i]]
    label = places.get("label", min(free, key=different.__getitem__, default=-1))
    if "label" not in places and (label < 0 or different[label] > max(2, _LABELS * len(body))):
        label = -1
    term = places.get("term", max((i for i in free if i != label), key=different.__getitem__, default=-1))
    if not body or term < 0 or (label < 0 and not term_label):
        return ""
    places.update({"term": term, **({} if label < 0 else {"label": label})})
    # A header names its columns, so its label occurs nowhere else.
    is_header = any(keys) or (
        rows[0][label] not in {row[label] for row in body} and not re.search(r"\d", "".join(rows[0]))
    )
    if is_header:
        named = [f"{key}={rows[0][places[key]].strip()}" for key in COLUMN_KEYS if key in places]
        cells = [row[places[SYNONYMS_KEY]] for row in body] if SYNONYMS_KEY in places else []
        mark = max(_SEPARATORS, key=lambda mark: sum(mark in cell for cell in cells))
        separator = "" if mark == SEPARATOR else f" --synonyms-separator '{mark}'"
        return (
            f"Probably: --term-columns {shlex.quote(','.join(named))}{separator} (in a sources file: term_columns"
            f"{' and synonyms_separator' if separator else ''})."
        )
    header = ["label" if i == label else "term" if i == term else f"other{i}" for i in range(width)]
    first = delimiter.join(header)
    command = f"sed -i '1i {first}' {shlex.quote(str(path))}"
    shown = first.replace("\t", "<tab>")
    return f"There seems to be no header: put '{shown}' before the first row, for example: {command}"
