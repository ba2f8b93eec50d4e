"""Probes: functions of the author that ask a dependency how it is, by the cleanup worker, outside any transaction.

    its moment has come ──► taken by one process, for as long as a question may take ──► asked ──► trial, or down for longer
Guard: the row's version as it was when it was taken: what a person, or an attempt, said meanwhile goes before the answer.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from django.db import connections

from flows import registry
from flows.core import capacity as core
from flows.core.capacity import Dependency
from flows.core.errors import ActivityError
from flows.dispatch import service
from flows.services.authored import tidy, transaction_of
from flows.services.capacity import taking
from flows.store import dependencies, limits
from flows.store.sql import committing

logger = logging.getLogger("outlast.capacity")

#: Why a dependency is down whose probe said so without an error of its own.
PROBE_FAILED = "PROBE_FAILED"
#: Seconds beside the timeout until another process may ask.
GRACE_SECONDS = 5.0


class Host(Protocol):
    """What a probe needs of the process that it runs in."""

    def stopping(self) -> bool: ...

    def limit(self, seconds: float) -> AbstractContextManager[None]: ...


def probed() -> dict[str, Dependency]:
    """The declared dependencies that have a probe."""
    return {name: one for name, one in registry.declared(Dependency).items() if one.probe is not None}


def ask(moving: Iterable[str]) -> None:
    """Have the cleanup worker ask those whose moment has come."""
    if set(moving) & set(probed()):
        service()


def run(host: Host, using: str) -> int:
    """Ask whatever is due; how many were asked."""
    known, count = probed(), 0
    if not known:
        return 0
    lease = max(one.probe_timeout.total_seconds() for one in known.values()) + GRACE_SECONDS
    while not host.stopping():
        taken = dependencies.claim_probe(sorted(known), lease, using)
        if taken is None:
            break
        _ask(host, known[taken[0]], taken[1], using)
        count += 1
    return count


def _ask(host: Host, dependency: Dependency, version: int, using: str) -> None:
    code = _answer(host, dependency, using)
    name = dependency.name
    with committing("probe", using):
        row = dependencies.lock(name, using)
        if row is None or row.version != version:
            return
        made = core.probed(dependency.terms, row.health, row.now, code)
        dependencies.write(name, made, using)
        taking.look_after([one for one, _ in limits.labelled([taking.limit_of(name)], using)], using)


def _answer(host: Host, dependency: Dependency, using: str) -> str:
    """Nothing if it is there; else the code of why not."""
    connection = connections[using]
    before = transaction_of(connection)
    try:
        with host.limit(dependency.probe_timeout.total_seconds()):
            answer: Any = registry.function(dependency.probe or "")()
            found = asyncio.run(answer) if inspect.iscoroutine(answer) else answer
    except Exception as error:  # noqa: BLE001 - whatever the author's function raises says that it is not there
        logger.warning("the probe of %s: %s", dependency.name, type(error).__name__)
        return error.code if isinstance(error, ActivityError) else PROBE_FAILED
    finally:
        tidy(connection, before)
    return PROBE_FAILED if found is False else ""
