"""What the engine sees of a workflow: frozen facts read from the record, and the trigger that asks for a decision.

`State` is also what pure author functions (`key=`, `read=`, `until=`, branches) get.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Any

from flows.core.calendars import Calendar
from flows.core.errors import Failure

EMPTY: Mapping[str, Any] = MappingProxyType({})
#: The step under which a result that a migration gave stands among a workflow's activities. No step of a pipeline has this name.
GIVEN = "(migrated)"


@dataclass(frozen=True, slots=True)
class ActivityState:
    """The activity that is scheduled or running: which visit, which attempt, and what went before.

    `failures` counts failed attempts, `lost` those that went down with their worker; they are bounded apart.
    `doubt`: an effect of it may have happened, and only asking for the same again can tell.
    `known`: its own effect has happened, and its result is still to be taken. `begun`: effects of this visit have been begun.
    `opened_at`: since when it is open, where that is known; its patience counts from then.
    """

    seq: int
    node: str
    step: str
    visit: int
    number: int
    fence: int
    failures: int = 0
    lost: int = 0
    last_error: str | None = None
    notes: Any = None
    doubt: bool = False
    known: bool = False
    begun: bool = False
    opened_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class WaitState:
    """The open wait: its kind, the evidence that arrived for it (if any), whether its time is over, and the policy that it was opened with."""

    id: int
    node: str
    kind: str
    visit: int
    evidence: Mapping[str, Any] | None = None
    due: bool = False
    reason: str = ""
    on_expiry: str = ""


@dataclass(frozen=True, slots=True)
class State:
    """One workflow as recorded, at one moment.

    Attributes:
        input: what it was started with. results: the newest visit's result of each node.
        visits: how often each node was entered. event: only inside `read=`, the event as `{"id", "payload"}`. events: the same where a wait was
            for several, each as `{"name", "id", "type", "key", "payload"}`, in the order in which they came.
        now: the durable clock at the time of the decision.
        passed: deadlines that are over and were not handled yet, as (kind of timer, name). words: the policy that each was set with
            (`Deadline.word`), which holds whatever the definition says by now.
        calendars: the newest version of each calendar that the flow counts by.
    """

    workflow_id: str
    flow: str
    version: int
    key: str | None
    node: str
    input: Mapping[str, Any]
    now: datetime
    results: Mapping[str, Any] = field(default_factory=lambda: EMPTY)
    visits: Mapping[str, int] = field(default_factory=lambda: EMPTY)
    intent_version: int = 1
    epoch: int = 0
    activity: ActivityState | None = None
    wait: WaitState | None = None
    event: Mapping[str, Any] | None = None
    events: tuple[Mapping[str, Any], ...] = ()
    passed: tuple[tuple[str, str], ...] = ()
    words: Mapping[tuple[str, str], str] = field(default_factory=dict)
    dice: float = 0.0
    calendars: Mapping[str, Calendar] = field(default_factory=lambda: EMPTY)


@dataclass(frozen=True, slots=True)
class Entered:
    """The workflow was claimed with no activity open and no wait: enter its node (after start, resume or a repair).

    `suspended_by`: the code under which it was suspended; that a person resumed it is their answer to that.
    """

    suspended_by: str | None = None


@dataclass(frozen=True, slots=True)
class Woken:
    """The workflow was claimed out of a wait; the evidence, if any, stands on the wait."""


@dataclass(frozen=True, slots=True)
class Completed:
    """The activity's attempt ended well."""

    result: Any = None


@dataclass(frozen=True, slots=True)
class Failed:
    """The activity's attempt ended in a failure. `doubtful`: nobody knows whether an effect that it had begun has happened."""

    failure: Failure
    doubtful: bool = False


@dataclass(frozen=True, slots=True)
class Pending:
    """The attempt's code has asked people about calls of tools, and waits for their answers: each call as its plane opens it."""

    calls: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Lacking:
    """The attempt could not begin, or ended, for want of something that is scarce: its activity stays, and a wait stands beside it.

    Attributes:
        kind: that of the wait, one of `CAPACITY`. name: for what it waits, its key. reason: the same in words.
        until: the moment at which its time is over; on_expiry: what then, as `Deadline.word` has it.
    """

    kind: str
    name: str
    reason: str
    until: datetime | None = None
    on_expiry: str = ""


Trigger = Entered | Woken | Completed | Failed | Pending | Lacking


@dataclass(frozen=True, slots=True)
class ApprovalFact:
    """What the human plane says about the request that an approval node made.

    `candidate`: as the request froze it; empty where that is not known, as in a replay.
    `expired` also holds for an answered approval that was not used in its time. `used_by` is the activity (seq) that used it up,
    `used_at` its node and visit. `sound`: the candidate that is recorded with it, which is what would be executed, hashes to the digest.
    """

    request_id: str
    status: str
    digest: str
    intent_version: int
    candidate: Mapping[str, Any] = field(default_factory=dict)
    expired: bool = False
    used_by: int | None = None
    used_at: tuple[str, int] | None = None
    sound: bool = True


@dataclass(frozen=True, slots=True)
class PolicyFact:
    """The policy that a flow is bound to. `blocks`: some version after `bound` stops runs that were started before it."""

    name: str
    bound: int
    current: int
    blocks: bool = False


@dataclass(frozen=True, slots=True)
class ReleaseFact:
    """The behavioural release that the workflow is pinned to, and what the flow's policy makes of the current one (`flows.core.releases`).

    Attributes:
        pinned, current: names. refusal: why the workflow may not go on, "" if it may.
        pins: the release that it is pinned to before it goes on; "": it stays with its own. restart: the node where it begins again then.
        cancels: the policy is to cancel it.
    """

    pinned: str
    current: str
    refusal: str = ""
    pins: str = ""
    restart: str = ""
    cancels: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    """A version of something outside, as a probe saw it. `fresh`: just now, and not on record yet."""

    version: str
    at: datetime
    fresh: bool = False


@dataclass(frozen=True, slots=True)
class VerificationFact:
    """The newest result of a verifier: of which candidate and revision, whether it passed, and the versions of what it saw outside."""

    digest: str
    passed: bool
    revision: int = 1
    versions: Mapping[str, str] = field(default_factory=lambda: EMPTY)


@dataclass(frozen=True, slots=True)
class Look:
    """What was looked up just before a node is carried out; recorded with the pass, or with the refusal.

    Attributes:
        seen: name → what the gate's probes saw now. baseline: name → what was decided or checked on.
        verifications: verifier → its newest result. commitments: name → status, and "overdue" after its deadline.
        authority: permission → "" (granted) or why not. competence, placement: the same for the envelope and the worker.
        budget: "" or what is used up.
        held: check → digest of the facts for which it held when this node last passed, under this intent version.
    """

    seen: Mapping[str, Seen] = field(default_factory=lambda: EMPTY)
    baseline: Mapping[str, Seen] = field(default_factory=lambda: EMPTY)
    verifications: Mapping[str, VerificationFact] = field(default_factory=lambda: EMPTY)
    commitments: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    authority: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    competence: str = ""
    placement: str = ""
    budget: str = ""
    held: Mapping[str, str] = field(default_factory=lambda: EMPTY)


@dataclass(frozen=True, slots=True)
class Facts:
    """What the gate looks at, beside the state. Collected after the claim has committed; `None` means nothing is recorded.

    `overloaded`: queues in which work waits longer than it should, so that there is no room for what is optional.
    `reviews`: "", or why nobody may be asked for an approval any more (a used up budget).
    `degraded`: a deadline with DEGRADE has passed; what is optional is dropped from then on.
    `look`: None until an attempt has looked; what only a look can tell is not asked before.
    """

    intent_version: int
    intent_status: str
    fingerprint: str
    approvals: Mapping[str, ApprovalFact | None] = field(default_factory=dict)
    overloaded: frozenset[str] = frozenset()
    degraded: bool = False
    policy: PolicyFact | None = None
    release: ReleaseFact | None = None
    reviews: str = ""
    look: Look | None = None
