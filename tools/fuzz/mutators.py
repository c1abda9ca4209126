"""Seeded damage: what files look like that were cut off, edited by hand, written by other tools, or made to do harm."""

import json
from random import Random
from typing import Any, Callable, List

STRANGE = [
    "\ud800", "\x00", "\u2028", "\x85", "\u202e", "\ufeff", "\x1b[2J", "e\u0301", "😊", "\U000e0001", "ß", "İ", "　",
    "", " ", "\t", "\n", "\r\n", "~nobody/x", "~", "../x", "/dev/null", "${a.b}", "${", "%(a)s", "NaN", "null",
    "a" * 3000,
    "(" * 300, "O", "B-", "I-X", "B-X-Y", "-", "-DOCSTART-",
]  # fmt: skip
NUMBERS = [
    *["1e999", "-0", "1e400", "-1", "0", "4294967296", "18446744073709551616", "0.1", "NaN", "Infinity"],
    "1" * 5000,
]
SIZES = [0, -1, 1, 2**31, 2**63, 2**64, 10**30, 10**400, 1e308, 0.5]
VALUES: List[Any] = [None, True, False, *SIZES, "", "x", [], {}, [[]], [None]]
NESTED = ["[" * 100_000, "{\"a\":" * 50_000, "[" * 500 + "]" * 500]  # fmt: skip


def mutate(random: Random, data: bytes) -> bytes:
    """Damage a file."""
    for _ in range(random.choice([1, 1, 1, 2, 4])):
        data = random.choice(_WAYS)(random, data)
    return data


def mutate_binary(random: Random, data: bytes) -> bytes:
    """Damage a file that is no text."""
    for _ in range(random.choice([1, 1, 2, 8])):
        data = random.choice(_BINARY)(random, data)
    return data


def mutate_json(random: Random, value: Any) -> Any:
    """Change one place in what JSON or msgpack can hold."""
    if isinstance(value, dict) and value and random.random() < 0.85:
        key = random.choice(list(value))
        changed = dict(value)
        way = random.random()
        if way < 0.1:
            del changed[key]
        elif way < 0.2:
            changed[_strange(random, key)] = changed.pop(key)
        else:
            changed[key] = mutate_json(random, value[key])
        return changed
    if isinstance(value, (list, tuple)) and value and random.random() < 0.85:
        changed_list = list(value)
        i = random.randrange(len(value))
        way = random.random()
        if way < 0.1:
            del changed_list[i]
        elif way < 0.2:
            changed_list.insert(i, changed_list[i])
        else:
            changed_list[i] = mutate_json(random, value[i])
        return changed_list
    if isinstance(value, str) and random.random() < 0.5:
        return _strange(random, value)
    if isinstance(value, bytes) and value and random.random() < 0.7:
        return mutate_binary(random, value)
    if type(value) is int and random.random() < 0.5:
        return value + random.choice([-1, 1, 7, -100, 2**32])
    return random.choice(VALUES)


def _strange(random: Random, text: str) -> str:
    i = random.randint(0, len(text))
    strange = random.choice(STRANGE)
    return strange if random.random() < 0.3 else text[:i] + strange + text[i:]


def _truncate(random: Random, data: bytes) -> bytes:
    return data[: random.randint(0, len(data))]


def _flip(random: Random, data: bytes) -> bytes:
    found = bytearray(data)
    for _ in range(random.choice([1, 1, 3, 20]) if found else 0):
        found[random.randrange(len(found))] = random.randrange(256)
    return bytes(found)


def _span(random: Random, data: bytes) -> slice:
    start = random.randint(0, len(data))
    return slice(start, min(len(data), start + random.choice([1, 4, 16, 200])))


def _duplicate(random: Random, data: bytes) -> bytes:
    part = _span(random, data)
    return data[: part.stop] + data[part] * random.choice([1, 2, 50]) + data[part.stop :]


def _delete(random: Random, data: bytes) -> bytes:
    part = _span(random, data)
    return data[: part.start] + data[part.stop :]


def _splice(random: Random, data: bytes) -> bytes:
    i, j = sorted(random.randint(0, len(data)) for _ in range(2))
    return data[:i] + data[j:] + data[i:j]


def _insert(random: Random, data: bytes) -> bytes:
    text = random.choice([*STRANGE, *STRANGE, *NUMBERS, *NESTED])
    escaped = json.dumps(text)[1:-1] if random.random() < 0.5 else text
    i = random.randint(0, len(data))
    return data[:i] + escaped.encode("utf-8", "surrogatepass") + data[i:]


def _number(random: Random, data: bytes) -> bytes:
    places = [i for i, byte in enumerate(data) if chr(byte).isdigit()]
    if not places:
        return data
    i = random.choice(places)
    return data[:i] + random.choice(NUMBERS).encode() + data[i + 1 :]


def _rows(random: Random, data: bytes) -> bytes:
    """Change a row of JSONL, or the whole of a JSON file."""
    try:
        return json.dumps(mutate_json(random, json.loads(data))).encode()
    except (ValueError, RecursionError):
        pass
    lines = data.splitlines()
    if not lines:
        return data
    i = random.randrange(len(lines))
    try:
        lines[i] = json.dumps(mutate_json(random, json.loads(lines[i]))).encode()
    except (ValueError, RecursionError):
        lines[i] = random.choice(lines)
    return b"\n".join(lines)


def _lines(random: Random, data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    random.shuffle(lines)
    return b"".join(lines)


def _words(random: Random, data: bytes) -> bytes:
    """Replace a word, a cell or a value."""
    words = data.split(b" ") if random.random() < 0.5 else data.split(b"\t" if b"\t" in data else b",")
    words[random.randrange(len(words))] = random.choice(STRANGE).encode("utf-8", "surrogatepass")
    return b" ".join(words)


def _encoding(random: Random, data: bytes) -> bytes:
    text = data.decode("utf-8", "replace")
    return text.encode(random.choice(["utf-16", "utf-16-le", "latin-1", "utf-8-sig", "utf-32"]), "replace")


_Way = Callable[[Random, bytes], bytes]
_BINARY: List[_Way] = [_truncate, _flip, _flip, _duplicate, _delete, _splice]
_WAYS: List[_Way] = [*_BINARY, _insert, _insert, _number, _rows, _rows, _rows, _rows, _lines, _words, _encoding]
