"""A turn and its attempts as logs and traces show them: which run, which node, which attempt."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from flows import logs, telemetry
from flows.services.arrows import Ending
from flows.services.owned import Owned
from flows.store import start


@contextmanager
def turn(owned: Owned) -> Iterator[None]:
    """One turn of a run: its ids in the logs, a trace of its own that is linked to whoever started the run."""
    row = owned.row
    facts: dict[str, str | int] = {
        "flow": row.flow_name,
        "version": row.flow_version,
        "workflow": str(row.id),
        "queue": row.queue,
    }

    def started_by() -> str:
        found = start.note(row.id, owned.using).get(telemetry.TRACEPARENT)
        return found if isinstance(found, str) else ""

    with (
        logs.working_on(flow=row.flow_name, workflow=row.id, node=row.node),
        telemetry.turn(f"turn {row.flow_name}", facts, started_by),
    ):
        yield


@contextmanager
def attempt(owned: Owned) -> Iterator[Callable[[Ending], None]]:
    """One attempt of the open activity; what it gives is told how it ended."""
    activity = owned.state.activity
    assert activity is not None
    place: dict[str, str | int] = {"node": owned.state.node, "attempt": activity.number}
    facts = {**place, "flow": owned.row.flow_name, "workflow": str(owned.row.id), "visit": activity.visit}
    with (
        logs.working_on(**place),
        telemetry.attempt(f"{owned.row.flow_name}.{owned.state.node}", facts) as ended,
    ):
        yield lambda ending: ended(ending.outcome.value, ending.code)
