"""Headless Chromium, driven by its DevTools protocol over a pipe: clicks, keys, pictures; what went wrong, what was asked for."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit


def program() -> str | None:
    """Chromium where it is installed; scripts/setup --browser does."""
    return next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)


class Chromium:
    """One page in a browser of its own. `problems` are console errors, exceptions and failed requests; `hosts` whom it asked."""

    def __init__(self, profile: Path, *, width: int = 1280, height: int = 800, dark: bool = False) -> None:
        to_browser, ours = os.pipe()
        theirs, from_browser = os.pipe()
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--mute-audio"]
        options += ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-proxy-server"]
        options += [f"--user-data-dir={profile}", f"--window-size={width},{height}", "--remote-debugging-pipe", "about:blank"]
        # Chromium reads from descriptor 3 and writes to 4.
        self._process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{to_browser} 4>&{from_browser}', "chromium", str(program()), *options],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._write, self._read = os.fdopen(ours, "wb", 0), os.fdopen(theirs, "rb", 0)
        self._number = 0
        self._replies: dict[int, dict[str, Any]] = {}
        self._arrived = threading.Condition()
        self._session: str | None = None
        self.problems: list[str] = []
        self.hosts: set[str] = set()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.resize(width, height)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    @property
    def process_id(self) -> int:
        """Of the browser, which starts others."""
        return self._process.pid

    def resize(self, width: int, height: int) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        number = self._number
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        self._write.write(json.dumps(message).encode() + b"\0")
        with self._arrived:
            assert self._arrived.wait_for(lambda: number in self._replies, 60), f"{method}: no answer"
            reply = self._replies.pop(number)
        assert "error" not in reply, (method, reply["error"])
        result: dict[str, Any] = reply["result"]
        return result

    def goto(self, address: str) -> None:
        """Open an address anew, also where only its part behind the # differs."""
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=address)
        self.until("document.readyState === 'complete'")

    def evaluate(self, script: str) -> Any:
        """The value of an expression of JavaScript, awaited where it is a promise."""
        told = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in told, (script, told["exceptionDetails"])
        return told["result"].get("value")

    def until(self, condition: str, seconds: float = 60) -> None:
        """Wait until an expression of JavaScript is true."""
        end = time.monotonic() + seconds
        while not self._is_true(condition):
            assert time.monotonic() < end, f"did not come: {condition}; the page says {self.text()[:600]!r}"
            time.sleep(0.02)

    def _is_true(self, condition: str) -> bool:
        try:
            return bool(self.evaluate(f"!!({condition})"))
        except AssertionError as error:  # asked while the page was changing places
            if "navigated" in str(error) or "context" in str(error):
                return False
            raise

    def text(self) -> str:
        return str(self.evaluate("document.body?.innerText ?? ''"))

    def click(self, selector: str, place: int = 0) -> None:
        """With the mouse, in the middle of an element that is scrolled into sight."""
        found = self.evaluate(
            f"(() => {{ const e = document.querySelectorAll({json.dumps(selector)})[{place}]; if (!e) return null;"
            " e.scrollIntoView({block: 'center'}); const b = e.getBoundingClientRect();"
            " return [b.left + b.width / 2, b.top + b.height / 2]; })()"
        )
        assert found is not None, f"no {selector}"
        self.press(*found)

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def press(self, x: float, y: float) -> None:
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, button="left", clickCount=1)
        self.mouse("mouseReleased", x, y, button="left", clickCount=1)

    def key(self, name: str) -> None:
        text = {"text": "\r" if name == "Enter" else name} if len(name) == 1 or name == "Enter" else {}
        codes = {"Enter": 13, "Tab": 9, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=name, windowsVirtualKeyCode=codes.get(name, 0), **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=name, windowsVirtualKeyCode=codes.get(name, 0))

    def write(self, text: str) -> None:
        self.call("Input.insertText", text=text)

    def upload(self, selector: str, file: Path) -> None:
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.call("DOM.setFileInputFiles", files=[str(file)], nodeId=node)

    def picture(self, file: Path) -> None:
        file.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def close(self) -> None:
        try:
            self._session = None
            self.call("Browser.close")
            self._process.wait(10)
        except (AssertionError, OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        self._listener.join(10)
        self._read.close()
        self._write.close()

    def _listen(self) -> None:
        held = b""
        while chunk := self._read.read(1 << 16):
            *whole, held = (held + chunk).split(b"\0")
            for message in whole:
                self._take(json.loads(message))

    def _take(self, message: dict[str, Any]) -> None:
        if "id" in message:
            with self._arrived:
                self._replies[message["id"]] = message
                self._arrived.notify_all()
            return
        told = message.get("params", {})
        kind = message.get("method")
        if kind == "Runtime.exceptionThrown":
            self.problems.append(str(told["exceptionDetails"].get("exception", {}).get("description", told)))
        elif kind == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning", "assert"):
            self.problems.append(str([part.get("value", part.get("description")) for part in told["args"]]))
        elif kind == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
            self.problems.append(f"{told['entry']['text']} {told['entry'].get('url', '')}")
        elif kind == "Network.requestWillBeSent":
            asked = urlsplit(told["request"]["url"])
            if asked.scheme not in ("about", "data"):
                self.hosts.add(asked.netloc)
