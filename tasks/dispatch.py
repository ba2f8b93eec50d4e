"""Hints to Celery messages: ids only, to the right queue, named in Flower by flow and node in the author's words."""

from __future__ import annotations

from collections.abc import Sequence

from celery import current_app

from flows.dispatch import Hint
from tasks import linger
from tasks.queues import CONTROL, celery_queue

#: A message that nobody took for so long says nothing that the sweep has not found.
EXPIRES_SECONDS = 60


class CeleryDispatcher:
    """Publishes hints through the host's own Celery app."""

    def publish(self, hints: Sequence[Hint]) -> None:
        with current_app.producer_or_acquire() as producer:
            for hint in hints:
                if linger.leave_hint(hint.queue):
                    continue
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

    def look_soon(self, seconds: float) -> None:
        current_app.send_task(
            "outlast.timers",
            queue=celery_queue(CONTROL),
            countdown=min(seconds, 1.5),
            expires=10,
            retry=True,
            retry_policy={"max_retries": 0},
            ignore_result=True,
        )

    def health(self) -> str:
        with current_app.connection_for_write() as connection:
            connection.ensure_connection(max_retries=1, timeout=2)
        return "the broker takes messages"


dispatcher = CeleryDispatcher()
