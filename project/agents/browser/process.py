"""The town hall's site as a child process: for tests, and for whoever wants to try the agent."""

from __future__ import annotations

import json
import select
import subprocess
import sys
import urllib.request
from collections.abc import Sequence
from typing import Any, Self

PATIENCE = 30.0


class SiteProcess:
    """Runs inside the `with` block. `wrapper` is put before the command, such as a program that ties it to the life of this process."""

    def __init__(self, *options: str, wrapper: Sequence[str] = ()) -> None:
        self.command = [*wrapper, sys.executable, "-m", f"{__package__}.site", *options]
        self.address = ""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], PATIENCE)
        line = self._process.stdout.readline() if ready else b""
        if not line:
            self.__exit__()
            raise RuntimeError("the site did not start")
        self.address = json.loads(line)["address"]
        return self

    def __exit__(self, *error: object) -> None:
        with self._process as process:  # waits, and closes the pipe
            process.kill()

    def control(self, **orders: Any) -> dict[str, Any]:
        """Let something happen at the site: `expire=True`, `layout=2`, `check=["D-1", "accepted"]`, `lose=1`. Its ledger after that."""
        return dict(ask(f"{self.address}/control", orders))

    def ledger(self) -> dict[str, Any]:
        """What was really done there."""
        return dict(ask(f"{self.address}/control/ledger"))

    def events(self, after: int = 0) -> list[dict[str, Any]]:
        return events(self.address, after)


def events(site: str, after: int) -> list[dict[str, Any]]:
    """What the site has to say since then, oldest first."""
    return list(ask(f"{site}/events?after={after}"))


def ask(url: str, body: Any = None) -> Any:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    request = urllib.request.Request(url, None if body is None else json.dumps(body).encode())  # noqa: S310 - our own address
    with opener.open(request, timeout=PATIENCE) as response:
        return json.loads(response.read())
