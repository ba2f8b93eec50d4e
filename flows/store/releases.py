"""The statements of behavioural releases: which is current, who is pinned to what, and who offers it (docs/how-to/releases.md).

MAKE_CURRENT  one row a flow; the empty flow stands for all that have none of their own
PIN           running, as its owner claimed it → the same, pinned to another release
PIN_AT_REST   runnable, waiting or paused, locked → the same, pinned to another release
Both pin after `share_current`: from the moment that a release has been made current, no run is pinned to the one before it by its policy.
Lock order: the current release is locked before a workflow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from flows.core.releases import ANY
from flows.store.sql import run

#: The current release of a flow: its own, or the one for all. `{flow}` is an expression.
CURRENT_OF = """
    coalesce((SELECT c.release FROM outlast_current_release c WHERE c.flow_name = {flow}),
             (SELECT c.release FROM outlast_current_release c WHERE c.flow_name = ''))
"""

#: Whether a live worker offers the release `{release}`.
OFFERED = """
    EXISTS (SELECT FROM outlast_worker k WHERE k.status = 'alive' AND k.lease_until > statement_timestamp()
              AND ({release} = ANY (k.releases) OR '*' = ANY (k.releases)))
"""
assert ANY == "*"

MAKE_CURRENT = """
INSERT INTO outlast_current_release AS c (flow_name, release, reason, by_label, since)
VALUES (%(flow)s, %(release)s, %(reason)s, %(by)s, flows_now())
ON CONFLICT (flow_name) DO UPDATE SET release = excluded.release, reason = excluded.reason, by_label = excluded.by_label, since = excluded.since
WHERE c.release <> excluded.release
RETURNING c.release
"""

DROP_CURRENT = "DELETE FROM outlast_current_release WHERE flow_name = %(flow)s RETURNING release"


def make_current(flow: str, release: str, reason: str, by: str, using: str) -> bool:
    """Let new runs of a flow ("": of all that have none of their own) be pinned to that release; False: it was so before."""
    return bool(run("make release current", MAKE_CURRENT, {"flow": flow, "release": release, "reason": reason, "by": by}, using))


def drop_current(flow: str, using: str) -> bool:
    """Let a flow have no current release of its own; False: it had none."""
    return bool(run("drop current release", DROP_CURRENT, {"flow": flow}, using))


CURRENT = "SELECT flow_name, release FROM outlast_current_release WHERE flow_name IN (%(flow)s, '') ORDER BY flow_name DESC"
SHARE_CURRENT = f"{CURRENT} FOR SHARE"


def current(flow: str, using: str) -> str:
    """The current release of a flow; "" if there is none."""
    rows = run("current release", CURRENT, {"flow": flow}, using)
    return rows[0][1] if rows else ""


def share_current(flow: str, using: str) -> str:
    """The same; nobody makes another one current before this transaction ends."""
    rows = run("share current release", SHARE_CURRENT, {"flow": flow}, using)
    return rows[0][1] if rows else ""


FACT = f"""
SELECT w.release, coalesce(c.release, ''), coalesce(n.digest = p.digest, false), coalesce(n.compatible_with ? w.release, false),
    coalesce(w.passed_over, '')
FROM outlast_workflow w
LEFT JOIN LATERAL (SELECT {CURRENT_OF.format(flow="w.flow_name")} AS release) c ON true
LEFT JOIN outlast_release n ON n.name = c.release
LEFT JOIN outlast_release p ON p.name = w.release
WHERE w.id = %(id)s::uuid
"""


@dataclass(frozen=True, slots=True)
class Known:
    """What the record says of a pinned run: its release, the current one, whether both are the same or declared compatible, and the
    current one beside which a person let it keep its own.
    """

    pinned: str
    current: str
    same: bool
    compatible: bool
    passed_over: str


def fact(workflow_id: UUID, using: str) -> Known | None:
    """What the record says of a run's release; None if there is no such run."""
    rows = run("release fact", FACT, {"id": workflow_id}, using)
    return Known(*rows[0]) if rows else None


PIN = """
WITH moved AS (
    UPDATE outlast_workflow w SET release = %(release)s, passed_over = NULL, version = w.version + 1, updated_at = flows_now()
    WHERE w.id = %(id)s::uuid AND w.version = %(version)s::int AND w.status = 'running' AND w.epoch = %(epoch)s::int
      AND w.intent_version = %(intent_version)s::int AND w.worker_id IS NOT DISTINCT FROM %(worker)s::uuid
    RETURNING w.*
), logged AS (
    INSERT INTO outlast_transition (
        workflow_id, seq, from_status, to_status, from_node, to_node, outcome, epoch, trigger, trigger_ref, intent_version,
        policy_version, activity_seq, note, at)
    SELECT m.id, m.version, 'running', 'running', m.node, m.node, m.outcome, m.epoch, 'pin', m.release, m.intent_version,
        m.policy_version, m.active_seq, %(note)s::jsonb, flows_now()
    FROM moved m
)
SELECT version FROM moved
"""


def pin(
    workflow_id: UUID, version: int, epoch: int, intent_version: int, worker: UUID, *, release: str, note: str, using: str
) -> bool:
    """Pin a run that is in its owner's hands; False: somebody else has moved it."""
    params = {
        "id": workflow_id,
        "version": version,
        "epoch": epoch,
        "intent_version": intent_version,
        "worker": worker,
        "release": release,
        "note": note,
    }
    return bool(run("pin", PIN, params, using))


PIN_AT_REST = """
WITH moved AS (
    UPDATE outlast_workflow w
    SET release = %(release)s, passed_over = nullif(%(current)s, %(release)s), version = w.version + 1, updated_at = flows_now()
    WHERE w.id = %(id)s::uuid AND w.status IN ('runnable', 'waiting', 'paused')
    RETURNING w.*
), logged AS (
    INSERT INTO outlast_transition (
        workflow_id, seq, from_status, to_status, from_node, to_node, outcome, epoch, trigger, trigger_ref, intent_version,
        policy_version, activity_seq, error_code, note, at)
    SELECT m.id, m.version, m.status, m.status, m.node, m.node, m.outcome, m.epoch, 'pin', m.release, m.intent_version,
        m.policy_version, m.active_seq, m.error_code, %(note)s::jsonb, flows_now()
    FROM moved m
)
SELECT id, queue, flow_name, node FROM moved
"""


def pin_at_rest(workflow_id: UUID, *, release: str, current: str, note: str, using: str) -> tuple[UUID, str, str, str] | None:
    """Pin a locked run that is not computing. Its waits and timers stay: nothing is in flight, so its epoch stays, too.

    `current`: if that is another release, the run keeps its own beside it, whatever the flow's policy says.
    """
    params = {"id": workflow_id, "release": release, "current": current or release, "note": note}
    rows = run("pin at rest", PIN_AT_REST, params, using)
    return (rows[0][0], rows[0][1], rows[0][2], rows[0][3]) if rows else None


LIVE_STATUSES = "('cancelling', 'paused', 'reconciling', 'runnable', 'running', 'waiting')"

PINNED = f"""
SELECT w.id FROM outlast_workflow w
WHERE w.release = %(release)s AND w.release > '' AND w.status IN {LIVE_STATUSES} AND (%(flow)s = '' OR w.flow_name = %(flow)s)
ORDER BY w.id
"""

UNPINNED = f"""
SELECT w.id FROM outlast_workflow w
WHERE w.release = '' AND w.status IN {LIVE_STATUSES} AND (%(flow)s = '' OR w.flow_name = %(flow)s)
ORDER BY w.id
"""


def pinned(release: str, flow: str, using: str) -> list[UUID]:
    """The live runs that are pinned to a release ("": to none), of one flow or of all ("")."""
    statement = PINNED if release else UNPINNED
    return [row[0] for row in run("pinned runs", statement, {"release": release, "flow": flow}, using)]


COUNTS = f"""
SELECT w.release, w.status, count(*) FROM outlast_workflow w
WHERE w.release > '' AND w.status IN {LIVE_STATUSES} GROUP BY w.release, w.status
"""

OFFERS = """
SELECT k.name, k.releases FROM outlast_worker k WHERE k.status = 'alive' AND k.lease_until > statement_timestamp() ORDER BY k.name
"""


def counts(using: str) -> list[tuple[str, str, int]]:
    """(release, status, how many) of all live runs that are pinned."""
    return [(row[0], row[1], row[2]) for row in run("pinned counts", COUNTS, {}, using)]


def offers(using: str) -> list[tuple[str, list[str]]]:
    """(worker, releases that it offers) of all live workers; "*" stands for whatever it is given."""
    return [(row[0], row[1]) for row in run("offers", OFFERS, {}, using)]


#: A release that some live run may be pinned to, and that no live worker has offered for a while. A lease that is over says until when.
_UNOFFERED = f"""
    SELECT r.name FROM outlast_release r
    WHERE NOT {OFFERED.format(release="r.name")}
      AND NOT EXISTS (SELECT FROM outlast_worker k
                      WHERE (r.name = ANY (k.releases) OR '*' = ANY (k.releases))
                        AND k.lease_until > statement_timestamp() - %(patience)s::float8 * interval '1 second')
"""

#: Ready for longer than that, and not a run about which another release decides (such a one is taken by any worker). The status is said in
#: a way that the index of everything ready does not answer: a backlog of runs without a release is not read for this.
_READY = f"""
    w.release > '' AND w.status IN {LIVE_STATUSES} AND w.status || '' = 'runnable'
    AND w.updated_at <= flows_now() - %(patience)s::float8 * interval '1 second'
    AND NOT (w.flow_name || '@' || w.flow_version = ANY (%(deciding)s::text[])
             AND coalesce({CURRENT_OF.format(flow="w.flow_name")} NOT IN (w.release, coalesce(w.passed_over, '')), false))
"""

NOT_OFFERED = f"""
WITH unoffered AS MATERIALIZED ({_UNOFFERED})
SELECT x.id, x.node, u.name FROM unoffered u CROSS JOIN LATERAL (
    SELECT w.id, w.node FROM outlast_workflow w WHERE w.release = u.name AND {_READY} LIMIT %(limit)s::int) x
ORDER BY x.id LIMIT %(limit)s::int
"""

#: Told once for each time that it is ready: any arrow moves `updated_at` past `alerted_at`.
ALERT = f"""
WITH unoffered AS MATERIALIZED ({_UNOFFERED}), found AS (
    UPDATE outlast_workflow w SET alerted_at = flows_now()
    WHERE w.id = ANY (ARRAY (
            SELECT x.id FROM unoffered u CROSS JOIN LATERAL (
                SELECT w.id FROM outlast_workflow w
                WHERE w.release = u.name AND {_READY} AND (w.alerted_at IS NULL OR w.alerted_at < w.updated_at)
                LIMIT %(limit)s::int FOR NO KEY UPDATE SKIP LOCKED) x))
    RETURNING w.id, w.user_id, w.release
), notice AS (
    INSERT INTO outlast_notice (workflow_id, user_id, outcome, code, created_at, tries)
    SELECT f.id, f.user_id, %(code)s, %(code)s, flows_now(), 0 FROM found f WHERE f.user_id IS NOT NULL
)
SELECT id, release FROM found
"""


def not_offered(patience: float, deciding: Sequence[str], limit: int, using: str) -> list[tuple[UUID, str, str]]:
    """(id, node, release) of runs that are ready and that no worker may take, because none has offered their release for so many seconds.

    `deciding`: `name@version` of the flows whose policy lets another release decide.
    """
    params = {"patience": patience, "deciding": list(deciding), "limit": limit}
    return [(row[0], row[1], row[2]) for row in run("not offered", NOT_OFFERED, params, using)]


def alert(patience: float, deciding: Sequence[str], code: str, limit: int, using: str) -> list[tuple[UUID, str]]:
    """Mark those of them that are not marked yet, and owe a notice; (id, release) of each."""
    params: dict[str, Any] = {"patience": patience, "deciding": list(deciding), "code": code, "limit": limit}
    return [(row[0], row[1]) for row in run("alert", ALERT, params, using)]
