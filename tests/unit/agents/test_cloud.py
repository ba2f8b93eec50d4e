"""The small cloud over plain HTTP: legal moves only, each key once, and a feed whose events stay the same."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from project.agents.deployment.ledger import Ledger
from tests.support.cloud import *  # noqa: F403 - fixtures are found by their names
from tests.support.cloud import Wire, new_key, until

TOGETHER = 20


def test_the_whole_way(wire: Wire) -> None:
    window = wire.window(key="w")
    canary = wire.canary("2.0", window["id"], key="c")
    assert (canary["stage"], wire.version()) == ("canary", None)
    assert wire.ledger()["summary"]["canaries"] == [canary["id"]]
    assert wire.done(f"/deployments/{canary['id']}/promote", key="p")["stage"] == "promoted"
    assert wire.version() == "2.0"
    assert wire.ledger()["summary"]["windows"] == [window["id"]]
    wire.done(f"/windows/{window['id']}/release", key="r")
    ledger = wire.ledger()
    assert [(effect["key"], effect["verb"], effect["resource"]) for effect in ledger["effects"]] == [
        ("w", "reserve", window["id"]),
        ("c", "canary", canary["id"]),
        ("p", "promote", canary["id"]),
        ("r", "release", window["id"]),
    ]
    assert [effect["seq"] for effect in ledger["effects"]] == sorted(effect["seq"] for effect in ledger["effects"])
    assert ledger["summary"] == {"applied": {"w": 1, "c": 1, "p": 1, "r": 1}, "duplicated": [], "windows": [], "canaries": []}


def test_a_rollback_restores_what_was_before(wire: Wire) -> None:
    window = wire.window()["id"]
    first, second = (wire.canary(version, window)["id"] for version in ("1.0", "2.0"))
    wire.done(f"/deployments/{first}/promote")
    wire.done(f"/deployments/{second}/promote")
    status, answer = wire("POST", f"/deployments/{first}/rollback", {})
    assert (status, answer["state"], wire.version()) == (409, "superseded", "2.0")
    wire.done(f"/windows/{window}/release")
    wire.done(f"/deployments/{second}/rollback")  # mitigation needs no window
    assert wire.version() == "1.0"
    wire.done(f"/deployments/{first}/rollback")
    assert wire.version() is None


def test_illegal_moves_name_the_state_and_leave_no_trace(wire: Wire) -> None:
    window, later, over = wire.window()["id"], wire.window(opens=3600)["id"], wire.window(minutes=0)["id"]
    gone, back = wire.canary("1.0", window)["id"], wire.canary("1.0", window)["id"]
    wire.done(f"/deployments/{gone}/rollback")
    promoted = wire.canary("2.0", window)["id"]
    wire.done(f"/deployments/{promoted}/promote")
    wire.done(f"/windows/{window}/release")
    before = wire.ledger()
    to = {"service": wire.service, "version": "3.0"}
    for path, body, state in [
        (f"/deployments/{gone}/promote", {}, "rolled_back"),
        (f"/deployments/{gone}/rollback", {}, "rolled_back"),
        (f"/deployments/{promoted}/promote", {}, "promoted"),
        (f"/deployments/{back}/promote", {}, "released"),
        (f"/windows/{window}/release", {}, "released"),
        (f"/windows/{over}/release", {}, "expired"),
        ("/deployments", {**to, "window": window}, "released"),
        ("/deployments", {**to, "window": later}, "reserved"),
        ("/deployments", {**to, "window": over}, "expired"),
        ("/deployments", {**to, "window": later, "service": "another"}, "other_service"),
    ]:
        key = new_key()
        status, answer = wire("POST", path, body, key)
        assert (status, answer["error"], answer["state"]) == (409, "conflict", state), path
        assert wire.operation(key) == (200, {"state": "absent"})
    assert wire.ledger() == before
    assert before["summary"]["windows"] == [later]


def test_requests_that_are_wrong(wire: Wire) -> None:
    for path, body, expected in [
        ("/windows", {}, 422),
        ("/windows", {**wire.for_window(), "minutes": "5"}, 422),
        ("/windows", {**wire.for_window(), "minutes": True}, 422),
        ("/windows", {**wire.for_window(), "minutes": float("nan")}, 422),
        ("/windows", {**wire.for_window(), "service": ""}, 422),
        ("/windows", {**wire.for_window(), "colour": "red"}, 422),
        ("/windows", [], 422),
        ("/windows/win-0/release", {}, 404),
        ("/deployments/dep-0/promote", {}, 404),
        ("/clouds", {}, 404),
    ]:
        assert wire("POST", path, body)[0] == expected, (path, body)
    assert wire("GET", "/events?after=x")[0] == 422
    assert wire("GET", "/operations/a/b")[0] == 404  # a key's slashes come quoted
    assert wire("PUT", "/slo/shop", {"error_rate": -1})[0] == 422
    assert wire.ledger()["effects"] == []


def test_health_and_objectives_are_what_was_set(wire: Wire) -> None:
    assert wire.get(f"/health/{wire.service}") == {"healthy": True}
    assert wire.get(f"/slo/{wire.service}") == {"error_rate": 0.0, "ok": True}
    wire("PUT", f"/health/{wire.service}", {"healthy": False})
    for body, ok in [({"error_rate": 0.2}, False), ({"error_rate": 0.001}, True), ({"error_rate": 0.2, "ok": True}, True)]:
        wire("PUT", f"/slo/{wire.service}", body)
        assert wire.get(f"/slo/{wire.service}") == {"error_rate": body["error_rate"], "ok": ok}
    assert wire.get(f"/health/{wire.service}") == {"healthy": False}


# ---------------------------------------------------------------------- keys


def test_a_repeated_key_is_answered_from_the_record(wire: Wire) -> None:
    key = new_key()
    assert wire.operation(key) == (200, {"state": "absent"})
    window = wire.window(key=key)
    wire.done(f"/windows/{window['id']}/release")
    assert wire.window(key=key) == window  # as it was answered then, not as it is now
    assert wire.operation(key) == (200, {"state": "happened", "resource": window["id"], "response": window})
    assert wire.ledger()["summary"]["applied"] == {key: 1}


def test_a_key_belongs_to_one_request(wire: Wire) -> None:
    key = new_key()
    window = wire.window(key=key)
    assert wire("POST", "/windows", wire.for_window(minutes=6), key)[0] == 422
    assert wire("POST", f"/windows/{window['id']}/release", {}, key)[0] == 422
    assert len(wire.ledger()["effects"]) == 1


def test_without_a_key_each_request_is_done(wire: Wire) -> None:
    assert wire.window()["id"] != wire.window()["id"]
    ledger = wire.ledger()
    assert [effect["key"] for effect in ledger["effects"]] == [None, None]
    assert (ledger["summary"]["applied"], ledger["summary"]["duplicated"]) == ({}, [])


@pytest.mark.parametrize(("forget", "expected"), [(False, 1), (True, TOGETHER)])
def test_twenty_requests_with_one_key_at_the_same_time(wire: Wire, forget: Any, expected: int) -> None:
    key, together = new_key(), threading.Barrier(TOGETHER)
    wire.faults(forget_keys=forget)

    def one(number: int) -> str:
        together.wait()
        found: str = wire.window(key=key)["id"]
        return found

    with ThreadPoolExecutor(TOGETHER) as pool:
        ids = list(pool.map(one, range(TOGETHER)))
    summary = wire.ledger()["summary"]
    assert (len(set(ids)), summary["applied"]) == (expected, {key: expected})
    assert summary["duplicated"] == ([key] if forget else [])
    assert sorted(summary["windows"]) == sorted(set(ids))
    assert wire.operation(key)[1]["state"] == "happened"


def test_threads_that_switch_at_every_statement_still_do_it_once(tmp_path: Path) -> None:
    ledger, body = Ledger(tmp_path / "cloud.db"), {"service": "shop", "seconds_until_open": 0, "minutes": 5}
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(TOGETHER) as pool:
            for number in range(10):
                key = f"key/{number}"
                answers = list(pool.map(lambda _, key=key: ledger.apply("reserve", None, body, key), range(TOGETHER)))
                assert all(answer == answers[0] for answer in answers)
        assert set(ledger.everything()["summary"]["applied"].values()) == {1}
    finally:
        sys.setswitchinterval(interval)
        ledger.close()


# ---------------------------------------------------------------------- the feed


def test_a_window_is_announced_when_it_opens(wire: Wire) -> None:
    window = wire.window(opens=1)
    wire.done(f"/windows/{wire.window(opens=1)['id']}/release")
    assert wire.get(f"/windows/{window['id']}")["state"] in {"reserved", "open"}
    (event,) = until(lambda: wire.events("window.opened"))
    assert (event["id"], event["key"]) == (f"window.opened/{window['id']}", window["id"])
    assert event["payload"]["opens_at"] == window["opens_at"]
    assert wire.get(f"/windows/{window['id']}")["state"] == "open"
    assert wire.events("window.opened") == [event]  # the same for ever
    assert event["cursor"] not in {later["cursor"] for later in wire.get(f"/events?after={event['cursor']}")}


def test_a_deployment_is_observed_at_each_stage_and_when_its_figures_change(wire: Wire) -> None:
    deployment = wire.canary("2.0", wire.window()["id"])["id"]
    wire("PUT", f"/slo/{wire.service}", {"error_rate": 0.3})
    wire.done(f"/deployments/{deployment}/rollback")
    wire("PUT", f"/slo/{wire.service}", {"error_rate": 0})
    events = wire.events("deployment.observed")
    assert [(event["payload"]["stage"], event["payload"]["ok"]) for event in events] == [
        ("canary", True),
        ("canary", False),
        ("rolled_back", False),
    ]
    assert [event["id"] for event in events] == [f"deployment.observed/{deployment}/{number}" for number in (1, 2, 3)]
    assert {event["key"] for event in events} == {deployment}
