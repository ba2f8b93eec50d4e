"""`make measures`: a log of a million rows, 100,000 of them of the last hour; that hour is rolled up, and the metrics are read.

    make measures                100,000 runs with ten rows each, a tenth of them live
    make measures N=10000        fewer

On stdout one JSON line: seconds that the roll-up of the last hour took, milliseconds that reading the metrics took (the median of ten looks),
and megabytes of the indexes by time. The bars are 30 s (it runs once an hour) and 1,000 ms. Exit code 1: one of them is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time

from benchmarks.replaying.run import database

ROWS, LIVE = 10, 10
BAR_ROLL_UP, BAR_METRICS = 30.0, 1000.0

#: Ten rows a run: started, taken, waiting, woken, taken … The runs begin evenly over ten hours; every tenth waits still.
FILL = f"""
SET LOCAL session_replication_role = replica;
INSERT INTO outlast_workflow (
    id, flow_name, flow_version, fingerprint, input, input_digest, subject, intent_id, intent_version, user_label, node, status, outcome,
    version, epoch, wake_seq, activity_seq, attempts, release, policy_version, queue, placement, priority, rank, created_at, updated_at)
SELECT md5('m' || n)::uuid, 'many-' || n %% 20, 1, '', '{{}}', '', '', md5('i')::uuid, 1, '', 'work',
    CASE WHEN n %% {LIVE} = 0 THEN 'waiting' ELSE 'complete' END, CASE WHEN n %% {LIVE} = 0 THEN 'WAITING' ELSE 'COMPLETE' END,
    {ROWS}, 0, 0, 3, 3, '', '', 'agents', '', 0, b.at, b.at, b.at
FROM generate_series(1, %(count)s) n CROSS JOIN LATERAL (SELECT now() - interval '10 hours' * (1 - n::float8 / %(count)s) AS at) b;
INSERT INTO outlast_transition (
    workflow_id, seq, from_status, to_status, from_node, to_node, outcome, epoch, trigger, trigger_ref, intent_version, policy_version, at)
SELECT md5('m' || n)::uuid, s, coalesce(f.what[s - 1], ''), CASE WHEN s = {ROWS} AND n %% {LIVE} = 0 THEN 'waiting' ELSE f.what[s] END,
    'work', 'work', '', 0, CASE WHEN f.what[s] = 'running' THEN 'claim' ELSE 'event' END, '', 1, '',
    now() - interval '10 hours' * (1 - n::float8 / %(count)s) + (s - 1) * interval '20 seconds'
FROM generate_series(1, %(count)s) n CROSS JOIN generate_series(1, {ROWS}) s
CROSS JOIN (SELECT string_to_array('runnable running waiting runnable running waiting runnable running running complete', ' ') AS what) f
ORDER BY n, s;
INSERT INTO outlast_wait (
    workflow_id, node, visit, kind, reason, event_type, key, on_expiry, epoch, intent_version, policy_version, status, opened_at, closed_at)
SELECT t.workflow_id, 'work', t.seq, 'event', '', 'many', '', '', 0, 1, '', CASE WHEN t.seq = {ROWS} THEN 'open' ELSE 'satisfied' END, t.at,
    CASE WHEN t.seq < {ROWS} THEN t.at + interval '21 seconds' END
FROM outlast_transition t WHERE t.to_status = 'waiting';
INSERT INTO outlast_attempt (workflow_id, activity_seq, number, node, started_at, ended_at, outcome)
SELECT t.workflow_id, t.seq, 1, 'work', t.at, t.at + interval '1 second', 'succeeded' FROM outlast_transition t WHERE t.to_status = 'running'
"""

SIZES = """
SELECT sum(pg_relation_size(c.oid)) / 1e6 FROM pg_class c
WHERE c.relname IN ('outlast_transition_at', 'outlast_attempt_ended', 'outlast_verdict_at')
"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="measures", description="What measuring costs.")
    parser.add_argument("--n", type=int, default=100_000)
    options = parser.parse_args()
    os.environ |= {"DATABASE_URL": database("bench_measures"), "DJANGO_SETTINGS_MODULE": "benchmarks.replaying.settings"}
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import connection, transaction

    from flows.models import Measure, RollUp
    from flows.services import exposing, measures

    call_command("migrate", verbosity=0)
    say(f"filling the log: {options.n * ROWS:,} rows")
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(FILL, {"count": options.n})
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
        cursor.execute(SIZES)
        size = float(cursor.fetchone()[0])
        cursor.execute("UPDATE outlast_rollup SET looked_at = 'epoch', until = date_trunc('hour', now()) - interval '1 hour', "
                       "final = date_trunc('hour', now()) - interval '1 hour'")  # fmt: skip
    started = time.monotonic()
    assert measures.roll_up("default")
    rolled_up = time.monotonic() - started
    say(f"rolled up in {rolled_up:.2f} s: {Measure.objects.count()} buckets, until {RollUp.objects.get().until}")
    looks = []
    for _ in range(10):
        exposing.forget()
        started = time.monotonic()
        samples = len(exposing.samples())
        looks.append(1000 * (time.monotonic() - started))
    line = {
        "workload": "measures",
        "rows_of_the_log": options.n * ROWS,
        "live": options.n // LIVE,
        "roll_up_seconds": round(rolled_up, 2),
        "metrics_ms": round(statistics.median(looks), 1),
        "samples": samples,
        "index_mb": round(size, 2),
        "bars": {"roll_up_seconds": BAR_ROLL_UP, "metrics_ms": BAR_METRICS},
        "ok": rolled_up <= BAR_ROLL_UP and statistics.median(looks) <= BAR_METRICS,
    }
    print(json.dumps(line))
    return 0 if line["ok"] else 1


def say(text: str) -> None:
    print(f"measures: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
