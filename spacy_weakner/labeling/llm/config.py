"""The settings of `ask`, and the requests built from them for a text."""

import json
import re
from functools import cached_property
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Union

from pydantic import BaseModel, Field, ValidationError, field_validator, model_validator

from ...corpus.jsonl import parse_line
from ...corpus.sentences import sentence_key
from ...errors import Errors, WeaknerError
from ...files import existing, read_lines, read_object
from ...runtime.hashes import hash_settings, hash_text

TEXT, LABELS = "{{text}}", "{{labels}}"
PROMPT = f"""Find the named entities in a text. They are of these kinds:
{LABELS}

Answer with JSON and nothing else, in the order of the text:
{{"entities": [{{"text": "...", "label": "..."}}]}}
Copy every "text" letter by letter from the text, and list it once even if it stands there several times. If there are
no entities, answer {{"entities": []}}.

Text: {TEXT}"""
_PLACES = re.compile(f"{re.escape(TEXT)}|{re.escape(LABELS)}")
_LIMITS = ("max_tokens", "max_completion_tokens")
# Resuming requires one text and one completion per request.
_FIXED = ("model", "messages", "n", "stream")
_MILLION = 1_000_000
_ROLE_TOKENS = 10  # marks of its role around a message


class Request(NamedTuple):
    """One sample of a text: its key in the file, and the JSON to send."""

    key: str
    text: str
    sample: int
    body: Dict[str, Any]


class AskConfig(BaseModel, extra="forbid", frozen=True):
    """Settings of `ask`. A request is identified by its text, its sample number and all other data sent (prompt,
    labels, model, parameters), except the token limit; the address is not included.

    url (str): Address of the endpoint up to `/chat/completions`: "http://localhost:8000/v1".
    model (str): Name of the model.
    labels (Union[str, Path, Mapping[str, str]]): Comma-separated names; or a JSON or TOML file, or a mapping, with the
        meaning of each label.
    prompt (Optional[Path]): File with `{{text}}` and, to list the labels, `{{labels}}`. It should request quoted
        mentions, like {"entities": [{"text", "label"}]}. None: the built-in prompt.
    samples (int): Completions per text. `label` uses their agreement as a score.
    temperature (Optional[float]): Sampling temperature. None: 0 for one sample, 0.7 for several.
    max_tokens (int): Token limit of a completion. A completion that is cut off there is not used; with a higher limit,
        it is requested again.
    structured (bool): Let the server enforce the form of the completion ("response_format": "json_schema").
    extra (Union[str, Mapping[str, Any], None]): Additional parameters to send, as a JSON object; null removes one.
    key_env (Optional[str]): Environment variable with the API key. The key is never written or shown.
    insecure (bool): Also send the key over http:// to other machines.
    budget (Optional[float]): Maximum cost of all completions in the file, including earlier runs: once it is reached,
        no further request is sent. (Pending requests are still paid for.)
    price_in (Optional[float]): Price of a million request tokens.
    price_out (Optional[float]): Price of a million completion tokens.
    concurrency (int): Number of concurrent requests.
    timeout (float): Seconds after which a request is aborted and sent again.
    retries (int): Maximum number of retries (after 429, 5xx, a lost connection), with increasing pauses.
    """

    url: str
    model: str
    labels: Dict[str, str]
    prompt: Any = Field(None, validate_default=True)
    samples: int = Field(1, ge=1)
    temperature: Optional[float] = Field(None, ge=0, le=10)
    max_tokens: int = Field(1024, ge=1)
    structured: bool = False
    extra: Any = Field(None, validate_default=True)
    key_env: Optional[str] = None
    insecure: bool = False
    budget: Optional[float] = Field(None, ge=0)
    price_in: Optional[float] = Field(None, ge=0)
    price_out: Optional[float] = Field(None, ge=0)
    concurrency: int = Field(4, ge=1, le=256)
    timeout: float = Field(120.0, gt=0, le=86400)
    retries: int = Field(6, ge=0, le=1000)

    @classmethod
    def read(cls, settings: Mapping[str, Any]) -> "AskConfig":
        """Check settings, and read the files that they name."""
        try:
            return cls.model_validate(settings)
        except ValidationError as error:
            first = error.errors()[0]
            cause = first.get("ctx", {}).get("error")
            if isinstance(cause, WeaknerError):
                raise cause from None
            name, value = ".".join(map(str, first["loc"])), None if first["type"] == "missing" else first["input"]
            raise WeaknerError(Errors.WK005.format(setting=name, value=value, expected=first["msg"])) from None

    @field_validator("labels", mode="before")
    @classmethod
    def _read_labels(cls, labels: Union[str, Path, Mapping[str, str]]) -> Dict[str, str]:
        if isinstance(labels, Mapping):
            found: Any = dict(labels)
        elif str(labels).endswith((".json", ".toml")):
            found = read_object(existing(Path(labels)), "the meaning of each label")
        else:
            names = [name.strip() for name in str(labels).split(",")]
            found = {} if len({*names}) < len(names) else dict.fromkeys(names, "")
        if (
            not isinstance(found, dict)
            or not all(isinstance(meaning, str) for meaning in found.values())
            or not all(isinstance(name, str) and name == name.strip() and name.isprintable() for name in found)
            or not 0 < len({name.casefold() for name in found if name}) == len(found)
        ):
            expected = (
                "names separated by commas, like 'PER,LOC', or a .json or .toml file with the meaning of each; no two "
                "names may differ only in case"
            )
            raise WeaknerError(Errors.WK005.format(setting="labels", value=repr(labels), expected=expected))
        return found

    @field_validator("prompt")
    @classmethod
    def _read_prompt(cls, path: Optional[Path]) -> str:
        prompt = PROMPT if path is None else "\n".join(read_lines(Path(path)))
        if TEXT not in prompt:
            expected = f"a file with the placeholder {TEXT} for the text"
            raise WeaknerError(Errors.WK005.format(setting="prompt", value=path, expected=expected))
        return prompt

    @field_validator("extra")
    @classmethod
    def _read_extra(cls, extra: Union[str, Mapping[str, Any], None]) -> Dict[str, Any]:
        try:
            # A mapping is also serialized, since JSON has no NaN.
            found = parse_line(extra if isinstance(extra, str) else json.dumps({} if extra is None else dict(extra)))
        except (TypeError, ValueError, RecursionError):
            found = None
        if not isinstance(found, dict) or any(name in found for name in _FIXED):
            expected = f"a JSON object of further parameters, but none of {', '.join(_FIXED)}"
            raise WeaknerError(Errors.WK005.format(setting="extra", value=repr(str(extra)[:80]), expected=expected))
        return found

    @model_validator(mode="after")
    def _check_together(self) -> "AskConfig":
        if self.samples > 1 and self.body("").get("temperature") == 0:
            expected = f"more than 0, since all {self.samples} samples would be the same"
            raise WeaknerError(Errors.WK005.format(setting="temperature", value=0, expected=expected))
        if self.budget is not None and not self.has_prices:
            expected = "that the prices of a million tokens are also given (--price-in, --price-out)"
            raise WeaknerError(Errors.WK005.format(setting="budget", value=self.budget, expected=expected))
        return self

    @cached_property
    def asked(self) -> str:
        """Identifier of the prompt. It does not depend on the number of samples and the token limit: if either is
        raised, the completions in the file remain valid."""
        settings = {key: value for key, value in self.body(TEXT).items() if key not in _LIMITS}
        # Mentions with other labels are left out of the file.
        are_named = LABELS in self.prompt or "json_schema" in str(settings.get("response_format"))
        unnamed = {} if are_named else {"labels": sorted(self.labels)}
        return hash_settings({**settings, **unnamed})[:8]

    @cached_property
    def limit(self) -> Optional[int]:
        """Maximum number of tokens of a completion; None: unlimited."""
        limits = [value for key, value in self.body(TEXT).items() if key in _LIMITS and type(value) is int]
        return min(limits, default=None)

    @property
    def has_prices(self) -> bool:
        return self.price_in is not None and self.price_out is not None

    def cost(self, tokens_in: float, tokens_out: float) -> float:
        """Return the cost of some tokens; 0 for those without a price."""
        return ((self.price_in or 0.0) * tokens_in + (self.price_out or 0.0) * tokens_out) / _MILLION

    def body(self, text: str) -> Dict[str, Any]:
        """Return the JSON of a request for the entities of a text."""
        labels = "\n".join(
            f"- {label}: {meaning}" if meaning else f"- {label}" for label, meaning in self.labels.items()
        )
        # In a single pass, since the text may contain a placeholder.
        content = _PLACES.sub(lambda place: text if place[0] == TEXT else labels, self.prompt)
        temperature = (0.0 if self.samples == 1 else 0.7) if self.temperature is None else self.temperature
        body: Dict[str, Any] = {
            "model": self.model,
            "messages": [{"role": "user", "content": content}],
            "temperature": temperature,
            "max_tokens": self.max_tokens,
            "response_format": _response_format(list(self.labels)) if self.structured else None,
        }
        return {key: value for key, value in {**body, **self.extra}.items() if value is not None}

    def requests(self, text: str) -> Iterator[Request]:
        """Yield the requests for a text, one per sample."""
        body, same = self.body(text), hash_text(sentence_key(text))
        for sample in range(self.samples):
            key = hash_settings({"asked": self.asked, "text": same, "sample": sample})[:32]
            yield Request(key, text, sample, body)


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text: one per four ASCII characters, and one per other character."""
    ascii_ = sum(map(str.isascii, text))
    return -(-ascii_ // 4) + len(text) - ascii_


def estimate_request_tokens(body: Dict[str, Any]) -> int:
    """Estimate the tokens of a request; see `estimate_tokens`."""
    schema = body.get("response_format")
    content: str = body["messages"][0]["content"]
    return _ROLE_TOKENS + estimate_tokens(content + ("" if schema is None else json.dumps(schema)))


def _response_format(labels: List[str]) -> Dict[str, Any]:
    string = {"type": "string"}
    entity = _object({"text": string, "label": {**string, "enum": labels}})
    schema = _object({"entities": {"type": "array", "items": entity}})
    return {"type": "json_schema", "json_schema": {"name": "entities", "strict": True, "schema": schema}}


def _object(properties: Dict[str, Any]) -> Dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}
