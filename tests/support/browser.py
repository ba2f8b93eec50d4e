"""A headless Chromium for tests: what a person does with a page, on top of the browser agent's pipe. It talks to this machine only."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from project.agents.browser.pipe import Tab, find, running

__all__ = ["SHOTS", "Page", "find", "page"]

#: CSS pixels of a page that a picture shows at most.
TALLEST = 6000

#: Where the pictures of a run lie; git ignores the folder.
SHOTS = Path(__file__).resolve().parents[2] / ".outlast" / "screenshots"

KEYS = {
    "Tab": {"key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9},
    "Enter": {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"},
    "Space": {"key": " ", "code": "Space", "windowsVirtualKeyCode": 32, "text": " "},
}


class Page(Tab):
    """One tab."""

    domains = (*Tab.domains, "Log")

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self.complaints: list[str] = []
        super().__init__(to_browser, from_browser)

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

    def noted(self, message: dict[str, Any]) -> None:
        match message["method"]:
            case "Log.entryAdded":
                entry = message["params"]["entry"]
                if entry["level"] == "error" and not entry.get("url", "").endswith("/favicon.ico"):
                    self.complaints.append(f"{entry['source']}: {entry['text']} ({entry.get('url', '')})")
            case "Runtime.exceptionThrown":
                self.complaints.append(str(message["params"]["exceptionDetails"].get("text")))


@contextmanager
def page(folder: Path) -> Iterator[Page]:
    """A fresh browser with one tab and a profile in `folder`; it is gone afterwards, with all its processes."""
    with running(folder, "--no-sandbox") as ends:
        yield Page(*ends)
