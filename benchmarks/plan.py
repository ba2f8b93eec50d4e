"""What is measured: workload by workload, each peer in the variant that its bar names. Rounds go over the whole plan."""

from __future__ import annotations

from dataclasses import dataclass

#: Ours first; the order within a workload is turned by one place each round.
OURS = "outlast"
PEERS = ("absurd", "dbos", "procrastinate", "langgraph", "celery")
#: Durable peers that take work from a queue.
QUEUED = ("absurd", "dbos", "procrastinate")


@dataclass(frozen=True)
class Entry:
    """One measurement: a workload done by a peer in a variant."""

    workload: str
    peer: str
    variant: str
    arguments: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.peer}/{self.variant}"


PLAN = (
    Entry("w1", OURS, "prefork"),
    Entry("w1", "absurd", "tuned"),
    Entry("w1", "dbos", "tuned-sync"),
    Entry("w1", "procrastinate", "tuned"),
    Entry("w1", "langgraph", "sync"),
    Entry("w1", "celery", "default"),
    Entry("w2", OURS, "prefork"),
    Entry("w2", "absurd", "tuned"),
    Entry("w2", "dbos", "tuned-sync"),
    Entry("w2", "procrastinate", "tuned"),
    Entry("w2", "langgraph", "sync"),
    Entry("w2", "celery", "default"),
    Entry("w3", OURS, "prefork"),
    Entry("w3", "absurd", "tuned"),
    Entry("w3", "dbos", "tuned"),
    Entry("w3", "procrastinate", "tuned"),
    Entry("w3", "celery", "default"),
    Entry("w3one", OURS, "prefork"),
    Entry("w3many", OURS, "prefork"),
    Entry("w4", OURS, "prefork"),
    Entry("w4", "absurd", "tuned"),
    Entry("w4", "dbos", "tuned"),
    Entry("w4", "procrastinate", "tuned"),
    Entry("w4", "langgraph", "sync"),
    Entry("w4", "celery", "default"),
    # W5's steps take 50 ms, so the same concurrency for all.
    Entry("w5", OURS, "prefork", ("--conc", "10")),
    Entry("w5", "dbos", "tuned-sync", ("--conc", "10")),
    Entry("w5", "langgraph", "sync", ("--conc", "10")),
    Entry("w5", "absurd", "default", ("--conc", "10")),
    Entry("w5", "procrastinate", "tuned", ("--conc", "10")),
    Entry("w5", "celery", "durable", ("--conc", "10")),
    Entry("trace", OURS, "prefork"),
    Entry("trace", "absurd", "tuned"),
    Entry("trace", "dbos", "tuned-sync"),
    Entry("trace", "procrastinate", "tuned"),
    Entry("trace", "langgraph", "sync"),
    Entry("idle", OURS, "prefork"),
    # As many processes, one empty task a second: what Celery itself costs, at this moment on this host.
    Entry("idle", "celery", "beat", ("--conc", "2")),
)
WORKLOADS = tuple(dict.fromkeys(entry.workload for entry in PLAN))
#: These say nothing new when they are done again.
ONCE = ("trace", "w3many")
#: Small sizes that show that everything works; their figures mean nothing.
QUICK = {"w1": 300, "w2": 20, "w3": 200, "w3one": 4, "w3many": 2000, "w4": 60, "w5": 60, "trace": 50, "idle": 10}
QUICK_ARGUMENTS = {"w3": ("--due", "8")}


def chosen(workloads: tuple[str, ...], peers: tuple[str, ...], *, ours: bool) -> list[Entry]:
    """The entries of these workloads and peers, in the plan's order."""
    names = {*peers, *([OURS] if ours else [])}
    return [entry for entry in PLAN if entry.workload in workloads and entry.peer in names]


def rounds(entries: list[Entry], count: int) -> list[tuple[int, Entry]]:
    """All measurements in their order: rounds outermost, and within a workload another peer begins each time."""
    ordered = []
    for number in range(count):
        for workload in dict.fromkeys(entry.workload for entry in entries):
            if number and workload in ONCE:
                continue
            group = [entry for entry in entries if entry.workload == workload]
            turn = number % len(group)
            ordered += [(number, entry) for entry in (*group[turn:], *group[:turn])]
    return ordered
