"""Outlast: durable workflows for long-running agents. The workflow outlasts the worker.

This is the author's vocabulary. Importing it loads no Django; the verbs (`flows.signal`, `flows.cancel`, …) and `Flow.start` load
`flows.api` when they are first used.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from flows.core.commitments import Commits
from flows.core.definition import Flow as _Flow
from flows.core.effects import DidNotHappen, Effect, Happened, Servicing, Unknown
from flows.core.nodes import (
    COMPLETE,
    FAILED,
    Activity,
    Approval,
    Branch,
    Candidate,
    Decision,
    End,
    Pipeline,
    Sleep,
    Step,
    Wait,
)
from flows.core.policies import (
    BREACH,
    CANCEL,
    DEGRADE,
    ESCALATE,
    FAIL,
    HUMAN,
    RELEASE,
    Checkpoint,
    Deadline,
    Fresh,
    Gate,
    Retry,
    Visits,
    days,
    hours,
    minutes,
    seconds,
)
from flows.core.state import State
from flows.core.verdicts import Verdict

if TYPE_CHECKING:
    from flows.api import (
        acancel,
        acancel_intent,
        adescribe,
        apause,
        apreview,
        aresume,
        asignal,
        asupersede,
        cancel,
        cancel_intent,
        describe,
        get,
        link,
        pause,
        preview,
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
        "apause",
        "apreview",
        "aresume",
        "asignal",
        "asupersede",
        "cancel",
        "cancel_intent",
        "describe",
        "get",
        "link",
        "list",
        "pause",
        "preview",
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
    "BREACH",
    "CANCEL",
    "COMPLETE",
    "DEGRADE",
    "ESCALATE",
    "FAIL",
    "FAILED",
    "HUMAN",
    "RELEASE",
    "Activity",
    "Approval",
    "Branch",
    "Candidate",
    "Checkpoint",
    "Commits",
    "Deadline",
    "Decision",
    "DidNotHappen",
    "Effect",
    "End",
    "Flow",
    "Fresh",
    "Gate",
    "Happened",
    "Pipeline",
    "Retry",
    "Servicing",
    "Sleep",
    "State",
    "Step",
    "Unknown",
    "Verdict",
    "Visits",
    "Wait",
    "acancel",
    "acancel_intent",
    "adescribe",
    "apause",
    "apreview",
    "aresume",
    "asignal",
    "asupersede",
    "cancel",
    "cancel_intent",
    "days",
    "describe",
    "get",
    "hours",
    "link",
    "minutes",
    "pause",
    "preview",
    "resume",
    "seconds",
    "signal",
    "supersede",
]
