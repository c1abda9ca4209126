"""Pipelines: blank ones to read corpora with, trained ones, and their parts."""

import pkgutil
import re
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, Union

import spacy
import spacy.lang
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import get_lang_class, get_package_path, is_package

from .errors import Errors, WeaknerError, check_choice

# Factories of spacy-llm: "llm", "llm_ner", ...
_LANGUAGE_MODEL = re.compile(r'^\s*factory\s*=\s*"llm(_\w+)?"', re.M)
# How texts are split into sentences, except by a pipeline: by a rule with names and abbreviations, by that of spaCy, at
# line breaks, or not at all.
RULE, NO_SENTENCES = "rule", "none"
SPLITTERS = (RULE, "sentencizer", "lines", NO_SENTENCES)
# spaCy's error codes for an unknown factory or function.
_NOT_REGISTERED = ("[E002]", "[E893]")


def blank_pipeline(lang: str = "en", tokenizer: Optional[str] = None) -> Language:
    """Return a pipeline without components. The tokenizer is a registered one; None is that of the language."""
    config = {"nlp": {"tokenizer": {"@tokenizers": tokenizer_name(lang, tokenizer)}}}
    with _language_errors(lang):
        return spacy.blank(lang, config=config)


def bare_pipeline(nlp: Language) -> Language:
    """Return a pipeline without components that shares vocabulary and tokenizer with another."""
    return type(nlp)(nlp.vocab, create_tokenizer=lambda _: nlp.tokenizer)


def language_tokenizer(lang: str) -> Dict[str, Any]:
    """Return the section [nlp.tokenizer] of a language. No pipeline is created, which can take a tenth of a second."""
    with _language_errors(lang):
        return dict(get_lang_class(lang).default_config["nlp"]["tokenizer"])


def tokenizer_name(lang: str, tokenizer: Optional[str] = None) -> str:
    """Return the registered name of a tokenizer; None is that of the language."""
    default: str = language_tokenizer(lang)["@tokenizers"]
    if tokenizer is not None and not spacy.registry.has("tokenizers", tokenizer):
        check_choice("tokenizer", tokenizer, sorted(spacy.registry.tokenizers.get_all()))
    return tokenizer or default


@contextmanager
def _language_errors(lang: str) -> Iterator[None]:
    try:
        yield
    # Also raised if a language needs a package for its tokenizer, or if another module of spaCy has its name.
    except (ImportError, AttributeError) as error:
        names = {module.name for module in pkgutil.iter_modules(spacy.lang.__path__) if module.ispkg}
        check_choice("lang", lang, sorted(names | {*spacy.registry.languages.get_all()}))
        raise WeaknerError(Errors.WK108.format(what=f"the language '{lang}'", reason=error)) from error


def asks_language_model(pipeline: Union[str, Path, Language]) -> bool:
    """Return True if a pipeline has a component of spacy-llm. A folder or a package is not loaded."""
    if isinstance(pipeline, Language):
        text = "\n".join(f'factory = "{pipeline.get_pipe_meta(name).factory}"' for name in pipeline.component_names)
    else:
        found = _config_of(pipeline)
        text = "" if found is None else found.read_text(encoding="utf-8", errors="replace")
    return _LANGUAGE_MODEL.search(text) is not None


def is_pipeline(name: Union[str, Path]) -> bool:
    """Return True if a name is that of an installed pipeline, or of a pipeline's folder."""
    return _config_of(name) is not None


def _config_of(name: Union[str, Path]) -> Optional[Path]:
    """Return the path of a pipeline's config; None if there is no such pipeline."""
    folder = Path(name)
    if not folder.is_dir() and is_package(str(name)):
        folder = get_package_path(str(name))
    return min(folder.glob("**/config.cfg"), key=lambda path: len(path.parts), default=None)


def default_component(nlp: Language, is_able: Callable[[Any], bool]) -> Optional[Tuple[str, Any]]:
    """Return the component to use if none is named: the last suitable one that writes entities, since a combiner comes
    after the components that it combines; if none writes entities, the last suitable one."""
    found = [(name, pipe) for name, pipe in nlp.pipeline if is_able(pipe)]
    writing = [(name, pipe) for name, pipe in found if getattr(pipe, "annotate_ents", True)]
    return next(reversed(writing or found), None)


def add_sentences(nlp: Language, names: Iterable[str] = (), how: str = RULE, abbreviations: str = "") -> None:
    """Make a pipeline split texts into sentences as corpora are split, since components are trained on sentences.

    names (Iterable[str]): With the rule, no sentence ends inside these names, terms of the pipeline's lists, and
        entities that its heads were trained on.
    how (str): One of `SPLITTERS`, or a pipeline whose component `senter` splits.
    abbreviations (str): Those after which the rule ends no sentence, separated by commas, beside those of the language.
    """
    if how == NO_SENTENCES or any("token.is_sent_start" in nlp.get_pipe_meta(n).assigns for n in nlp.pipe_names):
        return
    if how == "sentencizer":
        nlp.add_pipe(how, first=True)
    elif how in (RULE, "lines"):
        listed = [text.strip() for text in abbreviations.split(",") if text.strip()]
        settings = {"abbreviations": listed, "lines": how == "lines"}
        sentencizer: Any = nlp.add_pipe("name_sentencizer", name="sentencizer", first=True, config=settings)
        known = (name for _, pipe in nlp.pipeline for name in getattr(pipe, "divided_names", ()))
        sentencizer.add_names([*known, *names], nlp)
    elif is_pipeline(how):
        source = load_pipeline(how)
        if "senter" not in source.component_names:
            reason = "it has no component 'senter' that splits sentences"
            raise WeaknerError(Errors.WK353.format(name=how, reason=reason))
        nlp.add_pipe("senter", name="sentencizer", source=source, first=True)
    else:
        check_choice("sentences", how, SPLITTERS)


def run_before(nlp: Language, name: str, docs: List[Doc]) -> List[Doc]:
    """Run the components before another one, which may include encoders that it listens to."""
    names = [other for other, _ in nlp.pipeline]
    before = names[: names.index(name)]
    if not before:
        return docs
    with nlp.select_pipes(enable=before):
        return list(nlp.pipe(docs))


# Parts not needed by a pipeline that only reads Docs.
TOKENIZER = ("tokenizer",)
# A tokenizer for any language, which is created at once.
WORD_TOKENIZER = "spacy_weakner.WordTokenizer.v1"


def load_pipeline(name: Union[str, Path], exclude: Sequence[str] = ()) -> Language:
    """Load a trained pipeline, optionally without some of its parts."""
    try:
        return spacy.load(name, exclude=exclude)
    except WeaknerError:
        raise
    except Exception as error:  # of many kinds, if a file of the pipeline is damaged
        reason = " ".join(str(error).split()) or type(error).__name__
        if any(code in reason for code in _NOT_REGISTERED):
            # The list of registered names is long, and would hide the advice.
            reason = reason.split(" Available names: ")[0].split(" Available factories: ")[0]
            reason = f"{reason} If a file of your own registers it, give the file: --code FILE"
        raise WeaknerError(Errors.WK108.format(what=f"the pipeline '{name}'", reason=reason.rstrip("."))) from error
