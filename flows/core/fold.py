"""Rebuild a workflow's state from its log, and say where log and row differ (A4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from flows.core.protocol import Status, is_legal

#: What the log rebuilds. Results stay in activities and waits.
FIELDS = ("version", "status", "node", "outcome", "epoch", "intent_version", "policy_version")


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where the log does not say what the row says, or where the log itself is broken."""

    field: str
    log: Any
    row: Any


def fold(transitions: Iterable[Mapping[str, Any]]) -> tuple[dict[str, Any], list[Difference]]:
    """The state at the end of the log, and the faults found inside the log.

    Args:
        transitions: rows in order of `seq`, each with seq, from_status, to_status, from_node, to_node, outcome, epoch,
            intent_version, policy_version.
    """
    state: dict[str, Any] = {}
    faults: list[Difference] = []
    for row in transitions:
        expected = state.get("version", 0) + 1
        if row["seq"] != expected:
            faults.append(Difference(f"seq after {expected - 1}", row["seq"], expected))
        if state and row["from_status"] != state["status"]:
            faults.append(Difference(f"from_status of {row['seq']}", row["from_status"], state["status"]))
        if state and row["from_node"] != state["node"]:
            faults.append(Difference(f"from_node of {row['seq']}", row["from_node"], state["node"]))
        if not state and row["from_status"]:
            faults.append(Difference(f"from_status of {row['seq']}", row["from_status"], ""))
        if not _legal(row["from_status"], row["to_status"]):
            faults.append(Difference(f"move of {row['seq']}", f"{row['from_status']} → {row['to_status']}", "illegal"))
        if state and row["epoch"] < state["epoch"]:
            faults.append(Difference(f"epoch of {row['seq']}", row["epoch"], state["epoch"]))
        state = {
            "version": row["seq"],
            "status": row["to_status"],
            "node": row["to_node"],
            "outcome": row["outcome"],
            "epoch": row["epoch"],
            "intent_version": row["intent_version"],
            "policy_version": row["policy_version"],
        }
    return state, faults


def _legal(source: str, target: str) -> bool:
    if not {source or target, target} <= set(Status):
        return False
    return is_legal(Status(source) if source else None, Status(target))


def compare(transitions: Iterable[Mapping[str, Any]], row: Mapping[str, Any]) -> list[Difference]:
    """All differences between a workflow's log and its row; none for a sound workflow."""
    state, faults = fold(transitions)
    if not state:
        return [Difference("log", "empty", "row exists")]
    return faults + [
        Difference(field, state[field], row[field]) for field in FIELDS if (state[field] or "") != (row[field] or "")
    ]
