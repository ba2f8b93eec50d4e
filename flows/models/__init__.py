"""Nouns, one file an aggregate; no behaviour."""

from flows.models.activity import Activity, Attempt
from flows.models.commitment import Commitment
from flows.models.event import Event, EventStatus
from flows.models.intent import Intent, IntentRevision
from flows.models.log import Transition
from flows.models.notice import Notice
from flows.models.operation import Operation, Resolution
from flows.models.wait import Timer, TimerStatus, Wait
from flows.models.worker import Tick, Worker, WorkerStatus
from flows.models.workflow import SessionLink, Workflow

__all__ = [
    "Activity",
    "Attempt",
    "Commitment",
    "Event",
    "EventStatus",
    "Intent",
    "IntentRevision",
    "Notice",
    "Operation",
    "Resolution",
    "SessionLink",
    "Tick",
    "Timer",
    "TimerStatus",
    "Transition",
    "Wait",
    "Worker",
    "WorkerStatus",
    "Workflow",
]
