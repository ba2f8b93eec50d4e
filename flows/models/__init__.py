"""Nouns, one file an aggregate; no behaviour."""

from flows.models.activity import Activity, Attempt
from flows.models.budget import Budget, BudgetEntry
from flows.models.bulk import Bulk, BulkItem
from flows.models.calendar import Calendar
from flows.models.candidate import Candidate
from flows.models.capacity import Deferred, Dependency, Limit, Slot, StartKey
from flows.models.commitment import Commitment
from flows.models.event import Event, EventStatus, Redelivery, Stream
from flows.models.fan import Branch, Fan, FanStatus
from flows.models.finding import Finding, Scan
from flows.models.hold import Hold
from flows.models.intent import Intent, IntentRevision
from flows.models.journal import JournalEntry
from flows.models.log import Transition
from flows.models.measure import Latency, Measure, MeasuredNode, RollUp
from flows.models.notice import Notice
from flows.models.operation import Operation, Resolution
from flows.models.overview import Overview
from flows.models.part import Part
from flows.models.policy import Competence, CompetenceOpening, CurrentRelease, Policy, Release
from flows.models.retention import Archived, KeptKey, RetentionLook
from flows.models.schedule import Occurrence, Schedule
from flows.models.verdict import Observation, Verdict, Verification
from flows.models.wait import Timer, TimerStatus, Wait
from flows.models.webhook import WebhookDelivery, WebhookRefusal, WebhookSource, WebhookVerdict
from flows.models.worker import Tick, Worker, WorkerStatus
from flows.models.workflow import SessionLink, Workflow

__all__ = [
    "Activity",
    "Archived",
    "Attempt",
    "Branch",
    "Budget",
    "BudgetEntry",
    "Bulk",
    "BulkItem",
    "Calendar",
    "Candidate",
    "Commitment",
    "Competence",
    "CompetenceOpening",
    "CurrentRelease",
    "Deferred",
    "Dependency",
    "Event",
    "EventStatus",
    "Fan",
    "FanStatus",
    "Finding",
    "Hold",
    "Intent",
    "IntentRevision",
    "JournalEntry",
    "KeptKey",
    "Latency",
    "Limit",
    "Measure",
    "MeasuredNode",
    "Notice",
    "Observation",
    "Occurrence",
    "Operation",
    "Overview",
    "Part",
    "Policy",
    "Redelivery",
    "Release",
    "Resolution",
    "RetentionLook",
    "RollUp",
    "Scan",
    "Schedule",
    "SessionLink",
    "Slot",
    "StartKey",
    "Stream",
    "Tick",
    "Timer",
    "TimerStatus",
    "Transition",
    "Verdict",
    "Verification",
    "Wait",
    "WebhookDelivery",
    "WebhookRefusal",
    "WebhookSource",
    "WebhookVerdict",
    "Worker",
    "WorkerStatus",
    "Workflow",
]
