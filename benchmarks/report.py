"""Tables for people and one JSON line per workload for programs, from the records of one run."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from benchmarks import bars
from benchmarks.plan import OURS, QUEUED, WORKLOADS

COLUMNS = {
    "w1": (
        "wf_s step_s worker_cpu_ms_step pg_cpu_ms_step redis_cpu_ms_step commits_wf write_tx_wf wal_fsyncs_wf wal_kb_wf enqueue_s mem_mb"
    ),
    "w2": "p50_ms p99_ms min_ms",
    "w3": "wake_wf_s late_p50_s late_p99_s idle_mb asleep_mb worker_cpu_ms_wake pg_cpu_ms_wake before_due",
    "w3one": "late_p50_ms late_p99_ms late_max_ms late_min_ms",
    "w3many": (
        "asleep enqueue_s asleep_wf_s messages_wf worker_mb_growth redis_mb_growth redis_queued core_share_before core_share_after "
        "p50_ms_before p50_ms_after"
    ),
    "w4": "one_p50_ms one_p99_ms bulk_p50_ms bulk_p99_ms bulk_wf_s waiting_mb",
    "w5": "kill_to_done_s steps_rerun stuck total_s",
    "trace": "statements_wf write_tx_wf messages_wf",
    "idle": "statements_s core_share worker_mb",
}
#: The peers whose best is the line's `peer`.
RIVALS = {"w1": ("absurd",), "w2": QUEUED, "w3": QUEUED, "w4": QUEUED, "w5": QUEUED, "trace": QUEUED, "idle": ("celery",)}

Records = list[dict[str, Any]]


def read(path: Path) -> Records:
    return [json.loads(line) for line in path.read_text().splitlines()]


def figures_of(records: Records, workload: str, *, cpu_known: bool) -> bars.Figures:
    found: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for record in records:
        if record["workload"] == workload and record.get("res"):
            found.setdefault((record["peer"], record["variant"]), []).append(record["res"])
    return bars.Figures(workload, found, cpu_known)


def measured(records: Records) -> list[str]:
    """The workloads that were measured, in the plan's order."""
    return [workload for workload in WORKLOADS if any(record["workload"] == workload for record in records)]


def table(records: Records) -> str:
    """Markdown, one table per workload: min / **median** / max over the rounds."""
    parts = []
    for workload in measured(records):
        columns = COLUMNS[workload].split()
        head = ["peer", "variant", "n", "conc", "runs", *columns]
        lines = [f"### {workload}  (min / **median** / max)", "", _row(head), "|---" * len(head) + "|"]
        for peer, variant in dict.fromkeys((r["peer"], r["variant"]) for r in records if r["workload"] == workload):
            rows = [r for r in records if (r["workload"], r["peer"], r["variant"]) == (workload, peer, variant)]
            lines.append(_row([peer, variant, *_cells(rows, columns)]))
        parts.append("\n".join(lines))
    versions = {f"{r['peer']}: " + ", ".join(f"{k} {v}" for k, v in r["versions"].items()) for r in records if "versions" in r}
    return "\n\n".join([*parts, "Versions: " + "; ".join(sorted(versions))])


def _cells(rows: Records, columns: list[str]) -> list[str]:
    results = [row["res"] for row in rows if row.get("res")]
    failed = len(rows) - len(results)
    size = str(results[0]["n"]) if results else ""
    cells = [size, str(rows[0].get("conc", "")), f"{len(results)} +{failed} failed" if failed else str(len(results))]
    for column in columns:
        values = [float(result[column]) for result in results if result.get(column) is not None]
        cells.append(_spread(values) if values else "never")
    return cells


def _spread(values: list[float]) -> str:
    middle = f"**{_number(statistics.median(values))}**"
    return middle if len(values) == 1 else f"{_number(min(values))} / {middle} / {_number(max(values))}"


def _number(value: float) -> str:
    size = abs(value)
    return f"{value:,.0f}" if size >= 100 else f"{value:.1f}" if size >= 10 else f"{value:.2f}"


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def lines(records: Records, *, cpu_known: bool, quick: bool) -> list[dict[str, Any]]:
    """One object per workload: ours, the peer it is held against, the ratios, every peer's median, and the bars."""
    return [_line(figures_of(records, name, cpu_known=cpu_known), records, quick=quick) for name in measured(records)]


def _line(figures: bars.Figures, records: Records, *, quick: bool) -> dict[str, Any]:
    workload = figures.workload
    column, _ = bars.HEADLINE[workload]
    mine, best = figures.median(OURS, column), figures.best(RIVALS.get(workload, ()))
    peer = best[0] if best else None
    return {
        "workload": workload,
        "figure": column,
        "ours": bars.rounded(mine),
        "peer": bars.rounded(best[1]) if best else None,
        "peer_name": next((f"{name}/{variant}" for name, variant in figures.by_peer if name == peer), None),
        "ratio": bars.rounded(bars.ratio(mine, best[1])) if best else None,
        "cpu_ratio": bars.rounded(bars.ratio(figures.cpu(OURS), figures.cpu(peer))) if peer else None,
        "ratio_rounds": _by_round(records, workload, column, peer),
        "cpu_ms": {name: bars.rounded(cost) for name, _ in figures.by_peer if (cost := figures.cpu(name)) is not None},
        "all": {f"{name}/{variant}": bars.rounded(figures.median(name, column)) for name, variant in figures.by_peer},
        "rounds": max((len(results) for results in figures.by_peer.values()), default=0),
        "errors": [f"{r['peer']}/{r['variant']}: {r['error']}" for r in records if r["workload"] == workload and r.get("error")],
        "quick": quick,
        "bars": [bar.as_json() for bar in bars.judge(figures)],
    }


def _by_round(records: Records, workload: str, column: str, peer: str | None) -> list[float]:
    """The ratio in each round: how steady it is."""
    found: dict[int, dict[str, float]] = {}
    for record in records:
        value = (record.get("res") or {}).get(column)
        if record["workload"] == workload and value is not None and record["peer"] in (OURS, peer):
            found.setdefault(record["round"], {})[record["peer"]] = value
    pairs = (values for _, values in sorted(found.items()) if len(values) > 1)
    return [float(f"{values[OURS] / values[str(peer)]:.3g}") for values in pairs if values[str(peer)]]
