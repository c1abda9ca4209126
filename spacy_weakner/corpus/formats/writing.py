"""Writing of corpora in any format. Everything that a format cannot hold is counted."""

import json
from collections import Counter
from pathlib import Path
from typing import Iterable, Iterator, NamedTuple, Optional

from spacy.tokens import Doc

from ...errors import Errors, WeaknerError, check_choice
from ...files import atomic_path
from .. import weak
from ..conll import conll_lines
from ..counts import at_line
from ..docbin import write_docs
from ..jsonl import row_from_doc
from . import page
from .names import CATS, DOC_IDS, FORMATS, IDS, META, MISSING, OUTPUTS, UNKNOWN, WEAK, WRONG, Format
from .tools import WRITERS

_ARRAY, _PAGE = ".json", "html"
MISSING_TOKENS = "missing tokens"
WEAK_SPANS = "weak spans"
DECLARED = "documents with declarations of their sources (reliability, complete, attribute of terms)"
WEAK_AS_GOLD = "documents whose entities are weak labels, now written as if they were gold"


class Written(NamedTuple):
    """The number of documents written, and counts of what the format cannot hold, by description."""

    docs: int
    lost: "Counter[str]"


def output_format(path: Path, to: Optional[str] = None) -> Format:
    suffix = Path(path).suffix.lower()
    if to is None:
        found = [format_ for format_ in FORMATS.values() if suffix in format_.outputs]
        # Rows of this package come first; an array always belongs to another tool.
        if not found or (suffix == _ARRAY and len(found) > 1):
            names = ", ".join(f"{f.name} ({' '.join(f.outputs)})" for f in found or FORMATS.values() if f.outputs)
            cure = f"Choose one ('to', command line: --to): {names}"
            raise WeaknerError(Errors.WK105.format(path=path, cure=cure))
        return found[0]
    check_choice("to", to, OUTPUTS)
    if suffix not in FORMATS[to].outputs:
        expected = f"a file that ends in {' or '.join(FORMATS[to].outputs)}, for the format '{to}'"
        raise WeaknerError(Errors.WK305.format(path=path, expected=expected))
    return FORMATS[to]


def write_corpus(path: Path, docs: Iterable[Doc], to: Optional[str] = None, *, labels: Iterable[str] = ()) -> Written:
    """Write a corpus, whole or not at all.

    to (Optional[str]): Name of the format; None: determined by the suffix of the file.
    labels (Iterable[str]): Labels that a page offers, in addition to those of the entities.
    RAISES (WeaknerError): If the format cannot be determined, or cannot represent something.
    """
    path = Path(path)
    format_ = output_format(path, to)
    lost: Counter[str] = Counter()
    docs = _counted(docs, format_, lost)
    n = write_docs(path, docs) if format_.name == "spacy" else _write_lines(path, docs, format_, lost, labels)
    return Written(n, Counter({what: n for what, n in sorted(lost.items()) if n}))


def _write_lines(path: Path, docs: Iterable[Doc], format_: Format, lost: "Counter[str]", labels: Iterable[str]) -> int:
    """Write lines, or an array if the suffix is `.json` or in a page. Docs without visible tokens are left out."""
    before, after = page.around(path.stem, labels) if format_.name == _PAGE else ("", "")
    array = format_.name == _PAGE or path.suffix.lower() == _ARRAY
    n, between = 0, ""
    with atomic_path(path) as temporary, open(temporary, "w", encoding="utf-8", newline="\n") as file_:
        file_.write(f"{before}[\n" if array else "")
        for doc in docs:
            if not all(token.is_space for token in doc):
                n += 1
                with at_line(path, f"document {n}"):
                    for line in _lines(path, doc, format_, lost):
                        file_.write(f"{between}{line}" if array else f"{line}\n")
                        between = ",\n"
        file_.write(f"\n]\n{after}" if array else "")
    return n


def _lines(path: Path, doc: Doc, format_: Format, lost: "Counter[str]") -> Iterable[str]:
    if format_.name == "conll":
        return conll_lines(path, doc)
    rows = [row_from_doc(doc)] if format_.name == "jsonl" else WRITERS[format_.name](doc, lost)
    return (page.as_script(row) if format_.name == _PAGE else json.dumps(row, ensure_ascii=False) for row in rows)


def _counted(docs: Iterable[Doc], format_: Format, lost: "Counter[str]") -> Iterator[Doc]:
    holds, name = format_.holds, format_.name
    for doc in docs:
        if MISSING not in holds:
            missing = [token.ent_iob == 0 for token in doc if not token.is_space]
            lost[MISSING_TOKENS] += 0 if all(missing) and UNKNOWN in holds else sum(missing)
        if WEAK not in holds:
            lost[WEAK_AS_GOLD] += weak.is_weak(doc)
        if CATS not in holds:
            lost["categories"] += len(doc.cats)
        if IDS not in holds:
            lost["ids of entities"] += len(weak.doc_ids(doc))
        if DOC_IDS not in holds:
            lost["ids of documents"] += weak.get_id(doc) is not None
        if META not in holds:
            lost["'meta' of documents"] += weak.get_meta(doc) is not None
        if name != "spacy":
            for key, group in doc.spans.items():
                what, is_held = f"spans of the group '{key}'", False
                if key.startswith(weak.WEAK_PREFIX) or key == weak.SUGGESTED_GROUP:
                    what, is_held = WEAK_SPANS, WEAK in holds
                elif key == weak.WRONG_GROUP:
                    what, is_held = "wrong spans", WRONG in holds
                elif key == weak.GOLD_GROUP:
                    what, is_held = "gold kept beside weak labels", name == "jsonl"
                lost[what] += 0 if is_held else len(group)
            lost["documents with soft labels"] += weak.get_soft_labels(doc) is not None
            lost["documents with the unit of their confidence"] += weak.get_confidence_unit(doc) is not None
            lost["documents with completed tags"] += weak.get_tags(doc) is not None
            lost["documents with words replaced by 'augment'"] += weak.get_augmented(doc) is not None
            lost[DECLARED] += any(
                weak.get_reliability(doc, source) is not None
                or weak.is_complete(doc, source)
                or weak.terms_attr(doc, source) is not None
                for source in weak.weak_sources(doc)
            )
        yield doc
