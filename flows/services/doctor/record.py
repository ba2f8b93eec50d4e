"""What the doctor looks at in the record: server, tables, clock, workers, queues, versions, releases, what is held, what was found."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from django.db import DatabaseError, connections
from django.db.migrations.executor import MigrationExecutor

from flows import registry
from flows.conf import conf
from flows.core.nodes.activity import Activity
from flows.models import Finding
from flows.services import holds, releasing
from flows.services.doctor import Examination, Ill, Level, bounded
from flows.store import doctor as store
from flows.store import tick

LABELS = ("outlast_flows", "outlast_approvals")
OLDEST_SERVER = 150_000
#: Seconds by which this host and the server may differ.
SKEW_SECONDS = 2.0
#: Seconds after which the clock should have been looked at again: Beat ticks every second, a worker's keeper after two.
TICK_SECONDS = 10.0
#: Seconds that ready work may stand while workers serve its queue.
READY_SECONDS = 60.0
#: So many live runs are looked through for their versions.
MOST = 20_000
CONTROL, CLEANUP = "control", "cleanup"


def database(using: str) -> Iterator[Ill]:
    """Whether the server answers, is new enough, and has the tables of this code."""
    connection = connections[using]
    try:
        connection.ensure_connection()
    except DatabaseError as error:
        said = str(error).partition("\n")[0]
        yield Ill(
            "DATABASE_AWAY", Level.ERROR, f"Database {using!r} does not answer: {said}", "Start the server, or correct DATABASES."
        )
        return
    found = MigrationExecutor(connection)
    missing = [f"{one.app_label}.{one.name}" for one, _ in found.migration_plan(_targets(found)) if one.app_label in LABELS]
    if missing:
        listed = ", ".join(missing[:3]) + (f" and {len(missing) - 3} more" if len(missing) > 3 else "")
        yield Ill("UNMIGRATED", Level.ERROR, f"Migrations are not applied: {listed}.", "manage.py migrate")
        return
    unknown = sorted(
        f"{label}.{name}"
        for label, name in found.loader.applied_migrations
        if label in LABELS and (label, name) not in found.loader.disk_migrations
    )
    if unknown:
        yield Ill(
            "NEWER_TABLES", Level.WARNING, f"The database has migrations that this code does not know: {unknown[-1]}.",
            "Deploy the newer code here, too; workers of two releases may work side by side for a while.",
        )  # fmt: skip


def _targets(found: MigrationExecutor) -> Any:
    return [key for key in found.loader.graph.leaf_nodes() if key[0] in LABELS]


def server(using: str) -> Iterator[Ill]:
    """Its version and its clock, and the last tick."""
    before = time.time()
    now = store.server(using)
    off = now.now - (before + time.time()) / 2
    if now.version < OLDEST_SERVER:
        yield Ill(
            "SERVER_TOO_OLD",
            Level.ERROR,
            f"PostgreSQL is of version {now.version // 10_000}.",
            "PostgreSQL 15 or newer is needed.",
        )
    if abs(off) > SKEW_SECONDS:
        yield Ill(
            "CLOCK_SKEW", Level.WARNING, f"The clock of this host and the server's differ by {abs(off):.0f} s.",
            "Have both keep time (NTP). Runs go by the server's clock alone; logs of hosts are misleading.",
        )  # fmt: skip
    if abs(now.moved) > 1:
        yield Ill(
            "CLOCK_MOVED", Level.ERROR, f"flows_now() is {now.moved:.0f} s off the server's clock: a test kit has moved it.",
            "Leave the test kit's movable_clock(), or put the function of migration outlast_flows.0002 back.",
        )  # fmt: skip
    if now.ticked is None or now.ticked > TICK_SECONDS:
        age = "never" if now.ticked is None else f"{now.ticked:.0f} s ago"
        yield Ill(
            "NO_TICK", Level.ERROR, f"The clock was looked at {age}: no timer fires, and lost work is not put back.",
            "Start Beat (celery -A PROJECT beat) and a worker of the control queue.",
        )  # fmt: skip


def queues(using: str) -> Iterator[Ill]:
    """Whether every queue that work may be in is served."""
    alive = store.workers(using)
    if not alive:
        yield Ill(
            "NO_WORKER",
            Level.ERROR,
            "No worker is alive.",
            "celery -A PROJECT worker -Q control,agents, and one with -Q cleanup,control",
        )
        return
    served = {queue for worker in alive for queue in worker.queues}
    ready = set(tick.ready_queues(using))
    for queue in sorted({CONTROL, CLEANUP, *_of_flows(), *ready} - served):
        level = Level.ERROR if queue in ready or queue in (CONTROL, CLEANUP) else Level.WARNING
        way = f"celery -A PROJECT worker -Q {conf.QUEUES.get(queue, queue)}"
        what = "what is owed is not serviced" if queue == CLEANUP else "its work is not taken"
        yield Ill(
            "QUEUE_UNSERVED",
            level,
            f"No live worker serves the queue {queue!r}: {what}.",
            way,
        )
    for queue in sorted(ready & served):
        oldest = tick.oldest(queue, using)
        if oldest is not None and oldest > READY_SECONDS:
            yield Ill(
                "READY_LONG", Level.WARNING, f"The first ready run of the queue {queue!r} has stood for {oldest:.0f} s.",
                "More workers of that queue; or see what they do (flows list --status running), and what nobody offers (below).",
            )  # fmt: skip


def _of_flows() -> set[str]:
    """The queues that the flows of this process name."""
    nodes = [node for flow in registry.known().values() for node in flow.definition.nodes.values()]
    return {node.queue for node in nodes if isinstance(node, Activity) and isinstance(node.queue, str)}


def offers(using: str) -> Iterator[Ill]:
    """Whether every version and release of live runs has a worker."""
    offered = {one for worker in store.workers(using) for one in worker.definitions}
    for flow, version, runs, ready in store.live(MOST, using):
        newer = [f"{flow}@{one.version}" for one in registry.at_wake(flow, version)[-1:]]
        if not offered.intersection([f"{flow}@{version}", *newer]):
            yield Ill(
                "VERSION_UNOFFERED", Level.ERROR if ready else Level.WARNING,
                f"No live worker offers {flow}@{version}, of which {runs} live runs are there ({ready} ready).",
                f"Start a worker with that version, or take them on: flows migrate --flow {flow} --from {version}",
            )  # fmt: skip
    stuck = releasing.stuck(using)
    for release in sorted({name for _, _, name in stuck}):
        count = sum(name == release for _, _, name in stuck)
        yield Ill(
            "RELEASE_UNOFFERED", Level.ERROR, f"No live worker offers release {release}, for which {count} ready runs wait.",
            "Start a worker with it, or move them (flows releases move).",
        )  # fmt: skip


def held(using: str) -> Iterator[Ill]:
    """What people hold."""
    for one in holds.holds(using=using):
        yield Ill("HELD", Level.NOTE, f"{holds.said([one])}.", f"flows lift {one.scope} {one.name}".strip() + " --reason …")


def findings(using: str) -> Iterator[Ill]:
    """What the scan for orphans has found, and nobody has mended."""
    rows = (
        Finding.objects.using(using).filter(closed_at__isnull=True, status="open").order_by("kind").values_list("kind", flat=True)
    )
    kinds = list(rows[:1000])
    if kinds:
        listed = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
        yield Ill("FINDINGS", Level.WARNING, f"Something is broken that the scan has found: {listed}.", "flows orphans")


def _bounded(examination: Examination) -> Examination:
    def within(using: str) -> Iterator[Ill]:
        with bounded(using):
            found = list(examination(using))
        yield from found

    return within


EXAMINATIONS: dict[str, Examination] = {
    "server": _bounded(server),
    "queues": _bounded(queues),
    "versions": _bounded(offers),
    "holds": _bounded(held),
    "findings": _bounded(findings),
}
