"""`make inbox`: the first page of the reviewers' inbox with 10,000 requests that wait and 400,000 that were decided.

    make inbox                   thirty requests for the page
    make inbox N=100             more

On stdout one JSON line: milliseconds of server time (from the request to the rendered response, in this process: middleware, queries,
templates; median, fastest and 95th percentile) and the number of statements. The bars are 150 ms (median) and under 8 statements. Exit code 1:
one of them is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time

from benchmarks.replaying.run import database

BAR_MS, BAR_STATEMENTS = 150.0, 8
NAME = "bench_inbox"


def main() -> int:
    parser = argparse.ArgumentParser(prog="inbox", description="How fast the first page of the inbox is.")
    parser.add_argument("--n", type=int, default=30)
    options = parser.parse_args()
    os.environ |= {"DATABASE_URL": database(NAME), "DJANGO_SETTINGS_MODULE": "benchmarks.replaying.settings"}
    times, statements = measure(options.n)
    line = {
        "workload": "inbox",
        "figure": "ms of server time, median",
        "ours": round(statistics.median(times), 1),
        "fastest": round(min(times), 1),
        "p95": round(statistics.quantiles(times, n=20)[-1], 1),
        "statements": statements,
        "bar": BAR_MS,
        "ok": statistics.median(times) < BAR_MS and statements < BAR_STATEMENTS,
    }
    print(json.dumps(line))
    return 0 if line["ok"] else 1


def measure(count: int) -> tuple[list[float], int]:
    """Milliseconds of each of so many requests, and the statements of one."""
    import django

    django.setup()
    from django.conf import settings
    from django.core.management import call_command
    from django.db import connection
    from django.test import Client
    from django.test.utils import CaptureQueriesContext
    from django.urls import reverse

    from tests.support import crowd
    from tests.support.approving import make_people

    settings.ALLOWED_HOSTS = ["testserver"]
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    call_command("migrate", verbosity=0)
    people = make_people()
    print(f"inbox: writing {crowd.PENDING:,} requests that wait and {crowd.DECIDED:,} decided", file=sys.stderr, flush=True)
    crowd.write(requester=people["robin"].pk, reviewers=[people["rita"].pk, people["ron"].pk])
    client = Client()
    client.force_login(people["rita"])
    address = reverse("admin:outlast_approvals_request_changelist")
    client.get(address)  # what is looked up once for a process
    with CaptureQueriesContext(connection) as captured:
        assert client.get(address).status_code == 200
    statements = len(captured)  # the next request empties Django's own log
    times = []
    for _ in range(count):
        started = time.perf_counter()
        client.get(address)
        times.append(1000 * (time.perf_counter() - started))
    return times, statements


if __name__ == "__main__":
    sys.exit(main())
