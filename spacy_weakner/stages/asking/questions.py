"""What is asked: the prompt with its labels, and the body of a request."""

import json
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Dict, Iterator, Mapping, NamedTuple, Optional, Union

from ...annotations.jsonl import parse_value
from ...annotations.sentences import sentence_key
from ...errors import Errors, WeaknerError, check_range
from ...files import existing, read_lines, read_object
from ..runtime.hashes import hash_settings, hash_text

TEXT, LABELS = "{{text}}", "{{labels}}"
PROMPT = f"""Find the named entities in a text. They are of these kinds:
{LABELS}

Answer with JSON and nothing else, in the order of the text:
{{"entities": [{{"text": "...", "label": "..."}}]}}
Copy every "text" letter by letter from the text, and list it once even if it stands there several times. If there are
no entities, answer {{"entities": []}}.

Text: {TEXT}"""
_LIMITS = ("max_tokens", "max_completion_tokens")
# What more than one text, answer or attempt would hang on.
_FIXED = ("model", "messages", "n", "stream")
_SAMPLING = 0.7
_PLACES = re.compile(f"{re.escape(TEXT)}|{re.escape(LABELS)}")


class Request(NamedTuple):
    """One request.

    key (str): Tells it from all others.
    text (str): The text that it is about.
    sample (int): Number of the sample, from 0.
    body (Dict[str, Any]): What is sent.
    """

    key: str
    text: str
    sample: int
    body: Dict[str, Any]


@dataclass(frozen=True)
class Question:
    """What is asked about every text.

    model (str): Name of the model.
    labels (Dict[str, str]): The labels with what they mean, which may be empty.
    prompt (str): The prompt, with places for the text and perhaps the labels.
    samples (int): How often each text is asked.
    temperature (float): How much the samples differ.
    max_tokens (int): How long an answer may be. What breaks off there counts as no answer.
    structured (bool): Whether the server is to enforce the form of the answer.
    extra (Dict[str, Any]): What else the body holds; null removes what it would hold.
    """

    model: str
    labels: Dict[str, str]
    prompt: str
    samples: int
    temperature: float
    max_tokens: int
    structured: bool
    extra: Dict[str, Any]

    @cached_property
    def asked(self) -> str:
        """RETURNS (str): Tells it from other questions. The number of samples and the length of answers do not count:
        with more of either, answers that are there stay."""
        return hash_settings({key: value for key, value in self.body(TEXT).items() if key not in _LIMITS})[:8]

    @cached_property
    def limit(self) -> Optional[int]:
        """RETURNS (Optional[int]): How many tokens an answer has at most; None: nothing limits it."""
        limits = [value for key, value in self.body(TEXT).items() if key in _LIMITS and type(value) is int]
        return min(limits, default=None)

    def body(self, text: str) -> Dict[str, Any]:
        """The body of a request.

        text (str): The text.
        RETURNS (Dict[str, Any]): What JSON can hold.
        """
        listed = "\n".join(
            f"- {label}: {meaning}" if meaning else f"- {label}" for label, meaning in self.labels.items()
        )
        # In one go: the text may hold what looks like a place.
        content = _PLACES.sub(lambda found: text if found[0] == TEXT else listed, self.prompt)
        body: Dict[str, Any] = {
            "model": self.model,
            "messages": [{"role": "user", "content": content}],
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
        }
        if self.structured:
            body["response_format"] = _response_format(list(self.labels))
        return {key: value for key, value in {**body, **self.extra}.items() if value is not None}

    def requests(self, text: str) -> Iterator[Request]:
        """The requests of a text.

        text (str): The text.
        YIELDS (Request): One per sample.
        """
        body, asked, same = self.body(text), self.asked, hash_text(sentence_key(text))
        for sample in range(self.samples):
            key = hash_settings({"asked": asked, "text": same, "sample": sample})[:32]
            yield Request(key, text, sample, body)


def make_question(
    model: str,
    labels: Union[str, Path, Mapping[str, str]],
    prompt: Optional[Path],
    samples: int,
    temperature: Optional[float],
    max_tokens: int,
    structured: bool,
    extra: Union[str, Mapping[str, Any], None],
) -> Question:
    """Check and put together what is asked; see `ask`.

    RETURNS (Question): The question.
    RAISES (WeaknerError): For unusable settings.
    """
    check_range("samples", samples, 1, None)
    check_range("max_tokens", max_tokens, 1, None)
    if temperature is None:
        temperature = 0.0 if samples == 1 else _SAMPLING
    check_range("temperature", temperature, 0, 10)
    parameters = _parameters(extra)
    if samples > 1 and parameters.get("temperature", temperature) == 0:
        raise WeaknerError(Errors.WK774.format(samples=samples))
    return Question(
        model=model,
        labels=read_labels(labels),
        prompt=read_prompt(prompt),
        samples=samples,
        temperature=float(temperature),
        max_tokens=max_tokens,
        structured=structured,
        extra=parameters,
    )


def _parameters(extra: Union[str, Mapping[str, Any], None]) -> Dict[str, Any]:
    try:
        # Through JSON in any case, which knows no NaN.
        text = extra if isinstance(extra, str) else json.dumps({} if extra is None else dict(extra))
        found = parse_value(text)
    except (TypeError, ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or any(name in found for name in _FIXED):
        shown = str(extra)[:80]
        raise WeaknerError(Errors.WK771.format(value=repr(shown), names=", ".join(_FIXED)))
    return found


def read_prompt(path: Optional[Path]) -> str:
    """Read a prompt.

    path (Optional[Path]): A text file; None: the one that is built in.
    RETURNS (str): The prompt.
    RAISES (WeaknerError): If it has no place for the text.
    """
    if path is None:
        return PROMPT
    prompt = "\n".join(read_lines(path))
    if TEXT not in prompt:
        raise WeaknerError(Errors.WK761.format(path=path, place=TEXT))
    return prompt


def read_labels(labels: Union[str, Path, Mapping[str, str]]) -> Dict[str, str]:
    """Read the labels to ask for.

    labels (Union[str, Path, Mapping[str, str]]): Names with commas between them; or a JSON or TOML file, or a mapping,
        that says what each label means.
    RETURNS (Dict[str, str]): What each label means; empty where that is not said.
    RAISES (WeaknerError): If there are none, two differ in case alone, or the file is malformed.
    """
    if isinstance(labels, Mapping):
        found: Any = dict(labels)
    elif str(labels).endswith((".json", ".toml")):
        found = read_object(existing(Path(labels)), Errors.WK763)
    else:
        names = [name.strip() for name in str(labels).split(",")]
        found = dict.fromkeys(names, "")
        if len(found) < len(names):
            raise WeaknerError(Errors.WK762.format(labels=labels))
    words = [*found, *found.values()] if isinstance(found, dict) else [None]
    if not found or not all(isinstance(word, str) for word in words) or not all(_is_label(label) for label in found):
        raise WeaknerError(Errors.WK762.format(labels=labels))
    if len({label.casefold() for label in found}) < len(found):
        raise WeaknerError(Errors.WK762.format(labels=labels))
    return dict(found)


def _is_label(label: str) -> bool:
    return bool(label) and label == label.strip() and label.isprintable()


def _response_format(labels: Any) -> Dict[str, Any]:
    entity = {
        "type": "object",
        "properties": {"text": {"type": "string"}, "label": {"type": "string", "enum": labels}},
        "required": ["text", "label"],
        "additionalProperties": False,
    }
    schema = {
        "type": "object",
        "properties": {"entities": {"type": "array", "items": entity}},
        "required": ["entities"],
        "additionalProperties": False,
    }
    return {"type": "json_schema", "json_schema": {"name": "entities", "strict": True, "schema": schema}}
