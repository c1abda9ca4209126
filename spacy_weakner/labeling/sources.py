"""Weak sources as their user declares them: in a file in spaCy's config syntax, or as a mapping.

    [sources.drugs]
    terms = "drugs.csv"
    reliability = 0.9

    [sources.model]
    pipeline = "training/model-best"
    labels = {"PERSON": "PER", "ORG": "ORG"}

Every section is one source: its name, what it is (one of terms, pipeline, patterns, file, answers, corpus), and its
settings. Paths are relative to the file's folder. Nothing in such a file is resolved or executed.
"""

import configparser
import re
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from spacy.util import is_package
from thinc.api import Config

from ..corpus.rows import MISALIGNED, show
from ..errors import Errors, WeaknerError
from ..files import existing, expand_home, parse_json, read_lines
from ..gazetteer_ruler.forms import FORM
from ..pipelines import asks_language_model
from ..runtime.hashes import hash_model

KINDS = ("terms", "pipeline", "patterns", "file", "answers", "corpus")
# Labels that were made before, for the texts that they name.
FILES = ("file", "answers")
# Labels that the corpus brings along, under the name of the source.
CORPUS = "corpus"
# Not LEMMA: terms are read by a blank pipeline, which gives no lemmas.
ATTRS = (FORM, "ORTH", "LOWER", "NORM")
# Of the samples of an answer: what fewer say, no majority says.
MAJORITY = 0.5
AMBIGUITY = ("all", "first", "drop")
_TOP = "sources"
# Sections that other values may refer to, as in spaCy's configs: ${paths.folder}
_VARIABLES = ("paths", "vars")


@dataclass(frozen=True)
class Source:
    """A weak source.

    name (str): Its name; the span group is called `weak:<name>`.
    kind (str): "terms", "pipeline", "patterns", "file", "answers" or "corpus".
    path (str): The term list, the pipeline (a folder or an installed package), the patterns of spaCy's rulers, the file
        with labels, or the answers of a language model that `ask` has written. "" for labels that the corpus itself
        brings along under the name of the source: a name under "weak_ents", or "imported" where that is a plain list.
    reliability (Optional[float]): Probability that one of its spans is right, as its user sees it.
    complete (bool): Whether its silence means "O". By default true for imported files, answers, and pipelines, except
        for those that ask a language model: their silence can also be an answer that could not be read. Labels of the
        corpus may also say so there themselves, and what their reliability is.
    labels (Optional[Dict[str, str]]): What its labels are called here; spans with labels that are not named are left
        out. None: all labels stay as they are.
    attr (str): For terms: what they are compared by, as in `gazetteer_ruler` ("FORM", "ORTH", "LOWER", "NORM"). For
        phrase patterns: the same but for "FORM"; "ORTH" by default.
    acronym_length (int): For terms: those up to this length with inner upper case must match in exact case.
    min_length (int): For terms: those with fewer characters are not matched.
    stop (Tuple[str, ...]): For terms: those that are not to be matched, in any case and with any white space.
    ambiguity (str): For terms: what a phrase with several labels gives: "all", the "first" in the order of the list, or
        none ("drop"). This is decided before `labels` apply.
    term_label (Optional[str]): For terms: the label of those that come without one.
    spans_key (Optional[str]): For pipelines: the span group to take; None: `doc.ents`.
    min_score (Optional[float]): For pipelines, files and labels of the corpus: spans with a lower score are left out;
        spans without one stay. For answers, whose score is the share of samples that have the span, by default 0.5.
    asked (Optional[str]): For answers: the question, as `ask` names it, if the file holds answers to several.
    misaligned (str): For files and answers: what to do with spans that do not end at token borders: "drop", "error",
        "expand" to the tokens that they touch, "contract" to those that they cover.
    """

    name: str
    kind: str
    path: str
    reliability: Optional[float] = None
    complete: bool = False
    labels: Optional[Dict[str, str]] = None
    attr: str = FORM
    acronym_length: int = 5
    min_length: int = 1
    stop: Tuple[str, ...] = ()
    ambiguity: str = "all"
    term_label: Optional[str] = None
    spans_key: Optional[str] = None
    min_score: Optional[float] = None
    misaligned: str = "drop"
    asked: Optional[str] = None

    def settings(self) -> Dict[str, Any]:
        """What its labels depend on: all settings, and the contents of what it reads in place of the path.

        RETURNS (Dict[str, Any]): What JSON can hold.
        """
        return asdict(self) if self.kind == CORPUS else {**asdict(self), "path": hash_model(self.path)}

    @property
    def file(self) -> Optional[Path]:
        """RETURNS (Optional[Path]): The file that it reads, if it is one."""
        return None if self.kind in ("pipeline", CORPUS) else Path(self.path)


class SettingError(Exception):
    """What is wrong with a setting of a source; who declares the source adds the place.

    key (str): The setting.
    value (Any): Its value.
    expected (str): What it should be.
    """

    def __init__(self, key: str, value: Any, expected: str) -> None:
        super().__init__(key, value, expected)
        self.key = key
        self.value = value
        self.expected = expected


def read_sources(declared: Union[Path, str, Mapping[str, Any]]) -> List[Source]:
    """Read the declarations of sources.

    declared (Union[Path, str, Mapping[str, Any]]): A file, or settings by name of the source, with paths relative to
        the working folder.
    RETURNS (List[Source]): The sources, in the order given.
    RAISES (WeaknerError): If there are none, or one is malformed; the message names file, section and key.
    """
    place, sections, folder = read_sections(declared)
    return [declared_source(place, name, settings, folder) for name, settings in sections.items()]


def read_sections(declared: Union[Path, str, Mapping[str, Any]]) -> Tuple[str, Dict[str, Any], Path]:
    """Read declarations without looking into them.

    declared (Union[Path, str, Mapping[str, Any]]): See `read_sources`.
    RETURNS (Tuple[str, Dict[str, Any], Path]): Where they stand, for messages; settings by name of the source; where
        relative paths start.
    RAISES (WeaknerError): If there are none, or the file cannot be read.
    """
    if isinstance(declared, Mapping):
        place, sections, folder = "sources", dict(declared), Path()
    else:
        place, sections, folder = str(declared), _read_file(Path(declared)), Path(declared).parent
    if not sections:
        raise WeaknerError(Errors.WK311.format(place=place))
    return place, sections, folder


def declared_source(place: str, name: str, settings: Any, folder: Path) -> Source:
    """Check one declaration: `make_source`, with an error that names the place.

    place (str): Where it stands.
    name (str): Its name.
    settings (Any): Its settings.
    folder (Path): Where relative paths start.
    RETURNS (Source): The source.
    RAISES (WeaknerError): If it is malformed; the message names place, section and key.
    """
    try:
        if not isinstance(settings, Mapping):
            raise SettingError(name, settings, f"a section [{_TOP}.<name>] around it")
        return make_source(name, settings, folder)
    except SettingError as error:
        value = show(error.value)
        message = Errors.WK308.format(place=place, name=name, key=error.key, value=value, expected=error.expected)
        raise WeaknerError(message) from None


def make_source(name: str, settings: Mapping[str, Any], folder: Optional[Path] = None) -> Source:
    """Check the declaration of one source.

    name (str): Its name.
    settings (Mapping[str, Any]): Its settings.
    folder (Optional[Path]): Where relative paths start; None: the working folder.
    RETURNS (Source): The source.
    RAISES (SettingError): If something is wrong with them.
    """
    if not isinstance(name, str) or not name.strip() or name != name.strip() or not name.isprintable():
        raise SettingError("source", name, "a name, without white space around it")
    settings = {key: str(value) if isinstance(value, Path) else value for key, value in settings.items()}
    for key in settings:
        if key not in _KEYS and key not in KINDS:
            near = get_close_matches(str(key), [*_KEYS, *KINDS], n=1)
            hint = f"; did you mean '{near[0]}'?" if near else ""
            raise SettingError(key, settings[key], f"one of the keys {', '.join([*KINDS, *_KEYS])}{hint}")
    given = [kind for kind in KINDS if settings.get(kind) is not None]
    if len(given) != 1:
        key = given[-1] if given else KINDS[0]
        raise SettingError(key, settings.get(key), f"exactly one of the keys {', '.join(KINDS)}")
    kind = given[0]
    for key in settings:
        _check(key, settings[key], kind)
    values = {key: settings[key] for key in settings if key not in KINDS}
    values["stop"] = tuple(values.get("stop", ()))
    path = "" if kind == CORPUS else _find(kind, settings[kind], Path() if folder is None else folder)
    return Source(name=name, kind=kind, path=path, **{**usual_settings(kind, path), **values})


def usual_settings(kind: str, path: str) -> Dict[str, Any]:
    """Settings that a kind of source has if none are given, as far as they differ from those of `Source`.

    kind (str): The kind.
    path (str): What it reads.
    RETURNS (Dict[str, Any]): The settings.
    """
    if kind == "patterns":
        return {"attr": "ORTH"}
    if kind == "answers":
        return {"complete": True, "min_score": MAJORITY}
    return {"complete": kind == "file" or (kind == "pipeline" and not asks_language_model(path))}


def _check(key: str, value: Any, kind: str) -> None:
    if key in KINDS:
        if value is not None and not (value is True if key == CORPUS else _is_text(value)):
            raise SettingError(key, value, "true" if key == CORPUS else "a path in quotes")
        return
    rule = _PATTERN_ATTR if (kind, key) == ("patterns", "attr") else _KEYS[key]
    if kind not in rule.kinds:
        raise SettingError(key, value, f"none for {kind}: it belongs to {' and '.join(rule.kinds)}")
    if not rule.is_fine(value):
        raise SettingError(key, value, rule.expected)


def _find(kind: str, value: str, folder: Path) -> str:
    path = folder / expand_home(value)
    if path.exists() and (kind == "pipeline") == path.is_dir():
        return str(path)
    if kind == "pipeline":
        if is_package(value):
            return value
        raise SettingError(kind, value, f"the folder of a pipeline ({path}) or an installed one; there is neither")
    near = get_close_matches(path.name, [p.name for p in path.parent.glob("*")] if path.parent.is_dir() else [], n=1)
    hint = f" (did you mean '{near[0]}'?)" if near and not path.is_dir() else ""
    raise SettingError(kind, value, f"a file, and there is none at {path}{hint}")


# The rules


class _Rule(NamedTuple):
    kinds: Sequence[str]
    is_fine: Callable[[Any], bool]
    expected: str


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value == value


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_text_or_none(value: Any) -> bool:
    return value is None or _is_text(value)


def _is_number_or_none(value: Any) -> bool:
    return value is None or _is_number(value)


def _is_reliability(value: Any) -> bool:
    return value is None or (_is_number(value) and 0 < value <= 1)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_mapping(value: Any) -> bool:
    return value is None or (
        isinstance(value, Mapping) and bool(value) and all(_is_text(k) and _is_text(v) for k, v in value.items())
    )


def _are_texts(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(map(_is_text, value))


def _at_least(least: int) -> Callable[[Any], bool]:
    def is_fine(value: Any) -> bool:
        return type(value) is int and value >= least

    return is_fine


def _one_of(choices: Sequence[str], kinds: Sequence[str], hint: str = "") -> _Rule:
    return _Rule(kinds, choices.__contains__, f"one of {', '.join(choices)}{hint}")


_LEMMA = " (for LEMMA, run a pipeline with a gazetteer_ruler)"
# spaCy's matcher knows its own attributes alone.
_PATTERN_ATTR = _one_of([attr for attr in ATTRS if attr != FORM], ("patterns",), _LEMMA)
_KEYS: Dict[str, _Rule] = {
    "reliability": _Rule(KINDS, _is_reliability, "null, or a number more than 0, up to 1"),
    "complete": _Rule(KINDS, _is_flag, "true or false"),
    "labels": _Rule(KINDS, _is_mapping, 'null, or names by label, like {"PERSON": "PER"}'),
    "attr": _one_of(ATTRS, ("terms", "patterns"), _LEMMA),
    "acronym_length": _Rule(("terms",), _at_least(0), "0 or more characters"),
    "min_length": _Rule(("terms",), _at_least(1), "1 or more characters"),
    "stop": _Rule(("terms",), _are_texts, 'a list of terms, like ["all"]'),
    "ambiguity": _one_of(AMBIGUITY, ("terms",)),
    "term_label": _Rule(("terms",), _is_text_or_none, "null, or a label"),
    "spans_key": _Rule(("pipeline",), _is_text_or_none, "null, or the name of a span group"),
    "min_score": _Rule(("pipeline", *FILES, CORPUS), _is_number_or_none, "null, or a number"),
    "misaligned": _one_of(MISALIGNED, FILES),
    "asked": _Rule(("answers",), _is_text_or_none, 'null, or a question, like "1c9d2f60"'),
}


# The file


def _read_file(path: Path) -> Dict[str, Any]:
    lines = [_without_comment(line) for line in read_lines(existing(path))]
    # The syntax wants a parent section before its children, which nobody should have to write here.
    text = "\n".join([f"[{_TOP}]", *(line for line in lines if line.strip() != f"[{_TOP}]")])
    try:
        # Interpolates variables, but resolves no functions.
        config = Config().from_str(text)
    except KeyError as error:
        reason = f"a section comes before [...{error.args[0]}], which it belongs to. Change their order."
        raise WeaknerError(Errors.WK307.format(path=path, reason=reason)) from error
    except (ValueError, configparser.Error) as error:
        reason = " ".join(str(error).split()).removeprefix("Config validation error ")
        # Lines were counted with the parent section.
        reason = re.sub(r"(line:?\s+)(\d+)", lambda found: f"{found[1]}{int(found[2]) - 1}", reason)
        raise WeaknerError(Errors.WK307.format(path=path, reason=reason)) from error
    for section in config:
        if section not in (_TOP, *_VARIABLES):
            near = get_close_matches(section, [_TOP, *_VARIABLES], n=1)
            hint = f" (did you mean '{near[0]}'?)" if near else ""
            raise WeaknerError(Errors.WK307.format(path=path, reason=f"unknown section [{section}]{hint}."))
    return dict(config[_TOP])


def _without_comment(line: str) -> str:
    """Cut a comment behind a value or a section, which spaCy's syntax would read as a part of it."""
    head, equals, value = line.partition("=")
    if line.lstrip().startswith("["):
        return re.sub(r"\]\s+#.*", "]", line)
    for found in re.finditer(r"\s#", value) if equals else ():
        before = value[: found.start()]
        try:
            parse_json(before)
        except ValueError:
            continue
        return f"{head}={before}"
    return line
