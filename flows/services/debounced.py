"""What the clock does about start keys: starts what is due, and ends the runs that a newer one replaced. Both idempotent.

    due ──► started under the id that was promised, the key free again      one transaction, the row held
    older ──► cancelled (NEWER_STARTED) ──► forgotten                       its own transaction; a lost process leaves the row
Race: two clocks: the row, with SKIP LOCKED. An older run that has ended meanwhile is only forgotten.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

from django.db import transaction

from flows import registry
from flows.conf import conf
from flows.core import payload
from flows.core.admission import MOST_PAUSES, Admission
from flows.core.misuse import AdmissionRefused, IntentClosed, UnknownIntent, UnknownWorkflow
from flows.registry import Watch
from flows.services import control
from flows.services.apart import apart
from flows.services.debounce import DEBOUNCE, NEWEST
from flows.services.starting import Origin, start_now
from flows.store import start_keys as store
from flows.store.sql import committing
from flows.store.start_keys import Due

logger = logging.getLogger("outlast.flows")

NEWER_STARTED = "NEWER_STARTED"
#: A start that failed for a reason that may pass is tried again after this, and then ever more rarely, until it is so old.
AGAIN, RAREST, LONGEST = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def fire(using: str) -> int:
    """Start what is due, of the flows that this process knows; how many."""
    flows, count = sorted({name for name, _ in registry.known()}), 0
    while count < conf.SWEEP_BATCH:
        with committing("debounced start", using):
            due = store.lock_due(flows, using)
            if due is None:
                break
            store.done(due.flow, due.key, _begun(due, using), using)
        count += 1
    return count


def _begun(due: Due, using: str) -> timedelta | None:
    """Start it. What fails for a reason that nobody foresaw (a function of the flow, a key of the codec that is not here) keeps its row, so that
    it is tried again, and holds up no other start; each time after as long again as it has been tried, some twenty-five times in a day.
    """
    answers: list[timedelta | None] = []
    with apart(f"a start of {due.flow} that was put off", using), transaction.atomic(using=using):
        answers.append(_started(due, using))
    if answers:
        return answers[0]
    if due.age > LONGEST + _pause(due) * MOST_PAUSES:
        logger.error("a start of %s that was put off is given up: it has failed for a day", due.flow)
        return None
    return min(max(due.age, AGAIN), RAREST)


def _pause(due: Due) -> timedelta:
    said: Any = registry.flow(due.flow).definition.admission
    return said.debounce if isinstance(said, Admission) and said.debounce is not None else AGAIN


def _started(due: Due, using: str) -> timedelta | None:
    """Start it; the span after which it is tried again, or None: it is done with."""
    definition = registry.flow(due.flow).definition
    origin = Origin(**due.origin, ids=[due.workflow_id])
    try:
        start_now(definition, [(None, payload.decode(due.input))], origin, using)
    except AdmissionRefused:
        return max(_pause(due), timedelta(seconds=1))
    except (IntentClosed, UnknownIntent) as error:
        logger.error("a start of %s that was put off cannot be made: %s", due.flow, error)
    return None


def end_older(using: str) -> int:
    """Cancel the runs that a newer one replaced; how many."""
    count = 0
    for flow, key, runs in store.older(conf.SWEEP_BATCH, using):
        for run in runs:
            with apart(f"the end of {run}, which a newer run replaced,", using):
                try:
                    count += bool(control.cancel(run, reason=NEWER_STARTED, using=using))
                except UnknownWorkflow:
                    logger.warning("workflow %s, which a newer one replaced, is not there", run)
                store.ended(flow, key, run, using)
    return count


WATCHES = (Watch(DEBOUNCE, store.DUE, fire), Watch(NEWEST, store.REPLACED, end_older))
