"""Queue names: of flows, and of Celery. `control` is the clock's, `agents` runs activities, `cleanup` is protected capacity (K2)."""

from __future__ import annotations

from flows.conf import conf

CONTROL = "control"
AGENTS = "agents"
CLEANUP = "cleanup"


def celery_queue(name: str) -> str:
    """The Celery queue that stands for a queue of flows."""
    return str(conf.QUEUES.get(name, name))


def own_queues(celery_names: list[str]) -> list[str]:
    """The queues of flows that a worker serves which consumes these Celery queues."""
    back = {str(celery): flows for flows, celery in conf.QUEUES.items()}
    return sorted({back.get(name, name) for name in celery_names})
