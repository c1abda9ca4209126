"""CoNLL columns: one token a line, its tag in another column, a blank line after every sentence.

IO, IOB1, BIO (IOB2), IOBES, BIOES and BILUO need no declaration, since one decoder reads them all: B, S and
U begin an entity, and so does any tag after "O" or after another type; E, L, S and U end it.
"""

from pathlib import Path
from typing import Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from spacy.language import Language
from spacy.tokens import Doc

from ..errors import Errors, WeaknerError
from ..files import atomic_path, read_lines
from ..ty import Entity
from .entities import set_entities
from .jsonl import at_line
from .rows import RowError, row_from_doc, show
from .tags import TAG

MISSING_TAGS = ("-", "?")
DOC_START = "-DOCSTART-"
_BYTE_ORDER_MARK = "\ufeff"
# Where token and tag stand: from 1 on, or from the end.
COLUMNS = (1, -1)


class _Line(NamedTuple):
    token: str
    tag: Optional[str]


class Width(NamedTuple):
    """How many columns a file has.

    columns (int): As many as its first line of a token.
    line (int): Number of that line, from 1.
    """

    columns: int
    line: int


def find_width(path: Path) -> Optional[Width]:
    """RETURNS (Optional[Width]): How many columns a file has; None if it has no tokens."""
    for number, raw in enumerate(read_lines(path), start=1):
        columns = _split(raw)
        if _is_token(raw, columns, None):
            return Width(len(columns), number)
    return None


def read_conll(
    path: Path,
    nlp: Language,
    *,
    lines: Optional[Iterable[Tuple[int, str]]] = None,
    columns: Tuple[int, int] = COLUMNS,
    width: Optional[int] = None,
) -> Iterator[Doc]:
    """Stream the sentences of a CoNLL file. Columns are split at tabs if the line has one, else at blanks: usually the
    first holds the token, and the last its tag. "O" is outside; "-" and "?" are missing. Blank lines, `-DOCSTART-`
    lines and comments ("# ...") end a sentence.

    path (Path): The file; `.gz` is unpacked.
    nlp (Language): Its vocabulary is used.
    lines (Optional[Iterable[Tuple[int, str]]]): The lines with their numbers, if they have been read already.
    columns (Tuple[int, int]): Columns of token and tag, from 1 on; negative ones count from the end, -1 is the last.
    width (Optional[int]): How many columns the lines before these have; None: there are none before.
    YIELDS (Doc): One Doc per sentence.
    RAISES (WeaknerError): For anything malformed, with file, line and reason.
    """
    if 0 in columns:
        raise WeaknerError(Errors.WK005.format(setting="columns", value=columns, expected="columns from 1 on, or -1"))
    numbered = enumerate(read_lines(path), start=1) if lines is None else lines
    for sentence in _sentences(path, numbered, columns, width):
        yield _make_doc(sentence, nlp)


def _sentences(
    path: Path, lines: Iterable[Tuple[int, str]], wanted: Tuple[int, int], width: Optional[int]
) -> Iterator[List[_Line]]:
    sentence: List[_Line] = []
    for number, raw in lines:
        with at_line(path, number):
            columns = _split(raw)
            if not _is_token(raw, columns, width):
                if sentence:
                    yield sentence
                sentence = []
                continue
            _check_width(columns, width)
            width = len(columns)
            token, tag = (_column(columns, number) for number in wanted)
            if not token:
                raise RowError("the token is empty")
            sentence.append(_Line(token, _check_tag(tag)))
    if sentence:
        yield sentence


def write_conll(path: Path, docs: Iterable[Doc]) -> int:
    """Write a CoNLL file, whole or not at all: token, tab, BIO tag; missing tags as "-". White-space tokens,
    and Docs that hold nothing else, are left out.

    path (Path): The file.
    docs (Iterable[Doc]): What to write.
    RETURNS (int): The number of sentences.
    RAISES (WeaknerError): For a token or a label that could not be read back.
    """
    n = 0
    with atomic_path(Path(path)) as temporary, open(temporary, "w", encoding="utf-8", newline="\n") as file_:
        for doc in docs:
            row = row_from_doc(doc)
            tokens: List[str] = row["tokens"]
            tags = bio_tags(len(tokens), row["ents"], row.get("missing", []))
            # A tab within a token would be read as a column.
            lines = [_Line(" ".join(token.split()), tag) for token, tag in zip(tokens, tags, strict=True)]
            for line in lines:
                _check_readable(path, line, doc)
                file_.write(f"{line.token}\t{line.tag}\n")
            if tokens:
                file_.write("\n")
                n += 1
    return n


def decode_tags(tags: Sequence[Optional[str]]) -> List[Entity]:
    """Decode tags of any of the schemes above.

    tags (Sequence[Optional[str]]): Tags; None is missing and ends an entity like "O".
    RETURNS (List[Entity]): Entities from left to right.
    """
    entities: List[Entity] = []
    start: Optional[int] = None
    label = ""
    for i, tag in enumerate([*tags, None]):
        match = TAG.fullmatch(tag or "")
        prefix, type_ = match.groups() if match else ("O", "")
        if start is not None and (prefix in "OBSU" or type_ != label):
            entities.append((start, i, label))
            start = None
        if prefix != "O" and start is None:
            start, label = i, type_
        if start is not None and prefix in "ELSU":
            entities.append((start, i + 1, label))
            start = None
    return entities


def bio_tags(n: int, entities: Optional[Sequence[Entity]], missing: Iterable[Tuple[int, int]]) -> List[str]:
    if entities is None:
        return ["-"] * n
    tags = ["O"] * n
    for start, end in missing:
        tags[start:end] = ["-"] * (end - start)
    for start, end, label in entities:
        tags[start:end] = [f"B-{label}"] + [f"I-{label}"] * (end - start - 1)
    return tags


def _make_doc(lines: Sequence[_Line], nlp: Language) -> Doc:
    doc = Doc(nlp.vocab, words=[line.token for line in lines])
    tags = [line.tag for line in lines]
    set_entities(doc, decode_tags(tags), [tag is not None for tag in tags])
    return doc


def _check_readable(path: Path, line: _Line, doc: Doc) -> None:
    """Refuse what would be read as something else, or not at all."""
    text = f"{line.token}\t{line.tag}"
    token, _, tag = text.partition("\t")
    ok = (
        text == text.rstrip()
        and text.count("\t") == 1
        and not {"\n", "\0"} & set(text)
        and token != DOC_START
        and not token.startswith(_BYTE_ORDER_MARK)
        and (tag == "O" or tag in MISSING_TAGS or TAG.fullmatch(tag))
    )
    if not ok:
        raise WeaknerError(
            Errors.WK746.format(path=path, token=show(line.token), tag=show(line.tag), text=show(doc.text))
        )


def _column(columns: Sequence[str], number: int) -> str:
    if abs(number) > len(columns):
        raise RowError(f"there is no column {number}: the line has {len(columns)}")
    return columns[number - 1 if number > 0 else number].strip()


def _split(raw: str) -> List[str]:
    line = raw.rstrip()
    if not line:
        return []
    return line.split("\t") if "\t" in line else line.strip(" ").split()


def _is_token(raw: str, columns: Sequence[str], width: Optional[int]) -> bool:
    return bool(columns) and columns[0] != DOC_START and not _is_comment(raw, columns, width)


def _is_comment(raw: str, columns: Sequence[str], width: Optional[int]) -> bool:
    if not raw.startswith("# "):
        return False
    # "#" is also a token. Such a line is one if it has the file's columns and ends in a real tag.
    if len(columns) < 2 or width not in (None, len(columns)):
        return True
    tag = columns[-1]
    return tag != "O" and tag not in MISSING_TAGS and not TAG.fullmatch(tag)


def _check_width(columns: Sequence[str], width: Optional[int]) -> None:
    if len(columns) < 2:
        raise RowError(f"expected at least 2 columns, got {len(columns)}")
    if width is not None and len(columns) != width:
        raise RowError(f"expected {width} columns as in the lines before, got {len(columns)}")


def _check_tag(tag: str) -> Optional[str]:
    tag = tag.strip()
    if tag in MISSING_TAGS:
        return None
    if tag == "O":
        return tag
    if not TAG.fullmatch(tag):
        raise RowError(f"'{tag}' is no tag: expected O, -, or one of B I E S L U with a type, like B-PER")
    return tag
