"""What stands between a run and the world outside, and nobody looks at: operations, commitments, events."""

from __future__ import annotations

#: By flow: a worker for the cleanup queue that does not know the flow serves it as little as none.
UNPROTECTED = """
SELECT format('cleanup:%s@%s', w.flow_name, w.flow_version), NULL::uuid, jsonb_build_object(
    'flow', w.flow_name, 'version', w.flow_version, 'operations', count(*), 'due_since', min(o.due_at))
FROM outlast_operation o JOIN outlast_workflow w ON w.id = o.workflow_id
WHERE o.due_at IS NOT NULL AND o.worker_id IS NULL AND o.due_at <= flows_now() - %(patience)s::float8 * interval '1 second'
GROUP BY w.flow_name, w.flow_version
HAVING NOT EXISTS (SELECT FROM outlast_worker k
                   WHERE k.lease_until > statement_timestamp() - %(patience)s::float8 * interval '1 second' AND 'cleanup' = ANY (k.queues)
                     AND w.flow_name || '@' || w.flow_version = ANY (k.definitions))
LIMIT %(limit)s::int
"""

#: One whose release is still to be called is being serviced, also after the end of its run.
UNSERVICED = """
SELECT 'commitment:' || c.id, c.workflow_id, jsonb_build_object('commitment', c.id, 'name', c.name, 'kind', c.kind, 'status', c.status,
    'node', c.node, 'run', w.status, 'why', CASE WHEN w.status IN ('complete', 'failed', 'cancelled', 'superseded') THEN 'its run has ended'
        ELSE 'it has no release, no deadline and may not be deferred' END)
FROM outlast_commitment c JOIN outlast_workflow w ON w.id = c.workflow_id
WHERE c.status IN ('planned', 'active', 'breached', 'releasing') AND (
    NOT c.releasable AND NOT c.may_defer AND c.deadline_at IS NULL
    OR w.status IN ('complete', 'failed', 'cancelled', 'superseded') AND NOT EXISTS (
        SELECT FROM outlast_operation o
        WHERE o.workflow_id = c.workflow_id AND o.commitment_id = c.id AND (o.due_at IS NOT NULL OR o.worker_id IS NOT NULL)))
LIMIT %(limit)s::int
"""

#: Something of it is being looked at, or will be asked for again, or its call is still being made.
_LOOKED_AT = """
EXISTS (SELECT FROM outlast_operation o WHERE o.workflow_id = w.id AND (
    o.due_at IS NOT NULL OR o.worker_id IS NOT NULL OR o.status = 'in_flight' AND o.kind <> 'effect' OR o.again))
"""

UNCERTAIN = f"""
WITH owing AS MATERIALIZED (
    SELECT w.id, w.node, w.status, w.updated_at FROM outlast_workflow w WHERE w.status = 'reconciling'
    UNION ALL
    SELECT w.id, w.node, w.status, w.updated_at FROM outlast_workflow w WHERE w.status = 'cancelling' AND w.outcome = ''
)
(SELECT 'operation:' || o.id, o.workflow_id, jsonb_build_object(
    'operation', o.id, 'kind', o.kind, 'node', o.node, 'doubt_since', o.doubt_since, 'run', w.status)
 FROM outlast_operation o JOIN outlast_workflow w ON w.id = o.workflow_id
 WHERE o.status = 'uncertain' AND o.due_at IS NULL AND o.worker_id IS NULL
   AND o.doubt_since <= flows_now() - %(patience)s::float8 * interval '1 second'
   AND CASE WHEN o.again THEN w.status IN ('complete', 'failed', 'cancelled', 'superseded', 'cancelling') ELSE w.outcome <> 'HUMAN_REQUIRED' END
 LIMIT %(limit)s::int)
UNION ALL
(SELECT 'workflow:' || w.id, w.id, jsonb_build_object('node', w.node, 'run', w.status, 'why', 'it waits for what it owes, and nobody is at it')
 FROM owing w
 WHERE w.updated_at <= flows_now() - %(patience)s::float8 * interval '1 second' AND NOT {_LOOKED_AT}
   AND NOT EXISTS (SELECT FROM outlast_operation o WHERE o.workflow_id = w.id AND o.status = 'uncertain')
   AND NOT EXISTS (SELECT FROM outlast_commitment c WHERE c.workflow_id = w.id AND c.status IN ('active', 'breached', 'releasing'))
   AND NOT EXISTS (SELECT FROM outlast_fan f WHERE f.workflow_id = w.id AND f.on_cancel = 'wait' AND f.running > 0)
 LIMIT %(limit)s::int)
LIMIT %(limit)s::int
"""

_PLACED = """
SELECT 'event:' || e.id, coalesce((SELECT w.id FROM outlast_workflow w WHERE w.id = e.about_workflow), e.workflow_id), jsonb_build_object(
    'event', e.id, 'event_id', e.event_id, 'type', e.type, 'key', e.key, 'about', e.about_workflow, 'observed_at', e.observed_at)
FROM outlast_event e
WHERE e.place = '__PLACE__' AND e.place NOT IN ('', 'taken', 'started') AND e.status IN ('pending', 'aside')
ORDER BY e.id DESC LIMIT %(limit)s::int
"""

MISDIRECTED = _PLACED.replace("__PLACE__", "misdirected")
UNCLAIMED = _PLACED.replace("__PLACE__", "unclaimed")
