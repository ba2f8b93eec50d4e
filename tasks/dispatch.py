"""Hints to Celery messages: ids only, to the right queue, named in Flower by flow and node in the author's words."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from celery import current_app

from flows.dispatch import Hint
from tasks import linger
from tasks.queues import CLEANUP, CONTROL, celery_queue

#: A message that nobody took for so long says nothing that the sweep has not found.
EXPIRES_SECONDS = 60
#: After a failure no hint is sent for so long; the clock finds the work meanwhile.
SILENT_SECONDS = 2.0


class CeleryDispatcher:
    """Publishes hints through the host's own Celery app."""

    def __init__(self) -> None:
        self._silent_until = 0.0

    def publish(self, hints: Sequence[Hint]) -> None:
        self._unless_silent(lambda: self._publish(hints))

    def look_soon(self, seconds: float, what: str = "") -> None:
        self._unless_silent(lambda: self._look_soon(seconds, what))

    def service(self) -> None:
        self._unless_silent(self._service)

    def _unless_silent(self, send: Callable[[], None]) -> None:
        """A web request or a worker waits for a broker that hangs once, and not for every hint."""
        if time.monotonic() < self._silent_until:
            return
        try:
            send()
        except Exception:
            self._silent_until = time.monotonic() + SILENT_SECONDS
            raise

    def _publish(self, hints: Sequence[Hint]) -> None:
        """Whoever lingers is told directly; only what is left over needs a producer and a message."""
        messages = [hint for hint in hints if not linger.leave_hint(hint.queue)]
        if not messages:
            return
        with current_app.producer_or_acquire() as producer:
            for hint in messages:
                current_app.send_task(
                    "outlast.turn",
                    kwargs={"queue": hint.queue, "ids": list(hint.ids)},
                    queue=celery_queue(hint.queue),
                    shadow=hint.label,
                    expires=EXPIRES_SECONDS,
                    producer=producer,
                    retry=True,
                    retry_policy={"max_retries": 0},
                    ignore_result=True,
                )

    def _look_soon(self, seconds: float, what: str) -> None:
        current_app.send_task(
            "outlast.look" if what else "outlast.timers",
            kwargs={"what": what} if what else {},
            queue=celery_queue(CONTROL),
            countdown=min(seconds, 1.5),
            expires=10,
            retry=True,
            retry_policy={"max_retries": 0},
            ignore_result=True,
        )

    def _service(self) -> None:
        current_app.send_task(
            "outlast.service",
            queue=celery_queue(CLEANUP),
            expires=EXPIRES_SECONDS,
            retry=True,
            retry_policy={"max_retries": 0},
            ignore_result=True,
        )

    def health(self) -> str:
        with current_app.connection_for_write() as connection:
            connection.ensure_connection(max_retries=1, timeout=2)
        return "the broker takes messages"


dispatcher = CeleryDispatcher()
