"""Real races: threads with a connection each, released together or one held until the other waits for it. Nothing sleeps.

with racers(2) as (one, two):
    for _ in range(1000):
        outcomes = together((one, claim), (two, claim))

met = overtaken(lambda: flows.cancel(run), lambda: factories.complete(owned))
# the first acts and keeps its transaction open until the second, on another connection, is blocked by it (or is through)
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.db import connection, connections, transaction

#: Seconds after which something that is waited for will not come any more.
PATIENCE = 30.0

Action = Callable[[], Any]


class Racer:
    """One thread with a connection of its own, for as many actions as it is given."""

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=name)
        self.pid: int = self.do(self._connect).result(PATIENCE)

    @staticmethod
    def _connect() -> int:
        connection.ensure_connection()
        return int(connection.connection.info.backend_pid)

    def do(self, action: Action) -> Future[Any]:
        """Begin an action; its answer, or the error that it raised, comes with the future."""
        return self._pool.submit(action)

    def close(self) -> None:
        """End the thread and its connection."""
        self._pool.submit(connections.close_all).result(PATIENCE)
        self._pool.shutdown()


@contextmanager
def racers(count: int) -> Iterator[list[Racer]]:
    """So many threads with connections; all are closed at the end."""
    made: list[Racer] = []
    try:
        for number in range(count):
            made.append(Racer(f"racer-{number}"))
        yield made
    finally:
        for racer in made:
            racer.close()


def together(*starts: tuple[Racer, Action]) -> list[Any]:
    """Release all actions at the same moment; what each returned or raised, in order."""
    line = threading.Barrier(len(starts))

    def off(action: Action) -> Any:
        line.wait(PATIENCE)
        return action()

    return [_outcome(future) for future in [racer.do(lambda action=action: off(action)) for racer, action in starts]]


def _outcome(future: Future[Any]) -> Any:
    try:
        return future.result(PATIENCE)
    except Exception as error:  # noqa: BLE001 - the error is the outcome that the test looks at
        return error


def all_of(actions: Sequence[Action]) -> list[Any]:
    """Each action in a thread of its own, once, all released together."""
    with racers(len(actions)) as threads:
        return together(*zip(threads, actions, strict=True))


@dataclass(frozen=True, slots=True)
class Met:
    """How two actions met. `blocked`: the second had to wait for the first."""

    first: Any
    second: Any
    blocked: bool


def overtaken(first: Action, second: Action) -> Met:
    """`first` acts and holds its transaction until `second` is blocked by it or through; then it commits."""
    acted, release = threading.Event(), threading.Event()

    def holding() -> Any:
        with transaction.atomic():
            answer = first()
            acted.set()
            assert release.wait(PATIENCE)
        return answer

    with racers(2) as (one, two):
        ahead = one.do(holding)
        try:
            wait_for(lambda: acted.is_set() or ahead.done())
            behind = two.do(second)
            wait_for(lambda: behind.done() or is_blocked(two.pid))
            blocked = not behind.done()
        finally:
            release.set()
        return Met(_outcome(ahead), _outcome(behind), blocked)


def wait_for(condition: Callable[[], bool]) -> None:
    """Until the condition holds; looking costs a round trip or a lock, so nobody spins hard."""
    ends = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < ends, "what was waited for did not come"
        time.sleep(0)  # let the other threads run


def is_blocked(pid: int) -> bool:
    """Whether that server process waits for a lock that another holds."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT cardinality(pg_blocking_pids(%s)) > 0", [pid])
        return bool(cursor.fetchone()[0])
