"""What became of the runs: judged by the cloud's own ledger, which no design writes. Pure, but for reading the journal of calls."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks.designs.faults import SLOW_SECONDS
from benchmarks.designs.task import JOURNAL, read_lines

STEPS = ("reserve", "canary", "promote", "release")
Spans = list[tuple[float, float]]


def read_calls(folder: Path) -> list[dict[str, Any]]:
    return read_lines(folder / JOURNAL)


class Judge:
    """`asked` and `cancelled`: when, for each run. `struck`: from when to when something befell processes or broker."""

    def __init__(
        self,
        ledger: Mapping[str, Any],
        calls: list[dict[str, Any]],
        asked: Mapping[str, float],
        cancelled: Mapping[str, float],
        struck: Spans,
        asks_a_person: set[str],
    ) -> None:
        self.effects: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for effect in ledger["effects"]:
            self.effects[effect["service"]].append({**effect, "at": datetime.fromisoformat(effect["at"]).timestamp()})
        self.held = set(ledger["summary"]["windows"]) | set(ledger["summary"]["canaries"])
        self.calls, self.asked, self.cancelled, self.struck = calls, asked, cancelled, struck
        self.asks_a_person = asks_a_person

    # ------------------------------------------------------------------ one run

    def left_behind(self, run: str) -> int:
        """Windows that are held and canaries that nobody promotes or takes back."""
        return sum(effect["resource"] in self.held for effect in self.effects[run] if effect["verb"] in ("reserve", "canary"))

    def promoted(self, run: str) -> list[dict[str, Any]]:
        """The promotions that were not rolled back."""
        gone = {effect["resource"] for effect in self.effects[run] if effect["verb"] == "rollback"}
        return [effect for effect in self.effects[run] if effect["verb"] == "promote" and effect["resource"] not in gone]

    def is_right(self, run: str) -> bool:
        """Nothing left behind; and promoted, or, if it was cancelled, not promoted or promoted before the cancel came."""
        if self.left_behind(run):
            return False
        promoted = self.promoted(run)
        if run not in self.cancelled:
            return bool(promoted)
        return all(effect["at"] <= self.cancelled[run] for effect in promoted)

    def wrong(self) -> set[str]:
        return {run for run in self.asked if not self.is_right(run)}

    def story(self, run: str) -> str:
        """What the cloud did for it, in seconds from the hand-over."""
        began = self.asked[run]
        told = [f"{effect['at'] - began:.2f} {effect['verb']} {effect['resource']}" for effect in self.effects[run]]
        cancel = [f"cancelled at {self.cancelled[run] - began:.2f}"] if run in self.cancelled else []
        return f"{run}: " + ", ".join([*cancel, *told])

    def last_effect(self) -> float:
        return max((effect["at"] for effects in self.effects.values() for effect in effects), default=0.0)

    # ------------------------------------------------------------------ all of them

    def figures(self) -> dict[str, Any]:
        runs, wrong, repeated = len(self.asked), self.wrong(), self._repeated()
        struck_calls = [call for call in self.calls if _is_struck(call)]
        faults = len(self.struck) + len(struck_calls)
        actions = len(wrong | self.asks_a_person)
        quiet, hit = self._latencies(struck_calls)
        return {
            "runs": runs,
            "cancelled": len(self.cancelled),
            "faults": faults,
            "process_faults": len(self.struck),
            "correct": round((runs - len(wrong)) / runs, 4),
            "duplicated": sum(repeated.values()),
            "duplicated_by_verb": dict(repeated),
            "orphans_per_100": round(100 * sum(map(self.left_behind, self.asked)) / runs, 1),
            "manual_actions": actions,
            "asks_a_person": len(self.asks_a_person),
            "burden_per_1000": round(1000 * actions / faults, 1) if faults else None,
            "latency_quiet": _spread(quiet),
            "latency_hit": _spread(hit),
            "wrong": sorted(wrong),
        }

    def _repeated(self) -> Counter[str]:
        """Step → how often it was done once more than once, over all runs."""
        found: Counter[str] = Counter()
        for run in self.asked:
            times = Counter(effect["verb"] for effect in self.effects[run])
            found.update({step: times[step] - 1 for step in STEPS if times[step] > 1})
        return found

    def _latencies(self, struck_calls: Iterable[Mapping[str, Any]]) -> tuple[list[float], list[float]]:
        """From the hand-over to the last effect, of runs that ended right and were not cancelled: those nothing befell, and the others."""
        owner = {effect["resource"]: run for run, effects in self.effects.items() for effect in effects}
        hit = {owner.get(call["about"], call["about"]) for call in struck_calls}
        quiet: list[float] = []
        others: list[float] = []
        for run, began in self.asked.items():
            if run in self.cancelled or not self.is_right(run):
                continue
            ended = max(effect["at"] for effect in self.effects[run])
            befallen = run in hit or any(begin <= ended and began <= end for begin, end in self.struck)
            (others if befallen else quiet).append(ended - began)
        return quiet, others


def _is_struck(call: Mapping[str, Any]) -> bool:
    return bool(call["outcome"] == "AmbiguousOutcome" or call["seconds"] >= SLOW_SECONDS)


def _spread(values: list[float]) -> dict[str, Any]:
    """How many, the median and the 95th percentile, in seconds."""
    if not values:
        return {"n": 0, "p50": None, "p95": None}
    ordered = sorted(values)
    high = ordered[min(len(ordered) - 1, round(0.95 * (len(ordered) - 1)))]
    return {"n": len(values), "p50": round(statistics.median(ordered), 2), "p95": round(high, 2)}
