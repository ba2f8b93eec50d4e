"""The parts that statements share which wake a workflow, by an answer, an event or a timer: it is told, made ready, and the log says so.

`old` gives id, status and wait_id of what is woken; a workflow that computes, or is paused, is told and stays as it is.
Parameters: priority_seconds, trigger, ref.
"""

from __future__ import annotations


def woken(was: str) -> str:
    """What an update of a workflow `w` sets, where `was` is its status before, or nothing for who is only told."""
    return f"""wake_seq = w.wake_seq + 1, status = CASE WHEN {was} = 'waiting' THEN 'runnable' ELSE w.status END,
        outcome = CASE WHEN {was} = 'waiting' THEN '' ELSE w.outcome END,
        version = w.version + CASE WHEN {was} = 'waiting' THEN 1 ELSE 0 END,
        rank = CASE WHEN {was} = 'waiting' THEN flows_now() - w.priority * %(priority_seconds)s::int * interval '1 second'
                    ELSE w.rank END,
        due_at = CASE WHEN {was} = 'waiting' THEN NULL ELSE w.due_at END, updated_at = flows_now()"""


MOVED = f"""moved AS (
    UPDATE outlast_workflow w
    SET {woken("old.status")}
    FROM old WHERE w.id = old.id
    RETURNING w.*, old.status AS was, old.wait_id
)"""

LOGGED = """logged AS (
    INSERT INTO outlast_transition (
        workflow_id, seq, from_status, to_status, from_node, to_node, outcome, epoch, trigger, trigger_ref, intent_version,
        policy_version, activity_seq, at)
    SELECT m.id, m.version, 'waiting', 'runnable', m.node, m.node, '', m.epoch, %(trigger)s, %(ref)s, m.intent_version,
        m.policy_version, m.active_seq, flows_now()
    FROM moved m WHERE m.was = 'waiting'
)"""
