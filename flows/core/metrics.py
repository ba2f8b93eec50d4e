"""The metrics that are shown to a monitoring system: each in one table, and the text format of Prometheus. Pure.

All are gauges: facts of the record, the same whichever process is asked. Those that begin with `outlast_day_` are of the last 24 hours that are
rolled up, and change once an hour; the others are of now.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: its name, what it says, and the names of its labels."""

    name: str
    help: str
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sample:
    """One value of a metric; as many labels as the metric has, in its order."""

    metric: str
    labels: tuple[str, ...]
    value: float


_FLOW = ("flow", "version")

#: Every metric there is, by its name; docs/reference/metrics.md has them all, and the alerts and the dashboard name no other.
METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("outlast_workflows", "Live workflows.", (*_FLOW, "status")),
        Metric("outlast_workflow_oldest_seconds", "Age of the oldest live workflow, since its start.", (*_FLOW, "status")),
        Metric(
            "outlast_workflow_unmoved_seconds", "Since when the live workflow that moved last of all has not.", (*_FLOW, "status")
        ),
        Metric("outlast_waits", "Open waits; the team looks first.", (*_FLOW, "kind", "bucket", "team")),
        Metric("outlast_wait_oldest_seconds", "Age of the oldest open wait.", (*_FLOW, "kind", "team")),
        Metric(
            "outlast_waits_overdue",
            "Open waits over their deadline, and who decides about them.",
            (*_FLOW, "kind", "team", "decides"),
        ),
        Metric("outlast_ready", "Workflows that are ready, not held and not taken.", ("queue",)),
        Metric("outlast_ready_oldest_seconds", "Since when the oldest of them is ready.", ("queue",)),
        Metric("outlast_workers", "Live workers that serve a queue.", ("queue",)),
        Metric("outlast_tick_age_seconds", "Since when the clock was not looked at."),
        Metric("outlast_measured_age_seconds", "Since the end of the last hour that is rolled up."),
        Metric("outlast_operations_in_doubt", "Effects of which nobody knows whether they happened.", _FLOW),
        Metric("outlast_doubt_oldest_seconds", "Since when the oldest of them is in doubt.", _FLOW),
        Metric("outlast_commitments", "Live commitments.", _FLOW),
        Metric("outlast_commitments_breached", "Live commitments that are over their deadline.", _FLOW),
        Metric(
            "outlast_orphans",
            "Open findings of the liveness scan; some are about no workflow.",
            (*_FLOW, "kind", "team"),
        ),
        Metric("outlast_orphan_oldest_seconds", "Since when the oldest of them was found.", (*_FLOW, "kind", "team")),
        Metric("outlast_reviewers_waiting", "Requests that wait for an answer, by whom they ask.", ("kind", "audience")),
        Metric("outlast_reviewers_oldest_seconds", "Age of the oldest of them.", ("kind", "audience")),
        Metric("outlast_day_seconds", "Where the time of workflows went.", (*_FLOW, "bucket")),
        Metric("outlast_day_started", "Workflows that were started.", _FLOW),
        Metric("outlast_day_ended", "Workflows that ended.", (*_FLOW, "outcome")),
        Metric("outlast_day_attempts", "Attempts that ended.", (*_FLOW, "outcome")),
        Metric("outlast_day_visits", "Activities of which the first attempt ended.", _FLOW),
        Metric("outlast_day_wake_seconds", "From what a workflow waited for until a worker had taken it.", (*_FLOW, "quantile")),
        Metric("outlast_day_verdicts", "Answers of gates.", (*_FLOW, "verdict")),
        Metric("outlast_day_objective", "What an objective is about: how many there were.", (*_FLOW, "objective")),
        Metric(
            "outlast_day_breaches",
            "Those that were later than the objective, by what took the time.",
            (*_FLOW, "objective", "blame"),
        ),
        Metric("outlast_objective_share", "The share that is promised to be in time.", (*_FLOW, "objective")),
    )
}


def as_text(samples: Iterable[Sample]) -> str:
    """The text format of Prometheus, version 0.0.4: every metric with its help, whether it has a value or not."""
    by_name: dict[str, list[Sample]] = {name: [] for name in METRICS}
    for one in samples:
        by_name[one.metric].append(one)
    lines: list[str] = []
    for name, found in by_name.items():
        lines += [f"# HELP {name} {METRICS[name].help}", f"# TYPE {name} gauge"]
        lines += [f"{name}{_labels(METRICS[name], one)} {as_number(one.value)}" for one in found]
    return "\n".join(lines) + "\n"


def _labels(metric: Metric, sample: Sample) -> str:
    if not metric.labels:
        return ""
    pairs = zip(metric.labels, sample.labels, strict=True)
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in pairs) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def as_number(value: float) -> str:
    """A number as the format has it."""
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if float(value).is_integer() else repr(float(value))
