"""Outlast: durable workflows for long-running agents. The workflow outlasts the worker.

This is the author's vocabulary. Importing it loads no Django; the verbs (`flows.signal`, `flows.cancel`, …) and `Flow.start` load
`flows.api` when they are first used.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from flows.core.admission import DEFER, REFUSE, Admission
from flows.core.budget import INHERIT, NEW, RESERVE, Budget, Kept, Spend
from flows.core.capacity import Dependency, Limit, Ramp
from flows.core.commitments import Commits
from flows.core.context import Context, Fact, Untrusted
from flows.core.definition import Flow as _Flow
from flows.core.effects import DidNotHappen, Effect, Happened, Servicing, Unknown
from flows.core.events import About, EventType, Order, StartedBy
from flows.core.fields import Field
from flows.core.hooks import Delivery, Mapped
from flows.core.joins import ABANDON, ALL, ANY, LEAVE, REQUEST, WAIT
from flows.core.loop import Answer, Loop, Prompt, ToolCall
from flows.core.nodes import (
    COMPLETE,
    FAILED,
    Activity,
    AgentTurn,
    Approval,
    Ask,
    Branch,
    Candidate,
    Child,
    ContinueAsNew,
    Decision,
    End,
    Escalation,
    Job,
    Map,
    On,
    Parallel,
    Pending,
    Pipeline,
    Reviewers,
    Sleep,
    Step,
    Wait,
    Window,
)
from flows.core.objectives import Objectives
from flows.core.policies import BREACH, CANCEL, DEGRADE, ESCALATE, FAIL, HUMAN, RELEASE, Checkpoint, Deadline, Retry, Visits
from flows.core.releases import MIGRATE, RESUME_PINNED, restart_from
from flows.core.requirements import Competence, Fresh, Gate
from flows.core.schedules.declared import Schedule
from flows.core.schedules.words import Compute, Missed, Missing, Overlap, Repeated
from flows.core.spans import days, hours, minutes, seconds
from flows.core.state import State
from flows.core.tools import PipelineTool, Tool, ToolStep
from flows.core.turns import Keep, Paid, Stop
from flows.core.verdicts import Verdict
from flows.core.versions import Migrated

if TYPE_CHECKING:
    from flows.api import (
        acancel,
        acancel_intent,
        adescribe,
        ahold,
        alift,
        amigrate,
        apause,
        apreview,
        aredeliver,
        aresume,
        asignal,
        asupersede,
        cancel,
        cancel_intent,
        children,
        describe,
        get,
        hold,
        holds,
        lift,
        link,
        migrate,
        pause,
        preview,
        redeliver,
        resume,
        signal,
        supersede,
    )
    from flows.api import (
        list as list,  # noqa: A004 - the verb's documented name, for `from flows import list`
    )
    from flows.services.attempt import Attempt as Attempt
    from flows.services.operation import Operation as Operation
    from flows.services.start import Started

_VERBS = frozenset(
    {
        "acancel",
        "acancel_intent",
        "adescribe",
        "ahold",
        "alift",
        "amigrate",
        "apause",
        "apreview",
        "aredeliver",
        "aresume",
        "asignal",
        "asupersede",
        "cancel",
        "cancel_intent",
        "children",
        "describe",
        "get",
        "hold",
        "holds",
        "lift",
        "link",
        "list",
        "migrate",
        "pause",
        "preview",
        "redeliver",
        "resume",
        "signal",
        "supersede",
    }
)


class Flow(_Flow):
    __doc__ = _Flow.__doc__

    class Meta:
        abstract = True

    @classmethod
    def start(cls, input: Mapping[str, Any] | None = None, **options: Any) -> Started:
        """Start one run, or get the run that `key=` names already; see `flows.services.start.start` for the options and errors."""
        from flows import api

        return api.start(cls, input, **options)

    @classmethod
    def start_many(cls, runs: Iterable[tuple[str | None, Mapping[str, Any]]], **options: Any) -> builtins.list[Started]:
        """Start many runs given as (key, input), in one statement."""
        from flows import api

        return api.start_many(cls, runs, **options)

    @classmethod
    async def astart(cls, input: Mapping[str, Any] | None = None, **options: Any) -> Started:
        """Async twin of `start`."""
        from flows import api

        return await api.astart(cls, input, **options)

    @classmethod
    async def astart_many(cls, runs: Iterable[tuple[str | None, Mapping[str, Any]]], **options: Any) -> builtins.list[Started]:
        """Async twin of `start_many`."""
        from flows import api

        return await api.astart_many(cls, runs, **options)


def __getattr__(name: str) -> Any:
    if name in _VERBS:
        from flows import api

        return getattr(api, name)
    if name == "Attempt":  # these two are for annotations in activities.py
        from flows.services.attempt import Attempt

        return Attempt
    if name == "Operation":
        from flows.services.operation import Operation

        return Operation
    raise AttributeError(f"module 'flows' has no attribute {name!r}")


__all__ = [
    "ABANDON",
    "ALL",
    "ANY",
    "BREACH",
    "CANCEL",
    "COMPLETE",
    "DEFER",
    "DEGRADE",
    "ESCALATE",
    "FAIL",
    "FAILED",
    "HUMAN",
    "INHERIT",
    "LEAVE",
    "MIGRATE",
    "NEW",
    "REFUSE",
    "RELEASE",
    "REQUEST",
    "RESERVE",
    "RESUME_PINNED",
    "WAIT",
    "About",
    "Activity",
    "Admission",
    "AgentTurn",
    "Answer",
    "Approval",
    "Ask",
    "Branch",
    "Budget",
    "Candidate",
    "Checkpoint",
    "Child",
    "Commits",
    "Competence",
    "Compute",
    "Context",
    "ContinueAsNew",
    "Deadline",
    "Decision",
    "Delivery",
    "Dependency",
    "DidNotHappen",
    "Effect",
    "End",
    "Escalation",
    "EventType",
    "Fact",
    "Field",
    "Flow",
    "Fresh",
    "Gate",
    "Happened",
    "Job",
    "Keep",
    "Kept",
    "Limit",
    "Loop",
    "Map",
    "Mapped",
    "Migrated",
    "Missed",
    "Missing",
    "Objectives",
    "On",
    "Order",
    "Overlap",
    "Paid",
    "Parallel",
    "Pending",
    "Pipeline",
    "PipelineTool",
    "Prompt",
    "Ramp",
    "Repeated",
    "Retry",
    "Reviewers",
    "Schedule",
    "Servicing",
    "Sleep",
    "Spend",
    "StartedBy",
    "State",
    "Step",
    "Stop",
    "Tool",
    "ToolCall",
    "ToolStep",
    "Unknown",
    "Untrusted",
    "Verdict",
    "Visits",
    "Wait",
    "Window",
    "acancel",
    "acancel_intent",
    "adescribe",
    "ahold",
    "alift",
    "amigrate",
    "apause",
    "apreview",
    "aredeliver",
    "aresume",
    "asignal",
    "asupersede",
    "cancel",
    "cancel_intent",
    "children",
    "days",
    "describe",
    "get",
    "hold",
    "holds",
    "hours",
    "lift",
    "link",
    "migrate",
    "minutes",
    "pause",
    "preview",
    "redeliver",
    "restart_from",
    "resume",
    "seconds",
    "signal",
    "supersede",
]
