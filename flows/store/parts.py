"""The parts of waits for several events: opened with their wait, filled one event each, counted on the wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from flows.core.moves import Part
from flows.store.sql import dumps, run

OPEN = """
WITH parts AS (
    INSERT INTO outlast_wait_part (wait_id, workflow_id, number, name, event_type, key, event_id, evidence, open)
    SELECT %(wait)s::bigint, %(workflow)s::uuid, x.number, x.name, x.event_type, x.key, x.event, x.evidence::jsonb, x.event IS NULL
    FROM unnest(%(names)s::text[], %(types)s::text[], %(keys)s::text[], %(events)s::bigint[], %(evidence)s::text[])
        WITH ORDINALITY AS x(name, event_type, key, event, evidence, number)
    RETURNING event_id
), counted AS (
    UPDATE outlast_wait o SET got = n.got, event_id = n.last
    FROM (SELECT count(event_id)::int AS got, max(event_id) AS last FROM parts) n WHERE o.id = %(wait)s::bigint AND n.got > 0
)
UPDATE outlast_event e SET status = 'consumed', place = CASE WHEN e.redelivered > 0 THEN 'redelivered' ELSE 'taken' END,
    wait_id = %(wait)s::bigint, workflow_id = %(workflow)s::uuid
FROM parts p WHERE e.id = p.event_id AND e.status NOT IN ('consumed', 'conflict') RETURNING e.id
"""


def open_parts(
    wait_id: int, workflow_id: UUID, parts: Sequence[Part], filled: Mapping[int, tuple[int, Mapping[str, Any]]], using: str
) -> None:
    """Write the parts of a wait that was just opened; `filled`: place in `parts` → (row of the inbox, evidence) of what came early."""
    params = {
        "wait": wait_id,
        "workflow": workflow_id,
        "names": [part.name for part in parts],
        "types": [part.event_type for part in parts],
        "keys": [part.key for part in parts],
        "events": [filled[number][0] if number in filled else None for number in range(len(parts))],
        "evidence": [dumps(filled[number][1]) if number in filled else None for number in range(len(parts))],
    }
    run("open parts", OPEN, params, using)


#: Of several parts of one wait on this channel the lowest number is filled. The workflows are locked, and this is a new statement, so that
#: of two events for two parts the second one sees what the first one has counted.
FILL = """
WITH wanted AS (
    SELECT DISTINCT ON (p.wait_id) p.id, p.wait_id, p.workflow_id
    FROM outlast_wait_part p JOIN outlast_wait o ON o.id = p.wait_id JOIN outlast_workflow w ON w.id = o.workflow_id
    WHERE p.wait_id = ANY (%(waits)s::bigint[]) AND p.open AND p.event_type = %(type)s AND (%(key)s::text IS NULL OR p.key = %(key)s)
      AND o.closed_at IS NULL AND o.evidence IS NULL AND o.epoch = w.epoch AND w.status IN ('waiting', 'paused', 'runnable', 'running')
    ORDER BY p.wait_id, p.number
), filled AS (
    UPDATE outlast_wait_part p SET open = false, event_id = %(event)s::bigint, evidence = jsonb_build_object(
        'name', p.name, 'id', %(event_id)s::text, 'type', %(type)s::text, 'key', %(came_by)s::text, 'payload', %(payload)s::jsonb)
    FROM wanted x WHERE p.id = x.id
    RETURNING p.wait_id
), counted AS (
    UPDATE outlast_wait o SET got = o.got + 1, event_id = %(event)s::bigint FROM filled f WHERE o.id = f.wait_id
    RETURNING o.id, o.workflow_id, o.got >= o.need AS enough
), consumed AS (
    UPDATE outlast_event e SET status = 'consumed', place = CASE WHEN e.redelivered > 0 THEN 'redelivered' ELSE 'taken' END,
        wait_id = c.id, workflow_id = c.workflow_id
    FROM (SELECT id, workflow_id FROM counted ORDER BY workflow_id LIMIT 1) c
    WHERE e.id = %(event)s::bigint AND e.status NOT IN ('consumed', 'conflict')
)
SELECT c.id, c.workflow_id, c.enough FROM counted c ORDER BY c.workflow_id
"""


class Filled(NamedTuple):
    """A wait of which a part was filled. `enough`: it has all that it needs now."""

    wait: int
    workflow: UUID
    enough: bool


def fill(
    waits: Sequence[int], *, event: int, event_id: str, event_type: str, key: str, payload: str, using: str, any_key: bool = False
) -> list[Filled]:
    """Fill one part of each of these waits with the event. The workflows must be locked. `any_key`: a part of the type, whatever its key."""
    params = {
        "waits": list(waits),
        "type": event_type,
        "key": None if any_key else key,
        "came_by": key,
        "event": event,
        "event_id": event_id,
        "payload": payload,
    }
    return [Filled(*row) for row in run("fill parts", FILL, params, using)]


OF_WAIT = """
SELECT name, event_type, key, event_id IS NOT NULL FROM outlast_wait_part WHERE wait_id = %(wait)s::bigint ORDER BY number
"""


def of_wait(wait_id: int, using: str) -> list[tuple[Part, bool]]:
    """The parts of a wait in their order, and whether each is filled."""
    rows = run("parts of wait", OF_WAIT, {"wait": wait_id}, using)
    return [(Part(row[0], row[1], row[2]), row[3]) for row in rows]
