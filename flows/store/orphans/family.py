"""Children that are not counted, groups of them that nobody ends, and slots that are held for nobody."""

from __future__ import annotations

_ENDED = "('complete', 'failed', 'cancelled', 'superseded')"

#: The end of a run writes its branch, and the clock counts it. A run that goes on as another one has not ended.
BRANCH_UNCOUNTED = f"""
(SELECT format('branch:%s/%s', b.fan_id, b.number), b.parent_id, jsonb_build_object(
    'fan', b.fan_id, 'number', b.number, 'child', b.workflow_id, 'ended_at', b.ended_at)
 FROM outlast_branch b
 WHERE b.ended_at IS NOT NULL AND b.counted_at IS NULL AND b.ended_at <= flows_now() - %(patience)s::float8 * interval '1 second'
 LIMIT %(limit)s::int)
UNION ALL
(SELECT format('branch:%s/%s', b.fan_id, b.number), b.parent_id, jsonb_build_object(
    'fan', b.fan_id, 'number', b.number, 'child', b.workflow_id, 'ended_at', NULL, 'child_is', w.status)
 FROM outlast_fan f JOIN outlast_branch b ON b.fan_id = f.id JOIN outlast_workflow w ON w.id = b.workflow_id
 WHERE f.status = 'open' AND b.status = 'running' AND b.ended_at IS NULL AND w.status IN {_ENDED} AND w.outcome <> 'CONTINUED'
 LIMIT %(limit)s::int)
LIMIT %(limit)s::int
"""

#: First: those whose run has ended, or is another generation. Then: those that their counters have ended, of runs that live.
FAN_ADRIFT = f"""
SELECT 'fan:' || f.id, f.workflow_id, jsonb_build_object('fan', f.id, 'node', f.node, 'run', w.status, 'why',
    CASE WHEN w.status IN {_ENDED} OR w.epoch <> f.epoch THEN 'nobody waits for it' ELSE 'it is complete' END,
    'total', f.total, 'running', f.running, 'succeeded', f.succeeded, 'failed', f.failed, 'cancelled', f.cancelled, 'skipped', f.skipped)
FROM outlast_fan f JOIN outlast_workflow w ON w.id = f.workflow_id
WHERE f.status = 'open' AND (
    (f.awaited OR f.on_cancel <> 'abandon') AND (w.status IN {_ENDED} OR w.epoch <> f.epoch)
    OR (w.status IN ('waiting', 'runnable', 'running', 'paused') AND w.epoch = f.epoch AND w.target = ''
        OR NOT f.awaited AND f.on_cancel = 'abandon')
       AND (f.failed + f.cancelled > f.tolerated OR f.succeeded >= f.need OR f.succeeded + f.failed + f.cancelled + f.skipped >= f.total))
LIMIT %(limit)s::int
"""

#: As the pump sees it (`flows.store.slots.RECLAIM`), which looks only where somebody waits.
SLOT_ADRIFT = f"""
SELECT format('slot:%s/%s', s.limit_id, s.number), s.workflow_id, jsonb_build_object(
    'limit', s.limit_id, 'number', s.number, 'run', w.status, 'activity', s.activity_seq, 'since', s.since)
FROM outlast_slot s LEFT JOIN outlast_workflow w ON w.id = s.workflow_id
LEFT JOIN outlast_activity a ON a.workflow_id = s.workflow_id AND a.seq = s.activity_seq
WHERE s.workflow_id IS NOT NULL AND s.since <= flows_now() - %(patience)s::float8 * interval '1 second' AND (
    w.id IS NULL OR w.status IN {_ENDED}
    OR s.activity_seq IS NOT NULL AND NOT coalesce(
        w.active_seq = s.activity_seq AND (a.status = 'running' AND (s.fence IS NULL OR s.fence = a.fence)), false))
LIMIT %(limit)s::int
"""
