import json
import os
import socket
import subprocess
import sys
import threading
import time
from email.utils import formatdate

import pytest

from spacy_weakner.errors import WeaknerError
from spacy_weakner.labeling.llm.ask import ask
from spacy_weakner.labeling.llm.client import Client
from spacy_weakner.labeling.llm.config import AskConfig
from spacy_weakner.runtime.lock import locked

from .conftest import rows
from .server import asked_text, find_names, reply

pytestmark = pytest.mark.slow

KEY = "sk-very-secret-1234567890"


# What is asked


def test_every_text_is_asked_once(server, run):
    report, found = run(["Anna met Bob", "Paris rocks", "anna  met bob", "Paris rocks", ""])
    assert sorted(server.texts) == ["Anna met Bob", "Paris rocks"]
    assert (report.texts, report.duplicates, report.requests, report.answered, report.left) == (2, 2, 2, 2, 0)
    assert {row["text"]: row["ents"] for row in found} == {
        "Anna met Bob": [{"text": "Anna", "label": "PER"}, {"text": "Bob", "label": "PER"}],
        "Paris rocks": [{"text": "Paris", "label": "LOC"}],
    }
    assert report.counts.mentions == {"PER": 2, "LOC": 1}
    assert {row["asked"] for row in found} == {report.asked} and len({row["key"] for row in found}) == 2


def test_nothing_is_asked_again_unless_the_prompt_is_another(server, run, tmp_path):
    run()
    assert run()[0].answered == 0 and run()[0].left == 0
    assert len(server.bodies) == 3
    assert run(max_tokens=7)[0].answered == 0
    (tmp_path / "prompt.txt").write_text("Mark {{labels}} in Text: {{text}}")
    (tmp_path / "labels.json").write_text('{"PER": "people", "LOC": "places"}')
    others = [{"model": "large"}, {"temperature": 0.5}, {"labels": "PER"}, {"labels": str(tmp_path / "labels.json")}]
    others += [{"prompt": tmp_path / "prompt.txt"}, {"structured": True}, {"extra": '{"seed": 1}'}]
    for other in others:
        assert run(**other)[0].answered == 3, other
    assert len(run()[1]) == 3 + 3 * len(others)
    assert server.bodies[12]["messages"][0]["content"].count("- PER: people") == 1


def test_other_labels_of_a_prompt_that_names_none_are_asked_for(run, tmp_path):
    (tmp_path / "prompt.txt").write_text("Mark names in Text: {{text}}")
    for labels in ("PER", "PER,LOC"):
        for answered in (3, 0):
            assert run(prompt=tmp_path / "prompt.txt", labels=labels)[0].answered == answered


def test_what_is_sent(server, run, monkeypatch, tmp_path):
    monkeypatch.setenv("MY_KEY", KEY)
    run(["see {{labels}}"], structured=True, key_env="MY_KEY", extra={"max_tokens": None, "max_completion_tokens": 9})
    (body,) = server.bodies
    assert asked_text(body) == "see {{labels}}"
    assert body["model"] == "small" and body["temperature"] == 0 and "max_tokens" not in body
    schema = body["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["entities"]["items"]["properties"]["label"]["enum"] == ["PER", "LOC"]
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert KEY not in (tmp_path / "answers.jsonl").read_text()


# What comes back


def test_answers_that_cannot_be_read(server, run):
    said = {"a": None, "b": "I refuse.", "c": '[["Rex", "PER"], ["c", "DOG"]]', "d": "\ud83d \u2028 []"}
    server.answer = lambda body, number: reply(said[asked_text(body)], tokens=None)
    report, found = run(list(said))
    assert {row["text"]: row["ents"] for row in found} == {
        "a": None,
        "b": None,
        "c": [{"text": "Rex", "label": "PER"}],
        "d": [],
    }
    counts = report.counts
    assert (counts.rows, counts.unparsed, counts.not_found, counts.lost, counts.others) == (
        4,
        2,
        1,
        ["Rex"],
        {"DOG": 1},
    )
    assert counts.estimated == 4 and all(row["tokens_in"] > 50 for row in found)


def test_what_broke_off_is_asked_for_again_with_a_higher_limit(server, run):
    server.answer = lambda body, number: reply("[]", reason="length" if body["max_tokens"] < 50 else "stop")
    report, found = run(["a"], max_tokens=20)
    assert found[0]["ents"] is None and found[0]["cut"] == 20 and report.counts.cut == 1
    assert run(["a"], max_tokens=20)[0].answered == 0
    assert [row["ents"] for row in run(["a"], max_tokens=60)[1]] == [None, []]
    assert run(["a"], max_tokens=20)[0].answered == 0


@pytest.mark.parametrize(
    "trouble",
    [
        (429, {}, b'{"error": {"message": "slow down"}}'),
        (500, {}, b"<html>"),
        (200, {}, b'{"choices": []}'),
        (200, {"Content-Length": "100"}, b"{"),
        "slow",
    ],
)
def test_what_may_go_well_the_next_time_is_sent_again(server, run, trouble):
    if trouble == "slow":
        server.answer = lambda body, number: time.sleep(0.8 if number < 2 else 0) or reply("[]")
    else:
        server.answer = lambda body, number: trouble if number < 2 else reply("[]")
    report, found = run(["a"], timeout=0.3)
    assert report.answered == 1 and len(server.bodies) == 3 and len(found) == 1


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_a_server_says_how_long_to_wait(server, run, form):
    def answer(body, number):
        # Dates have whole seconds.
        wait = "0.4" if form == "seconds" else formatdate(time.time() + 1.4, usegmt=True)
        return (429, {"Retry-After": wait}, b"") if number == 0 else reply("[]")

    server.answer = answer
    assert run(["a", "b"], concurrency=1)[0].answered == 2
    assert server.times[1] - server.times[0] >= 0.39
    server.answer = lambda body, number: (429, {"Retry-After": "4000"}, b"quota")
    with pytest.raises(WeaknerError, match=r"429 quota \(the server requests a wait of 4000 seconds\)"):
        run(["c"])


def test_what_is_refused_ends_the_run_with_one_line(server, run, monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY)
    says = {"error": {"message": f"Bad key {KEY}\n\u2028\x1b[31m" + "x" * 1000}}
    server.answer = lambda body, number: (401, {}, json.dumps(says).encode())
    with pytest.raises(WeaknerError) as caught:
        run([f"text {i}" for i in range(30)], key_env="MY_KEY", concurrency=2)
    message = str(caught.value)
    assert (
        "WK765" in message
        and "'text " in message
        and "401 Bad key *** \\x1b[31mxxx" in message
        and message.isprintable()
    )
    assert len(message) < 500 and KEY not in message
    assert len(server.bodies) <= 2


@pytest.mark.parametrize("status, refused", [(400, "a"), (413, "bcdefghij"), (422, "j")])
def test_texts_that_are_refused_do_not_end_a_run(server, run, status, refused):
    """Filtered, or too long: whether one is the first, or nothing else is left to resume."""
    server.answer = lambda body, number: (status, {}, b"no") if asked_text(body) in refused else reply("[]")
    if len(refused) > 5:
        run(["a"])
    for answered in (10 - len(refused) - (len(refused) > 5), 0):
        report, _ = run("abcdefghij", concurrency=1)
        assert (report.answered, report.failed, report.left) == (answered, len(refused), len(refused))
        assert report.failure == f"{status} no, about '{refused[-1]}'"


def test_a_key_is_not_sent_in_the_clear(monkeypatch):
    monkeypatch.setenv("MY_KEY", "secret")

    def connect(url, **options):
        Client(AskConfig.read({"url": url, "model": "m", "labels": "A", **options})).close()

    for url in ("http://localhost:8000/v1", "http://127.0.0.1:8000", "http://[::1]:8000/v1", "https://example.com/v1"):
        connect(url, key_env="MY_KEY")
    for url in ("http://example.com/v1", "http://10.0.0.1/v1", "http://localhost.example.com/v1"):
        connect(url)
        connect(url, key_env="MY_KEY", insecure=True)
        with pytest.raises(WeaknerError, match=r"WK443.*--insecure"):
            connect(url, key_env="MY_KEY")


def test_what_goes_to_this_machine_passes_no_proxy(server, run, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.setenv("MY_KEY", KEY)
    server.answer = lambda body, number: reply("[]")
    assert run(["a"], key_env="MY_KEY", retries=0)[0].answered == 1


@pytest.mark.parametrize("status", [400, 503])
def test_a_run_ends_where_nothing_is_answered(server, run, status):
    server.answer = lambda body, number: (status, {}, b"down")
    with pytest.raises(WeaknerError, match=f"WK769.*{status} down"):
        run([f"text {n}" for n in range(20)], concurrency=1, retries=0)
    assert len(server.bodies) == 5
    with pytest.raises(WeaknerError, match=f"WK769.*{status} down"):
        run(["a"], retries=0)


def test_a_server_that_is_not_there(run):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        with pytest.raises(WeaknerError, match=r"WK764.*refused"):
            run(url=f"http://127.0.0.1:{free.getsockname()[1]}/v1")


# What it costs


def test_dry_run(server, run, tmp_path):
    report, _ = run(["a" * 40, "b", "b"], dry_run=True, price_in=2.0, price_out=10.0, samples=2, max_tokens=50)
    assert not server.bodies and not (tmp_path / "answers.jsonl").exists()
    assert (report.requests, report.left, report.duplicates) == (4, 4, 1)
    assert report.cost == pytest.approx((report.tokens_in * 2 + report.tokens_out * 10) / 1e6)
    # Half of the texts' tokens, and ten around them.
    assert report.tokens_out == 2 * (10 + 5) + 2 * 10
    labels = ",".join(f"LABEL{n}" for n in range(99))  # longer than the name of a file can be
    assert run(["b"], dry_run=True, labels=labels)[0].left == 1
    run(["b"], samples=2)
    report, _ = run(["a" * 40, "b"], dry_run=True, samples=2)
    assert report.left == 2 and report.tokens_out == 2 * 10 and report.cost is None


def test_a_run_ends_when_the_budget_is_spent(server, run):
    texts = [f"text {i:03d}" for i in range(40)]
    options = {"price_in": 1000.0, "price_out": 1000.0, "concurrency": 2}
    # Every request costs (100 + 10) tokens; one more can be under way.
    report, found = run(texts, budget=2.0, **options)
    assert report.is_spent and report.spent == pytest.approx(len(found) * 0.11) and 2.0 <= report.spent <= 2.0 + 0.22
    assert report.left == 40 - len(found) and len(server.bodies) == len(found) and report.budget_left == 0
    report, found = run(texts, budget=2.0, **options)
    assert report.answered == 0 and report.is_spent
    report, _ = run(texts, budget=50.0, **options)
    assert report.left == 0 and report.budget_left == pytest.approx(50.0 - report.spent) and not report.is_spent
    assert sorted(server.texts) == texts


# The file


def test_a_torn_row_is_cut_off(server, run, tmp_path):
    path = tmp_path / "answers.jsonl"
    run()
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    for cut in (1, 9, 30, len(lines[2]) - 2):
        path.write_bytes(b"".join(lines[:2]) + lines[2][:cut])
        assert run(dry_run=True)[0].torn == cut
        report, found = run()
        assert (report.torn, report.answered, len(found)) == (cut, 1, 3)
    path.write_bytes(whole[:-1])
    assert run()[0].answered == 0 and path.read_bytes() == whole


# A row of `ask` that somebody has changed.
ROW = '{"key": "00", "asked": "%s", "text": "a", "ents": [{"text": 7}]}\n'


@pytest.mark.parametrize("content", ['{"text": "a", "ents": []}\n', "some text", '{"key": 7}\n', "[]\n", ROW])
def test_files_of_others_stay_as_they_are(server, run, tmp_path, content):
    content = content.replace("%s", run(dry_run=True)[0].asked)
    (tmp_path / "answers.jsonl").write_text(content)
    with pytest.raises(WeaknerError, match="line 1"):
        run()
    assert (tmp_path / "answers.jsonl").read_text() == content and not server.bodies


def test_a_row_that_cannot_be_written_leaves_nothing(server, run, tmp_path, monkeypatch):
    run(["a"])
    whole = (tmp_path / "answers.jsonl").read_bytes()

    def write(file_, data):
        file_.write(data[:20])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("spacy_weakner.labeling.llm.cache._write", write)
        with pytest.raises(OSError, match=r"No space left on device: .*answers\.jsonl"):
            run(["a", "b"])
    assert (tmp_path / "answers.jsonl").read_bytes() == whole
    assert run(["a", "b"])[0].answered == 1


def test_two_runs_at_once_are_refused(run, tmp_path, monkeypatch):
    closed = []
    monkeypatch.setattr(Client, "close", lambda self: closed.append(self._client.close()))
    with locked(tmp_path / "answers.jsonl"):
        with pytest.raises(WeaknerError, match="WK787"):
            run()
        assert len(closed) == 1  # connections are given back here, too
        run(dry_run=True)
    assert run()[0].answered == 3


@pytest.mark.slow
def test_a_killed_run_goes_on(server, run, tmp_path, without_torch):
    texts = [f"text {i:02d}" for i in range(12)]
    (tmp_path / "in.txt").write_text("".join(f"{text}\n" for text in texts))
    held = threading.Event()
    answered = []

    def answer(body, number):
        if number >= 5:  # these are on their way when the process dies
            held.wait(60)
        answered.append(asked_text(body))
        return reply(find_names(asked_text(body)))

    server.answer = answer
    options = [
        "--url",
        server.url,
        "--model",
        "small",
        "--labels",
        "PER,LOC",
        "--sentences",
        "none",
        "--concurrency",
        "3",
    ]
    command = [sys.executable, "-m", "spacy_weakner", "ask", tmp_path / "in.txt", tmp_path / "answers.jsonl", *options]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 60
        while len(rows(tmp_path)) < 5 and time.monotonic() < deadline:
            time.sleep(0.02)
        process.kill()
    kept = [row["text"] for row in rows(tmp_path)]
    assert sorted(kept) == sorted(answered) and len(kept) == 5
    before = len(server.bodies)
    server.answer = lambda body, number: reply("[]")
    report, found = run(texts)
    held.set()
    assert report.answered == 7 and sorted(row["text"] for row in found) == texts
    assert sorted([*kept, *server.texts[before:]]) == texts


# What cannot be used


@pytest.mark.parametrize(
    "options, message",
    [
        ({"labels": "PER,per"}, "WK005.*'labels'"),
        ({"labels": "none.json"}, "WK100"),
        ({"samples": 2, "temperature": 0.0}, "WK005.*'temperature'"),
        ({"budget": 1.0}, "WK005.*'budget'"),
        ({"budget": 1.0, "price_in": 1.0}, "WK005.*'budget'"),
        ({"extra": '{"n": 2}'}, "WK005.*'extra'"),
        ({"extra": '{"top_p": NaN}'}, "WK005.*'extra'"),
        ({"key_env": "NOT_THERE"}, "NOT_THERE.*is not set"),
        ({"url": "localhost:8000"}, "WK767"),
        ({"url": "http://user:secret@localhost/v1"}, "WK767"),
        ({"limit": 0}, "limit"),
    ],
)
def test_unusable_settings(server, run, tmp_path, options, message):
    with pytest.raises(WeaknerError, match=message) as caught:
        run(**options)
    assert "\n" not in str(caught.value) and "secret" not in str(caught.value)
    assert not server.bodies and not (tmp_path / "answers.jsonl").exists()


def test_unusable_files(server, run, tmp_path):
    (tmp_path / "prompt.txt").write_text("no place")
    with pytest.raises(WeaknerError, match=r"WK005.*\{\{text\}\}"):
        run(prompt=tmp_path / "prompt.txt")
    with pytest.raises(WeaknerError, match="WK101"):
        run([])
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(WeaknerError, match="WK786"):
        ask(tmp_path / "pipe", tmp_path / "answers.jsonl", url=server.url, model="m", labels="PER")
    with pytest.raises(WeaknerError, match="WK305"):
        ask(tmp_path / "in.txt", tmp_path / "answers.jsonl.gz", url=server.url, model="m", labels="PER")
    (tmp_path / "in.jsonl").write_text('{"text": "a"}\n')
    with pytest.raises(WeaknerError, match="WK304"):
        ask(tmp_path / "in.jsonl", tmp_path / "in.jsonl", url=server.url, model="m", labels="PER")
