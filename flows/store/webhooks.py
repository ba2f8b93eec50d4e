"""Deliveries of webhooks: each once, and what became of it.

    – → kept (`keep`: the unique rows wait for who came first) → accepted, ignored, unmapped (`settle`) … unmapped → anything (`settle`)
    known → `times` + 1 (`repeat`), or `conflicts` + 1 (`conflict`)

A delivery is the first row that its transaction locks; the channels, and the workflows that wait there, come after it. Refusals are sums.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from flows.store.sql import run

KEEP = """
INSERT INTO outlast_webhook_delivery (source, delivery_id, body_digest, unsigned_id, headers, verdict, code, event_id, events, times,
    conflicts, secret, sent_at, received_at, seen_at, mapped_by, reason)
VALUES (%(source)s, %(delivery_id)s, %(body_digest)s, %(unsigned_id)s::boolean, %(headers)s::jsonb, %(verdict)s, '',
    '', 0, 1, 0, %(secret)s::smallint, %(sent_at)s::timestamptz, flows_now(), flows_now(), '', '')
ON CONFLICT DO NOTHING RETURNING id
"""


def keep(row: Mapping[str, Any], using: str) -> int | None:
    """Keep a delivery; its number, or None: its id is known, or (where nobody signed the id) its body is."""
    rows = run("keep delivery", KEEP, row, using)
    return rows[0][0] if rows else None


KNOWN = """
SELECT id, body_digest FROM outlast_webhook_delivery
WHERE source = %(source)s AND (delivery_id = %(delivery_id)s OR (unsigned_id AND %(unsigned_id)s::boolean AND body_digest = %(body_digest)s))
ORDER BY (body_digest = %(body_digest)s) DESC, id LIMIT 1 FOR NO KEY UPDATE
"""


def known(source: str, delivery_id: str, body_digest: str, using: str, *, unsigned_id: bool) -> tuple[int, bool] | None:
    """Lock what a delivery repeats, the same body first: (its number, whether it is the same); None if it is gone."""
    params = {"source": source, "delivery_id": delivery_id, "body_digest": body_digest, "unsigned_id": unsigned_id}
    rows = run("known delivery", KNOWN, params, using)
    return (rows[0][0], rows[0][1] == body_digest) if rows else None


REPEAT = "UPDATE outlast_webhook_delivery SET times = times + 1, seen_at = flows_now() WHERE id = %(id)s::bigint"
CONFLICT = "UPDATE outlast_webhook_delivery SET conflicts = conflicts + 1, seen_at = flows_now() WHERE id = %(id)s::bigint"


def repeat(delivery: int, using: str) -> None:
    """Count that it came again."""
    run("repeat delivery", REPEAT, {"id": delivery}, using)


def conflict(delivery: int, using: str) -> None:
    """Count that another body came under its id."""
    run("conflict of a delivery", CONFLICT, {"id": delivery}, using)


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of a delivery: its verdict, a code that says why, and the first of so many events."""

    verdict: str
    code: str = ""
    event_id: str = ""
    events: int = 0


SETTLE = """
UPDATE outlast_webhook_delivery SET verdict = %(verdict)s, code = %(code)s, event_id = %(event_id)s, events = %(events)s::int,
    body = %(body)s::bytea,
    mapped_by = CASE WHEN %(reason)s = '' THEN mapped_by ELSE %(by)s END, reason = CASE WHEN %(reason)s = '' THEN reason ELSE %(reason)s END
WHERE id = %(id)s::bigint AND verdict = %(was)s RETURNING id
"""


def settle(delivery: int, was: str, settled: Settled, body: bytes | None, using: str, *, by: str = "", reason: str = "") -> bool:
    """Say what became of a delivery that was `was`, and keep its body, if one is given. False: it has been settled otherwise."""
    params = {
        "id": delivery,
        "was": was,
        "verdict": settled.verdict,
        "code": settled.code,
        "event_id": settled.event_id,
        "events": settled.events,
        "body": body,
        "by": by,
        "reason": reason,
    }
    return bool(run("settle delivery", SETTLE, params, using))


LIMIT = "SELECT current_setting('statement_timeout'), set_config('statement_timeout', %(most)s, true)"


def limit_statements(most: str, using: str) -> str:
    """Let no statement of this transaction take longer ("1s"; "0" lifts it); what it was before."""
    before: str = run("limit statements", LIMIT, {"most": most}, using)[0][0]
    return before


WAITING = """
SELECT w.id FROM outlast_workflow w WHERE w.id IN (
    SELECT o.workflow_id FROM outlast_wait o JOIN unnest(%(types)s::text[], %(keys)s::text[]) AS c (type, key)
        ON o.event_type = c.type AND o.key = c.key
    WHERE o.closed_at IS NULL AND o.event_type <> ''
    UNION ALL
    SELECT p.workflow_id FROM outlast_wait_part p JOIN unnest(%(types)s::text[], %(keys)s::text[]) AS c (type, key)
        ON p.event_type = c.type AND p.key = c.key
    WHERE p.open
) ORDER BY w.id FOR NO KEY UPDATE
"""


def lock_waiting(channels: Iterable[tuple[str, str]], using: str) -> None:
    """Lock all workflows that wait on any of these channels, by themselves or by a part, in id order; the channels must be locked.

    One after the other, the signals of one delivery would take them in the order of its events.
    """
    named = sorted(set(channels))
    run("lock waiting", WAITING, {"types": [one for one, _ in named], "keys": [key for _, key in named]}, using)


REFUSE = """
INSERT INTO outlast_webhook_refusal (source, hour, code, count)
SELECT r.source, r.hour, r.code, r.count FROM unnest(%(sources)s::text[], %(hours)s::timestamptz[], %(codes)s::text[], %(counts)s::bigint[])
    AS r (source, hour, code, count) ORDER BY 1, 2, 3
ON CONFLICT (source, hour, code) DO UPDATE SET count = outlast_webhook_refusal.count + excluded.count
"""


def add_refusals(sums: Mapping[tuple[str, datetime, str], int], using: str) -> None:
    """Add so many refused requests, by source, hour and code."""
    params = {
        "sources": [one for one, _, _ in sums],
        "hours": [hour for _, hour, _ in sums],
        "codes": [code for _, _, code in sums],
        "counts": list(sums.values()),
    }
    run("add refusals", REFUSE, params, using)
