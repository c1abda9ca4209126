"""CoNLL columns: one token per line with its tag in another column, and a blank line after every sentence.

No scheme needs to be declared. One decoder reads IO, IOB1, BIO (IOB2), IOBES, BIOES, BMES, BMEWO and BILUO: B, S, U and
W begin an entity, as does any tag after "O" or another type; E, L, S, U and W end it. A cell may hold several tags
("B-PER,B-LOC"); tokens of overlapping entities are missing.
"""

import re
from bisect import bisect
from collections import Counter
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

from spacy.language import Language
from spacy.tokens import Doc

from ..errors import Errors, WeaknerError
from ..files import read_lines
from ..ty import Entity
from .counts import RowCounts, RowError, at_line, show_value
from .entities import set_entities
from .overlaps import drop_overlaps
from .records import BLANK_TOKENS, Record, is_blank, record_of
from .tags import OUTSIDE, TAG, UNTYPED, is_tag, split_tags
from .weak import set_id

MISSING_TAGS = frozenset("-?")
DOC_START = "-DOCSTART-"
NO_WORDS = "lines of CoNLL-U that are not single words (1-2, 1.1), dropped"
_BYTE_ORDER_MARK = "\ufeff"
_WEBANNO = "#FORMAT=WebAnno"
_LONGEST = 1000
LONG = f"sentences of more than {_LONGEST} tokens (are there no blank lines between the sentences?)"
# Columns of token and tag: counted from 1, or from the end (-1).
COLUMNS = (1, -1)
# "# ...", or a key: "#begin document (1)", "#FORMAT=WebAnno TSV 3.3", "###MEDLINE:95369245".
_COMMENT = re.compile(r"#+(?:\s|$)|#(?:begin|end) document\b|#+[\w.-]+\s*[=:]")
# Lines that begin a document: of CoNLL-2003, CoNLL-2012, CoNLL-U and JNLPBA.
_DOCUMENT = re.compile(rf"{DOC_START}(?:\s|$)|#begin document\b|# ?newdoc\b|###MEDLINE:")
_BLANKS = re.compile(r" +")
_SEPARATORS = re.compile(r"[ \t\r\n]+")
_NUMBER = re.compile(r"[0-9]{1,9}")
_NO_WORD = re.compile(r"[0-9]{1,9}[-.][0-9]{1,9}")
# Cells of CoNLL-2012: "(PER*" begins an entity, "*)" ends it, "(PER)" is a whole one, and "*" is inside or outside.
_BRACKETS = re.compile(r"\(([^()*]+)\*?\)|\(([^()*]+)\*|\*\)?")
# Sentences that are enough to detect a first column without words.
_ENOUGH = 100
# A line number, and the cells of the line.
_Line = Tuple[int, List[str]]


def _find_width(path: Path) -> Optional[int]:
    """Return the number of columns of a file: that of its first line that can only be a token."""
    for raw in _lines(path):
        if raw.startswith(_WEBANNO):
            raise WeaknerError(Errors.WK371.format(path=path))
        cells = _split(raw)
        if _is_token(cells) and not _COMMENT.match(raw):
            return len(cells)
    return None


def read_conll(
    path: Path,
    nlp: Language,
    *,
    columns: Tuple[int, int] = COLUMNS,
    labels: Sequence[str] = (),
    counts: Optional[RowCounts] = None,
) -> Iterator[Doc]:
    """Stream the sentences of a CoNLL file. A line is split at tabs, or at blanks if it has no tab. By default, the
    first column is the token, and the last one its tag. "O" is outside; "-" and "?" are missing; the brackets
    of CoNLL-2012 ("(PER*", "*)", "(PER)", "*") are tags, too. Blank lines, `-DOCSTART-` lines and comments ("# ...",
    "#key=...") end a sentence. If lines mark several documents, the sentences of the file "a.conll" are named a-1.1,
    a-1.2, a-2.1 and so on."""
    if 0 in columns:
        expected = "numbers from 1, or -1 for the last column"
        raise WeaknerError(Errors.WK005.format(setting="columns", value=columns, expected=expected))
    counts = RowCounts() if counts is None else counts
    width = _find_width(path)
    starts = [number for number, raw in enumerate(_lines(path), start=1) if _DOCUMENT.match(raw)]
    lengths: Counter[int] = Counter()  # sentences by document
    sentences = _sentences(enumerate(_lines(path), start=1), columns, width)
    for sentence in _refuse_no_words(path, sentences, columns) if columns[0] == 1 else sentences:
        words, tags = _read_sentence(path, sentence, columns, width, labels, counts)
        if words:
            counts.place = f"line {sentence[0][0]}"
            counts.note(LONG, len(words) > _LONGEST)
            doc = Doc(nlp.vocab, words=words)
            entities, unknown = drop_overlaps(decode_tags(tags), counts)
            set_entities(doc, entities, [tag is not None for tag in tags], unknown)
            if len(starts) > 1:
                document = bisect(starts, sentence[0][0])
                lengths[document] += 1
                set_id(doc, f"{path.stem}-{document}.{lengths[document]}")
            yield doc


def _lines(path: Path) -> Iterator[str]:
    """Stream the lines of a file, which may end in carriage returns, as on old Macs."""
    return chain.from_iterable(line.split("\r") for line in read_lines(path))


def _sentences(
    lines: Iterable[Tuple[int, str]], columns: Tuple[int, int], width: Optional[int]
) -> Iterator[List[_Line]]:
    sentence: List[_Line] = []
    for number, raw in chain(lines, [(0, "")]):
        cells = _split(raw)
        if _is_token(cells) and not _is_comment(raw, cells, columns[1], width):
            sentence.append((number, cells))
        elif sentence:
            yield sentence
            sentence = []


def _refuse_no_words(path: Path, sentences: Iterator[List[_Line]], columns: Tuple[int, int]) -> Iterator[List[_Line]]:
    """Refuse sentences whose first column only numbers the tokens, or, by default, is the same for all of them."""
    held = list(islice(sentences, _ENOUGH))
    several = any(len(sentence) > 1 for sentence in held)
    checks = [("contains token numbers", _has_numbers), ("is the same for all tokens", _is_constant)]
    for what, has_it in checks if columns == COLUMNS else checks[:1]:
        if several and all(map(has_it, held)):
            with at_line(path, held[0][0][0]):
                raise RowError(
                    f"the first column {what}. Give the columns of token and tag: --columns TOKEN TAG (of CoNLL-2012: "
                    "4 11). (If a command has no such option: spacy weakner convert FILE NEW --columns TOKEN TAG)"
                )
    yield from chain(held, sentences)


def _has_numbers(sentence: Sequence[_Line]) -> bool:
    """Return True if the first of several columns counts tokens, or also sentences ("1-2"), as in WebAnno TSV 2."""
    has_places = len(sentence[0][1]) > 2 and all(_NO_WORD.fullmatch(cells[0]) for _, cells in sentence)
    return has_places or _is_numbered(sentence)


def _is_constant(sentence: Sequence[_Line]) -> bool:
    """Return True if the first of several columns is the same for all tokens."""
    return len(sentence[0][1]) > 2 and len({cells[0] for _, cells in sentence}) == 1


def _is_numbered(sentence: Sequence[_Line]) -> bool:
    """Return True if the first of several columns only counts the tokens."""
    words = [cells[0] for _, cells in sentence if not _NO_WORD.fullmatch(cells[0])]
    if len(sentence[0][1]) < 3 or not words or not all(map(_NUMBER.fullmatch, words)):
        return False
    return all(int(b) == int(a) + 1 for a, b in pairwise(words))


def _read_sentence(
    path: Path,
    sentence: Sequence[_Line],
    columns: Tuple[int, int],
    width: Optional[int],
    labels: Sequence[str],
    counts: RowCounts,
) -> Tuple[List[str], List[Optional[str]]]:
    words: List[str] = []
    tags: List[Optional[str]] = []
    counted, inside = columns[0] != 1 and _is_numbered(sentence), ""
    if columns[0] != 1 and _is_constant(sentence):
        width = len(sentence[0][1])  # CoNLL-2012 has one column for each predicate of a sentence
    for number, cells in sentence:
        if counted and _NO_WORD.fullmatch(cells[0]):
            counts.notes[NO_WORDS] += 1
            continue
        token, tag = "", None
        with at_line(path, number, counts):
            if len(cells) < 2:
                raise RowError(f"expected at least 2 columns, got {len(cells)}")
            if width not in (None, len(cells)):
                raise RowError(f"expected {width} columns as in the previous lines, got {len(cells)}")
            found, cell = (_cell(cells, column) for column in columns)
            if not found:
                raise RowError("the token is empty")
            cell, inside = _without_brackets(cell.strip(), inside)
            if MISSING_TAGS.isdisjoint(split_tags(cell)):
                tag = check_tag(cell, labels)
            token = found
        if not token:  # refused, so the sentence is left out
            return [], []
        if is_blank(token):
            counts.notes[BLANK_TOKENS] += 1
        else:
            words.append(token.strip(" "))
            tags.append(tag)
    return words, tags


def conll_lines(path: Path, doc: Doc) -> Iterator[str]:
    """Return the lines of a Doc: token, tab, BIO tag, with "-" for missing tags. White-space tokens are left out.

    path (Path): The file that the lines are for, named in errors.
    RAISES (WeaknerError): If a line could not be read back as it is.
    """
    record = record_of(doc, in_tokens=True)
    for token, tag in zip(record.tokens or (), bio_tags(record), strict=True):
        # A tab within a token would separate columns.
        token = _SEPARATORS.sub(" ", token).strip(" ")
        text = f"{token}\t{tag}"
        ok = (
            text == text.rstrip()
            and text.count("\t") == 1
            and not {"\n", "\0"} & set(text)
            and token != DOC_START
            and not token.startswith(_BYTE_ORDER_MARK)
            and (tag in MISSING_TAGS or is_readable(tag))
        )
        if not ok:
            raise WeaknerError(
                Errors.WK746.format(path=path, token=show_value(token), tag=show_value(tag), text=show_value(doc.text))
            )
        yield text
    yield ""


def decode_tags(tags: Sequence[Optional[str]]) -> List[Entity]:
    """Decode tags of any of the schemes above."""
    spelled: Dict[str, List[str]] = {}
    for i, cell in enumerate(tags):
        for match in map(TAG.fullmatch, split_tags(cell or OUTSIDE)):
            if match:
                prefix, type_ = match.groups()
                spelled.setdefault(type_, [""] * len(tags))[i] += prefix
    entities = [(start, end, type_) for type_, prefixes in spelled.items() for start, end in _decode(prefixes)]
    return sorted(entities)


def _decode(prefixes: Sequence[str]) -> Iterator[Tuple[int, int]]:
    """Return the entities of one type."""
    start: Optional[int] = None
    for i, found in enumerate([*prefixes, ""]):
        # It is unknown which of two entities of one type continues here: they become one, plus one of this token alone.
        prefix = found if len(found) < 2 else "I"
        if len(found) > 1:
            yield i, i + 1
        if start is not None and prefix in ("", "B", "S", "U", "W"):
            yield start, i
            start = None
        if prefix and start is None:
            start = i
        if start is not None and prefix in ("E", "L", "S", "U", "W"):
            yield start, i + 1
            start = None


def bio_tags(record: Record) -> List[str]:
    """Return the tags of a record's tokens, with "-" for missing ones."""
    tags = ["O"] * len(record.tokens or ())
    for start, end in record.missing:
        tags[start:end] = ["-"] * (end - start)
    for mark in record.ents or ():
        tags[mark.start : mark.end] = [f"B-{mark.label}"] + [f"I-{mark.label}"] * (mark.end - mark.start - 1)
    return tags


def check_tag(cell: str, names: Sequence[str] = ()) -> str:
    """Return the tags of a cell, with types. Raise a `RowError` if one is not a tag."""
    return ",".join(_with_type(tag, names) for tag in split_tags(cell))


def is_readable(tag: str) -> bool:
    """Return True if a tag can be read back as it is written."""
    return tag == OUTSIDE or (TAG.fullmatch(tag) is not None and len(split_tags(tag)) == 1)


def _with_type(tag: str, names: Sequence[str]) -> str:
    if tag == OUTSIDE or TAG.fullmatch(tag):
        return tag
    if not UNTYPED.fullmatch(tag):
        raise RowError(f"'{tag}' is not a tag: expected O, or one of B I E S L U M W with a type, like B-PER")
    types = {match[2] for match in map(TAG.fullmatch, names) if match}
    if len(types) != 1:
        raise RowError(
            f"the tag '{tag}' has no type. If all entities have the same type, give it in the names of the tags: "
            "spacy weakner convert FILE NEW --labels O,B-TYPE,I-TYPE"
        )
    return f"{tag[0]}-{types.pop()}"


def _cell(cells: Sequence[str], column: int) -> str:
    if abs(column) > len(cells):
        raise RowError(f"there is no column {column}: the line has {len(cells)} columns")
    return cells[column - 1 if column > 0 else column]


def _split(raw: str) -> List[str]:
    line = raw.rstrip()
    if not line:
        return []
    # Other white space, such as no-break spaces, belongs to tokens.
    return line.split("\t") if "\t" in line else _BLANKS.split(line.strip(" "))


def _is_token(cells: Sequence[str]) -> bool:
    return bool(cells) and cells[0] != DOC_START


def _is_comment(raw: str, cells: Sequence[str], column: int, width: Optional[int]) -> bool:
    if not _COMMENT.match(raw):
        return False
    # "#" is also a token. Such a line is a token if it has as many columns as the file, and tags in the tag column.
    if len(cells) < 2 or width not in (None, len(cells)) or abs(column) > len(cells):
        return True
    return not all(tag in MISSING_TAGS or is_tag(tag) for tag in split_tags(_cell(cells, column).strip()))


def _without_brackets(cell: str, inside: str) -> Tuple[str, str]:
    """Return a cell with brackets as a tag, and the label of the entity that goes on; other cells are unchanged.
    `inside` is the label of the entity that the preceding cell left open."""
    match = _BRACKETS.fullmatch(cell)
    if match is None:
        return cell, ""
    opened = match[1] or match[2]
    if cell != "*" and bool(opened) == bool(inside):
        raise RowError(f"the brackets of the tag '{cell}' do not fit those before it")
    label = opened or inside
    return f"{'B' if opened else 'I'}-{label}" if label else OUTSIDE, "" if cell.endswith(")") else label
