"""The journal of an agent turn: one row for each call of a model or a tool, so that no later attempt of the visit makes (and pays) it again.

    begin     – → begun              the next number of the visit
    take up   waiting → begun        people were asked about the call; another attempt makes it
    wait      begun → waiting        its own attempt
    record    begun → done, failed   its own attempt
    lose      begun → lost           an attempt after it
    set aside any → stale            the code asks for something else

Guard of all: the caller holds the workflow's row as its running attempt's owner (`budgets.lock_owned`) in the same transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from flows.core.turns import Entry, EntryKind, EntryStatus
from flows.store.sql import loads, run

OF_VISIT = "j.workflow_id = %(workflow)s::uuid AND j.activity_seq = %(seq)s::int"

ENTRIES = f"""
SELECT j.number, j.kind, j.name, j.status, j.attempt, j.request_hash, j.request, j.answer, j.answer_hash, j.answer_bytes, j.code, j.model,
    j.release, j.usage, coalesce(j.operation_id, ''), j.guarded, j.within, j.began_at, j.ended_at
FROM outlast_journal j WHERE {OF_VISIT} ORDER BY j.number
"""


@dataclass(frozen=True, slots=True)
class Visit:
    """The visit whose journal it is, and the attempt that writes."""

    workflow: UUID
    seq: int
    attempt: int
    epoch: int

    @property
    def params(self) -> dict[str, Any]:
        """As the statements name them."""
        return {"workflow": self.workflow, "seq": self.seq, "attempt": self.attempt, "epoch": self.epoch}


def entries(workflow: UUID, seq: int, using: str) -> list[Entry]:
    """The entries of a visit, in order."""
    return [parse(row) for row in run("journal", ENTRIES, {"workflow": workflow, "seq": seq}, using)]


def parse(row: Sequence[Any]) -> Entry:
    """An entry from the columns of ENTRIES; request and answer as they are stored (in their envelopes)."""
    kind, status = EntryKind(row[1]), EntryStatus(row[3])
    request, answer, usage = loads(row[6]), loads(row[7]), loads(row[13])
    said = (row[5], request, answer, *row[8:13], usage, row[14], tuple(row[15]), *row[16:19])
    return Entry(row[0], kind, row[2], status, row[4], *said)


BEGIN = f"""
INSERT INTO outlast_journal (workflow_id, activity_seq, number, kind, name, status, attempt, epoch, request_hash, request, answer_hash,
    answer_bytes, code, model, release, usage, guarded, within, began_at)
SELECT %(workflow)s::uuid, %(seq)s::int, coalesce((SELECT max(j.number) FROM outlast_journal j WHERE {OF_VISIT}), 0) + 1, %(kind)s,
    %(name)s, 'begun', %(attempt)s::int, %(epoch)s::int, %(request_hash)s, %(request)s::jsonb, '', 0, '',
    %(model)s, %(release)s, '{{}}', '{{}}', %(within)s::int, flows_now()
RETURNING number
"""


def begin(visit: Visit, entry: Entry, request: str | None, using: str) -> int:
    """Write the next entry; its number. `request`: as JSON text."""
    given: dict[str, Any] = {name: getattr(entry, name) for name in ("name", "request_hash", "model", "release", "within")}
    params = {**visit.params, **given, "kind": entry.kind.value, "request": request}
    number: int = run("journal begin", BEGIN, params, using)[0][0]
    return number


TAKE_UP = f"""
UPDATE outlast_journal j SET status = 'begun', attempt = %(attempt)s::int, epoch = %(epoch)s::int
WHERE {OF_VISIT} AND j.number = %(number)s::int AND j.status = 'waiting' RETURNING j.number
"""


def take_up(visit: Visit, number: int, using: str) -> bool:
    """A call about which people were asked is made by this attempt."""
    return bool(run("journal take up", TAKE_UP, {**visit.params, "number": number}, using))


WAIT = f"""
UPDATE outlast_journal j SET status = 'waiting'
WHERE {OF_VISIT} AND j.number = %(number)s::int AND j.status = 'begun' AND j.attempt = %(attempt)s::int RETURNING j.number
"""


def wait(visit: Visit, number: int, using: str) -> bool:
    """People are asked about the call."""
    return bool(run("journal wait", WAIT, {**visit.params, "number": number}, using))


RECORD = f"""
UPDATE outlast_journal j SET status = %(status)s, answer = %(answer)s::jsonb, answer_hash = %(answer_hash)s,
    answer_bytes = %(answer_bytes)s::int,
    code = %(code)s, model = %(model)s, usage = %(usage)s::jsonb, operation_id = %(operation)s, guarded = %(guarded)s::text[],
    ended_at = flows_now()
WHERE {OF_VISIT} AND j.number = %(number)s::int AND j.status = 'begun' AND j.attempt = %(attempt)s::int RETURNING j.number
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an entry ends; `answer` and `usage` as JSON text."""

    status: str
    answer: str | None = None
    answer_hash: str = ""
    answer_bytes: int = 0
    code: str = ""
    model: str = ""
    usage: str = "{}"
    operation: str | None = None
    guarded: Sequence[str] = ()


def record(visit: Visit, number: int, outcome: Outcome, using: str) -> bool:
    """End an entry of this attempt; False: it is no longer its."""
    params: dict[str, Any] = {name: getattr(outcome, name) for name in Outcome.__slots__}
    params |= {**visit.params, "number": number, "guarded": list(outcome.guarded)}
    return bool(run("journal record", RECORD, params, using))


LOSE = f"""
UPDATE outlast_journal j SET status = 'lost', ended_at = flows_now()
WHERE {OF_VISIT} AND j.status = 'begun' AND j.attempt < %(attempt)s::int RETURNING j.number
"""


def lose(visit: Visit, using: str) -> list[int]:
    """What earlier attempts have begun and left without an answer."""
    return [row[0] for row in run("journal lose", LOSE, visit.params, using)]


SET_ASIDE = f"""
UPDATE outlast_journal j SET status = 'stale', ended_at = coalesce(j.ended_at, flows_now())
WHERE {OF_VISIT} AND j.number = ANY (%(numbers)s::int[]) AND j.status IN ('done', 'failed', 'waiting') RETURNING j.number
"""


def set_aside(visit: Visit, numbers: Sequence[int], using: str) -> list[int]:
    """What the code does not ask for any more."""
    return [row[0] for row in run("journal set aside", SET_ASIDE, {**visit.params, "numbers": list(numbers)}, using)]


#: The rules of a turn that a person has go on after one of them stopped it count from there.
STOPPED = """
SELECT coalesce(max(t.number), 0) FROM outlast_attempt t
WHERE t.workflow_id = %(workflow)s::uuid AND t.activity_seq = %(seq)s::int AND t.error_code = ANY (%(codes)s::text[])
"""


def stopped(visit: Visit, codes: Sequence[str], using: str) -> int:
    """The last attempt of the visit that ended with one of these codes; 0: none did."""
    number: int = run("turn stopped", STOPPED, {**visit.params, "codes": list(codes)}, using)[0][0]
    return number


COMPUTED = """
SELECT (coalesce(sum(extract(epoch FROM t.ended_at - t.started_at)), 0) + coalesce((
    SELECT extract(epoch FROM flows_now() - a.started_at) FROM outlast_activity a
    WHERE a.workflow_id = %(workflow)s::uuid AND a.seq = %(seq)s::int), 0))::float8
FROM outlast_attempt t
WHERE t.workflow_id = %(workflow)s::uuid AND t.activity_seq = %(seq)s::int AND t.number > %(since)s::int AND t.number < %(attempt)s::int
"""


def computed(visit: Visit, since: int, using: str) -> float:
    """Seconds that the attempts after `since` have run, this one included."""
    seconds: float = run("turn computed", COMPUTED, {**visit.params, "since": since}, using)[0][0]
    return seconds
