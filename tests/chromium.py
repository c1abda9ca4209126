"""A headless Chromium, driven through a pipe."""

import base64
import json
import os
import select
import shutil
import subprocess
from itertools import count

import pytest

CODES = {"ArrowLeft": 37, "ArrowRight": 39, "Enter": 13, "Delete": 46, "Home": 36, "End": 35, "PageUp": 33}
CODES |= {"PageDown": 34, "Tab": 9, "Escape": 27}
SHIFT, CONTROL = 8, 2
PATIENCE = 60  # seconds


def find_chromium():
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Page:
    """A page of a new browser profile, whose downloads go to a folder."""

    def __init__(self, folder, width=1000, height=800):
        chromium = find_chromium()
        if chromium is None:
            pytest.skip("needs Chromium")
        self.downloads = folder / "downloads"
        to_browser, self._commands = os.pipe()
        answers, from_browser = os.pipe()
        script = f'exec "$0" "$@" 3<&{to_browser} 4>&{from_browser}'
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe"]
        flags += [f"--user-data-dir={folder / 'profile'}", f"--window-size={width},{height}", "about:blank"]
        self._process = subprocess.Popen(
            ["bash", "-c", script, chromium, *flags],
            pass_fds=(to_browser, from_browser),
            stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._answers = os.fdopen(answers, "rb")
        self._numbers = count(1)
        self._buffer = b""
        self._events = []
        self._session, self._context = {}, {}
        self._size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.forget()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()
        self._answers.close()
        os.close(self._commands)

    def forget(self):
        """Go on in an empty page of a new profile, which has stored nothing."""
        self._session, old = {}, self._context
        self._context = {"browserContextId": self.call("Target.createBrowserContext")["browserContextId"]}
        target = self.call("Target.createTarget", url="about:blank", **self._context)["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        folder = {"downloadPath": str(self.downloads), "eventsEnabled": True}
        self.call("Browser.setDownloadBehavior", behavior="allow", **folder, **self._context)
        if old:
            self.call("Target.disposeBrowserContext", **old)
        self._session = {"sessionId": attached["sessionId"]}
        for domain in ("Page", "Runtime"):
            self.call(f"{domain}.enable")
        self.call("Page.setLifecycleEventsEnabled", enabled=True)
        self.call("Emulation.setDeviceMetricsOverride", **self._size)
        self._events.clear()

    def call(self, method, **params):
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params, **self._session}
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            found = self._read()
            if found.get("id") == number:
                assert "error" not in found, (method, found["error"])
                return found["result"]
            self._events.append(found)

    def wait(self, method, **params):
        """Return the next event of a kind whose parameters have some values."""

        def fits(event):
            return event.get("method") == method and params.items() <= event["params"].items()

        while not any(map(fits, self._events)):
            self._events.append(self._read())
        found = next(filter(fits, self._events))
        self._events.remove(found)
        return found["params"]

    def _read(self):
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._answers], [], [], PATIENCE)
            more = os.read(self._answers.fileno(), 1 << 16) if ready else b""
            assert more, "Chromium does not answer"
            self._buffer += more
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def open(self, path):
        """Open a page, and wait until it is seen: Chromium drops keys that are pressed before."""
        loader = self.call("Page.navigate", url=path.as_uri())["loaderId"]
        for name in ("load", "firstPaint"):
            self.wait("Page.lifecycleEvent", loaderId=loader, name=name)

    def run(self, script):
        """Return the value of a script."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def text(self, name):
        return self.run(f"document.getElementById({name!r}).innerText")

    def errors(self):
        """Return all exceptions and messages of the console so far."""
        self.run("0")
        kinds = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Page.javascriptDialogOpening")
        return [event for event in self._events if event.get("method") in kinds]

    def press(self, *keys, modifiers=0, place="", repeats=0):
        """Press keys one after the other; each is held down as long as it takes to repeat that often."""
        for key in keys:
            text = {"Enter": "\r"}.get(key, key if len(key) == 1 and modifiers != CONTROL else "")
            code = CODES.get(key, ord(key[0].upper()))
            about = {"key": key, "windowsVirtualKeyCode": code, "modifiers": modifiers, "code": place}
            self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **about)
            for _ in range(repeats):
                self.call("Input.dispatchKeyEvent", type="keyDown", text=text, autoRepeat=True, **about)
            self.call("Input.dispatchKeyEvent", type="keyUp", **about)

    def insert(self, text):
        self.call("Input.insertText", text=text)

    def center(self, selector):
        script = "(({left, right, top, bottom}) => [(left + right) / 2, (top + bottom) / 2])"
        return self.run(f"{script}(document.querySelector({selector!r}).getBoundingClientRect())")

    def drag(self, start, end):
        """Press the mouse on an element, and release it on another one (or on the same: a click)."""
        (x, y), (to_x, to_y) = self.center(start), self.center(end)
        about = {"button": "left", "clickCount": 1}
        self.call("Input.dispatchMouseEvent", type="mousePressed", x=x, y=y, **about)
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=to_x, y=to_y, button="left", buttons=1)
        self.call("Input.dispatchMouseEvent", type="mouseReleased", x=to_x, y=to_y, **about)

    def click(self, selector):
        self.drag(selector, selector)

    def download(self, press):
        """Return the file that an action downloads."""
        press()
        name = self.wait("Browser.downloadWillBegin")["suggestedFilename"]
        self.wait("Browser.downloadProgress", state="completed")
        return self.downloads / name

    def picture(self, path):
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))
