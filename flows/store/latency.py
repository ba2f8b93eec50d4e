"""From the log: each wake-up out of a wait, and the claim right behind it."""

from __future__ import annotations

from typing import Any

from flows.store.sql import literals, run

#: Triggers of arrows out of a wait that nothing has arrived for: somebody let the run go on, or moved it.
BY_PEOPLE = ("resume", "migrate", "pin", "policy")

WAKE_UPS = f"""
SELECT k.kind, count(*)::int, percentile_cont(0.5) WITHIN GROUP (ORDER BY k.took), percentile_cont(0.99) WITHIN GROUP (ORDER BY k.took),
    max(k.took)
FROM (
    SELECT (SELECT o.kind FROM outlast_wait o WHERE o.workflow_id = t.workflow_id AND o.opened_at <= t.at ORDER BY o.id DESC LIMIT 1) AS kind,
        extract(epoch FROM c.at - t.at)::float8 AS took
    FROM outlast_transition t
    JOIN outlast_transition c ON c.workflow_id = t.workflow_id AND c.seq = t.seq + 1 AND c.trigger = 'claim'
    JOIN outlast_workflow w ON w.id = t.workflow_id
    WHERE t.from_status = 'waiting' AND t.to_status = 'runnable' AND t.trigger NOT IN ({literals(BY_PEOPLE)})
      AND t.at > flows_now() - %(days)s::int * interval '1 day' AND (%(flow)s::text IS NULL OR w.flow_name = %(flow)s)
) k WHERE k.kind IS NOT NULL GROUP BY k.kind ORDER BY 2 DESC, 1
"""


def wake_ups(flow: str | None, days: int, using: str) -> list[tuple[Any, ...]]:
    """(kind of wait, how many, median, 99th percentile, longest), in seconds."""
    return run("latency", WAKE_UPS, {"flow": flow, "days": days}, using)
