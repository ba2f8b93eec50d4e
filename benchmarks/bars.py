"""Issue 2, bars 3 and 4 (and 5, idle), judged from the medians of one run."""

from __future__ import annotations

import operator
import statistics
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.plan import OURS, QUEUED

Record = Mapping[str, Any]
COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "<": operator.lt,
    "==": operator.eq,
}
#: The figure of a workload that its ratio is made of; whether more is better.
HEADLINE = {
    "w1": ("wf_s", True),
    "w2": ("p50_ms", False),
    "w3": ("wake_wf_s", True),
    "w3one": ("late_p99_ms", False),
    "w3many": ("worker_mb_growth", False),
    "w4": ("one_p50_ms", False),
    "w5": ("kill_to_done_s", False),
    "trace": ("statements_wf", False),
    "idle": ("core_share", False),
}
CPU = ("worker_cpu_ms_step", "pg_cpu_ms_step", "redis_cpu_ms_step")
CPU_WAKE = ("worker_cpu_ms_wake", "pg_cpu_ms_wake")
STEPS = 3


@dataclass(frozen=True)
class Figures:
    """All results of one workload: (peer, variant) → one dict a round."""

    workload: str
    by_peer: Mapping[tuple[str, str], list[Record]]
    cpu_known: bool = True

    def of(self, peer: str) -> list[Record]:
        return [result for (name, _), results in self.by_peer.items() if name == peer for result in results]

    def median(self, peer: str, column: str) -> float | None:
        values = [float(result[column]) for result in self.of(peer) if result.get(column) is not None]
        return statistics.median(values) if values else None

    def cpu(self, peer: str) -> float | None:
        """CPU milliseconds a step (a wake-up in w3), workers and servers together."""
        columns = CPU if self.workload == "w1" else CPU_WAKE if self.workload == "w3" else ()
        rows = [sum(float(result[c]) for c in columns) for result in self.of(peer) if columns]
        return statistics.median(rows) if rows and self.cpu_known else None

    def worst(self, peer: str, column: str) -> float | None:
        values = [float(result[column]) for result in self.of(peer) if result.get(column) is not None]
        return max(values) if values else None

    def best(self, peers: tuple[str, ...]) -> tuple[str, float] | None:
        """The peer with the best median of the workload's figure."""
        column, more = HEADLINE[self.workload]
        found = [(value, peer) for peer in peers if (value := self.median(peer, column)) is not None]
        if not found:
            return None
        value, peer = max(found) if more else min(found)
        return peer, value


@dataclass(frozen=True)
class Bar:
    name: str
    sign: str
    want: float
    got: float | None

    @property
    def ok(self) -> bool | None:
        """None: it could not be measured."""
        return None if self.got is None else COMPARE[self.sign](self.got, self.want)

    def as_json(self) -> dict[str, Any]:
        return {"name": self.name, "want": f"{self.sign} {self.want:g}", "got": rounded(self.got), "ok": self.ok}


def rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")


def ratio(mine: float | None, theirs: float | None) -> float | None:
    return mine / theirs if mine is not None and theirs else None


def judge(figures: Figures) -> list[Bar]:
    """The bars of this workload; those of peers that were not measured are left out."""
    if not figures.of(OURS):
        return []
    return [bar for bar in JUDGES[figures.workload](figures) if bar is not None]


def _against(figures: Figures, peers: tuple[str, ...], sign: str, want: float, words: str) -> Bar | None:
    best = figures.best(peers)
    if best is None:
        return None
    got = ratio(figures.median(OURS, HEADLINE[figures.workload][0]), best[1])
    return Bar(f"{words} ({best[0]})", sign, want, got)


def _throughput(figures: Figures) -> Iterator[Bar | None]:
    yield _against(figures, ("absurd",), ">=", 1.2, "workflows/s, ratio to Absurd tuned")
    if figures.of("absurd"):
        yield Bar("CPU a step, ratio to Absurd tuned", "<=", 0.7, ratio(figures.cpu(OURS), figures.cpu("absurd")))
    yield Bar("not finished", "==", 0, float(sum(not result["ok"] for result in figures.of(OURS))))


def _latency(in_process: float) -> Callable[[Figures], Iterator[Bar | None]]:
    def bars(figures: Figures) -> Iterator[Bar | None]:
        yield _against(figures, QUEUED, "<=", 0.5, "p50, ratio to the best queued durable peer")
        yield _against(figures, ("langgraph",), "<=", in_process, "p50, ratio to the call in process")

    return bars


def _waking(figures: Figures) -> Iterator[Bar | None]:
    yield _against(figures, QUEUED, ">=", 1.3, "woken/s, ratio to the best durable peer")
    yield Bar("woken before they were due", "==", 0, figures.worst(OURS, "before_due"))


def _timer(figures: Figures) -> Iterator[Bar | None]:
    yield Bar("lateness of one timer, p99 in ms", "<", 50, figures.median(OURS, "late_p99_ms"))


def _sleepers(figures: Figures) -> Iterator[Bar | None]:
    yield Bar("workers' memory, growth in MB", "<=", 10, figures.worst(OURS, "worker_mb_growth"))
    yield Bar("Redis' memory, growth in MB", "<=", 1, figures.worst(OURS, "redis_mb_growth"))
    yield Bar("messages that lie in Redis", "==", 0, figures.worst(OURS, "redis_queued"))
    before, after = figures.median(OURS, "core_share_before"), figures.median(OURS, "core_share_after")
    if before is not None and after is not None:
        yield Bar("CPU while they sleep, growth in shares of a core", "<=", 0.02, after - before)
    latency = ratio(figures.median(OURS, "p50_ms_after"), figures.median(OURS, "p50_ms_before"))
    yield Bar("p50 of other work meanwhile, ratio to before", "<=", 1.5, latency)


def _crash(figures: Figures) -> Iterator[Bar | None]:
    # A run that never ended has no time: the worst there is.
    times = [result["kill_to_done_s"] for result in figures.of(OURS)]
    yield Bar("kill to done in s", "<=", 15, float("inf") if None in times else max(times))
    yield Bar("stuck", "==", 0, figures.worst(OURS, "stuck"))
    yield Bar("steps that never ran", "==", 0, figures.worst(OURS, "steps_missing"))


def _cost(figures: Figures) -> Iterator[Bar | None]:
    commits = figures.median(OURS, "write_tx_wf")
    # A turn begins with a claim; what is left is the steps'.
    yield Bar("writing transactions a step, without the claim", "<=", 1.05, None if commits is None else (commits - 1) / STEPS)
    yield Bar("messages a workflow (one turn each at most)", "<=", 1, figures.median(OURS, "messages_wf"))


def _idle(figures: Figures) -> Iterator[Bar | None]:
    yield Bar("statements/s", "<", 8, figures.median(OURS, "statements_s"))
    yield Bar("share of a core, all processes", "<", 0.03, figures.median(OURS, "core_share"))


JUDGES: dict[str, Callable[[Figures], Iterator[Bar | None]]] = {
    "w1": _throughput,
    "w2": _latency(1.0),
    "w3": _waking,
    "w3one": _timer,
    "w3many": _sleepers,
    "w4": _latency(1.3),
    "w5": _crash,
    "trace": _cost,
    "idle": _idle,
}
