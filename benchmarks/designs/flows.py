"""The same five steps as an Outlast flow. Keys: the operation id, which is recorded before the call and stays the same until it is settled.

Cancel: `flows.cancel`. What only a person can settle is in the admin's list of operations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.designs import task
from flows import COMPLETE, Activity, Commits, Effect, End, Flow, Retry, Servicing, Sleep, seconds
from flows.errors import StateConflict

TRIES = Retry(max_attempts=8)


def reserve(attempt: Any) -> Any:
    return task.cloud().reserve(attempt.input["run"], task.MINUTES, key=attempt.operation_id)


def canary(attempt: Any) -> Any:
    window = attempt.results["reserve"]["id"]
    return task.cloud().canary(attempt.input["run"], task.VERSION, window, key=attempt.operation_id)


def promote(attempt: Any) -> Any:
    return task.cloud().promote(attempt.results["canary"]["id"], key=attempt.operation_id)


def roll_back(operation: Any) -> Any:
    return unless("rolled_back", task.cloud().rollback, operation.of.evidence["id"], operation.id)


def give_back(operation: Any) -> Any:
    return unless("released", task.cloud().release, operation.reference, operation.id)


def unless(state: str, change: Callable[..., Any], resource: str, key: str) -> Any:
    """Done, or so already."""
    try:
        return change(resource, key=key)
    except StateConflict as conflict:
        if conflict.details.get("state") != state:
            raise
        return {"already": state}


def window_id(result: Any) -> str:
    return str(result["id"])


class DeployPlainly(Flow):
    """The window is given back before any end; the canary is taken back on the way to cancelled."""

    reserve = Activity(
        reserve,
        effect=Effect(idempotent=True),
        commits=Commits("window", release=Servicing(give_back, idempotent=True), reference=window_id),
        retry=TRIES,
        then="canary",
    )
    canary = Activity(
        canary,
        effect=Effect(idempotent=True, compensate=Servicing(roll_back, idempotent=True)),
        retry=TRIES,
        then="bake",
    )
    bake = Sleep(seconds(task.BAKE), then="promote")
    promote = Activity(promote, effect=Effect(idempotent=True), retry=TRIES, then="done")
    done = End(COMPLETE)
