"""A language model that says what a test wants, behind a real HTTP server."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

NAMES = {"Anna": "PER", "Bob": "PER", "Paris": "LOC"}


def reply(content, tokens=(100, 10), reason="stop"):
    """What a server says to a request."""
    choice = {"message": {"role": "assistant", "content": content}, "finish_reason": reason}
    usage = None if tokens is None else dict(zip(("prompt_tokens", "completion_tokens"), tokens, strict=True))
    return {"choices": [choice], "usage": usage}


def find_names(text):
    """An answer without mistakes."""
    found = [{"text": name, "label": label} for name, label in NAMES.items() if name in text]
    return json.dumps({"entities": found})


def asked_text(body):
    return body["messages"][0]["content"].rpartition("Text: ")[2]


class Server:
    """`answer(body, number)` returns JSON, or status, headers and bytes; `bodies` and `headers` are of requests."""

    def __init__(self):
        self.answer = lambda body, number: reply(find_names(asked_text(body)))
        self.bodies, self.headers, self.times = [], [], []
        self._lock = threading.Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with server._lock:
                    number = len(server.bodies)
                    server.bodies.append(body)
                    server.headers.append(dict(self.headers))
                    server.times.append(time.monotonic())
                said = server.answer(body, number) if self.path == "/v1/chat/completions" else (404, {}, b"no")
                status, headers, data = said if isinstance(said, tuple) else (200, {}, json.dumps(said).encode())
                try:
                    self.send_response(status)
                    for name, value in {"Content-Length": str(len(data)), **headers}.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(data)
                except OSError:  # who asked is gone
                    self.close_connection = True

            def log_message(self, *_):
                pass

        class Quiet(ThreadingHTTPServer):
            daemon_threads = True
            block_on_close = False

            def handle_error(self, *_):
                pass

        self._server = Quiet(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def texts(self):
        return [asked_text(body) for body in self.bodies]

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr("spacy_weakner.labeling.llm.client.BACKOFF", 0.01)
    running = Server()
    yield running
    running.close()
