"""The expensive part of `label`, done once for all processes: term lists and patterns are compiled, files with labels
are indexed."""

from pathlib import Path
from typing import Any, Dict, Sequence, Set

from spacy.language import Language
from spacy.matcher import Matcher
from spacy.tokens import Doc

from ..corpus.formats.reading import sentence_keys
from ..errors import Errors, WeaknerError
from ..files import parse_json, read_lines
from ..gazetteer_ruler.terms import make_term_list
from .answering import index_answers
from .importing import index_labels
from .sources import Source

# Where the rulers of patterns leave their spans.
PATTERN_SPANS = "spacy_weakner.spans"
_EXCLUDED = "excluded.txt"


def prepare(sources: Sequence[Source], nlp: Language, folder: Path, exclude: Sequence[Path]) -> None:
    """Compile and index.

    sources (Sequence[Source]): The sources.
    nlp (Language): A blank pipeline; gets the rulers as components.
    folder (Path): Takes the rest.
    exclude (Sequence[Path]): Corpora whose sentences are to be left out.
    RAISES (WeaknerError): If something cannot be read.
    """
    keys = sentence_keys(exclude, nlp)
    (folder / _EXCLUDED).write_text("".join(f"{key}\n" for key in sorted(keys)), encoding="utf-8")
    for i, source in enumerate(sources):
        if source.kind == "terms":
            _add_terms(nlp, prepared_name(i), source)
        elif source.kind == "patterns":
            _add_patterns(nlp, prepared_name(i), source)
        elif source.kind == "file":
            index_labels(Path(source.path), folder, prepared_name(i), source.name)
        elif source.kind == "answers":
            index_answers(source, folder, prepared_name(i))


def excluded_keys(folder: Path) -> Set[str]:
    """RETURNS (Set[str]): Keys of the sentences that are to be left out, from the folder that `prepare` has filled."""
    return set((folder / _EXCLUDED).read_text(encoding="utf-8").split("\n")[:-1])


def prepared_name(number: int) -> str:
    """What a source is called among the components and in the folder: its own name may hold what no file name can.

    number (int): Its number, from 0.
    RETURNS (str): The name.
    """
    return f"source-{number + 1}"


def ruler_settings(source: Source) -> Dict[str, Any]:
    """Settings of the `gazetteer_ruler` of a term list.

    source (Source): The term list.
    RETURNS (Dict[str, Any]): The settings.
    """
    return {
        "source": source.name,
        "attr": source.attr,
        "acronym_length": source.acronym_length,
        "stop": list(source.stop),
        "min_length": source.min_length,
        "ambiguity": source.ambiguity,
    }


def _add_terms(nlp: Language, name: str, source: Source) -> None:
    ruler: Any = nlp.add_pipe("gazetteer_ruler", name=name, config=ruler_settings(source))
    ruler.name = source.name  # what messages and progress call it
    ruler.initialize(lambda: [], nlp=nlp, terms=make_term_list(Path(source.path), label=source.term_label))


def _add_patterns(nlp: Language, name: str, source: Source) -> None:
    attr = None if source.attr == "ORTH" else source.attr
    ruler: Any = nlp.add_pipe("span_ruler", name=name, config={"spans_key": PATTERN_SPANS, "phrase_matcher_attr": attr})
    probe = nlp.make_doc("x")
    patterns = []
    for number, line in enumerate(read_lines(Path(source.path)), start=1):
        if line.strip():
            try:
                patterns.append(_check_pattern(parse_json(line), probe))
            except Exception as error:  # of many kinds: what spaCy's matcher says to a bad pattern or regex
                path = f"{source.path}, line {number}"
                reason = " ".join(str(error).split()).rstrip(".") or type(error).__name__
                raise WeaknerError(Errors.WK310.format(path=path, source=source.name, reason=reason)) from error
    if not patterns:
        raise WeaknerError(Errors.WK310.format(path=source.path, source=source.name, reason="no patterns"))
    ruler.add_patterns(patterns)


def _check_pattern(row: Any, probe: Doc) -> Dict[str, Any]:
    """Try a row of spaCy's rulers, so that an error can name its line."""
    if not isinstance(row, dict) or not isinstance(row.get("label"), str) or not row["label"].strip():
        raise ValueError('expected {"label": ..., "pattern": ...}')
    pattern = row.get("pattern")
    if isinstance(pattern, list) and pattern:
        matcher = Matcher(probe.vocab, validate=True)
        matcher.add("pattern", [pattern])
        matcher(probe)
    elif not isinstance(pattern, str) or not pattern.strip():
        raise ValueError("the pattern must be a phrase, or a list with one object per token")
    return row
