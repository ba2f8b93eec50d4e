"""`make webhooks`: 2,000 signed webhooks over HTTP to a running web process, 30 % of them repeats, shuffled, from 8 processes.

    make webhooks                2,000 of them
    make webhooks N=200          fewer; the figure says less

Each is for a run that waits. On stdout one JSON line: webhooks a second (by the wall clock of the senders), their answers, p50 and p99 of one in
milliseconds, and whether each was kept once, counted as often as it was sent, and took its run to its end once. Exit code 1: one was not.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import hmac
import http.client
import json
import logging
import multiprocessing
import os
import random
import socket
import statistics
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.replaying.run import database

ROOT = Path(__file__).resolve().parents[2]
NAME = "bench_webhooks"
SENDERS, REPEATS = 8, 0.3
KEY = b"a secret that only two know....."
PATIENCE = 60.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="webhooks", description="How many webhooks a web process takes in.")
    parser.add_argument("--n", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    os.environ |= {
        "DATABASE_URL": database(NAME),
        "DJANGO_SETTINGS_MODULE": "benchmarks.webhooks.settings",
        "STORM_SECRET": "whsec_" + base64.b64encode(KEY).decode(),
    }
    line = storm(options.n, options.seed)
    print(json.dumps(line))
    return 0 if line["ok"] else 1


def storm(count: int, seed: int) -> dict[str, Any]:
    """Send them, and look at what became of them."""
    import django

    django.setup()
    logging.disable(logging.WARNING)
    from django.core.management import call_command
    from django.db.models import Sum

    from benchmarks.webhooks.flows import Stormed
    from flows.models import Event, Transition, WebhookDelivery, Workflow
    from flows.testing import local_worker

    call_command("migrate", verbosity=0)
    first = count - int(count * REPEATS)
    Stormed.start_many([(f"k{number}", {"key": f"k{number}"}) for number in range(first)])
    dice = random.Random(seed)
    sent = [*range(first), *(dice.randrange(first) for _ in range(count - first))]
    dice.shuffle(sent)
    with local_worker() as worker:
        worker.run()
        print(f"webhooks: {first:,} runs wait; sending {count:,}", file=sys.stderr, flush=True)
        answers, took, seconds = _sent(sent)
        worker.run()
    rows, counted = WebhookDelivery.objects.filter(verdict="accepted"), Counter(sent)
    kept = dict(rows.values_list("delivery_id", "times"))
    woken = Transition.objects.filter(trigger="event", workflow__flow_name="bench-stormed").count()
    ended = Workflow.objects.filter(status="complete").count()
    sound = {
        "each kept once, counted as often as sent": kept == {f"d{number}": times for number, times in counted.items()},
        "each event once": Event.objects.count() == Event.objects.filter(status="consumed").count() == first,
        "each event signalled once": Event.objects.aggregate(all=Sum("deliveries"))["all"] == first,
        "each run woken once, and ended": (woken, ended) == (first, first),
        "answers": answers == {202: first, 200: count - first},
    }
    return {
        "workload": "webhooks",
        "figure": "webhooks a second",
        "ours": round(count / seconds),
        "sent": count,
        "repeats": count - first,
        "answers": {str(status): number for status, number in sorted(answers.items())},
        "p50_ms": round(1000 * statistics.median(took), 1),
        "p99_ms": round(1000 * statistics.quantiles(took, n=100)[-1], 1),
        "wrong": [what for what, holds in sound.items() if not holds],
        "ok": all(sound.values()),
    }


def _sent(numbers: list[int]) -> tuple[Counter[int], list[float], float]:
    """The answers, the seconds of each, and of all."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    command = [sys.executable, "manage.py", "runserver", "--noreload", "--skip-checks", f"127.0.0.1:{port}"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            _wait(port)
            with multiprocessing.get_context("spawn").Pool(SENDERS) as pool:
                pool.map(_post_all, [(port, [])] * SENDERS)  # they are up
                started = time.monotonic()
                found = pool.map(_post_all, [(port, numbers[sender::SENDERS]) for sender in range(SENDERS)], chunksize=1)
                seconds = time.monotonic() - started
        finally:
            server.terminate()
    pairs = [pair for one in found for pair in one]
    return Counter(status for status, _ in pairs), [took for _, took in pairs], seconds


def _wait(port: int) -> None:
    ends = time.monotonic() + PATIENCE
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return
        except OSError:
            if time.monotonic() > ends:
                raise
            time.sleep(0.05)


def _post_all(given: tuple[int, list[int]]) -> list[tuple[int, float]]:
    """Send one after the other, as a sender does that waits for each answer."""
    port, numbers = given
    found = []
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    for number in numbers:
        body, stamp = json.dumps({"key": f"k{number}", "n": number}), str(int(time.time()))
        signature = hmac.new(KEY, f"d{number}.{stamp}.{body}".encode(), hashlib.sha256).digest()
        headers = {
            "Content-Type": "application/json",
            "webhook-id": f"d{number}",
            "webhook-timestamp": stamp,
            "webhook-signature": f"v1,{base64.b64encode(signature).decode()}",
        }
        started = time.perf_counter()
        connection.request("POST", "/flows/hooks/storm", body, headers)
        answer = connection.getresponse()
        answer.read()
        found.append((answer.status, time.perf_counter() - started))
    connection.close()
    return found


if __name__ == "__main__":
    sys.exit(main())
