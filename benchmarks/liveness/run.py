"""`make liveness`: the scan for orphans over a million runs, a tenth of them live, in a record that is sound.

    make liveness                a million runs, five scans
    make liveness N=100000       fewer

On stdout one JSON line: seconds of a whole scan (all kinds, one after another; the median and each), of CPU that its one process of the server
took (on a machine that does other things, too, the figure that counts), of each kind (the median), and which orphans were found (none: the
record is sound). The bar is 2 s. Exit code 1: it took longer, or something was found.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from pathlib import Path

from benchmarks.replaying.run import database

BAR, ROUNDS, NAME = 2.0, 5, "bench_liveness"


def main() -> int:
    parser = argparse.ArgumentParser(prog="liveness", description="How long a scan for orphans takes.")
    parser.add_argument("--n", type=int, default=1_000_000)
    options = parser.parse_args()
    os.environ |= {"DATABASE_URL": database(NAME), "DJANGO_SETTINGS_MODULE": "benchmarks.liveness.settings"}
    import django

    django.setup()
    from django.core.management import call_command

    from benchmarks.liveness import fill
    from flows.models import Finding, Workflow
    from flows.services.liveness import scanning
    from tests.support import many

    call_command("migrate", verbosity=0)
    print(f"liveness: writing {options.n:,} runs", file=sys.stderr, flush=True)
    many.write(options.n)
    fill.write()
    live = Workflow.objects.filter(status__in=("waiting", "paused", "runnable", "running")).count()
    scanning.scan()  # what is looked up once for a connection
    cpu = []
    rounds = []
    for _ in range(ROUNDS):
        before = spent()
        rounds.append(scanning.scan())
        cpu.append(round(spent() - before, 2))
    whole = [sum(one.seconds for one in done) for done in rounds]
    kinds = {one.kind: round(statistics.median(done[at].seconds for done in rounds), 3) for at, one in enumerate(rounds[0])}
    found = sorted(set(Finding.objects.values_list("kind", flat=True)))
    problems = sorted({f"{one.kind}: {one.problem}" for done in rounds for one in done if one.problem})
    line = {
        "workload": "liveness",
        "figure": "seconds of a scan",
        "runs": options.n,
        "live": live,
        "ours": round(statistics.median(whole), 3),
        "cpu": cpu,
        "all": [round(one, 3) for one in whole],
        "kinds": kinds,
        "found": found,
        "problems": problems,
        "bar": BAR,
        "ok": statistics.median(whole) < BAR and not found and not problems,
    }
    print(json.dumps(line))
    return 0 if line["ok"] else 1


def spent() -> float:
    """Seconds of CPU that the server's process of this connection has taken; 0 where it runs on another machine."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        process = Path(f"/proc/{cursor.fetchone()[0]}/stat")
    fields = process.read_text().rpartition(")")[2].split() if process.exists() else ["0"] * 13
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    sys.exit(main())
