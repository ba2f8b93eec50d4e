"""Runs that somebody should run: owned by nobody, ready and not taken, bound to a version that cannot go on; and schedules that stand still."""

from __future__ import annotations

from flows.store import holds

#: The worker is gone for so long, by the server's clock, and the run has not moved since: the sweep would have put it back.
OWNERLESS = """
SELECT 'workflow:' || w.id, w.id, jsonb_build_object('node', w.node, 'worker', w.worker_id, 'worker_is', coalesce(k.status, 'unknown'))
FROM outlast_workflow w LEFT JOIN outlast_worker k ON k.id = w.worker_id
WHERE w.status = 'running' AND w.worker_id IS NOT NULL AND w.updated_at <= flows_now() - %(patience)s::float8 * interval '1 second'
  AND (k.id IS NULL OR (k.status <> 'alive' OR k.lease_until <= statement_timestamp())
       AND coalesce(k.ended_at, k.lease_until) <= statement_timestamp() - %(patience)s::float8 * interval '1 second')
LIMIT %(limit)s::int
"""

#: Ready runs, by what a worker must offer to take them: few rows, however many are ready; without what is held, or was a moment ago.
#: `release` '' where another one decides.
_READY = f"""
ready AS MATERIALIZED (
    SELECT w.flow_name, w.flow_version, w.queue, w.placement,
        CASE WHEN w.flow_name || '@' || w.flow_version = ANY (%(deciding)s::text[]) THEN '' ELSE w.release END AS release,
        count(*) AS runs, min(w.updated_at) AS since, min(w.id::text)::uuid AS id
    FROM outlast_workflow w
    WHERE w.status = 'runnable' AND w.updated_at <= flows_now() - %(patience)s::float8 * interval '1 second' AND {holds.free("w")}
      AND NOT EXISTS (SELECT FROM outlast_hold WHERE lifted_at > flows_now() - %(patience)s::float8 * interval '1 second')
    GROUP BY 1, 2, 3, 4, 5
)
"""

_OFFERS = """
    r.queue = ANY (k.queues) AND (r.flow_name || '@' || r.flow_version = ANY (k.definitions) OR EXISTS (
        SELECT FROM unnest(%(older)s::text[], %(newer)s::text[]) AS t(older, newer)
        WHERE t.older = r.flow_name || '@' || r.flow_version AND t.newer = ANY (k.definitions)))
    AND (r.placement = '' OR r.placement = ANY (k.placements))
    AND (r.release = '' OR r.release = ANY (k.releases) OR '*' = ANY (k.releases))
"""

#: By workers that were there as long. Where somebody works for that queue, or took something of it meanwhile, there is a backlog, and no message
#: is missing: at one moment each of them may be between two runs. A run whose open activity is gone is taken by nobody.
UNHINTED = f"""
WITH {_READY}
SELECT 'workflow:' || r.id, r.id, jsonb_build_object('queue', r.queue, 'ready_since', r.since, 'runs', r.runs, 'node', w.node)
FROM ready r JOIN outlast_workflow w ON w.id = r.id
WHERE EXISTS (SELECT FROM outlast_worker k WHERE k.status = 'alive' AND k.lease_until > statement_timestamp()
                AND k.started_at <= statement_timestamp() - %(patience)s::float8 * interval '1 second' AND {_OFFERS})
  AND (w.active_seq IS NULL OR EXISTS (SELECT FROM outlast_activity a WHERE a.workflow_id = w.id AND a.seq = w.active_seq))
  AND NOT EXISTS (SELECT FROM outlast_workflow o JOIN outlast_worker k ON k.id = o.worker_id
                  WHERE o.worker_id IS NOT NULL AND o.status = 'running' AND o.queue = r.queue AND k.status = 'alive')
  AND NOT EXISTS (SELECT FROM outlast_transition t JOIN outlast_workflow o ON o.id = t.workflow_id
                  WHERE t.at > flows_now() - %(patience)s::float8 * interval '1 second' AND t.trigger = 'claim' AND o.queue = r.queue)
LIMIT %(limit)s::int
"""

#: One finding for all that lack the same; a worker that was there a moment ago may be back the next.
UNOFFERED = f"""
WITH {_READY}
SELECT format('offer:%s@%s/%s/%s/%s', r.flow_name, r.flow_version, r.queue, r.placement, r.release), r.id, jsonb_build_object(
    'flow', r.flow_name, 'version', r.flow_version, 'queue', r.queue, 'placement', r.placement, 'release', r.release, 'runs', r.runs,
    'ready_since', r.since)
FROM ready r
WHERE NOT EXISTS (SELECT FROM outlast_worker k
                  WHERE k.lease_until > statement_timestamp() - %(patience)s::float8 * interval '1 second' AND {_OFFERS})
LIMIT %(limit)s::int
"""

MIGRATION = """
SELECT 'workflow:' || w.id, w.id, jsonb_build_object('flow', w.flow_name, 'version', w.flow_version, 'node', w.node, 'code', w.error_code)
FROM outlast_workflow w
WHERE w.status IN ('waiting', 'paused') AND w.outcome = 'WORKFLOW_MIGRATION_REQUIRED'
LIMIT %(limit)s::int
"""

BEHIND = """
SELECT 'schedule:' || s.name, NULL::uuid, jsonb_build_object('schedule', s.name, 'next_at', s.next_at)
FROM outlast_schedule s
WHERE s.next_at <= flows_now() - %(patience)s::float8 * interval '1 second' AND s.next_at IS NOT NULL AND s.paused_at IS NULL
LIMIT %(limit)s::int
"""
