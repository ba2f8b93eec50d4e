"""The same task, acknowledged after it ran: a lost worker's tasks come back, at the latest after the visibility timeout.

Cancel and what a person sees are as with celery_plain.
"""

from __future__ import annotations

from benchmarks.designs.celery_plain import app, deploy_service

app.conf.update(
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=1,
    broker_transport_options={"visibility_timeout": 10},
)

__all__ = ["app", "deploy_service"]
