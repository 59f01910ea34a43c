"""Headless Chromium, driven by its DevTools protocol over a pair of pipes: no driver program and no package."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
)
_LAUNCH = (
    sys.executable,
    "-ISc",
    "import os, sys; os.dup2(int(sys.argv[1]), 100); os.dup2(int(sys.argv[2]), 101); "
    "os.dup2(100, 3); os.dup2(101, 4); os.execv(sys.argv[3], sys.argv[3:])",
)
"""Starts a program with a pair of pipes under the numbers 3 and 4, where the browser looks for them."""
_SECONDS = 60.0
_STARTS = 3


def find_chromium() -> str | None:
    """Return the program, or None where there is none."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


def open_page(program: str, profiles: Path) -> Page:
    """Return a page of a browser that answers; on a busy machine one sometimes dies while it starts."""
    for attempt in range(_STARTS):
        try:
            return Page(program, profiles / str(attempt)).__enter__()
        except (AssertionError, BrokenPipeError):
            if attempt == _STARTS - 1:
                raise
    raise AssertionError("unreachable")


class Page:
    """One page of one browser; ``requests`` and ``complaints`` collect what it loads and what it says on its console."""

    def __init__(self, program: str, profile: Path) -> None:
        read_mine, write_theirs = os.pipe()
        read_theirs, write_mine = os.pipe()
        self._process = subprocess.Popen(
            [*_LAUNCH, str(read_theirs), str(write_theirs), program, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(read_theirs, write_theirs),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(read_theirs)
        os.close(write_theirs)
        self._read, self._write, self._rest, self._number, self._session = read_mine, write_mine, b"", 0, ""
        self.requests: list[str] = []
        self.complaints: list[str] = []

    def __enter__(self) -> Page:
        try:
            target = self.call("Target.createTarget", url="about:blank")["targetId"]
            self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                self.call(f"{domain}.enable")
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        os.close(self._write)  # the browser ends with its pipe
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._read)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Return the answer to one command."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            found = self._next()
            if found.get("id") == self._number:
                assert "error" not in found, found["error"]
                result: dict[str, Any] = found["result"]
                return result

    def _next(self) -> dict[str, Any]:
        end = time.monotonic() + _SECONDS
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._read], [], [], max(0.0, end - time.monotonic()))
            data = os.read(self._read, 1 << 20) if ready else b""
            assert data, "the browser does not answer"
            self._rest += data
        text, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.loads(text)
        self._note(found.get("method", ""), found.get("params", {}))
        return found

    def _note(self, event: str, params: dict[str, Any]) -> None:
        if event == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif event == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(params["exceptionDetails"])[:2000])
        elif event == "Runtime.consoleAPICalled":
            self.complaints.append(json.dumps(params["args"])[:2000])
        elif event == "Log.entryAdded":
            self.complaints.append(params["entry"]["text"])

    def size(self, width: int, height: int) -> None:
        """Give the window a size."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def media(self, kind: str = "", *, scheme: str = "light") -> None:
        """Say what the page is shown on: ``print`` or a screen, and which colours its reader prefers."""
        self.call("Emulation.setEmulatedMedia", media=kind, features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, address: str) -> None:
        """Load a page and wait until it has drawn itself."""
        self.call("Page.navigate", url=address)
        self.wait("document.documentElement?.dataset.ready === 'yes'")

    def go(self, place: str) -> None:
        """Go to a place within the page, and wait until it is drawn."""
        self.run(f"location.hash = {json.dumps(place)}; new Promise(done => setTimeout(done, 60))")

    def run(self, script: str) -> Any:
        """Return the value of an expression, of a promise what it comes to."""
        found = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait(self, condition: str) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + _SECONDS
        while not self.run(condition):
            assert time.monotonic() < end, f"never: {condition}"
            time.sleep(0.02)

    def press(self, key: str, text: str = "") -> None:
        """Press one key."""
        name = {"/": "Slash"}.get(key, key)
        codes = {"ArrowDown": 40, "ArrowRight": 39, "Enter": 13, "Escape": 27}
        more = {"windowsVirtualKeyCode": codes[key]} if key in codes else {}
        typed = text or ("\r" if key == "Enter" else "")
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, code=name, **more, **({"text": typed} if typed else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, code=name, **more)

    def type(self, text: str) -> None:
        """Type into whatever has the focus."""
        self.call("Input.insertText", text=text)

    def screenshot(self, path: Path) -> None:
        """Write what the window shows as PNG."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))
