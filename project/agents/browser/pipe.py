"""A headless Chromium, driven through its debugging pipe: no driver program, no library.

The pipe is held by this process alone: when it closes, however this process ended, the browser ends too, with all that it started.
"""

from __future__ import annotations

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
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
)
#: How long the browser may be silent.
SECONDS = 60
#: Of a path under which the browser can make its socket: the system bounds that one's to 107 bytes.
SHORT = 60


class BrowserFault(Exception):
    """The browser has gone, is silent, or cannot do what it was told."""


def find() -> str | None:
    """The browser of this machine, if it has one."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Tab:
    """One tab, and the messages to it and from it."""

    #: What the tab is told of.
    domains: tuple[str, ...] = ("Page", "Runtime", "Network")

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._out, self._in = to_browser, from_browser
        self._numbers = itertools.count(1)
        self._buffer = b""
        self._session = ""
        self._loads = 0
        #: The tab's own frame; those inside it have other ids.
        self.frame: str = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=self.frame, flatten=True)["sessionId"]
        for domain in self.domains:
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send one command and wait for its answer.

        Raises:
            BrowserFault: there is none, or it is an error.
        """
        number = self.tell(method, **params)
        while True:
            answer = self._next()
            if answer.get("id") == number:
                if "error" in answer:
                    raise BrowserFault(f"{method}: {answer['error']}")
                return dict(answer["result"])

    def tell(self, method: str, **params: Any) -> int:
        """Send one command, whose answer nobody waits for; its number.

        Raises:
            BrowserFault: the browser has gone.
        """
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        try:
            os.write(self._out, json.dumps(message).encode() + b"\0")
        except BrokenPipeError:
            raise BrowserFault("the browser has gone") from None
        return number

    def goto(self, url: str) -> None:
        """Load a page, and wait until it is there."""
        before = self._loads
        self.call("Page.navigate", url=url)
        self._until_loaded(before)

    def do(self, script: str, *, waits: bool = False) -> Any:
        """The value of a JavaScript expression in the page; with `waits`, what its promise becomes. It works under any content policy."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=waits)
        if "exceptionDetails" in answer:
            raise BrowserFault(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def noted(self, message: dict[str, Any]) -> None:
        """An event that came, of the domains that are on."""

    def _until_loaded(self, before: int) -> None:
        while self._loads == before:
            self._next()

    def _next(self) -> dict[str, Any]:
        """The next message; events are taken note of on the way."""
        ends = time.monotonic() + SECONDS
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(0.0, ends - time.monotonic()))
            if not ready:
                raise BrowserFault(f"the browser has been silent for {SECONDS} seconds")
            read = os.read(self._in, 1 << 16)
            if not read:
                raise BrowserFault("the browser has gone")
            self._buffer += read
        raw, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(raw)
        if message.get("method") == "Page.loadEventFired":
            self._loads += 1
        if "method" in message:
            self.noted(message)
        return message


@contextmanager
def running(folder: Path, *flags: str) -> Iterator[tuple[int, int]]:
    """A fresh browser with a profile in `folder`: the two ends of its pipe, to it and from it. Afterwards it is gone, with all its processes.

    It gets none of this process's environment but the path: what it shows was made by others.
    """
    program = find()
    if program is None:
        raise BrowserFault("no browser on this machine")
    browser_reads, we_write = os.pipe()
    we_read, browser_writes = os.pipe()
    reads, writes = (fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, 10) for number in (browser_reads, browser_writes))
    nothing = os.open(os.devnull, os.O_RDWR)
    environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(folder), "LC_ALL": "C.UTF-8"}
    if len(os.fsencode(folder)) <= SHORT:
        environment["TMPDIR"] = str(folder)  # what it leaves there goes with the folder
    pid = os.posix_spawn(
        program,
        [program, *FLAGS, *flags, f"--user-data-dir={folder / 'profile'}", "about:blank"],
        environment,
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
        yield we_write, we_read
    finally:
        os.close(we_write)
        os.close(we_read)
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
