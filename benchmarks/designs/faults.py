"""What goes wrong, and when: one seeded plan, and every design meets the same.

The cloud's own faults are dice with the plan's seed: its n-th change meets the same fate in every design. They stay on to the end; what
befalls processes ends at 0.6 of the time, and the rest is there to recover in.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

#: Of the cloud, at rate 1.
CLOUD = {"lose_response": 0.10, "error_after": 0.05, "slow": 0.10}
SLOW_SECONDS = 0.5
KILL_EVERY = 5.0  # seconds, give or take 40 %
CANCELLED = 0.15  # the share of runs that somebody no longer wants
STOPPED = 14.0  # seconds for which one worker stands still: longer than a lease (10 s) and than a visibility timeout (10 s)
STARTS, FAULTS = (0.02, 0.5), (0.04, 0.6)  # parts of the time


@dataclass(frozen=True)
class Run:
    """One deployment; its name is also the service's. Times are seconds from the beginning."""

    name: str
    start: float
    cancel: float | None = None


@dataclass(frozen=True)
class Fault:
    """kill (SIGKILL to a worker and its children), stop (SIGSTOP, and SIGCONT after `seconds`), or flush (the broker forgets everything)."""

    at: float
    kind: str
    worker: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Plan:
    """The same seed, number of runs, duration and rate give the same plan."""

    seed: int
    duration: float
    rate: float
    runs: tuple[Run, ...] = ()
    faults: tuple[Fault, ...] = ()
    cloud: dict[str, float] = field(default_factory=dict)


def make(seed: int, runs: int, duration: float, rate: float = 1.0) -> Plan:
    """Rate 0 is a quiet day with cancels; 2 doubles the cloud's faults and the kills."""
    dice = random.Random(f"designs/{seed}")
    first, last = (part * duration for part in STARTS)
    moments = sorted(dice.uniform(first, last) for _ in range(runs))
    wanted = {number: dice.uniform(0.0, 2.0) for number in dice.sample(range(runs), round(CANCELLED * runs))}
    made = tuple(
        Run(f"svc-{number:03}", moment, moment + wanted[number] if number in wanted else None)
        for number, moment in enumerate(moments)
    )
    chances = {name: min(0.9, chance * rate) for name, chance in CLOUD.items()}
    cloud = {**chances, "slow_seconds": SLOW_SECONDS} if rate else {}
    return Plan(seed, duration, rate, made, _process_faults(dice, duration, rate) if rate else (), cloud)


def _process_faults(dice: random.Random, duration: float, rate: float) -> tuple[Fault, ...]:
    """Nobody is killed while one worker stands still: it would be neither of the two."""
    first, last = (part * duration for part in FAULTS)
    stop = Fault(0.25 * duration, "stop", dice.randrange(2), min(STOPPED, 0.2 * duration))
    found, at = [stop, Fault(0.2 * duration, "flush")], first
    while (at := at + dice.uniform(0.6, 1.4) * KILL_EVERY / rate) < last:
        kill = Fault(at, "kill", dice.randrange(2))
        if not stop.at - 1 <= at <= stop.at + stop.seconds + 1:
            found.append(kill)
    return tuple(sorted(found, key=lambda fault: fault.at))
