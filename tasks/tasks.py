"""The Celery tasks, found by `autodiscover_tasks()`. Each is one call into the durable plane; Celery never retries one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

from celery import shared_task
from django.db import InterfaceError, OperationalError, connections

from flows.conf import conf
from flows.services import notices as owed
from flows.services import sweeps
from flows.services.servicing import run_servicing
from flows.services.turn import run_turn
from tasks import lifecycle
from tasks.queues import CLEANUP, CONTROL, celery_queue

#: Seconds after which a message to send notices is dropped: the next tick sends another one.
NOTICES_EXPIRE = 30


@shared_task(name="outlast.turn", ignore_result=True, acks_late=False)
def turn(queue: str, ids: list[str] | None = None) -> str | None:  # noqa: ARG001 - shown by Flower
    """Work on a queue for one slice. `ids` name what is probably ready, for people who read Flower; the claim decides.

    What it returns is for them, too: which attempts it made, and how they ended. Nothing stores it; it goes along with Celery's events.
    """
    host = lifecycle.host()
    if host is None:
        return None
    with host.turn() if queue != CLEANUP else nullcontext(True) as admitted:
        if admitted:  # else the turns that run take this work, too, and the clock hints at what is left
            _with_connection(lambda: run_turn(host, queue, conf.DATABASE))
    return host.told()


@shared_task(name="outlast.tick", ignore_result=True, acks_late=False)
def tick() -> None:
    """Look at the clock once: timers, leases, lost and overdue work, ready rows, notices."""

    def look() -> None:
        found = sweeps.run_tick(conf.DATABASE)
        if found is not None and found.notices:
            notices.apply_async(queue=celery_queue(CONTROL), expires=NOTICES_EXPIRE, retry=False)

    _with_connection(look)


@shared_task(name="outlast.notices", ignore_result=True, acks_late=False)
def notices() -> None:
    """Send what is owed to people. Apart from the tick: a mail server that hangs is not to stop the clock."""
    _with_connection(lambda: owed.send_owed(conf.DATABASE))


@shared_task(name="outlast.service", ignore_result=True, acks_late=False)
def service() -> None:
    """Look at operations that are due: ask what became of them, compensate, release. Protected capacity: queue `cleanup`."""
    host = lifecycle.host()
    if host is not None:
        _with_connection(lambda: run_servicing(host, conf.DATABASE))


@shared_task(name="outlast.timers", ignore_result=True, acks_late=False)
def timers() -> None:
    """Fire what is due; published for the moment of a timer that is close."""
    _with_connection(lambda: sweeps.fire_on_time(conf.DATABASE))


@shared_task(name="outlast.look", ignore_result=True, acks_late=False)
def watch(what: str) -> None:
    """Do what the watch of that name is for; published where that is not to wait for the next tick."""
    _with_connection(lambda: sweeps.run_watch(what, conf.DATABASE))


def _with_connection(use: Callable[[], object]) -> None:
    """Run with a connection that works: one that died since its last use (a restart of PostgreSQL) is replaced once."""
    connection = connections[conf.DATABASE]
    fresh = connection.connection is None
    try:
        use()
    except (OperationalError, InterfaceError):
        connection.close()
        if fresh:
            raise
        use()
