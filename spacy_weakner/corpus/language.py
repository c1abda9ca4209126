"""The language and tokenizer of a corpus, and how its texts were split, recorded beside its `.spacy` files: in
`weakner.json` for a folder, in `gold.weakner.json` for `gold.spacy`. They are thus given only once, when text is
tokenized."""

import json
from pathlib import Path
from typing import Iterable, NamedTuple, Optional, Tuple

from spacy.language import Language

from ..errors import Errors, WeaknerError
from ..files import read_object, write_text
from ..pipelines import RULE, add_sentences, blank_pipeline, tokenizer_name
from ..scratch import resolved
from .docbin import SUFFIX, found_files

RECORD = "weakner.json"
_OBJECT = "an object with 'lang' and 'tokenizer'"


class CorpusLanguage(NamedTuple):
    """The code of a language, the registered name of a tokenizer, and how texts are split into sentences (see
    `pipelines.add_sentences`)."""

    lang: str
    tokenizer: str
    sentences: str = RULE
    abbreviations: str = ""

    def __str__(self) -> str:
        return f"{self.lang} with {self.tokenizer}"

    @classmethod
    def make(cls, lang: str, tokenizer: Optional[str] = None) -> "CorpusLanguage":
        """Create an instance, with the default tokenizer of the language if none is given."""
        return cls(lang, tokenizer_name(lang, tokenizer))

    def add_sentences(self, nlp: Language, names: Iterable[str] = ()) -> None:
        """Make a pipeline split texts into sentences as this corpus; see `pipelines.add_sentences`."""
        add_sentences(nlp, names, self.sentences, self.abbreviations)

    def blank(self) -> Language:
        """Return a pipeline without components."""
        return blank_pipeline(self.lang, self.tokenizer)


def recorded_language(path: Path) -> Optional[CorpusLanguage]:
    """Return the record of a corpus: of a file (possibly in its folder), or of all files of a folder. Return None for
    raw text and files of other tools."""
    path = Path(path)
    if not path.is_dir() and path.suffix != SUFFIX:
        return None
    for places in ([path], found_files(path) if path.is_dir() else [resolved(path).parent]):
        found = {known[:2]: known for known in map(_read, filter(Path.is_file, map(_record_path, places)))}
        if len(found) > 1:
            expected = f"the same language and tokenizer for all files of {path}. Process these files separately"
            listed = ", ".join(map(str, sorted(found.values())))
            raise WeaknerError(Errors.WK005.format(setting="lang", value=listed, expected=expected))
        if found:
            return next(iter(found.values()))
    return None


def _read(record: Path) -> CorpusLanguage:
    found = read_object(record, _OBJECT)
    try:
        return CorpusLanguage(**{key: str(value) for key, value in found.items() if key in CorpusLanguage._fields})
    except (TypeError, AttributeError):
        reason = "unexpected contents"
        raise WeaknerError(Errors.WK206.format(path=record, reason=reason, cure=f"Give {_OBJECT}")) from None


def corpus_language(
    path: Path,
    lang: Optional[str] = None,
    tokenizer: Optional[str] = None,
    sentences: Optional[str] = None,
    abbreviations: Optional[str] = None,
) -> CorpusLanguage:
    """Return the language and the tokenizer of a corpus: as recorded, or else as given, or else English; and how its
    texts are split: as given, or else as recorded.

    RAISES (WeaknerError): If the given language or tokenizer differs from the record, or does not exist.
    """
    made = CorpusLanguage.make(*find_language([path], lang, tokenizer))
    known = recorded_language(path) or made
    return made._replace(
        sentences=known.sentences if sentences is None else sentences,
        abbreviations=known.abbreviations if abbreviations is None else abbreviations,
    )


def find_language(
    paths: Iterable[Path], lang: Optional[str] = None, tokenizer: Optional[str] = None
) -> Tuple[str, Optional[str]]:
    """Return the language and the tokenizer of several corpora: as given, or as recorded with one of them, or else
    English and None (its default tokenizer).

    RAISES (WeaknerError): If a record differs from the given values or from another record.
    """
    first: Optional[Path] = None
    for path in paths:
        recorded = recorded_language(path)
        if recorded is None:
            continue
        if first is not None and recorded[:2] != (lang, tokenizer):
            expected = f"the language and tokenizer of {first}. Convert one of the two corpora again"
            raise WeaknerError(Errors.WK005.format(setting="lang", value=f"{recorded} of {path}", expected=expected))
        for setting, given in (("lang", lang), ("tokenizer", tokenizer)):
            known = getattr(recorded, setting)
            if given not in (None, known):
                expected = f"'{known}', which {path} was created with, or no --{setting}"
                raise WeaknerError(Errors.WK005.format(setting=setting, value=repr(given), expected=expected))
        first, (lang, tokenizer) = path, recorded[:2]
    return lang or "en", tokenizer


def record_language(path: Path, language: Optional[CorpusLanguage]) -> None:
    """Record the language of a corpus that was written; None removes an earlier record."""
    record = _record_path(Path(path))
    if language is None:
        record.unlink(missing_ok=True)
    else:
        write_text(record, json.dumps(language._asdict()) + "\n")


def _record_path(path: Path) -> Path:
    return path / RECORD if path.is_dir() or path.suffix != SUFFIX else path.with_suffix(f".{RECORD}")
