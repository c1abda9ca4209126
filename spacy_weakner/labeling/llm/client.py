"""Requests to an OpenAI-compatible endpoint: `POST {url}/chat/completions`."""

import os
import re
import threading
import time
from email.utils import parsedate_to_datetime
from enum import Enum
from ipaddress import ip_address
from typing import Any, Dict, NamedTuple, Optional

import httpx
from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from ...errors import Errors, WeaknerError, one_line
from .config import AskConfig

BACKOFF = 1.0  # seconds
_MAX_BACKOFF = 60.0
_MAX_RETRY_AFTER = 600.0
_MAX_SHOWN = 200
# All other 4xx codes mean that the request itself is invalid,
_TRANSIENT = (408, 409, 425, 429)
# and these that the text may be the cause: too long, or filtered.
_ABOUT_TEXT = (400, 413, 422)


class Completion(NamedTuple):
    """The response of the model; tokens are None if the server does not count them."""

    content: str
    is_cut: bool
    tokens_in: Optional[int]
    tokens_out: Optional[int]


class Scope(Enum):
    """The scope of a failure: this attempt; the text (too long, or filtered); or all further requests."""

    ATTEMPT, TEXT, ALL = "attempt", "text", "all"


class FailedRequest(Exception):
    """A request without a completion. `retry_after` is the number of seconds that the server asked to wait."""

    def __init__(self, reason: str, scope: Scope = Scope.ATTEMPT, retry_after: float = 0.0) -> None:
        super().__init__(reason)
        self.scope = scope
        self.retry_after = retry_after


class Client:
    """A client for several threads. It does not send the key unencrypted, except to this machine."""

    def __init__(self, config: AskConfig) -> None:
        self._key = _read_key(config.key_env)
        self._url = _full_url(config.url)
        # A query may contain a secret.
        self.name = str(self._url.copy_with(query=None))
        is_encrypted, is_local = self._url.scheme == "https", _is_local(self._url.host)
        if self._key is not None and not (is_encrypted or is_local or config.insecure):
            raise WeaknerError(Errors.WK443.format(host=self._url.host))
        self._client = httpx.Client(
            headers={} if self._key is None else {"Authorization": f"Bearer {self._key}"},
            timeout=config.timeout,
            limits=httpx.Limits(max_connections=config.concurrency),
            verify=is_encrypted,  # loading the certificates takes long
            # A proxy is another machine, which could read the key.
            trust_env=is_encrypted or not is_local,
        )
        self._backoff = wait_random_exponential(multiplier=BACKOFF, min=BACKOFF / 2, max=_MAX_BACKOFF)
        self._retrying = Retrying(
            retry=retry_if_exception(lambda error: getattr(error, "scope", None) is Scope.ATTEMPT),
            stop=stop_after_attempt(config.retries + 1),
            wait=self._wait,
            sleep=self._sleep,
            reraise=True,
        )
        self._stopped = threading.Event()
        self._reached = False

    def complete(self, body: Dict[str, Any]) -> Completion:
        """Send a request, with retries after 429, 5xx, lost connections, timeouts and malformed responses.

        RAISES (FailedRequest): If there is no completion.
        RAISES (WeaknerError): If the server was never reached.
        """
        return self._retrying(self._send, body)

    def stop(self) -> None:
        """Stop all retries."""
        self._stopped.set()

    def close(self) -> None:
        self._client.close()

    def _wait(self, state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome is not None else None
        return max(self._backoff(state), getattr(error, "retry_after", 0.0))

    def _sleep(self, seconds: float) -> None:
        if self._stopped.wait(seconds):
            raise FailedRequest("stopped", Scope.ALL)

    def _send(self, body: Dict[str, Any]) -> Completion:
        try:
            response = self._client.post(self._url, json=body)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            reason = self._shown(str(error)) or type(error).__name__
            if isinstance(error, httpx.ConnectError) and not self._reached:
                cure = "Check the address (--url), and whether the server is running"
                raise WeaknerError(Errors.WK764.format(where=self.name, reason=reason, cure=cure)) from None
            raise FailedRequest(reason) from None
        self._reached = True
        if response.status_code == 200:
            try:
                return _read_completion(response.json())
            except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
                raise FailedRequest(f"not a completion: {self._shown(response.text)}") from None
        reason = f"{response.status_code} {self._shown(_message(response) or response.reason_phrase)}".strip()
        if response.status_code in _ABOUT_TEXT:
            raise FailedRequest(reason, Scope.TEXT)
        wait = _retry_after(response.headers.get("Retry-After", ""))
        if response.status_code < 500 and response.status_code not in _TRANSIENT:
            raise FailedRequest(reason, Scope.ALL)
        if wait > _MAX_RETRY_AFTER:
            raise FailedRequest(f"{reason} (the server requests a wait of {wait:.0f} seconds)", Scope.ALL)
        raise FailedRequest(reason, retry_after=wait)

    def _shown(self, text: str) -> str:
        """Return a text from the server on one line, without the key."""
        text = text if self._key is None else text.replace(self._key, "***")
        return one_line(" ".join(text.split()), _MAX_SHOWN)


def _read_key(name: Optional[str]) -> Optional[str]:
    if name is None:
        return None
    key = os.environ.get(name, "").strip()
    if not re.fullmatch("[!-~]+", key):
        raise WeaknerError(
            Errors.WK766.format(name=name, reason="has characters that no key can have" if key else "is not set")
        )
    return key


def _is_local(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _full_url(url: str) -> httpx.URL:
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, TypeError, ValueError):
        parsed = httpx.URL("")
    if parsed.scheme not in ("http", "https") or not parsed.host or parsed.userinfo:
        # Not shown: the URL may contain a password.
        raise WeaknerError(Errors.WK767)
    return parsed.copy_with(path=parsed.path.rstrip("/").removesuffix("/chat/completions") + "/chat/completions")


def _read_completion(value: Any) -> Completion:
    choice, usage = value["choices"][0], value.get("usage") or {}
    content = choice["message"].get("content")
    if isinstance(content, list):  # a list of parts
        content = "".join(part["text"] for part in content if part.get("type") == "text")
    # JSON can represent half of a surrogate pair, UTF-8 cannot.
    text = content.encode("utf-8", "replace").decode("utf-8") if isinstance(content, str) else ""
    tokens = (usage.get("prompt_tokens"), usage.get("completion_tokens"))
    tokens_in, tokens_out = (n if type(n) is int and 0 <= n < 1 << 40 else None for n in tokens)
    return Completion(text, choice.get("finish_reason") == "length", tokens_in, tokens_out)


def _message(response: httpx.Response) -> str:
    """Return the message of an error: from its JSON, or else the text as it is."""
    try:
        value = response.json()
    except (ValueError, RecursionError):
        return response.text
    for key in ("error", "message", "detail"):
        value = value.get(key, value) if isinstance(value, dict) else value
    return value if isinstance(value, str) else response.text


def _retry_after(value: str) -> float:
    """Return seconds from a number or an HTTP date; 0 for anything else."""
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?", value.strip()):
        return float(value)
    try:
        return parsedate_to_datetime(value).timestamp() - time.time()
    except (ValueError, TypeError, OverflowError):
        return 0.0
