"""Term lists: what will match nearly everything, nothing, or under several labels."""

import json
import random
import re
import shlex
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import AbstractSet, Dict, List, NamedTuple, Sequence, Set, Tuple

from spacy.language import Language
from spacy.tokens import Doc

from ...errors import WeaknerError
from ...gazetteer_ruler.component import GazetteerRuler
from ...gazetteer_ruler.terms import DELIMITERS, Term, read_table, read_terms
from ...stages.labelling.preparing import ruler_settings
from ...stages.labelling.sources import Source
from .corpora import Sentence
from .findings import Findings, listed, plural
from .language import stop_words
from .variants import check_variants

LIMIT = 100_000  # terms that are looked at one by one; labels are counted of all
_SHOWN = 5
# Kinds of terms that may match too much.
_DOUBTFUL = {
    "symbols": "without any letter or digit",
    "digits": "without any letter",
    "letter": "of one character",
    "stop": "that are stop words of '{lang}'",
}
_LETTER = re.compile(r"[^\W\d_]")
_DIGIT = re.compile(r"[^\W_]")
_LABELS = 0.2  # share of different values below which a column is one of labels


class Seen(NamedTuple):
    """What is known of the texts that a list will match.

    nlp (Language): Its vocabulary and tokenizer are used.
    longest (int): Words of the longest text; 0: not known.
    gold (Sequence[Sentence]): Annotated sentences.
    texts (Sequence[str]): Some texts without annotation.
    """

    nlp: Language
    longest: int = 0
    gold: Sequence[Sentence] = ()
    texts: Sequence[str] = ()


def check_terms(source: Source, where: str, lang: str, seen: Seen, findings: Findings) -> Dict[str, int]:
    """Check a term list.

    source (Source): The list, and how it will be used.
    where (str): Option and file, or the section of the source.
    lang (str): Language, for its stop words.
    seen (Seen): The texts.
    findings (Findings): Takes what is wrong.
    RETURNS (Dict[str, int]): Terms per label.
    """
    labels: Counter[str] = Counter()
    terms: List[Term] = []
    draw = random.Random(0)
    try:
        for n, term in enumerate(read_terms(Path(source.path), source.term_label), start=1):
            labels[term.label] += 1
            if len(terms) < LIMIT:
                terms.append(term)
            elif (place := draw.randrange(n)) < LIMIT:
                terms[place] = term
    except WeaknerError as error:
        findings.error(where, str(error), _guess_columns(Path(source.path)))
    if labels.total() > LIMIT:
        message = (
            f"Large: labels are counted in all {labels.total():,} terms; {LIMIT:,} drawn at random were looked at."
        )
        findings.info(where, message)
    stop = {_folded(term) for term in source.stop}
    used = [t for t in terms if len(t.text) >= source.min_length and _folded(t.text) not in stop]
    _check_kinds(used, where, source, lang, seen, findings)
    _check_repeated(used, where, source.ambiguity, findings)
    check_variants(used, source, where, seen.nlp, [*seen.texts, *(s.text for s in seen.gold)], findings)
    return dict(labels)


def _check_kinds(terms: Sequence[Term], where: str, source: Source, lang: str, seen: Seen, findings: Findings) -> None:
    kinds: Dict[str, List[Term]] = {}
    stops = stop_words(lang)
    for term in terms:
        kind = _kind(term.text, stops, seen.longest)
        if kind:
            kinds.setdefault(kind, []).append(term)
    long = [term.text for term in kinds.pop("long", [])]
    if long:
        message = f"{plural(len(long), 'term')} with more words than any text: {_shown(long)}."
        findings.warning(where, message, "They never match; descriptions in place of names? Shorten or remove them.")
    doubtful = [term for kind in _DOUBTFUL for term in kinds.get(kind, [])]
    right, wrong = _matches(doubtful, source, seen) if doubtful else (Counter(), Counter())
    for kind, what in _DOUBTFUL.items():
        found = list(dict.fromkeys(term.text for term in kinds.get(kind, [])))
        if found:
            _report(findings, where, found, what.format(lang=lang), right, wrong, bool(seen.gold))


def _matches(terms: Sequence[Term], source: Source, seen: Seen) -> "Tuple[Counter[str], Counter[str]]":
    """How often terms match right and wrong in gold; without gold, how often in the texts."""
    right: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    settings = {**ruler_settings(source), "min_length": 1, "stop": []}
    ruler = GazetteerRuler(seen.nlp.vocab, "check", nlp=seen.nlp, **settings)
    ruler.add_terms(list(terms))
    names = source.labels or {}
    if not seen.gold:
        for doc in map(seen.nlp.make_doc, seen.texts):
            wrong.update(_folded(doc[start:end].text) for start, end, _ in ruler.match(doc))
        return right, wrong
    for sentence in seen.gold:
        doc = Doc(seen.nlp.vocab, words=list(sentence.words))
        entities = {*sentence.entities}
        for start, end, label in ruler.match(doc):
            is_right = (start, end, names.get(label, label)) in entities
            (right if is_right else wrong)[_folded(doc[start:end].text)] += 1
    return right, wrong


def _report(
    findings: Findings,
    where: str,
    found: List[str],
    what: str,
    right: "Counter[str]",
    wrong: "Counter[str]",
    by_gold: bool,
) -> None:
    """Name terms that may match too much. Where there is gold, it decides which do."""
    keys = {text: _folded(text) for text in found}
    if by_gold:
        bad = [text for text in found if wrong[keys[text]] > right[keys[text]]]
        good = sum(right[key] for key in {*keys.values()})
        every = good + sum(wrong[key] for key in {*keys.values()})
        if not bad:
            message = f"{plural(len(found), 'term')} {what}: {_shown(found)}."
            findings.info(where, f"{message} Of their {every:,} matches in gold {good:,} are right.")
            return
        shown = [f"{text} ({right[keys[text]]} right, {wrong[keys[text]]} wrong)" for text in bad]
        message = f"{plural(len(bad), 'term')} {what}, more often wrong than right in gold: {_shown(shown)}."
        cure = "Remove them, or set stop = [{few}]."
    else:
        bad = sorted(found, key=lambda text: -wrong[keys[text]])
        shown = [f"{text} ({plural(wrong[keys[text]], 'match', 'matches')} in the text)" for text in bad]
        message = f"{plural(len(bad), 'term')} {what}: {_shown(shown)}."
        cure = "They may be right: look at their matches. Those that are not, leave out: stop = [{few}]."
    few = ", ".join(json.dumps(text, ensure_ascii=False) for text in bad[:_SHOWN])
    findings.warning(where, message, cure.format(few=few + (", ..." if len(bad) > _SHOWN else "")))


def _kind(text: str, stops: AbstractSet[str], longest: int) -> str:
    if not _LETTER.search(text):
        return "digits" if _DIGIT.search(text) else "symbols"
    # One ideogram may well be a name.
    if len(text) == 1 and text < "\u2e80":
        return "letter"
    if text.casefold() in stops:
        return "stop"
    return "long" if longest and len(text.split()) > longest else ""


def _check_repeated(terms: Sequence[Term], where: str, ambiguity: str, findings: Findings) -> None:
    by_text: Dict[str, Set[str]] = {}
    for term in terms:
        by_text.setdefault(_folded(term.text), set()).add(term.label)
    several = [f"{text} ({', '.join(sorted(found))})" for text, found in by_text.items() if len(found) > 1]
    if several and ambiguity == "all":
        message = f"{plural(len(several), 'term')} with several labels: {_shown(several)}."
        cure = 'Decide for one, or set ambiguity = "first" (the order of the list) or "drop" (none).'
        findings.warning(where, message, cure)
    repeated = len(terms) - sum(map(len, by_text.values()))
    if repeated:
        findings.info(where, f"{plural(repeated, 'term')} more than once (whatever the case); each counts once.")


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


def _shown(found: Sequence[str]) -> str:
    return listed([text if len(text) <= 60 else f"{text[:57]}..." for text in found], _SHOWN)


# A list whose columns have no names, or others


def _guess_columns(path: Path) -> str:
    """The first row that a CSV or TSV file probably needs; empty if its own are right."""
    delimiter = DELIMITERS.get(Path(path.name.lower().removesuffix(".gz")).suffix)
    if delimiter is None:
        return ""
    try:
        rows = [row for _, row in islice(read_table(path, delimiter), 1000)]
    except (WeaknerError, OSError):
        return ""
    if rows and len(rows[0]) == 1:  # perhaps the other separator
        other = next((d for d in ";\t,|" if d in rows[0][0]), None)
        if other is not None:
            return f"The columns seem to be separated by {other!r}: replace it by {delimiter!r}."
    if len(rows) < 2 or len(rows[0]) < 2 or {"label", "term"} <= {cell.strip().lower() for cell in rows[0]}:
        return ""
    width = len(rows[0])
    body = [row for row in rows[1:] if len(row) == width]
    different = [len({row[i] for row in body}) for i in range(width)]
    label = min(range(width), key=different.__getitem__)
    term = max((i for i in range(width) if i != label), key=different.__getitem__)
    if not body or (different[label] > max(2, _LABELS * len(body))):
        return ""
    header = ["label" if i == label else "term" if i == term else f"other{i}" for i in range(width)]
    # A header names its column, so its label is nobody else's.
    is_header = rows[0][label] not in {row[label] for row in body} and not re.search(r"\d", "".join(rows[0]))
    first = delimiter.join(header)
    shown = first.replace("\t", "<tab>")
    if is_header:
        return f"'{rows[0][label]}' seems to be the label and '{rows[0][term]}' the term: make the first row '{shown}'."
    command = f"sed -i '1i {first}' {shlex.quote(str(path))}"
    return f"There seems to be no header: put '{shown}' before the first row, for example: {command}"
