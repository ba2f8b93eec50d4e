"""Requests that have lost their wait, and waits that have lost their request: the kind `request_adrift` of the liveness scan."""

from __future__ import annotations

from flows.core.protocol import ASKING
from flows.store.sql import literals

#: The request behind an approval and an ask is opened and closed in the transaction of its wait. A tool may have asked several things, of
#: which some are answered: its wait stands as long as its run does.
ADRIFT = f"""
(SELECT 'request:' || r.id, r.workflow_id, jsonb_build_object(
    'request', r.id, 'node', r.node, 'tool', r.tool, 'why', 'nobody waits for the answer')
 FROM outlast_approval_request r JOIN outlast_workflow w ON w.id = r.workflow_id LEFT JOIN outlast_wait o ON o.id = r.wait_id
 WHERE r.status = 'pending' AND (
    w.status IN ('complete', 'failed', 'cancelled', 'superseded') OR r.tool = '' AND (o.id IS NULL OR o.status <> 'open'))
 LIMIT %(limit)s::int)
UNION ALL
(SELECT 'wait:' || o.id, o.workflow_id, jsonb_build_object('wait', o.id, 'node', o.node, 'kind', o.kind, 'why', 'nobody is asked')
 FROM outlast_wait o JOIN outlast_workflow w ON w.id = o.workflow_id
 WHERE o.status = 'open' AND o.kind IN ({literals(ASKING)}) AND w.status = 'waiting' AND w.outcome = 'WAITING' AND o.epoch = w.epoch
   AND o.evidence IS NULL AND o.due_since IS NULL
   AND NOT EXISTS (SELECT FROM outlast_approval_request r WHERE r.wait_id = o.id AND r.status = 'pending')
 LIMIT %(limit)s::int)
LIMIT %(limit)s::int
"""
