"""`make screens`: the list of workflows over a million runs, a tenth of them live, and the page of a run with 5,000 arrows.

    make screens                 a million runs, twenty looks at each page
    make screens N=100000        fewer

On stdout one JSON line, of each page: milliseconds of server time (from the request to the rendered response, in this process: middleware,
queries, templates; the median of the looks, and the fastest), the CPU of this process in it, and the number of statements. The bars are 150 ms
for the list as it opens, and 300 ms and under 12 statements for the page. Exit code 1: one of them is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from typing import Any

from benchmarks.replaying.run import database

LIST_MS, PAGE_MS, PAGE_STATEMENTS, ARROWS, LOOKS = 150.0, 300.0, 12, 5000, 20
NAME = "bench_screens"
#: Of the list: as it opens, and narrowed.
LISTS = {
    "": "",
    "waiting": "?status=waiting",
    "failed": "?status=failed",
    "for approval": "?wait=approval",
    "for event": "?wait=event",
    "flow": "?flow=many-7",
    "flow, live": "?flow=many-7&status=waiting",
    "release": "?release=R1",
    "error": "?error=PERMANENT",
    "rare error": "?error=NEVER_SEEN",
    "last hour": "?age=1h",
    "over 7 days": "?age=over-7d",
    "key": "?q=order-77",
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="screens", description="How fast the list and the page of workflows are.")
    parser.add_argument("--n", type=int, default=1_000_000)
    options = parser.parse_args()
    os.environ |= {"DATABASE_URL": database(NAME), "DJANGO_SETTINGS_MODULE": "benchmarks.screens.settings"}
    found = measure(options.n)
    opened, page = found["list"], found["page"]
    line = {
        "workload": "screens",
        "figure": "ms of server time, median; statements",
        "runs": options.n,
        "pages": {
            name: {"ms": ms, "fastest": fast, "cpu": cpu, "statements": count} for name, (ms, fast, cpu, count) in found.items()
        },
        "bars": {"list": LIST_MS, "page": PAGE_MS, "statements": PAGE_STATEMENTS},
        "ok": opened[0] < LIST_MS and page[0] < PAGE_MS and page[3] < PAGE_STATEMENTS,
    }
    print(json.dumps(line))
    return 0 if line["ok"] else 1


def measure(count: int) -> dict[str, tuple[float, float, float, int]]:
    """Of each page the median of its milliseconds, the fewest, the median of CPU of this process, and the statements of one look."""
    import django

    django.setup()
    from django.conf import settings
    from django.contrib.auth.models import Permission
    from django.core.management import call_command
    from django.test import Client
    from django.urls import reverse

    from flows import releases
    from flows.models import Workflow
    from tests.support import many
    from tests.support.approving import make_people

    settings.ALLOWED_HOSTS = ["testserver"]
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    call_command("migrate", verbosity=0)
    looker = make_people()["rita"]
    looker.is_staff = True
    looker.save()
    looker.user_permissions.set(Permission.objects.filter(content_type__app_label="outlast_flows"))
    for number in range(3):
        releases.register(f"R{number}", models={"planner": f"m-{number}"})
    print(f"screens: writing {count:,} runs, and one with {ARROWS:,} arrows", file=sys.stderr, flush=True)
    many.write(count)
    run = Workflow.objects.filter(flow_name="many-7", flow_version=2, status="waiting", outcome="WAITING").latest("pk")
    many.lengthen(run.pk, ARROWS)
    client = Client()
    client.force_login(looker)
    at = reverse("admin:outlast_flows_workflow_changelist")
    pages = {f"list {name}".strip(): at + query for name, query in LISTS.items()}
    pages |= {"page": reverse("admin:outlast_flows_workflow_change", args=[run.pk])}
    return {name: _look(client, address) for name, address in pages.items()}


def _look(client: Any, address: str) -> tuple[float, float, float, int]:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    from tests.support.statements import counted

    client.get(address)  # what is looked up once for a process
    with counted() as ours, CaptureQueriesContext(connection) as captured:
        response = client.get(address)
    assert response.status_code == 200, (address, response.status_code)
    statements = len(captured) + len(ours)  # the next request empties Django's own log
    if os.environ.get("EXPLAIN"):
        for query in sorted(captured.captured_queries, key=lambda one: -float(one["time"]))[:3]:
            print(query["time"], query["sql"][:600], file=sys.stderr)
    times, cpu = [], []
    for _ in range(LOOKS):
        started, worked = time.perf_counter(), time.process_time()
        client.get(address)
        times.append(1000 * (time.perf_counter() - started))
        cpu.append(1000 * (time.process_time() - worked))
    return round(statistics.median(times), 1), round(min(times), 1), round(statistics.median(cpu), 1), statements


if __name__ == "__main__":
    sys.exit(main())
