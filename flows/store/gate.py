"""What the gate reads and writes: the facts of a look, the pass, and a refusal's record (docs/decisions/0004).

PASS    the workflow, as its owner claimed it; observations and the verdict are inserted FROM it. No row: the code is not run.
REFUSE  in the transaction of the arrow that the refusal leads to, which has moved the workflow
VERIFY  in the transaction of the arrow that ends the verifier's attempt
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from flows.core.protocol import WakeCause
from flows.store.sql import loads, run

FACTS = """
SELECT
    (SELECT json_agg(json_build_array(x.name, x.version, extract(epoch FROM x.at)::float8)) FROM (
        SELECT DISTINCT ON (o.name) o.name, o.version, o.at FROM outlast_observation o
        JOIN outlast_activity a ON a.workflow_id = o.workflow_id AND a.seq = o.activity_seq AND a.status = 'done'
            AND (a.step = '' OR a.node || '/' || a.step = ANY(%(ends)s::text[]))
        WHERE o.workflow_id = %(id)s::uuid AND o.baseline AND o.node = ANY(%(baselines)s::text[]) ORDER BY o.name, o.id DESC) x),
    (SELECT json_agg(json_build_array(x.name, x.version, extract(epoch FROM x.at)::float8)) FROM (
        SELECT DISTINCT ON (o.name) o.name, o.version, o.at FROM outlast_observation o
        WHERE o.workflow_id = %(id)s::uuid ORDER BY o.name, o.id DESC) x),
    (SELECT json_agg(json_build_array(x.node, x.digest, x.passed, x.revision, x.state_versions)) FROM (
        SELECT DISTINCT ON (v.node) v.node, v.digest, v.passed, v.revision, v.state_versions FROM outlast_verification v
        WHERE v.workflow_id = %(id)s::uuid ORDER BY v.node, v.id DESC) x),
    (SELECT json_agg(json_build_array(x.name, x.status)) FROM (
        SELECT DISTINCT ON (c.name) c.name, CASE WHEN c.status = 'active' AND c.deadline_at <= flows_now() THEN 'overdue' ELSE c.status END
            AS status
        FROM outlast_commitment c WHERE c.workflow_id = %(id)s::uuid ORDER BY c.name, c.id DESC) x),
    (SELECT d.checks FROM outlast_verdict d
     WHERE d.workflow_id = %(id)s::uuid AND d.node = %(node)s AND d.intent_version = %(intent_version)s::int AND d.verdict = 'ALLOWED'
     ORDER BY d.id DESC LIMIT 1),
    extract(epoch FROM flows_now())::float8
"""


@dataclass(frozen=True, slots=True)
class Recorded:
    """What is on record for a look. `baseline`, `last`: name → (version, seconds since the epoch). `held`: check → digest."""

    baseline: dict[str, tuple[str, float]]
    last: dict[str, tuple[str, float]]
    verifications: dict[str, tuple[str, bool, int, dict[str, str]]]
    commitments: dict[str, str]
    held: dict[str, str]
    now: float


def facts(
    workflow_id: UUID, node: str, baselines: Iterable[str], ends: Iterable[str], intent_version: int, using: str
) -> Recorded:
    """Everything that the gate of this node may look at and that is on record.

    `baselines`: the nodes whose looks count as one for it; `ends`: "NODE/STEP" of the last steps of pipelines, which have then ended.
    """
    params = {
        "id": workflow_id,
        "node": node,
        "baselines": sorted(baselines),
        "ends": sorted(ends),
        "intent_version": intent_version,
    }
    baseline, last, verified, committed, checks, now = run("gate facts", FACTS, params, using)[0]
    return Recorded(
        baseline={row[0]: (row[1], row[2]) for row in _rows(baseline)},
        last={row[0]: (row[1], row[2]) for row in _rows(last)},
        verifications={row[0]: (row[1], row[2], row[3], row[4]) for row in _rows(verified)},
        commitments={row[0]: row[1] for row in _rows(committed)},
        held={row[0]: row[2] for row in _rows(checks) if row[1] != "refused"},
        now=now,
    )


def _rows(value: Any) -> list[Any]:
    return loads(value) or [] if value is not None else []


CAUSE = """
SELECT t.trigger, t.trigger_ref FROM outlast_transition t
WHERE t.workflow_id = %(id)s::uuid AND (
    t.trigger = 'completed' OR t.to_status = 'runnable' AND t.from_status <> 'runnable' AND t.trigger <> 'release')
ORDER BY t.seq DESC LIMIT 1
"""

_CAUSES = {
    "start": WakeCause.START,
    "completed": WakeCause.STEP,
    "event": WakeCause.EVENT,
    "approval": WakeCause.APPROVAL,
    "answer": WakeCause.ANSWER,
    "children": WakeCause.CHILD,
    "readmit": WakeCause.CAPACITY,
    "timer": WakeCause.TIMER,
    "resume": WakeCause.RESUME,
    "migrate": WakeCause.RESUME,
}


def cause(workflow_id: UUID, using: str) -> WakeCause:
    """What brought a workflow where it is: what made it ready last, or that it was under way. Anything that put it back is a recovery; what
    only binds it to something else (another policy, another release) brings it nowhere.
    """
    rows = run("wake cause", CAUSE, {"id": workflow_id}, using)
    trigger, ref = rows[0] if rows else ("", "")
    if trigger == "timer" and ref.startswith("retry:"):
        return WakeCause.RETRY
    return _CAUSES.get(trigger, WakeCause.RECOVERY)


@dataclass(frozen=True, slots=True)
class Looked:
    """One look, as it is recorded: of which attempt, what woke it, what was observed (name, version), and what the gate answered."""

    workflow: UUID
    version: int
    node: str
    seq: int | None
    attempt: int | None
    cause: str
    verdict: str
    reason: str
    checks: str
    names: Sequence[str]
    versions: Sequence[str]
    baseline: bool


RECORDED = """
observed AS (
    INSERT INTO outlast_observation (workflow_id, node, activity_seq, attempt, name, version, baseline, at)
    SELECT g.id, %(node)s, %(seq)s::int, %(attempt)s::int, o.name, o.version, %(baseline)s::bool, flows_now()
    FROM given g CROSS JOIN unnest(%(names)s::text[], %(versions)s::text[]) AS o(name, version)
), verdict AS (
    INSERT INTO outlast_verdict (
        workflow_id, version, epoch, intent_version, node, activity_seq, attempt, cause, verdict, reason, checks, at)
    SELECT g.id, g.version, g.epoch, g.intent_version, %(node)s, %(seq)s::int, %(attempt)s::int, %(cause)s, %(verdict)s, %(reason)s,
        %(checks)s::jsonb, flows_now()
    FROM given g
)
SELECT id FROM given
"""

PASS = f"""
WITH given AS (
    UPDATE outlast_workflow w SET updated_at = flows_now()
    WHERE w.id = %(workflow)s::uuid AND w.version = %(version)s::int AND w.status = 'running' AND w.epoch = %(epoch)s::int
      AND w.intent_version = %(intent_version)s::int AND w.worker_id IS NOT DISTINCT FROM %(worker)s::uuid
    RETURNING w.id, w.version, w.epoch, w.intent_version
), {RECORDED}
"""

REFUSE = f"""
WITH given AS (
    SELECT w.id, %(version)s::int AS version, w.epoch, w.intent_version FROM outlast_workflow w WHERE w.id = %(workflow)s::uuid
), {RECORDED}
"""


def pass_(looked: Looked, *, epoch: int, intent_version: int, worker: UUID, using: str) -> bool:
    """Record that the gate let the attempt pass; False: the workflow is no longer as its owner claimed it, and the code is not run."""
    guard = {"epoch": epoch, "intent_version": intent_version, "worker": worker}
    return bool(run("pass", PASS, {**_params(looked), **guard}, using))


def refuse(looked: Looked, using: str) -> None:
    """Record a refusal; the workflow is locked, and moved as the refusal says."""
    run("refuse", REFUSE, _params(looked), using)


def _params(looked: Looked) -> dict[str, Any]:
    params: dict[str, Any] = {name: getattr(looked, name) for name in Looked.__dataclass_fields__}
    return {**params, "names": list(looked.names), "versions": list(looked.versions)}


OBSERVED = """
SELECT DISTINCT ON (name) name, version FROM outlast_observation
WHERE workflow_id = %(id)s::uuid AND activity_seq = %(seq)s::int ORDER BY name, id DESC
"""


def observed(workflow_id: UUID, seq: int, using: str) -> dict[str, str]:
    """What the attempts of an activity have seen, the newest of each name."""
    return {row[0]: row[1] for row in run("observed", OBSERVED, {"id": workflow_id, "seq": seq}, using)}


VERIFY = """
INSERT INTO outlast_verification (
    workflow_id, node, activity_seq, attempt, candidate_node, digest, revision, state_versions, passed, code, at)
VALUES (%(workflow)s::uuid, %(node)s, %(seq)s::int, %(attempt)s::int, %(of)s, %(digest)s, %(revision)s::int, %(versions)s::jsonb,
    %(passed)s::bool, %(code)s, flows_now())
"""


@dataclass(frozen=True, slots=True)
class Verified:
    """A verifier's result: its attempt, and the candidate and the state versions that it looked at. `versions` is encoded JSON."""

    workflow: UUID
    node: str
    seq: int
    attempt: int
    of: str
    digest: str
    revision: int
    versions: str
    passed: bool
    code: str


def verify(verified: Verified, using: str) -> None:
    """Record a verification; the workflow is locked."""
    run("verify", VERIFY, {name: getattr(verified, name) for name in Verified.__dataclass_fields__}, using)


BURN = """
INSERT INTO outlast_competence AS c (flow_name, node, release, allowed, burned, closed_at, note, by_label, updated_at)
VALUES (%(flow)s, %(node)s, %(release)s, %(allowed)s::int, 1, CASE WHEN %(allowed)s::int < 1 THEN flows_now() END, '', '', flows_now())
ON CONFLICT (flow_name, node, release) DO UPDATE
SET burned = c.burned + 1, allowed = excluded.allowed, updated_at = flows_now(),
    closed_at = CASE WHEN c.burned + 1 > excluded.allowed THEN coalesce(c.closed_at, flows_now()) END
RETURNING closed_at IS NOT NULL
"""

#: What is declared now is what may be: an envelope is closed or open by that, so that a person who is asked finds it closed and can open it.
DECLARE = """
UPDATE outlast_competence
SET allowed = %(allowed)s::int, closed_at = CASE WHEN burned > %(allowed)s::int THEN coalesce(closed_at, flows_now()) END,
    updated_at = flows_now()
WHERE flow_name = %(flow)s AND node = %(node)s AND release = %(release)s AND allowed <> %(allowed)s::int
"""
ENVELOPE = """
SELECT allowed, burned FROM outlast_competence WHERE flow_name = %(flow)s AND node = %(node)s AND release = %(release)s
"""


def burn(flow: str, node: str, release: str, allowed: int, using: str) -> bool:
    """Count one failed verification against the envelope; whether it is closed now."""
    return bool(run("burn", BURN, {"flow": flow, "node": node, "release": release, "allowed": allowed}, using)[0][0])


def burned(flow: str, node: str, release: str, allowed: int, using: str) -> int:
    """How many errors an envelope has counted; its row says of it what is declared now."""
    key = {"flow": flow, "node": node, "release": release}
    rows = run("envelope", ENVELOPE, key, using)
    if rows and rows[0][0] != allowed:
        run("declare envelope", DECLARE, {**key, "allowed": allowed}, using)
    return rows[0][1] if rows else 0


@dataclass(frozen=True, slots=True)
class CurrentPolicy:
    """The newest version of a policy, and whether some version after a given one stops runs that are bound to that."""

    version: int
    blocks: bool


POLICY = """
SELECT coalesce(max(version), 0), coalesce(bool_or(blocks) FILTER (WHERE version > %(bound)s::int), false)
FROM outlast_policy WHERE name = %(name)s
"""


def policy(name: str, bound: int, using: str) -> CurrentPolicy:
    """What became of a policy since `bound`."""
    version, blocks = run("policy", POLICY, {"name": name, "bound": bound}, using)[0]
    return CurrentPolicy(version, blocks)


def at(seconds: float, like: datetime) -> datetime:
    """A moment that a statement gave as seconds, in the time zone of another."""
    return datetime.fromtimestamp(seconds, tz=like.tzinfo)
