"""The small cloud as a process: what it has answered outlives a kill, and what it has not answered can be asked for."""

from __future__ import annotations

import http.client
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.support.cloud import *  # noqa: F403 - fixtures are found by their names
from tests.support.cloud import Wire, new_key


def test_everything_that_was_answered_survives_a_kill(own: Wire) -> None:
    key = new_key()
    window = own.window(key=key)
    canary = own.canary("2.0", window["id"])["id"]
    own("PUT", "/health/shop", {"healthy": False})
    ledger, events = own.get("/ledger"), own.get("/events?after=0")
    address = own.process.address
    own.process.kill()
    own.process.start()
    assert own.process.address == address
    assert (own.get("/ledger"), own.get("/events?after=0")) == (ledger, events)
    assert own.window(key=key) == window
    assert own.get("/health/shop") == {"healthy": False}
    own.done(f"/deployments/{canary}/promote")
    assert own.version() == "2.0"


def test_killed_in_the_middle_of_many_requests_that_are_then_all_repeated(own: Wire) -> None:
    keys = [f"{new_key()}/{number}" for number in range(200)]
    answered: dict[str, Any] = {}
    lock = threading.Lock()

    def one(key: str) -> None:
        try:
            found = own("POST", "/windows", own.for_window(), key)
        except (OSError, http.client.HTTPException):
            return
        with lock:
            if found is not None:
                answered[key] = found[1]
            if len(answered) >= 20 and own.process.running:
                own.process.kill()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(one, keys))
    assert 20 <= len(answered) < len(keys)
    own.process.start()
    for key, window in answered.items():
        assert own.operation(key) == (200, {"state": "happened", "resource": window["id"], "response": window})
    assert {key: own.window(key=key) for key in keys}.items() >= answered.items()
    assert own.ledger()["summary"]["applied"] == dict.fromkeys(keys, 1)


def test_it_ends_when_told(own: Wire) -> None:
    own.window()
    assert own.process.stop() == 0
    own.process.start()
    assert len(own.get("/ledger")["effects"]) == 1
