"""Waits that nothing will end, and moments on record without their timers.

Which wait is woken by what: an event by the inbox, a question by people (the plane of those looks itself), capacity by the pump, children by
their open fan, everything else by a timer. A moment that has passed was marked by its timer (`due_since`), so a wait that has neither mark nor
pending timer has lost it.
"""

from __future__ import annotations

from flows.core.protocol import ASKING
from flows.store.sql import literals

#: Pending timers of waits, by what they say. With NOT IN they are hashed, whatever is known of the tables: of a young record nothing is, and a
#: join would compare each with each.
_ENDS = "SELECT t.wait_id FROM outlast_timer t WHERE t.status = 'pending' AND t.wait_id IS NOT NULL AND t.kind = 'wait_deadline'"
_WAKES = "SELECT t.wait_id FROM outlast_timer t WHERE t.status = 'pending' AND t.wait_id IS NOT NULL AND t.kind IN ('sleep', 'retry', 'poll')"
_ENDING = "SELECT t.workflow_id FROM outlast_timer t WHERE t.status = 'pending' AND t.kind = 'workflow_deadline'"
_OWED = "SELECT t.commitment_id FROM outlast_timer t WHERE t.status = 'pending' AND t.commitment_id IS NOT NULL"

_RESTS = "w.status = 'waiting' AND w.outcome = 'WAITING' AND o.epoch = w.epoch AND o.evidence IS NULL"

#: Nothing stands open, or children that nobody counts, or what is all there already. The last two arms: its event lies in the inbox.
UNWOKEN = f"""
WITH live AS MATERIALIZED (
    SELECT w.id AS workflow_id, w.node, o.id, o.kind, o.event_type, o.key, o.need, o.evidence IS NOT NULL AS told
    FROM outlast_workflow w LEFT JOIN outlast_wait o ON o.workflow_id = w.id AND o.status = 'open' AND o.epoch = w.epoch
    WHERE w.status = 'waiting' AND w.outcome = 'WAITING'
), inbox AS MATERIALIZED (
    SELECT e.id, e.type, e.key FROM outlast_event e
    WHERE e.status = 'pending' AND e.about_workflow IS NULL AND e.about_wait IS NULL AND e.about_epoch IS NULL AND e.about_intent IS NULL
)
(SELECT 'workflow:' || l.workflow_id, l.workflow_id, jsonb_build_object('node', l.node, 'wait', l.id, 'kind', l.kind, 'why',
    CASE WHEN l.id IS NULL THEN 'no wait of it is open' WHEN l.told THEN 'it has its answer, and was not woken'
         WHEN l.kind = 'children' THEN 'nobody counts its children' ELSE 'none of its parts is open' END)
 FROM live l
 WHERE l.id IS NULL OR l.told OR l.kind NOT IN ({literals(ASKING)}) AND (
    l.kind = 'children' AND NOT EXISTS (SELECT FROM outlast_fan f WHERE f.wait_id = l.id AND f.status = 'open')
    OR l.need > 0 AND NOT EXISTS (SELECT FROM outlast_wait_part p WHERE p.wait_id = l.id AND p.open))
 LIMIT %(limit)s::int)
UNION ALL
(SELECT DISTINCT ON (w.id) 'workflow:' || w.id, w.id, jsonb_build_object('node', o.node, 'wait', o.id, 'kind', o.kind,
    'event', e.id, 'why', 'its event is in the inbox')
 FROM inbox e JOIN outlast_wait o ON o.event_type = e.type AND o.key = e.key AND o.closed_at IS NULL AND o.event_type <> ''
 JOIN outlast_workflow w ON w.id = o.workflow_id AND {_RESTS}
 ORDER BY w.id, e.id LIMIT %(limit)s::int)
UNION ALL
(SELECT DISTINCT ON (w.id) 'workflow:' || w.id, w.id, jsonb_build_object('node', o.node, 'wait', o.id, 'kind', o.kind,
    'event', e.id, 'why', 'its event is in the inbox')
 FROM inbox e JOIN outlast_wait_part p ON p.open AND p.event_type = e.type AND p.key = e.key
 JOIN outlast_wait o ON o.id = p.wait_id AND o.closed_at IS NULL JOIN outlast_workflow w ON w.id = o.workflow_id AND {_RESTS}
 ORDER BY w.id, e.id LIMIT %(limit)s::int)
LIMIT %(limit)s::int
"""

#: A moment is on record on the wait, on its run, or on the commitment. A job that is polled is looked at before its time is over.
TIMER_LOST = f"""
WITH few AS MATERIALIZED (
    SELECT o.id, o.workflow_id, o.kind, o.deadline_at, o.node, o.epoch, o.deadline_at IS NOT NULL AND o.id NOT IN ({_ENDS}) AS endless,
        o.kind IN ('timer', 'external_job') AND o.id NOT IN ({_WAKES}) AS asleep
    FROM outlast_wait o WHERE o.status = 'open' AND o.due_since IS NULL
), open AS MATERIALIZED (
    SELECT f.*, w.due_at FROM few f JOIN outlast_workflow w ON w.id = f.workflow_id
    WHERE (f.endless OR f.asleep) AND f.epoch = w.epoch AND w.status IN ('waiting', 'paused')
), dated AS MATERIALIZED (
    SELECT w.id, w.node, w.deadline_at FROM outlast_workflow w
    WHERE w.status IN ('waiting', 'paused') AND w.deadline_at IS NOT NULL AND w.id NOT IN ({_ENDING})
    UNION ALL
    SELECT w.id, w.node, w.deadline_at FROM outlast_workflow w
    WHERE w.status = 'runnable' AND w.deadline_at IS NOT NULL AND w.id NOT IN ({_ENDING})
)
(SELECT 'wait:' || o.id, o.workflow_id, jsonb_build_object('timer', 'wait_deadline', 'at', o.deadline_at, 'node', o.node, 'wait', o.id)
 FROM open o WHERE o.endless LIMIT %(limit)s::int)
UNION ALL
(SELECT 'wake:' || o.id, o.workflow_id, jsonb_build_object(
    'timer', CASE o.kind WHEN 'timer' THEN 'sleep' ELSE 'poll' END, 'at', o.due_at, 'node', o.node, 'wait', o.id)
 FROM open o
 WHERE o.asleep AND (o.kind = 'timer' OR o.kind = 'external_job' AND o.due_at IS NOT NULL AND o.due_at IS DISTINCT FROM o.deadline_at)
 LIMIT %(limit)s::int)
UNION ALL
(SELECT 'workflow:' || d.id, d.id, jsonb_build_object('timer', 'workflow_deadline', 'at', d.deadline_at, 'node', d.node)
 FROM dated d
 WHERE NOT EXISTS (SELECT FROM outlast_timer t WHERE t.workflow_id = d.id AND t.kind = 'workflow_deadline')
 LIMIT %(limit)s::int)
UNION ALL
(SELECT 'commitment:' || c.id, c.workflow_id, jsonb_build_object(
    'timer', 'commitment_deadline', 'at', c.deadline_at, 'node', c.node, 'commitment', c.id)
 FROM outlast_commitment c
 WHERE c.status = 'active' AND c.deadline_at IS NOT NULL AND c.id NOT IN ({_OWED})
 LIMIT %(limit)s::int)
LIMIT %(limit)s::int
"""

ENDLESS = f"""
SELECT 'wake:' || o.id, o.workflow_id, jsonb_build_object('timer', 'retry', 'at', w.due_at, 'node', o.node, 'wait', o.id)
FROM outlast_wait o JOIN outlast_workflow w ON w.id = o.workflow_id
WHERE o.status = 'open' AND o.kind = 'retry_window' AND o.due_since IS NULL AND w.status IN ('waiting', 'paused') AND o.epoch = w.epoch
  AND o.id NOT IN ({_WAKES})
LIMIT %(limit)s::int
"""
