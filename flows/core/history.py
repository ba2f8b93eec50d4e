"""One workflow as it is recorded, in frozen values: what replay reads, and what it finds.

Rows are tuples, for a replay of everything makes millions of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from flows.core.calendars import Calendar

#: In the note of a cancel that the engine decided (a deadline's policy), and of an arrow past an activity that was in doubt.
BY_ENGINE, IN_DOUBT = "decided", "doubt"
#: In the note of an arrow that ends an attempt: its own effect was known to have happened; effects of its visit had been begun.
KNOWN, BEGUN = "known", "begun"
#: In the note of an arrow to a node that counts by calendars: their versions, as NAME@VERSION.
COUNTED_BY = "calendar"


class Logged(NamedTuple):
    """One row of the log."""

    seq: int
    from_status: str
    to_status: str
    from_node: str
    to_node: str
    outcome: str
    epoch: int
    trigger: str
    ref: str
    intent_version: int
    policy_version: str
    activity_seq: int | None
    attempt: int | None
    error_code: str | None
    note: Mapping[str, Any]
    at: datetime

    def version(self, name: str) -> int | None:
        """A version of the flow that the note names; None if it names none.

        Raises:
            OddNote: it is none.
        """
        found = self.note.get(name)
        if found is None or (isinstance(found, int) and not isinstance(found, bool)):
            return found
        raise OddNote(self.seq, name, found, "a version")

    def words(self, name: str) -> tuple[str, ...]:
        """Words that the note lists.

        Raises:
            OddNote: it is no list of words.
        """
        found = self.note.get(name, ())
        if isinstance(found, list | tuple) and all(isinstance(one, str) for one in found):
            return tuple(found)
        raise OddNote(self.seq, name, found, "a list of words")


class OddNote(ValueError):
    """A note that no arrow writes: somebody has edited the record."""

    def __init__(self, seq: int, name: str, found: object, wanted: str) -> None:
        super().__init__(f"the note of arrow {seq} has {name} = {found!r:.80}, which is not {wanted}")


class Visited(NamedTuple):
    """One visit of an activity node, or of one step of a pipeline, with its result if it is done."""

    seq: int
    node: str
    step: str
    visit: int
    status: str
    result: Any


class Tried(NamedTuple):
    """One ended attempt."""

    outcome: str
    error_code: str | None
    error_class: str | None


class Waited(NamedTuple):
    """One wait, as it is now: evidence and `due` never change after it is closed."""

    id: int
    node: str
    visit: int
    kind: str
    event_type: str
    key: str
    on_expiry: str
    status: str
    evidence: Any
    result: Any
    due: bool
    closed_at: datetime | None = None


class Passed(NamedTuple):
    """A deadline that has passed: its timer, when it fired, what it says (`Deadline.word`), and whether that was done. `wait`: of which wait."""

    id: int
    kind: str
    name: str
    on_expiry: str
    wait: int | None
    at: datetime
    handled: bool


class Asked(NamedTuple):
    """One question to people, behind the wait of that id. `answered`: the status that the answer gave it; "" if nobody answered.

    `question`: the node whose candidate it was about, the digest of the ladder, the answers, and whether one may answer oneself.
    `revoked_at`: when a person took the approval back; None: nobody did. `kind`: that of its wait.
    """

    wait: int
    node: str
    request_id: str
    digest: str
    intent_version: int
    answered: str
    expires_at: datetime | None
    used_by: int | None
    question: tuple[str, str, tuple[str, ...], bool] = ("", "", (), False)
    revoked_at: datetime | None = None
    kind: str = "approval"


class Judged(NamedTuple):
    """One verdict of a node's gate: the workflow's version then, the attempt (None: it was about to be entered), and (check, answer, digest)."""

    version: int
    node: str
    activity: int | None
    attempt: int | None
    verdict: str
    checks: tuple[tuple[str, str, str], ...]
    at: datetime


class Observed(NamedTuple):
    """The version of something outside, as an attempt saw it."""

    node: str
    activity: int
    attempt: int
    name: str
    version: str
    baseline: bool
    at: datetime


class Verified(NamedTuple):
    """What a verifier's attempt found of a candidate, and the versions that it saw."""

    node: str
    activity: int
    attempt: int
    of: str
    digest: str
    revision: int
    passed: bool
    code: str
    versions: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class History:
    """All that is recorded of one workflow and matters for its path.

    Attributes:
        row: what the workflow's row says now, by the names of `fold.FIELDS`. log: in order of `seq`. visits: by activity.
        attempts: by activity and number. waits, asked: in the order in which they were opened.
        deadlines: those that have passed, by timer. judged: verdicts by the workflow's version then. observed, verified: in order.
        result: the workflow's. release: that it is pinned to now; None: not known. releases: the names of all.
        calendars: every version, by NAME@VERSION.
    """

    id: str
    flow: str
    version: int
    fingerprint: str
    key: str | None
    input: Mapping[str, Any]
    row: Mapping[str, Any]
    log: tuple[Logged, ...]
    visits: Mapping[int, Visited] = field(default_factory=dict)
    attempts: Mapping[tuple[int, int], Tried] = field(default_factory=dict)
    waits: tuple[Waited, ...] = ()
    asked: tuple[Asked, ...] = ()
    deadlines: tuple[Passed, ...] = ()
    judged: Mapping[int, tuple[Judged, ...]] = field(default_factory=dict)
    observed: tuple[Observed, ...] = ()
    verified: tuple[Verified, ...] = ()
    result: Any = None
    release: str | None = None
    releases: frozenset[str] = frozenset()
    calendars: Mapping[str, Calendar] = field(default_factory=dict)


class Drift(NamedTuple):
    """Where the record and the replay part: the arrow, what of it, and what each says."""

    seq: int
    field: str
    recorded: Any
    replayed: Any

    def __str__(self) -> str:
        return f"arrow {self.seq}, {self.field}: recorded {self.recorded!r}, replayed {self.replayed!r}"


class Step(NamedTuple):
    """One arrow that was replayed (None: there is no log). `how`: "decided" again by the engine, "given" from outside it, or "not judged".

    Not judged is what was decided under a version of the definition that is not known here: only whether it is legal was looked at.
    """

    logged: Logged | None
    how: str
    drift: Drift | None = None
