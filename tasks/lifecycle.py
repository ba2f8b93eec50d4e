"""A worker's life, on Celery's signals: register before the pool forks, keep the lease, hand work back when it stops."""

from __future__ import annotations

import functools
import logging
import os
import sys
import time
from collections.abc import Callable
from typing import Any

from celery import signals
from django.db import Error, connections, transaction

from flows import registry
from flows.conf import conf
from flows.core.releases import InvalidRelease, check_name
from flows.services import deployed, missing
from flows.services.schedules import syncing
from flows.store import faults
from tasks import linger
from tasks.host import WorkerHost
from tasks.keeper import Keeper, NameTaken, Offer
from tasks.queues import CLEANUP, CONTROL, own_queues
from tasks.shared import Shared

logger = logging.getLogger("outlast.worker")

#: So often in a row no activity was running: the turns have ended.
QUIET_LOOKS = 6

_keeper: Keeper | None = None
_shared: Shared | None = None
_hosts: dict[tuple[int, int], WorkerHost] = {}


def connect() -> None:
    """Connect to the signals of any Celery worker in this process."""
    signals.celeryd_after_setup.connect(_set_up, dispatch_uid="outlast-set-up", weak=False)
    signals.worker_ready.connect(_ready, dispatch_uid="outlast-ready", weak=False)
    signals.worker_shutting_down.connect(_stopping, dispatch_uid="outlast-stopping", weak=False)
    signals.worker_shutdown.connect(_stopped, dispatch_uid="outlast-stopped", weak=False)


def host() -> WorkerHost | None:
    """The host of this process and thread, or None outside a worker."""
    import threading

    if _shared is None:
        return None
    key = (os.getpid(), threading.get_ident())
    if key not in _hosts:
        queues = _keeper.offer.queues if _keeper is not None else []
        _hosts[key] = WorkerHost(
            _shared, offered(), _placements(), queues=queues, lingerers=_lingerers(), turns=_agent_turns(), releases=_releases()
        )
    return _hosts[key]


def _lingerers() -> int:
    """How many processes of this worker may linger at once: all but one, and one where there is only one."""
    if _keeper is None or float(conf.LINGER_SECONDS) <= 0 or not linger.available():
        return 0
    return max(1, _keeper.offer.concurrency - 1)


def _agent_turns() -> int | None:
    """How many slots agent turns may take: all, or all but one where this worker also serves the cleanup queue (K2)."""
    return _agent_turns_of(_keeper.offer) if _keeper is not None else None


def _agent_turns_of(offer: Offer) -> int | None:
    if CLEANUP not in offer.queues or not set(offer.queues) - {CLEANUP, CONTROL}:
        return None
    return max(1, offer.concurrency - 1)


def offered() -> list[tuple[str, int]]:
    """The definitions that this process can run."""
    return sorted(registry.known())


def _set_up(sender: str, instance: Any, **_: object) -> None:
    """Before the pool forks: make the shared page and register. A name that a live worker has refuses to start."""
    global _keeper, _shared  # noqa: PLW0603 - one worker per process, made once before the fork
    queues = own_queues(list(instance.app.amqp.queues.consume_from))
    _shared = Shared()
    offer = Offer(
        name=str(sender),
        queues=queues,
        definitions=offered(),
        placements=_placements(),
        concurrency=int(getattr(instance, "concurrency", 1) or 1),
        region=os.environ.get("OUTLAST_REGION", conf.REGION),
        host_class=os.environ.get("OUTLAST_HOST_CLASS", conf.HOST_CLASS),
        releases=_releases(),
    )
    if offer.concurrency == 1 and _agent_turns_of(offer):
        logger.warning(
            "%s serves agents and cleanup with one process: a release waits for what runs. Give it -c 2, or cleanup its own worker.",
            offer.name,
        )
    instance.wait_for_soft_shutdown = functools.partial(_end_softly, instance.wait_for_soft_shutdown, instance.app.conf)
    pool = f"{getattr(instance.pool_cls, '__module__', '')}.{getattr(instance.pool_cls, '__name__', instance.pool_cls)}"
    _keeper = Keeper(offer, _shared, forked="prefork" in pool, using=conf.DATABASE)
    try:
        _keeper.register()
        _tell_of_definitions()
        syncing.sync(conf.DATABASE)
    except NameTaken as error:
        sys.stderr.write(f"outlast: {error}\n")
        raise SystemExit(73) from None
    except Error as error:
        logger.error("%s; this worker registers when it is there", faults.sentence(error, conf.DATABASE))
    finally:
        connections[conf.DATABASE].close()


def _tell_of_definitions() -> None:
    """Say which live runs cannot go on with what is loaded here (E121 and E122 of the checks), and which policies nobody has published (W106).
    Over a very large record this is left away.
    """
    with transaction.atomic(using=conf.DATABASE), connections[conf.DATABASE].cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = '2s'")
        for found in deployed.findings(conf.DATABASE):
            logger.error("%s %s", found.message, found.hint)
        for unheard in missing.policies((flow.definition for flow in registry.known().values()), conf.DATABASE):
            logger.warning("%s %s", unheard.message, unheard.hint)


def _ready(sender: Any, **_: object) -> None:
    if _keeper is not None:
        _keeper.on_child_gone = functools.partial(_replace_child, sender)
        _keeper.start()


def _replace_child(consumer: Any) -> None:
    """Called from the keeper's thread: Celery's own loop looks after its pool now, which it does only every five seconds otherwise."""
    hub, maintain = getattr(consumer, "hub", None), getattr(getattr(consumer.pool, "_pool", None), "maintain_pool", None)
    if hub is not None and maintain is not None:
        hub.call_soon(maintain)


def _end_softly(celerys_way: Callable[[], None], settings: Any) -> None:
    """A soft shutdown begins. Celery would sleep out the whole timeout before it tells anybody; here turns end at their next step, and the
    timeout is for the activities that run now. A host's own tasks get Celery's way.
    """
    from celery.worker import state

    _stopping()
    if _shared is None or any(not request.task.name.startswith("outlast.") for request in tuple(state.active_requests)):
        celerys_way()
        return
    timeout = float(settings.worker_soft_shutdown_timeout)
    if timeout and _shared.is_busy():
        logger.warning("running activities have %.0f s to end", timeout)
    ends, quiet = time.monotonic() + timeout, 0
    while quiet < QUIET_LOOKS and time.monotonic() < ends:
        time.sleep(0.05)
        quiet = 0 if _shared.is_busy() else quiet + 1


def _stopping(how: str = "", **_: object) -> None:
    """Asked to stop. A cold stop (also the end of a soft one) says so when its processes are gone, and says nothing afterwards."""
    if _keeper is not None:
        _keeper.stopping()
        if how == "Cold":
            _keeper.stop()


def _stopped(**_: object) -> None:
    if _keeper is not None:
        _keeper.stop()


def _placements() -> list[str]:
    given = os.environ.get("OUTLAST_PLACEMENTS")
    named = [name.strip() for name in given.split(",")] if given else list(conf.PLACEMENTS)
    region = os.environ.get("OUTLAST_REGION", conf.REGION)
    host_class = os.environ.get("OUTLAST_HOST_CLASS", conf.HOST_CLASS)
    return [name for name in dict.fromkeys([*named, region, host_class]) if name]


def _releases() -> list[str] | None:
    """The behavioural releases that this worker carries; None: whatever it is given. A name that no release can have stops the worker:
    it would take nothing, and say nothing.

    An empty variable is a worker that carries none: it takes runs that are pinned to none.
    """
    given = os.environ.get("OUTLAST_RELEASES")
    named = conf.RELEASES if given is None else [name.strip() for name in given.split(",") if name.strip()]
    try:
        return None if named is None else [check_name(name) for name in dict.fromkeys(named)]
    except InvalidRelease as error:
        sys.stderr.write(f"outlast: OUTLAST_RELEASES, or OUTLAST['RELEASES']: {error}\n")
        raise SystemExit(78) from None
