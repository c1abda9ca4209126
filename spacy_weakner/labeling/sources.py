"""Declarations of weak sources by the user: in a file in spaCy's config syntax, or as a mapping.

    [sources.drugs]
    terms = "drugs.csv"
    reliability = 0.9

    [sources.model]
    pipeline = "training/model-best"
    labels = {"PERSON": "PER", "ORG": "ORG"}

Each section is one source: its name, its kind (terms, pipeline, patterns, file, answers or corpus), and its settings.
Paths are relative to the file's folder. Nothing in such a file is resolved or executed.
"""

import configparser
import re
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, ClassVar, Dict, Iterator, List, Literal, Mapping, Optional, Tuple, Type, Union

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from spacy.language import Language
from spacy.util import is_package
from thinc.api import Config

from ..corpus.counts import show_value
from ..errors import Errors, WeaknerError
from ..files import existing, expand_home, read_lines
from ..gazetteer_ruler.terms import SEPARATOR, Term, parse_columns, read_binding, read_lists
from ..pipelines import asks_language_model, load_pipeline
from ..runtime.hashes import hash_model

_TOP = "sources"
# Sections that other values may refer to, as in spaCy's configs: ${paths.folder}
_VARIABLES = ("paths", "vars")
# Minimum share of the samples of a prompt: a mention in fewer of them has no majority.
MAJORITY = 0.5
# Settings of a term list that its file needs to be read.
TABLE_SETTINGS = ("term_label", "term_columns", "synonyms_separator", "normalize_labels")
# Fields that are not settings: they are set by the name and the kind of a declaration.
_LOCATED = ("name", "path", "further", "loaded")
_LEMMA = " (for LEMMA, run a pipeline with a gazetteer_ruler)"
Text = Annotated[str, Field(pattern=r"\S")]


class SettingError(Exception):
    """An error in a setting of a source, with the `expected` value. The reader of the declaration adds the place."""

    def __init__(self, key: str, value: Any, expected: str) -> None:
        super().__init__(key, value, expected)
        self.key = key
        self.value = value
        self.expected = expected


class Source(BaseModel):
    """Base of all weak sources. The description of a field is the expected value in error messages.

    kind (str): The kind of source; also the key of its path in a declaration.
    name (str): Its name; the span group is named `weak:<name>`.
    path (str): The file or pipeline that it reads.
    reliability (Optional[float]): Probability that one of its spans is right, as estimated by the user.
    complete (bool): True if all tokens outside its spans are "O". The default for files, answers, and pipelines without
        language models.
    labels (Optional[Dict[str, str]]): New names of its labels; spans with other labels are left out. None: all labels
        are kept unchanged.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    kind: ClassVar[str]
    name: str
    path: str = ""
    reliability: Optional[float] = Field(
        default=None, gt=0, le=1, allow_inf_nan=False, description="null, or a number above 0 and up to 1"
    )
    complete: bool = Field(default=False, description="true or false")
    labels: Optional[Dict[Text, Text]] = Field(
        default=None, min_length=1, description='null, or names by label, like {"PERSON": "PER"}'
    )

    @classmethod
    def located(cls, value: Any, folder: Path) -> Dict[str, Any]:
        """Return the fields of a declaration that locate the input. Raise a `SettingError` if it does not exist."""
        return {"path": cls.locate(value, folder)}

    @classmethod
    def locate(cls, value: Any, folder: Path) -> str:
        """Return the path of a declaration, resolved against the folder. Raise a `SettingError` if it is not a file."""
        path = folder / _path_of(cls.kind, value)
        if path.exists() and not path.is_dir():
            return str(path)
        names = [other.name for other in path.parent.glob("*")] if path.parent.is_dir() and not path.is_dir() else []
        raise SettingError(cls.kind, value, f"an existing file, but there is none at {path}{_hint(path.name, names)}")

    def settings(self) -> Dict[str, Any]:
        """Return the settings that its labels depend on, with the contents of its input in place of the path."""
        return {**self.to_json(), "path": hash_model(self.path) if self.path else ""}

    def to_json(self) -> Dict[str, Any]:
        return {"kind": self.kind, **self.model_dump()}

    @property
    def files(self) -> List[Path]:
        """The files that it reads."""
        return [Path(self.path)] if self.path else []


class TermSource(Source):
    """A term list.

    attr (str): Token attribute by which terms are matched: "FORM" (variants of a character are equal), "ORTH", "LOWER"
        or "NORM". Not LEMMA: a blank pipeline reads the terms.
    acronym_length (int): Terms up to this length with upper case after the first letter must match in exact case.
    min_length (int): Terms with fewer characters are not matched.
    stop (Tuple[str, ...]): Terms that are not matched, ignoring case and white space.
    ambiguity (str): Matches of a phrase with several labels: "all" labels, the "first" of the list, or none ("drop").
        Applied before `labels`.
    term_label (Optional[str]): The label of terms that have none.
    term_columns (str): Names of columns (keys in JSONL) in the file, such as `term=Bezeichnung,id=Code`; the keys are
        label, term, synonyms, id and name.
    synonyms_separator (str): What separates the synonyms in a cell, besides line breaks.
    normalize_labels (bool): Write labels in capitals, with "_" in place of other signs than letters and digits.
    abbreviations (bool): If a document defines an abbreviation of a match, also match its short form; see the component
        `abbreviations`. Rows of one document ("a7.1", "a7.2") must be in one shard.
    further (Tuple[str, ...]): The other files, if `terms` is a list of files: see `gazetteer_ruler.terms.read_lists`.
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
    term_columns: str = Field(default="", description="columns by key, like term=Bezeichnung,id=Code")
    synonyms_separator: str = Field(default=SEPARATOR, min_length=1, description='a string, like ";"')
    normalize_labels: bool = Field(default=False, description="true or false")
    abbreviations: bool = Field(default=False, description="true or false")

    @field_validator("term_columns")
    @classmethod
    def _parse_columns(cls, value: str) -> str:
        parse_columns(value)
        return value

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
        return read_lists(self.files, *self._reading, stop=self.stop)

    def binding(self) -> List[Term]:
        """Return the terms that are declared binding, including those that are never entities."""
        return list(read_binding(self.files, *self._reading))

    def every(self) -> Iterator[Term]:
        """Yield the terms, including those that are never entities."""
        return read_lists(self.files, *self._reading, stop=self.stop, every=True)

    @property
    def _reading(self) -> Tuple[Any, ...]:
        return self.term_label, self.term_columns, self.synonyms_separator, self.normalize_labels

    def ruler_settings(self) -> Dict[str, Any]:
        """Return the settings of its `gazetteer_ruler`."""
        names = ("attr", "acronym_length", "min_length", "ambiguity")
        return {"source": self.name, "stop": list(self.stop), **{name: getattr(self, name) for name in names}}


class PatternSource(Source):
    """Patterns of spaCy's rulers.

    attr (str): Token attribute by which phrase patterns are matched.
    """

    kind = "patterns"
    attr: Literal["ORTH", "LOWER", "NORM"] = Field(default="ORTH", description=f"one of ORTH, LOWER, NORM{_LEMMA}")


class ScoredSource(Source):
    """A source whose spans may have scores.

    min_score (Optional[float]): Spans with a lower score are left out; spans without a score are kept.
    """

    min_score: Optional[float] = Field(default=None, allow_inf_nan=False, description="null, or a number")


class PipelineSource(ScoredSource):
    """A pipeline: a folder, or an installed package. It gets the bare tokens of each Doc.

    spans_key (Optional[str]): The span group of the pipeline to use; None: its entities.
    loaded (Optional[Language]): The pipeline, if the declaration has one in memory; `path` is its name then.
    """

    kind = "pipeline"
    loaded: Any = Field(default=None, exclude=True)
    spans_key: Optional[Text] = Field(default=None, description="null, or the name of a span group")

    @model_validator(mode="before")
    @classmethod
    def _judge_silence(cls, data: Dict[str, Any]) -> Dict[str, Any]:
        # A language model may also give no entities because its completion could not be parsed.
        pipeline = data.get("loaded") or data["path"]
        return data if "complete" in data else {**data, "complete": not asks_language_model(pipeline)}

    @classmethod
    def located(cls, value: Any, folder: Path) -> Dict[str, Any]:
        if isinstance(value, Language):
            return {"path": f"{value.lang}_{value.meta['name']}", "loaded": value}
        return super().located(value, folder)

    @classmethod
    def locate(cls, value: Any, folder: Path) -> str:
        path = folder / _path_of(cls.kind, value)
        if path.is_dir() or is_package(str(value)):
            return str(path) if path.is_dir() else str(value)
        raise SettingError(cls.kind, value, f"the folder of a pipeline ({path}) or an installed one; neither exists")

    def settings(self) -> Dict[str, Any]:
        if self.loaded is not None:
            setting, instead = f"{self.name}.pipeline, in memory,", ", or write it with nlp.to_disk and give the folder"
            raise WeaknerError(Errors.WK331.format(setting=setting, where="with 'label_docs'", instead=instead))
        return super().settings()

    def load(self) -> Language:
        return load_pipeline(self.path) if self.loaded is None else self.loaded

    @property
    def files(self) -> List[Path]:
        return []


class FileSource(ScoredSource):
    """Labels that were made elsewhere, for the texts listed in a file.

    misaligned (str): What to do with spans that do not end at token boundaries: "drop", "error", "expand" to the tokens
        that they touch, or "contract" to the tokens that they cover.
    """

    kind = "file"
    complete: bool = Field(default=True, description="true or false")
    misaligned: Literal["drop", "error", "expand", "contract"] = Field(
        default="drop", description="one of drop, error, expand, contract"
    )


class AnswersSource(FileSource):
    """Completions of a language model written by `ask`. The score of a span is the share of samples that have it.

    asked (Optional[str]): The identifier of the prompt ("asked"), if the file holds completions of several prompts.
    """

    kind = "answers"
    min_score: Optional[float] = Field(default=MAJORITY, allow_inf_nan=False, description="null, or a number")
    asked: Optional[Text] = Field(default=None, description='null, or the identifier of a prompt, like "1c9d2f60"')


class CorpusSource(ScoredSource):
    """Labels stored in the corpus under the name of the source: a name under "weak_ents", or "imported" for a plain
    list. They may already declare their own `reliability` and `complete`."""

    kind = "corpus"

    @classmethod
    def locate(cls, value: Any, folder: Path) -> str:
        if value is not True:
            raise SettingError(cls.kind, value, "true")
        return ""


# The kinds of sources. `label.LABELERS` maps each to its labeler.
KINDS: Dict[str, Type[Source]] = {
    source.kind: source
    for source in (TermSource, PipelineSource, PatternSource, FileSource, AnswersSource, CorpusSource)
}


def defaults() -> Dict[str, Any]:
    """Return the default of each setting, from the first kind that has it."""
    fields = [item for kind in reversed(KINDS.values()) for item in kind.model_fields.items()]
    return {key: field.default for key, field in fields if key not in _LOCATED}


def read_sources(declared: Union[Path, str, Mapping[str, Any]]) -> List[Source]:
    """Read the declarations of sources, from a file or a mapping, in the given order. Errors name file, section and
    key."""
    place, sections, folder = read_sections(declared)
    return [declared_source(place, name, settings, folder) for name, settings in sections.items()]


def read_sections(declared: Union[Path, str, Mapping[str, Any]]) -> Tuple[str, Dict[str, Any], Path]:
    """Return the place of declarations (for messages), unchecked settings by source, and the base folder of paths."""
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
        value = show_value(error.value)
        message = Errors.WK308.format(place=place, name=name, key=error.key, value=value, expected=error.expected)
        raise WeaknerError(message) from None


def make_source(name: str, settings: Mapping[str, Any], folder: Path) -> Source:
    """Create a source from its settings; paths are relative to the folder. Raise a `SettingError` if one is wrong."""
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
            raise SettingError(key, values[key], f"no such key with '{kind.kind}', since it belongs to {others}")
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


def _hint(name: Any, names: List[str]) -> str:
    near = get_close_matches(str(name), names, n=1)
    return f" (did you mean '{near[0]}'?)" if near else ""


def _read_file(path: Path) -> Dict[str, Any]:
    lines = read_lines(existing(path))
    # The syntax requires a parent section before its children; users need not write it.
    text = "\n".join([f"[{_TOP}]", *("" if line.strip() == f"[{_TOP}]" else line for line in lines)])
    try:
        # This interpolates variables, but resolves no functions.
        config = Config().from_str(text)
    except KeyError as error:
        reason = f"a section comes before its parent [...{error.args[0]}]. Change their order."
        raise WeaknerError(Errors.WK307.format(path=path, reason=reason)) from error
    except (ValueError, configparser.Error) as error:
        reason = " ".join(str(error).split()).removeprefix("Config validation error ")
        # Line numbers include the parent section.
        reason = re.sub(r"(line:?\s+)(\d+)", lambda found: f"{found[1]}{int(found[2]) - 1}", reason)
        raise WeaknerError(Errors.WK307.format(path=path, reason=reason)) from error
    for section in config:
        if section not in (_TOP, *_VARIABLES):
            reason = f"unknown section [{section}]{_hint(section, [_TOP, *_VARIABLES])}."
            raise WeaknerError(Errors.WK307.format(path=path, reason=reason))
    return dict(config[_TOP])
