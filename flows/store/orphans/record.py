"""What no arrow can make, of runs that live. Each part is found by the index of its status."""

from __future__ import annotations

_COLUMNS = "w.id, w.version, w.status, w.node, w.active_seq"

HALF = f"""
WITH live AS MATERIALIZED (
    SELECT {_COLUMNS} FROM outlast_workflow w WHERE w.status IN ('waiting', 'paused', 'cancelling')
    UNION ALL SELECT {_COLUMNS} FROM outlast_workflow w WHERE w.status = 'runnable'
    UNION ALL SELECT {_COLUMNS} FROM outlast_workflow w WHERE w.status = 'running' AND w.worker_id IS NOT NULL
    UNION ALL SELECT {_COLUMNS} FROM outlast_workflow w WHERE w.status = 'reconciling'
)
(SELECT 'workflow:' || w.id, w.id, jsonb_build_object('status', w.status, 'node', w.node, 'version', w.version, 'why',
    'the log has no row of this version')
 FROM live w WHERE NOT EXISTS (SELECT FROM outlast_transition x WHERE x.workflow_id = w.id AND x.seq = w.version) LIMIT %(limit)s::int)
UNION ALL
(SELECT 'activity:' || w.id || '/' || w.active_seq, w.id, jsonb_build_object('status', w.status, 'node', w.node, 'activity', w.active_seq, 'why',
    CASE WHEN a.seq IS NULL THEN 'its open activity is gone' ELSE 'an activity runs under a run that does not' END)
 FROM live w LEFT JOIN outlast_activity a ON a.workflow_id = w.id AND a.seq = w.active_seq
 WHERE w.active_seq IS NOT NULL AND (a.seq IS NULL OR a.status = 'running' AND w.status <> 'running') LIMIT %(limit)s::int)
LIMIT %(limit)s::int
"""
