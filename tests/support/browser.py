"""A headless Chromium, driven through its debugging pipe: no driver program, no library. It talks to this machine only."""

from __future__ import annotations

import base64
import fcntl
import itertools
import json
import os
import select
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
)
SECONDS = 60
#: CSS pixels of a page that a picture shows at most.
TALLEST = 6000

#: Where the pictures of a run lie; git ignores the folder.
SHOTS = Path(__file__).resolve().parents[2] / ".outlast" / "screenshots"

KEYS = {
    "Tab": {"key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9},
    "Enter": {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"},
    "Space": {"key": " ", "code": "Space", "windowsVirtualKeyCode": 32, "text": " "},
}


def find() -> str | None:
    """The browser of this machine, if it has one."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Page:
    """One tab."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._out, self._in = to_browser, from_browser
        self._numbers = itertools.count(1)
        self._buffer = b""
        self._session = ""
        self._loads = 0
        self.complaints: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send one command and wait for its answer."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return dict(answer["result"])

    def goto(self, url: str) -> None:
        """Load a page, and wait until it is there."""
        before = self._loads
        self.call("Page.navigate", url=url)
        self._until_loaded(before)

    def do(self, script: str, *, waits: bool = False) -> Any:
        """The value of a JavaScript expression in the page; with `waits`, what its promise becomes. It works under any content policy."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=waits)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def press(self, name: str, *, loads: bool = False) -> None:
        """Press a key; with `loads`, wait for the page that it leads to."""
        before = self._loads
        self.call("Input.dispatchKeyEvent", type="keyDown", **KEYS[name])
        self.call("Input.dispatchKeyEvent", type="keyUp", **{k: v for k, v in KEYS[name].items() if k != "text"})
        if loads:
            self._until_loaded(before)

    def type(self, text: str) -> None:
        """Type a text where the focus is."""
        self.call("Input.insertText", text=text)

    def tab_to(self, selector: str, most: int = 80) -> list[str]:
        """Press Tab until the element has the focus; the names of what was passed on the way."""
        passed: list[str] = []
        for _ in range(most):
            self.press("Tab")
            if self.do(f"document.activeElement.matches({selector!r})"):
                return passed
            passed.append(
                self.do("document.activeElement.innerText || document.activeElement.name || document.activeElement.tagName")
            )
        raise AssertionError(f"{selector} is not reachable by Tab; passed: {passed}")

    def tap(self, selector: str, *, loads: bool = True) -> None:
        """Touch an element in its middle, and wait for the page that it leads to."""
        before = self._loads
        x, y = self._middle(selector)
        self.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
        if loads:
            self._until_loaded(before)

    def click(self, selector: str, *, loads: bool = True) -> None:
        """Press the mouse on an element, in its middle, and wait for the page that it leads to."""
        before = self._loads
        x, y = self._middle(selector)
        for event in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=event, x=x, y=y, button="left", clickCount=1)
        if loads:
            self._until_loaded(before)

    def _middle(self, selector: str) -> tuple[float, float]:
        """Where to hit an element; it must be there to be hit, and nothing may lie over it."""
        at = self.do(
            f"(() => {{ const e = document.querySelector({selector!r}); if (!e) return null;"
            " e.scrollIntoView({block: 'center', behavior: 'instant'}); const b = e.getBoundingClientRect();"
            " const [x, y] = [b.x + b.width / 2, b.y + b.height / 2]; const hit = document.elementFromPoint(x, y);"
            " return [x, y, e === hit || e.contains(hit), hit ? hit.outerHTML.slice(0, 200) : '']; })()"
        )
        assert at is not None, f"nothing on the page is {selector}"
        x, y, free, over = at
        assert free, f"{over} lies over {selector}"
        return x, y

    def accessible(self) -> list[dict[str, Any]]:
        """What a screen reader is told, in order: `role`, `name`, and the other properties of each thing that is not ignored."""
        nodes = self.call("Accessibility.getFullAXTree")["nodes"]
        return [
            {
                "role": node["role"]["value"],
                "name": node.get("name", {}).get("value", ""),
                **{one["name"]: one["value"].get("value") for one in node.get("properties", ())},
            }
            for node in nodes
            if not node["ignored"]
        ]

    def visit_as(self, address: str, cookie: str, value: str) -> None:
        """Carry this cookie to that address, instead of any other."""
        self.call("Network.clearBrowserCookies")
        self.call("Network.setCookie", name=cookie, value=value, url=address)

    def screen(self, width: int, height: int, *, phone: bool = False) -> None:
        """The size of the window; `phone` also switches touch on."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=2 if phone else 1, mobile=phone
        )
        self.call("Emulation.setTouchEmulationEnabled", enabled=phone)

    def dark(self, *, on: bool) -> None:
        """What the system prefers; the page has taken its new colours when this returns."""
        wanted = {"name": "prefers-color-scheme", "value": "dark" if on else "light"}
        self.call("Emulation.setEmulatedMedia", features=[wanted])
        self.settle()

    def settle(self) -> None:
        """Wait until nothing fades any more, and what was set is drawn."""
        self.do(
            "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
            ".then(() => Promise.allSettled(document.getAnimations().map(one => one.finished))).then(() => 0)",
            waits=True,
        )

    def shoot(self, name: str) -> Path:
        """A picture of the whole page, top to bottom, kept among the run's pictures."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], TALLEST), "scale": 1}
        picture = self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)["data"]
        SHOTS.mkdir(parents=True, exist_ok=True)
        path = SHOTS / f"{name}.png"
        path.write_bytes(base64.b64decode(picture))
        return path

    def _until_loaded(self, before: int) -> None:
        while self._loads == before:
            self._next()

    def _next(self) -> dict[str, Any]:
        """The next message; events are taken note of on the way."""
        ends = time.monotonic() + SECONDS
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(0.0, ends - time.monotonic()))
            assert ready, f"the browser has been silent for {SECONDS} seconds"
            read = os.read(self._in, 1 << 16)
            assert read, "the browser has gone"
            self._buffer += read
        raw, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(raw)
        match message.get("method"):
            case "Page.loadEventFired":
                self._loads += 1
            case "Log.entryAdded":
                entry = message["params"]["entry"]
                if entry["level"] == "error" and not entry.get("url", "").endswith("/favicon.ico"):
                    self.complaints.append(f"{entry['source']}: {entry['text']} ({entry.get('url', '')})")
            case "Runtime.exceptionThrown":
                self.complaints.append(str(message["params"]["exceptionDetails"].get("text")))
        return message


@contextmanager
def page(folder: Path) -> Iterator[Page]:
    """A fresh browser with one tab and a profile in `folder`; it is gone afterwards, with all its processes."""
    program = find()
    assert program is not None, "no browser on this machine"
    browser_reads, we_write = os.pipe()
    we_read, browser_writes = os.pipe()
    reads, writes = (fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, 10) for number in (browser_reads, browser_writes))
    nothing = os.open(os.devnull, os.O_RDWR)
    pid = os.posix_spawn(
        program,
        [program, *FLAGS, f"--user-data-dir={folder / 'profile'}", "about:blank"],
        {**os.environ, "HOME": str(folder)},
        file_actions=[
            *((os.POSIX_SPAWN_DUP2, nothing, number) for number in (0, 1, 2)),
            (os.POSIX_SPAWN_DUP2, reads, 3),
            (os.POSIX_SPAWN_DUP2, writes, 4),
        ],
        setsid=True,
    )
    for number in (browser_reads, browser_writes, reads, writes, nothing):
        os.close(number)
    try:
        yield Page(we_write, we_read)
    finally:
        os.close(we_write)
        os.close(we_read)
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
