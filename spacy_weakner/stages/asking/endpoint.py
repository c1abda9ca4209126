"""Requests to an endpoint of the OpenAI-compatible form: `POST {url}/chat/completions`."""

import json
import os
import random
import threading
import time
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from typing import Any, Dict, NamedTuple, Optional

import httpx

from ...errors import Errors, WeaknerError, one_line

FIRST_DELAY = 1.0  # seconds
LONGEST_DELAY = 60.0
# Who asks to wait longer is not waited for.
LONGEST_WAIT = 600.0
_LARGEST = 1 << 24  # bytes of an answer
_LONGEST = 200  # letters of what a server says
# The rest of 4xx says that the request itself is wrong.
_PASSING = (408, 409, 425, 429)
# Among them are those that may be about the text: it is too long, or a filter does not like it.
_ABOUT_TEXT = (400, 413, 422)


class Reply(NamedTuple):
    """What came back.

    content (str): The answer; empty if there is none.
    is_cut (bool): Whether it broke off at the limit of tokens.
    tokens_in, tokens_out (Optional[int]): What is paid for; None if the server does not count.
    """

    content: str
    is_cut: bool
    tokens_in: Optional[int]
    tokens_out: Optional[int]


class FailedRequest(Exception):
    """A request that got no answer, however often it was sent; the message says why."""


class RefusedText(FailedRequest):
    """A request that the server refuses for its text: too long, or filtered. It says nothing about the others."""


class RefusedRequest(Exception):
    """A request that the server calls wrong, so that it need not be sent again.

    reason (str): Why.
    is_about_text (bool): Whether others may be right.
    """

    def __init__(self, reason: str, is_about_text: bool = False) -> None:
        super().__init__(reason)
        self.is_about_text = is_about_text


class Stopped(Exception):
    """Nothing more is to be sent."""


class _Passing(Exception):
    """What may go well the next time.

    reason (str): What went wrong.
    wait (Optional[float]): Seconds that the server asks to wait.
    """

    def __init__(self, reason: str, wait: Optional[float] = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.wait = wait


class Endpoint:
    """An endpoint, for several threads.

    url (str): Its address up to `/chat/completions`.
    key (Optional[str]): What is sent as a bearer token; never shown.
    timeout (float): Seconds after which a request without a whole answer is given up.
    retries (int): How often a request is sent again.
    concurrency (int): How many connections there may be.
    insecure (bool): Send a key without TLS to other machines, too.
    RAISES (WeaknerError): For an address that is none, or a key that anybody on the way could read.
    """

    def __init__(
        self, url: str, key: Optional[str], timeout: float, retries: int, concurrency: int, insecure: bool = False
    ) -> None:
        self.timeout = timeout
        self.retries = retries
        self._key = key
        self._url = _full_url(url)
        # A query may hold what is secret.
        self.name = str(self._url.copy_with(query=None))
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        limits = httpx.Limits(max_connections=concurrency, max_keepalive_connections=concurrency)
        # Without TLS there is nothing to verify, and reading all certificates takes long. No redirect is followed.
        with_tls, local = self._url.scheme == "https", _is_local(self._url.host)
        if key is not None and not with_tls and not insecure and not local:
            raise WeaknerError(Errors.WK443.format(host=self._url.host))
        # A proxy of the environment is another machine: it would read what goes to this one without TLS.
        trusted = with_tls or not local
        self._client = httpx.Client(headers=headers, timeout=timeout, limits=limits, verify=with_tls, trust_env=trusted)
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._random = random.Random()
        self._resume = 0.0
        self._reached = False

    def ask(self, body: Dict[str, Any]) -> Reply:
        """Send a request, again and again where that may help: after 429, 5xx, a lost connection, no answer in time,
        and what is no answer at all.

        body (Dict[str, Any]): What to send.
        RETURNS (Reply): What came back.
        RAISES (FailedRequest): If it got no answer.
        RAISES (Stopped): If it was stopped before it was sent again.
        RAISES (RefusedRequest): If the server refuses it.
        RAISES (WeaknerError): If the server was never reached.
        """
        delay = FIRST_DELAY
        for attempt in range(self.retries + 1):
            self._pause(self._resume - time.monotonic())
            try:
                reply = self._send(body)
                self._reached = True
                return reply
            except _Passing as error:
                if attempt == self.retries:
                    raise FailedRequest(error.reason) from None
                if error.wait is not None and error.wait > LONGEST_WAIT:
                    reason = f"{error.reason} (asks to wait for {error.wait:.0f} seconds)"
                    raise RefusedRequest(reason) from None
                # Jitter, so that the threads do not all come back at once.
                wait = delay * self._random.uniform(0.5, 1.0)
                if error.wait is not None:
                    # The limit is that of the key, not of this request.
                    with self._lock:
                        self._resume = max(self._resume, time.monotonic() + error.wait)
                self._pause(wait)
                delay = min(2 * delay, LONGEST_DELAY)
        raise AssertionError

    def stop(self) -> None:
        """Send nothing more, nor again."""
        self._stopped.set()

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def _pause(self, seconds: float) -> None:
        if self._stopped.wait(max(0.0, seconds)):
            raise Stopped

    def _send(self, body: Dict[str, Any]) -> Reply:
        deadline = time.monotonic() + self.timeout
        data = bytearray()
        try:
            with self._client.stream("POST", self._url, json=body) as response:
                for chunk in response.iter_bytes():
                    data += chunk
                    # The client's own limit is that of silence, and not of the whole.
                    if time.monotonic() > deadline:
                        raise _Passing(f"no whole answer within {self.timeout:g} seconds")
                    if len(data) > _LARGEST:
                        raise _Passing("an answer without end")
        except httpx.TimeoutException:
            raise _Passing(f"no answer within {self.timeout:g} seconds") from None
        except httpx.ConnectError as error:
            if not self._reached:
                raise WeaknerError(Errors.WK764.format(url=self.name, reason=self._shown(str(error)))) from None
            raise _Passing(self._shown(str(error))) from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise _Passing(self._shown(str(error)) or type(error).__name__) from None
        self._reached = True
        if response.status_code == 200:
            return _read_reply(data)
        reason = f"{response.status_code} {self._shown(_message(data) or response.reason_phrase)}".strip()
        if response.status_code >= 500 or response.status_code in _PASSING:
            raise _Passing(reason, _seconds(response.headers.get("Retry-After")))
        raise RefusedRequest(reason, response.status_code in _ABOUT_TEXT)

    def _shown(self, text: str) -> str:
        """What a server or a library says, on one line, without the key."""
        return _said(text if self._key is None else text.replace(self._key, "***"))


def read_key(name: Optional[str]) -> Optional[str]:
    """Read a key.

    name (Optional[str]): The environment variable that holds it; None: there is none.
    RETURNS (Optional[str]): The key.
    RAISES (WeaknerError): If the variable is not set, or holds what can be no key; it is not shown.
    """
    if name is None:
        return None
    key = os.environ.get(name, "").strip()
    if not key:
        raise WeaknerError(Errors.WK766.format(name=name, reason="is not set"))
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise WeaknerError(Errors.WK766.format(name=name, reason="holds what can be no key"))
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
        # Not shown: it may hold a password.
        raise WeaknerError(Errors.WK767)
    path = parsed.path.rstrip("/")
    return parsed.copy_with(path=path if path.endswith("/chat/completions") else f"{path}/chat/completions")


def _read_reply(data: bytearray) -> Reply:
    try:
        row = json.loads(data)
        choice = row["choices"][0]
        content = choice["message"].get("content")
        usage = row.get("usage") or {}
        counts = [usage.get(key) for key in ("prompt_tokens", "completion_tokens")]
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        raise _Passing(f"no answer of the expected form: {_said(data[:_LONGEST].decode('utf-8', 'replace'))}") from None
    if isinstance(content, list):  # of parts
        content = "".join(part["text"] for part in content if isinstance(part, dict) and _is_text(part.get("text")))
    # Half a surrogate pair, which JSON can spell, has no place in a file.
    text = content.encode("utf-8", "replace").decode("utf-8") if _is_text(content) else ""
    tokens_in, tokens_out = (count if type(count) is int and 0 <= count < 1 << 40 else None for count in counts)
    return Reply(text, choice.get("finish_reason") == "length", tokens_in, tokens_out)


def _said(text: str) -> str:
    return one_line(" ".join(text.split()), _LONGEST)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _message(data: bytearray) -> str:
    """What the server says about an error: the message within JSON, or the text as it is."""
    text = data[:10_000].decode("utf-8", "replace")
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return text
    for key in ("error", "message", "detail"):
        value = value.get(key, value) if isinstance(value, dict) else value
    return value if isinstance(value, str) else text


def _seconds(value: Optional[str]) -> Optional[float]:
    """Seconds to wait, which a server gives as such or as a date."""
    if value is None:
        return None
    try:
        return max(0.0, float(value)) if value.strip().replace(".", "", 1).isdigit() else _until(value)
    except (ValueError, TypeError, OverflowError):
        return None


def _until(value: str) -> float:
    moment = parsedate_to_datetime(value)
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=timezone.utc)
    return max(0.0, (moment - datetime.now(timezone.utc)).total_seconds())
