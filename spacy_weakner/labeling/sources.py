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
from difflib import get_close_matches
from pathlib import Path
from typing import (
    Annotated,
    Any,
    ClassVar,
    Dict,
    Iterable,
    Iterator,
    List,
    Literal,
    Mapping,
    Optional,
    Tuple,
    Type,
    Union,
)

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from spacy.util import is_package
from thinc.api import Config

from ..corpus.counts import show
from ..errors import Errors, WeaknerError
from ..files import existing, expand_home, read_lines
from ..gazetteer_ruler.terms import Term, read_lists
from ..pipelines import asks_language_model
from ..runtime.hashes import hash_model

_TOP = "sources"
# Sections that other values may refer to, as in spaCy's configs: ${paths.folder}
_VARIABLES = ("paths", "vars")
# Of the samples of a completion: what fewer have, no majority has.
MAJORITY = 0.5
# Fields that are no settings: a declaration gives them by its name and its kind.
_LOCATED = ("name", "path", "further")
_LEMMA = " (for LEMMA, run a pipeline with a gazetteer_ruler)"
Text = Annotated[str, Field(pattern=r"\S")]


class SettingError(Exception):
    """A setting of a source that is not `expected`; whoever reads the declaration adds the place."""

    def __init__(self, key: str, value: Any, expected: str) -> None:
        super().__init__(key, value, expected)
        self.key = key
        self.value = value
        self.expected = expected


class Source(BaseModel):
    """What all weak sources have. The description of a field is what an error says to expect.

    kind (str): What it is; also the key of its path in a declaration.
    name (str): Its name; the span group is called `weak:<name>`.
    path (str): What it reads.
    reliability (Optional[float]): Probability that one of its spans is right, as its user sees it.
    complete (bool): True if its silence means "O". The default for files, answers, and pipelines without language
        models.
    labels (Optional[Dict[str, str]]): What its labels are called here; spans with other labels are left out. None: all
        labels stay as they are.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    kind: ClassVar[str]
    name: str
    path: str = ""
    reliability: Optional[float] = Field(
        default=None, gt=0, le=1, allow_inf_nan=False, description="null, or a number more than 0, up to 1"
    )
    complete: bool = Field(default=False, description="true or false")
    labels: Optional[Dict[Text, Text]] = Field(
        default=None, min_length=1, description='null, or names by label, like {"PERSON": "PER"}'
    )

    @classmethod
    def located(cls, value: Any, folder: Path) -> Dict[str, Any]:
        """The fields that say what is read, of a declaration. Raises a `SettingError`."""
        return {"path": cls.locate(value, folder)}

    @classmethod
    def locate(cls, value: Any, folder: Path) -> str:
        """The path of a declaration; a relative one starts at the folder. Raises a `SettingError`."""
        path = folder / _path_of(cls.kind, value)
        if path.exists() and not path.is_dir():
            return str(path)
        names = [other.name for other in path.parent.glob("*")] if path.parent.is_dir() and not path.is_dir() else []
        raise SettingError(cls.kind, value, f"a file, and there is none at {path}{_hint(path.name, names)}")

    def settings(self) -> Dict[str, Any]:
        """What its labels depend on: the contents of what it reads in place of the path."""
        return {**self.to_json(), "path": hash_model(self.path) if self.path else ""}

    def to_json(self) -> Dict[str, Any]:
        return {"kind": self.kind, **self.model_dump()}

    @property
    def files(self) -> List[Path]:
        """The files that it reads."""
        return [Path(self.path)] if self.path else []


class TermSource(Source):
    """A term list.

    attr (str): What terms are compared by: "FORM" (variants of a character are alike), "ORTH", "LOWER" or "NORM". Not
        LEMMA: terms are read by a blank pipeline.
    acronym_length (int): Terms up to this length with inner upper case must match in exact case.
    min_length (int): Terms with fewer characters are not matched.
    stop (Tuple[str, ...]): Terms that are not matched, in any case and with any white space.
    ambiguity (str): What a phrase with several labels gives: "all", the "first" of the list, or none ("drop"). Decided
        before `labels` apply.
    term_label (Optional[str]): The label of terms that come without one.
    id_column (Optional[str]): Column or key of the ids of concepts; None: see `gazetteer_ruler.terms.ID_KEYS`.
    abbreviations (bool): True: where a document defines an abbreviation of a match, its short form is one too; see the
        component `abbreviations`. Rows of one document ("a7.1", "a7.2") must stand in one shard.
    further (Tuple[str, ...]): The other files, where `terms` is a list of them: see `gazetteer_ruler.terms.read_lists`.
    """

    kind = "terms"
    further: Tuple[str, ...] = ()
    attr: Literal["FORM", "ORTH", "LOWER", "NORM"] = Field(
        default="FORM", description=f"one of FORM, ORTH, LOWER, NORM{_LEMMA}"
    )
    acronym_length: int = Field(default=5, ge=0, description="0 or more characters")
    min_length: int = Field(default=1, ge=1, description="1 or more characters")
    stop: Tuple[Text, ...] = Field(default=(), strict=False, description='a list of terms, like ["all"]')
    ambiguity: Literal["all", "first", "drop"] = Field(default="all", description="one of all, first, drop")
    term_label: Optional[Text] = Field(default=None, description="null, or a label")
    id_column: Optional[Text] = Field(default=None, description="null, or the name of a column")
    abbreviations: bool = Field(default=False, description="true or false")

    @classmethod
    def located(cls, value: Any, folder: Path) -> Dict[str, Any]:
        if not isinstance(value, list) or not value:
            return super().located(value, folder)
        path, *further = (cls.locate(item, folder) for item in value)
        return {"path": path, "further": tuple(further)}

    def settings(self) -> Dict[str, Any]:
        further = [hash_model(path) for path in self.further]
        return {**super().settings(), **({"further": further} if further else {})}

    @property
    def files(self) -> List[Path]:
        return [Path(self.path), *map(Path, self.further)]

    def read(self) -> Iterator[Term]:
        return read_lists(self.files, self.term_label, self.id_column)

    def ruler_settings(self) -> Dict[str, Any]:
        """Settings of its `gazetteer_ruler`."""
        names = ("attr", "acronym_length", "min_length", "ambiguity")
        return {"source": self.name, "stop": list(self.stop), **{name: getattr(self, name) for name in names}}


class PatternSource(Source):
    """Patterns of spaCy's rulers.

    attr (str): What phrase patterns are compared by.
    """

    kind = "patterns"
    attr: Literal["ORTH", "LOWER", "NORM"] = Field(default="ORTH", description=f"one of ORTH, LOWER, NORM{_LEMMA}")


class ScoredSource(Source):
    """A source whose spans may have scores.

    min_score (Optional[float]): Spans with a lower score are left out; spans without one stay.
    """

    min_score: Optional[float] = Field(default=None, allow_inf_nan=False, description="null, or a number")


class PipelineSource(ScoredSource):
    """A pipeline: a folder, or an installed package. It gets the bare tokens of each Doc.

    spans_key (Optional[str]): The span group of the pipeline to take; None: its entities.
    """

    kind = "pipeline"
    spans_key: Optional[Text] = Field(default=None, description="null, or the name of a span group")

    @model_validator(mode="before")
    @classmethod
    def _judge_silence(cls, data: Dict[str, Any]) -> Dict[str, Any]:
        # The silence of a language model can also be a completion that could not be parsed.
        return data if "complete" in data else {**data, "complete": not asks_language_model(data["path"])}

    @classmethod
    def locate(cls, value: Any, folder: Path) -> str:
        path = folder / _path_of(cls.kind, value)
        if path.is_dir() or is_package(str(value)):
            return str(path) if path.is_dir() else str(value)
        raise SettingError(cls.kind, value, f"the folder of a pipeline ({path}) or an installed one; there is neither")

    @property
    def files(self) -> List[Path]:
        return []


class FileSource(ScoredSource):
    """Labels that were made elsewhere, for the texts that they name.

    misaligned (str): What to do with spans that do not end at token borders: "drop", "error", "expand" to the tokens
        that they touch, "contract" to those that they cover.
    """

    kind = "file"
    complete: bool = Field(default=True, description="true or false")
    misaligned: Literal["drop", "error", "expand", "contract"] = Field(
        default="drop", description="one of drop, error, expand, contract"
    )


class AnswersSource(FileSource):
    """Completions of a language model that `ask` has written; a span's score is the share of samples that have it.

    asked (Optional[str]): The prompt, as `ask` names it, if the file holds completions of several.
    """

    kind = "answers"
    min_score: Optional[float] = Field(default=MAJORITY, allow_inf_nan=False, description="null, or a number")
    asked: Optional[Text] = Field(default=None, description='null, or a prompt, like "1c9d2f60"')


class CorpusSource(ScoredSource):
    """Labels that the corpus brings along under the name of the source: a name under "weak_ents", or "imported" where
    that is a plain list. There they may state their `reliability` and be `complete` themselves."""

    kind = "corpus"

    @classmethod
    def locate(cls, value: Any, folder: Path) -> str:
        if value is not True:
            raise SettingError(cls.kind, value, "true")
        return ""


# The kinds of sources. `label.LABELERS` has what each of them runs.
KINDS: Dict[str, Type[Source]] = {
    source.kind: source
    for source in (TermSource, PipelineSource, PatternSource, FileSource, AnswersSource, CorpusSource)
}


def defaults() -> Dict[str, Any]:
    """By setting, the default of the first kind that has it."""
    fields = [item for kind in reversed(KINDS.values()) for item in kind.model_fields.items()]
    return {key: field.default for key, field in fields if key not in _LOCATED}


def read_sources(declared: Union[Path, str, Mapping[str, Any]]) -> List[Source]:
    """Read the declarations of sources, in a file or by name, in the order given; an error names file, section and
    key."""
    place, sections, folder = read_sections(declared)
    return [declared_source(place, name, settings, folder) for name, settings in sections.items()]


def read_sections(declared: Union[Path, str, Mapping[str, Any]]) -> Tuple[str, Dict[str, Any], Path]:
    """Where declarations stand, for messages; settings by name of the source, unchecked; where relative paths start."""
    if isinstance(declared, Mapping):
        place, sections, folder = "sources", dict(declared), Path()
    else:
        place, sections, folder = str(declared), _read_file(Path(declared)), Path(declared).parent
    if not sections:
        raise WeaknerError(Errors.WK311.format(place=place))
    return place, sections, folder


def declared_source(place: str, name: str, settings: Any, folder: Path) -> Source:
    """Check one declaration: `make_source`, with an error that names the place."""
    try:
        if not isinstance(settings, Mapping):
            raise SettingError(name, settings, f"a section [{_TOP}.<name>] around it")
        return make_source(name, settings, folder)
    except SettingError as error:
        value = show(error.value)
        message = Errors.WK308.format(place=place, name=name, key=error.key, value=value, expected=error.expected)
        raise WeaknerError(message) from None


def make_source(name: str, settings: Mapping[str, Any], folder: Path) -> Source:
    """Make a source of its settings; relative paths start at the folder. Raises a `SettingError`."""
    if not isinstance(name, str) or not name.strip() or name != name.strip() or not name.isprintable():
        raise SettingError("source", name, "a name, without white space around it")
    known = [*KINDS, *defaults()]
    for key in settings:
        if key not in known:
            raise SettingError(key, settings[key], f"one of the keys {', '.join(known)}{_hint(key, known)}")
    given = [kind for kind in KINDS if settings.get(kind) is not None]
    if len(given) != 1:
        key = given[-1] if given else next(iter(KINDS))
        raise SettingError(key, settings.get(key), f"exactly one of the keys {', '.join(KINDS)}")
    kind = KINDS[given[0]]
    values = {key: value for key, value in settings.items() if key not in KINDS}
    for key in values:
        if key not in kind.model_fields:
            others = " and ".join(other for other in KINDS if key in KINDS[other].model_fields)
            raise SettingError(key, values[key], f"none for {kind.kind}: it belongs to {others}")
    located = kind.located(settings[kind.kind], folder)
    try:
        return kind(name=name, **located, **values)
    except ValidationError as error:
        key = str(error.errors()[0]["loc"][0])
        raise SettingError(key, values[key], kind.model_fields[key].description or "") from None


def _path_of(kind: str, value: Any) -> Path:
    if not isinstance(value, Path) and not (isinstance(value, str) and value.strip()):
        raise SettingError(kind, value, "a path in quotes")
    return expand_home(str(value))


def _hint(name: Any, names: Iterable[str]) -> str:
    near = get_close_matches(str(name), [*names], n=1)
    return f" (did you mean '{near[0]}'?)" if near else ""


def _read_file(path: Path) -> Dict[str, Any]:
    lines = read_lines(existing(path))
    # The syntax wants a parent section before its children, which nobody should have to write here.
    text = "\n".join([f"[{_TOP}]", *("" if line.strip() == f"[{_TOP}]" else line for line in lines)])
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
            reason = f"unknown section [{section}]{_hint(section, [_TOP, *_VARIABLES])}."
            raise WeaknerError(Errors.WK307.format(path=path, reason=reason))
    return dict(config[_TOP])
