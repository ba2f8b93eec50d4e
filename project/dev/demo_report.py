"""What happened, read back from the database and the repository; and whether every effect happened exactly once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

NOBODY = "0" * 40


def print_timeline(description: Any) -> None:
    """The transitions of the workflow, then every attempt that its activities took."""
    began = description.timeline[0]["at"]
    print("\nThe timeline, from outlast_transition:\n")
    print(f"  {'seq':>3}  {'time':>7}  {'status':<9}  {'node':<24}  {'because':<12}  {'attempt':>7}  code")
    for row in description.timeline:
        span = (row["at"] - began).total_seconds()
        attempt = "" if row["attempt"] is None else row["attempt"]
        code = row["error_code"] or ""
        node = row["to_node"] if row["from_node"] in ("", row["to_node"]) else f"{row['from_node']} → {row['to_node']}"
        line = f"  {row['seq']:>3}  {span:>6.2f}s  {row['to_status']:<9}  {node:<24}  {row['trigger']:<12}  {attempt:>7}  {code}"
        print(line.rstrip())
    print("\nThe attempts, from outlast_attempt:\n")
    for row in description.attempts:
        span = (row["ended_at"] - row["started_at"]).total_seconds() if row["started_at"] else 0.0
        what = f"activity {row['activity_seq']:>2}, attempt {row['number']}"
        print(f"  {row['node']:<11}  {what}: {row['outcome']:<10} {span:>6.2f} s  {row['error_code'] or ''}".rstrip())


def print_operations(workflow_id: Any) -> None:
    """Every call to the outside, as the ledger has it, and what was owed."""
    from flows.models import Commitment, Operation

    print("\nThe effects, from outlast_operation:\n")
    for row in Operation.objects.filter(workflow_id=workflow_id).order_by("flown_at", "pk"):
        name = row.pk.partition("/")[2]
        print(f"  {name:<30}  {row.kind:<12}  {row.status:<11}  attempt {row.attempt}  {row.external_id[:12]}".rstrip())
    print("\nWhat was owed, from outlast_commitment:\n")
    for held in Commitment.objects.filter(workflow_id=workflow_id).order_by("pk"):
        print(f"  {held.name:<30}  {held.status}")


class Checks:
    """Each check says what it looked at. `failed` counts those that do not hold."""

    def __init__(self) -> None:
        self.failed = 0

    def __call__(self, text: str, *, holds: bool) -> None:
        self.failed += not holds
        print(f"  {'yes' if holds else 'NO '}  {text}")


def check_effects(description: Any, remote: Path, main_before: str) -> bool:
    """Whether the flow is complete and every effect happened once, by the record and by the world outside."""
    print("\nEvery effect exactly once?\n")
    check = Checks()
    check(f"the outcome is {description.outcome or description.status}", holds=description.outcome == "COMPLETE")
    _check_branch(check, description, remote)
    _check_main(check, description, remote, main_before)
    _check_events(check, description)
    _check_ledger(check, description)
    _check_log(check, description)
    lost = [row["node"] for row in description.attempts if row["outcome"] == "lost"]
    activities = len({row["activity_seq"] for row in description.attempts})
    text = f"{activities} activities took {len(description.attempts)} attempts: a worker was killed under {', '.join(lost) or 'none'}"
    check(text, holds=bool(lost))
    return check.failed == 0


def answers_of(description: Any) -> list[tuple[str, str]]:
    """(answer, digest of the candidate) of every approval request that was answered, oldest first."""
    from flows.models import Wait

    waits = Wait.objects.filter(workflow_id=description.id, kind="approval", result__isnull=False).order_by("id")
    return [(wait.result["answer"], wait.result["digest"]) for wait in waits]


def _check_branch(check: Checks, description: Any, remote: Path) -> None:
    from project.agents.coding.repository import moves

    log = moves(remote, f"refs/heads/outlast/{description.id}")
    pushed = [new for _, new in log]
    chained = [old for old, _ in log] == [NOBODY, *pushed[:-1]]
    text = f"the remote's log of the branch has one push for each candidate: {', '.join(sha[:8] for sha in pushed)}"
    check(text, holds=bool(pushed) and chained and len(set(pushed)) == len(pushed))


def _check_main(check: Checks, description: Any, remote: Path, before: str) -> None:
    from project.agents.coding.commits import CANDIDATE, OPERATION
    from project.agents.coding.git import MAIN, Workspace
    from project.agents.coding.repository import moves

    heads = [new for _, new in moves(remote, MAIN)]
    since = heads[heads.index(before) + 1 :]
    check(f"the remote's log of main has one move: {', '.join(sha[:8] for sha in since)}", holds=len(since) == 1)
    space = Workspace(remote, str(remote))
    merges, candidates = space.trailers(MAIN, OPERATION), space.trailers(MAIN, CANDIDATE)
    check(f"main holds one operation of Outlast: {', '.join(merges.values())}", holds=list(merges) == since)
    approved = [digest for answer, digest in answers_of(description) if answer == "approved"]
    text = f"merged is the candidate that was approved: {', '.join(digest[:15] for digest in approved)}"
    check(text, holds=[candidates.get(commit) for commit in merges] == approved)


def _check_events(check: Checks, description: Any) -> None:
    from flows.models import Event

    events = list(Event.objects.filter(workflow_id=description.id).order_by("id"))
    strangers = Event.objects.exclude(workflow_id=description.id).count()
    counts = [event.deliveries for event in events]
    once = len({event.event_id for event in events}) == len(events) and all(e.status == "consumed" for e in events)
    text = f"CI sent {len(events)} events, delivered {counts} times, each consumed once"
    check(text, holds=bool(events) and once and not strangers)


def _check_ledger(check: Checks, description: Any) -> None:
    from flows import commitments
    from flows.models import Operation

    rows = list(Operation.objects.filter(workflow_id=description.id))
    known = {row.pk for row in rows if row.status == "succeeded"}
    text = f"of {len(rows)} operations in the ledger every outcome is known, and nothing is owed any more"
    check(text, holds=len(known) == len(rows) > 0 and not commitments.active(workflow=description.id))


def _check_log(check: Checks, description: Any) -> None:
    from flows.services.describe import verify

    differences = [difference for _, found in verify(description.id) for difference in found]
    text = f"the log of {len(description.timeline)} transitions gives the workflow's row"
    check(f"{text} {differences or ''}".strip(), holds=not differences)
