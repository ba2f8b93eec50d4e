"""Each fault of the small cloud, and that a run with the same seed meets the same ones."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from project.agents.deployment.faults import Faults
from tests.support.cloud import *  # noqa: F403 - fixtures are found by their names
from tests.support.cloud import Wire, new_key, until


def test_an_error_before_has_done_nothing(wire: Wire) -> None:
    key = new_key()
    wire.faults(error_before=1.0)
    assert wire("POST", "/windows", wire.for_window(), key) == (500, {"error": "internal_error"})
    assert wire.operation(key) == (200, {"state": "absent"})
    assert wire.ledger()["effects"] == []


@pytest.mark.parametrize(("fault", "answer"), [("error_after", (500, {"error": "internal_error"})), ("lose_response", None)])
def test_after_an_error_or_a_loss_it_was_done_and_can_be_asked_for(wire: Wire, fault: str, answer: Any) -> None:
    key = new_key()
    wire.faults(**{fault: 1.0})
    for _ in range(2):  # the repetition changes nothing, and fails in the same way
        assert wire("POST", "/windows", wire.for_window(), key) == answer
    status, found = wire.operation(key)
    assert (status, found["state"]) == (200, "happened")
    assert wire.ledger()["summary"]["applied"] == {key: 1}
    wire.faults()
    assert wire.window(key=key) == found["response"]


def test_a_refusal_can_get_lost_as_well(wire: Wire) -> None:
    key, window = new_key(), wire.window()["id"]
    wire.done(f"/windows/{window}/release")
    wire.faults(lose_response=1.0)
    assert wire("POST", f"/windows/{window}/release", {}, key) is None
    assert wire.operation(key) == (200, {"state": "absent"})


def test_a_slow_request_is_not_called_absent_while_it_may_still_be_done(wire: Wire) -> None:
    key, in_hand = new_key(), (503, {"error": "in_hand", "message": "that request is being worked upon"})
    wire.faults(slow=0.001, slow_seconds=1.5, seed=slow_request_quick_questions())
    with ThreadPoolExecutor(1) as pool:
        window = pool.submit(wire.window, key=key)
        until(lambda: wire.operation(key) == in_hand)
        wire.faults()  # the request has met its fate already
        answer = until(lambda: (found := wire.operation(key)) != in_hand and found)
    assert answer == (200, {"state": "happened", "resource": window.result()["id"], "response": window.result()})


def slow_request_quick_questions() -> int:
    """A seed with which, at a chance of one in a thousand, the first request is slow and two hundred questions are not."""
    for seed in range(100_000):
        faults = Faults(seed)
        faults.set({"slow": 0.001})
        if faults.of_post().delay and not any(faults.of_question().delay for _ in range(200)):
            return seed
    raise AssertionError


def test_a_question_can_be_slow(wire: Wire) -> None:
    wire.faults(slow=1.0, slow_seconds=0.3)
    before = time.monotonic()
    assert wire.operation(new_key()) == (200, {"state": "absent"})
    assert time.monotonic() - before >= 0.3


def test_a_blind_cloud_cannot_say(wire: Wire) -> None:
    key = new_key()
    wire.window(key=key)
    wire.faults(blind=True)
    for asked in (key, new_key()):
        assert wire.operation(asked)[0] == 503
    wire.faults()
    assert wire.operation(key)[1]["state"] == "happened"


def test_forgotten_keys_are_caught_by_the_ledger(wire: Wire) -> None:
    key = new_key()
    wire.faults(forget_keys=True)
    window, other = wire.window(key=key)["id"], wire.window(key=key)["id"]
    deployments = [wire.canary("2.0", window, key="c")["id"] for _ in range(2)]
    assert wire.ledger()["summary"] == {
        "applied": {key: 2, "c": 2},
        "duplicated": [key, "c"],
        "windows": [window, other],
        "canaries": deployments,
    }


def test_events_come_twice_and_out_of_order_and_remain_themselves(wire: Wire) -> None:
    for _ in range(10):
        wire.canary("2.0", wire.window()["id"])
    quiet = wire.get("/events?after=0")
    wire.faults(duplicate_events=1.0, seed=3)
    loud = wire.get("/events?after=0")
    assert Counter(event["id"] for event in loud) == {event["id"]: 2 for event in quiet}
    assert all(event in quiet for event in loud)
    cursors = [event["cursor"] for event in loud]
    assert cursors != sorted(cursors)


def test_the_switches_are_shown_and_those_not_named_are_off(wire: Wire) -> None:
    assert wire.faults(slow=0.5, blind=True, seed=3) == wire.get("/faults")
    shown = wire.faults(forget_keys=True)
    assert (shown["slow"], shown["blind"], shown["forget_keys"], shown["seed"]) == (0, False, True, 3)


@pytest.mark.parametrize("wrong", [{"slow": 2}, {"slow": True}, {"blind": 1}, {"seed": 0.5}, {"colour": 1}, {"slow_seconds": -1}])
def test_a_wrong_switch_changes_nothing(wire: Wire, wrong: dict[str, Any]) -> None:
    before = wire.get("/faults")
    assert wire("PUT", "/faults", wrong)[0] == 422
    assert wire.get("/faults") == before


def test_with_the_same_seed_the_same_requests_meet_the_same_fate(wire: Wire) -> None:
    def run(chances: dict[str, float]) -> list[int | None]:
        wire.faults(seed=11, **chances)
        answers = []
        for number in range(30):
            answer = wire("POST", "/windows", wire.for_window())
            answers.append(answer and answer[0])
            if number % 3:
                wire.get("/events?after=0")  # a look at the feed takes nothing from the dice
        return answers

    first = run({"error_before": 0.3, "lose_response": 0.3})
    assert run({"error_before": 0.3, "lose_response": 0.3}) == first
    assert set(first) == {200, 500, None}
    fewer = run({"lose_response": 0.3})  # one fault less: the others strike where they did
    assert [answer for answer, before in zip(fewer, first, strict=True) if before != 500] == [a for a in first if a != 500]


def test_each_chance_is_about_what_it_says() -> None:
    faults = Faults(seed=5)
    faults.set({"slow": 0.25, "slow_seconds": 2, "error_before": 0.5})
    fates = [faults.of_post() for _ in range(2000)]
    assert 400 < sum(fate.delay == 2 for fate in fates) < 600
    assert 900 < sum(fate.error_before for fate in fates) < 1100
    assert not any(fate.error_after or fate.lose_response for fate in fates)
