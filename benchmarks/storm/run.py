"""`make storm`: 50,000 deliveries by `flows.signal` and 2,000 by HTTP, 30 % of them repeats, shuffled, from eight processes, while workers run.

    make storm                          all of it
    make storm N=5000 HTTP=200          less; the figure says less

On stdout one JSON line: deliveries a second (from the first to the last, all senders together), how many were consumed and were repeats, and the
wake-ups (milliseconds from arrival to claim, median and 99th percentile). Exit code 1: an event is missing, was taken twice or by nobody, a
delivery was not counted, or a run has not ended.
"""

from __future__ import annotations

import argparse
import base64
import json
import multiprocessing
import os
import secrets
import socket
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.replaying.run import database
from benchmarks.storm import senders

NAME = "bench_storm"
ROOT = Path(__file__).resolve().parents[2]
#: Seconds after the last delivery until every run must have ended.
PATIENCE = 900


def main() -> int:
    parser = argparse.ArgumentParser(prog="storm", description="A storm of events: each is consumed once.")
    parser.add_argument("--n", type=int, default=50_000, help="deliveries by flows.signal")
    parser.add_argument("--http", type=int, default=2_000, help="deliveries by HTTP")
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--duplicates", type=float, default=0.3)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    os.environ |= {
        "DATABASE_URL": database(NAME),
        "DJANGO_SETTINGS_MODULE": "benchmarks.storm.settings",
        "STORM_SECRET": "whsec_" + base64.b64encode(secrets.token_bytes(24)).decode(),
        "LOG_LEVEL": "INFO",
    }
    line = measured(options)
    print(json.dumps(line))
    return 0 if line["ok"] else 1


def measured(options: argparse.Namespace) -> dict[str, Any]:
    """Start everything, send, wait, and count."""
    import django

    django.setup()
    from django.core.management import call_command

    from benchmarks.storm.flows import TYPES, StormHook, StormRun
    from project.dev import procs

    call_command("migrate", verbosity=0)
    plan = senders.planned(options.n, options.http, options.duplicates, options.seed)
    unique = set(plan)
    runs = sorted({one.key for one in unique})
    whole = {key for key, count in Counter(one.key for one in unique if not one.by_http).items() if count == len(TYPES)}
    for flow, prefix in ((StormRun, "run-"), (StormHook, "hook-")):
        own = [(key, {}) for key in runs if key.startswith(prefix)]
        for first in range(0, len(own), 500):
            flow.start_many(own[first : first + 500])
    web = f"127.0.0.1:{_free_port()}" if options.http else ""
    logs = ROOT / ".outlast" / "storm"
    logs.mkdir(parents=True, exist_ok=True)
    with procs.Procs(env={**os.environ, "WEB_ADDRESS": web}, log_dir=str(logs)) as running:
        running.start("worker").wait_for("ready.", seconds=60)
        running.start("beat")
        if web:
            running.start("web")
            _until(lambda: _answers(web), 60, "the web process does not answer")
        say(f"{len(plan):,} deliveries of {len(unique):,} events for {len(runs):,} runs")
        sent = _send(plan, web, options.processes)
        seconds = max(one.ended for one in sent) - min(one.began for one in sent)
        say(f"sent in {seconds:.1f} s; waiting for the runs")
        ended = len(whole) + sum(one.by_http for one in unique)
        _until(lambda: _complete() >= ended, PATIENCE, "the runs do not end")
    answers: Counter[str] = Counter()
    for one in sent:
        answers.update(one.answers)
    return _judged(plan, unique, ended, seconds, answers)


def _send(plan: list[senders.Delivery], web: str, processes: int) -> list[senders.Sent]:
    context = multiprocessing.get_context("spawn")
    line, told = context.Barrier(processes), context.Queue()
    shares = [plan[number::processes] for number in range(processes)]
    started = [context.Process(target=senders.send, args=(share, web, line, told)) for share in shares]
    for process in started:
        process.start()
    sent = [told.get(timeout=PATIENCE) for _ in started]
    for process in started:
        process.join()
    return sent


def _judged(
    plan: list[senders.Delivery], unique: set[senders.Delivery], ended: int, seconds: float, answers: Counter[str]
) -> dict[str, Any]:
    from django.db.models import Count, F, Sum

    from flows.models import Event, Part, Wait, WebhookDelivery
    from flows.services import latency

    rows = Counter(Event.objects.values_list("status", flat=True))
    taken = Wait.objects.exclude(event_id=None).filter(event_type__gt="").values("event_id").annotate(n=Count("id"))
    filled = Part.objects.exclude(event_id=None).values("event_id").annotate(n=Count("id"))
    twice = sum(1 for one in (*taken, *filled) if one["n"] > 1)
    counted = (Event.objects.exclude(type="storm.hook").aggregate(n=Sum("deliveries"))["n"] or 0) + (
        WebhookDelivery.objects.aggregate(n=Sum("times"))["n"] or 0
    )
    of_parts = Wait.objects.filter(need__gt=0, got__gt=F("need")).count()
    wakes = next((one for one in latency.wake_ups(days=1) if one.kind == "event"), None)
    odd = [answer for answer in answers if answer not in ("accepted", "kept", "already", "http 200", "http 202")]
    # a run that chance has given fewer than four events waits on, and so may the last of what it has
    waiting = len(unique) - rows["consumed"]
    partial = len(unique) - _of_whole(unique)
    return {
        "workload": "storm",
        "figure": "deliveries a second",
        "ours": round(len(plan) / seconds),
        "deliveries": len(plan),
        "by_http": sum(one.by_http for one in plan),
        "events": len(unique),
        "consumed": rows["consumed"],
        "duplicates": len(plan) - len(unique),
        "counted": counted,
        "taken_twice": twice + of_parts,
        "answers": dict(answers),
        "runs": ended,
        "wake_ups": wakes.count if wakes else 0,
        "p50_ms": round(1000 * wakes.p50, 1) if wakes else None,
        "p99_ms": round(1000 * wakes.p99, 1) if wakes else None,
        "ok": sum(rows.values()) == len(unique)
        and waiting <= partial
        and counted == len(plan)
        and twice == of_parts == 0
        and not odd
        and _complete() == ended,
    }


def _of_whole(unique: set[senders.Delivery]) -> int:
    """How many events are for runs that get all of theirs."""
    from benchmarks.storm.flows import TYPES

    per_run = Counter(one.key for one in unique if not one.by_http)
    return sum(count for count in per_run.values() if count == len(TYPES)) + sum(one.by_http for one in unique)


def _complete() -> int:
    from flows.models import Workflow

    return Workflow.objects.filter(status="complete").count()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _answers(address: str) -> bool:
    host, port = address.split(":")
    try:
        with socket.create_connection((host, int(port)), timeout=1):
            return True
    except OSError:
        return False


def _until(condition: Any, seconds: float, problem: str) -> None:
    ends = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > ends:
            raise SystemExit(f"storm: {problem}")
        time.sleep(0.2)


def say(text: str) -> None:
    print(f"storm: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
