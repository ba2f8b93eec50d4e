"""The small cloud for tests: one that they share, one that a test may kill, and the plain wire to it."""

from __future__ import annotations

import http.client
import json
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from project.agents.deployment.process import CloudProcess
from project.dev.engines import child

__all__ = ["Wire", "new_key", "own", "shared", "until", "wire"]


class Wire:
    """What goes over the wire, without the client: (status, body), or None where the connection closed without an answer."""

    def __init__(self, process: CloudProcess, service: str) -> None:
        self.process, self.service = process, service

    def __call__(self, method: str, path: str, body: Any = None, key: str | None = None) -> Any:
        connection = http.client.HTTPConnection(self.process.address.removeprefix("http://"), timeout=30)
        headers = {} if key is None else {"Idempotency-Key": key}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        except http.client.RemoteDisconnected:
            return None
        finally:
            connection.close()

    def get(self, path: str) -> Any:
        status, body = self("GET", path)
        assert status == 200, body
        return body

    def done(self, path: str, body: Any = None, key: str | None = None) -> Any:
        status, answer = self("POST", path, body or {}, key)
        assert status == 200, answer
        return answer

    def window(self, opens: float = 0, minutes: float = 5, key: str | None = None) -> Any:
        return self.done("/windows", self.for_window(opens, minutes), key)

    def for_window(self, opens: float = 0, minutes: float = 5) -> dict[str, Any]:
        return {"service": self.service, "seconds_until_open": opens, "minutes": minutes}

    def canary(self, version: str, window: str, key: str | None = None) -> Any:
        return self.done("/deployments", {"service": self.service, "version": version, "window": window}, key)

    def ledger(self) -> Any:
        return self.get(f"/ledger?service={self.service}")

    def version(self) -> Any:
        return self.get(f"/services/{self.service}")["version"]

    def events(self, type: str) -> list[Any]:
        found = [event for event in self.get("/events?after=0") if event["type"] == type]
        return [event for event in found if event["payload"]["service"] == self.service]

    def faults(self, **switches: Any) -> Any:
        status, body = self("PUT", "/faults", switches)
        assert status == 200, body
        return body

    def operation(self, key: str) -> Any:
        return self("GET", f"/operations/{quote(key, safe='')}")


def new_key() -> str:
    """As Outlast makes its operation ids: with slashes."""
    return f"{uuid.uuid4()}/canary/1"


def until(condition: Callable[[], Any]) -> Any:
    pause = threading.Event()
    for _ in range(3000):
        if found := condition():
            return found
        pause.wait(0.01)
    raise AssertionError("it did not come within 30 seconds")


def process_at(folder: Path) -> CloudProcess:
    return CloudProcess(folder / "cloud.db", seed=7, wrapper=child("--signal", "9", "--"))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CloudProcess]:
    with process_at(tmp_path_factory.mktemp("cloud")) as process:
        yield process


@pytest.fixture
def wire(shared: CloudProcess) -> Iterator[Wire]:
    """The cloud that these tests share, with a service of the test's own and no faults."""
    wire = Wire(shared, f"shop-{uuid.uuid4().hex[:8]}")
    wire.faults(seed=7)
    yield wire
    wire.faults()


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Wire]:
    """A cloud that this test may kill."""
    with process_at(tmp_path) as process:
        yield Wire(process, "shop")
