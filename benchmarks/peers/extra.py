"""Workloads of our own bars, for any peer whose store can answer: one timer at a time, very many sleepers, an idle system."""

import os
import random
import time

import pglog
from common import (
    W3ONE_SPAN,
    cpu,
    messages,
    pctl,
    pss_mb,
    read_steps,
    redis_info,
    servers,
    wait_until,
    warm,
)


def w3one(peer, n):
    """N single sleeps, one after another, on a system that does nothing else: how late is one timer?"""
    peer.reset()
    peer.start_workers()
    warm(peer)
    due = {}
    for _ in range(n):
        w = peer.wids(1)
        due[w[0]] = time.time() + random.uniform(*W3ONE_SPAN)
        peer.submit("w3", w, due=due[w[0]])
        time.sleep(max(0.0, due[w[0]] - time.time()))
        if not wait_until(lambda w=w: peer.is_done(w[0]), 60, 0.005):
            raise RuntimeError("w3one: a sleeper never woke")
        time.sleep(random.uniform(0.05, 0.25))
    late = [x[2] - due[x[0]] for x in read_steps() if x[1] == "wake" and x[0] in due]
    peer.stop_workers()
    return dict(
        n=len(late),
        late_p50_ms=1e3 * pctl(late, 50),
        late_p99_ms=1e3 * pctl(late, 99),
        late_max_ms=1e3 * max(late),
        late_min_ms=1e3 * min(late),
    )


def watched(peer, seconds):
    """CPU (share of one core) over a quiet stretch; memory and messages at its end."""
    s = servers()
    groups = dict(worker=peer.pids(), pg=[s["pg_pid"]], redis=[s["redis_pid"]])
    before, t0 = {k: cpu(v) for k, v in groups.items()}, time.time()
    time.sleep(seconds)
    dt = time.time() - t0
    memory = redis_info("memory")
    keys, queued = redis_info("keyspace"), peer.queued()
    return dict(
        core_share=sum(cpu(v) - before[k] for k, v in groups.items()) / dt,
        core_share_by={k: (cpu(v) - before[k]) / dt for k, v in groups.items()},
        worker_mb=pss_mb(peer.pids()),
        redis_mb=int(memory["used_memory"]) / 2**20,
        redis_keys=sum(int(v.split(",")[0].split("=")[1]) for k, v in keys.items() if k.startswith("db")),
        redis_queued=sum(queued.values()),
        redis_queues=queued,
    )


def one_at_a_time(peer, n):
    """Median milliseconds of W2's request on the system as it is."""
    lat = []
    for _ in range(n):
        w = peer.wids(1)
        t = time.perf_counter()
        peer.submit("w2", w)
        if not wait_until(lambda w=w: peer.is_done(w[0]), 60, 0.001):
            raise RuntimeError("w3many: a workflow was lost")
        lat.append(time.perf_counter() - t)
        time.sleep(random.uniform(0.005, peer.think))
    return 1e3 * pctl(lat, 50)


def w3many(peer, n):
    """Very many sleepers: what do they hold? Everything is measured before them and with them asleep."""
    peer.reset()
    peer.start_workers()
    warm(peer)
    peer.submit("w1", peer.wids(500))  # the code that sleepers pass is loaded and has run
    if not wait_until(lambda: peer.done_count() >= 500, 120, 0.05):
        raise RuntimeError("w3many: the first workflows did not end")
    settle = min(15.0, 5.0 + n / 10_000)
    before, p50 = watched(peer, settle), one_at_a_time(peer, 30)
    t0, sent = time.time(), messages()
    due = t0 + 24 * 3600
    wids = peer.wids(n)
    for i in range(0, n, 5000):
        peer.submit("w3", wids[i : i + 5000], due=due)
    enq = time.time() - t0
    ok = wait_until(lambda: peer.asleep_count() >= n, peer.a.timeout + n / 100, 0.25)
    asleep_after, asleep = time.time() - t0, peer.asleep_count()
    time.sleep(5.0)
    sent = messages() - sent
    peer.sql("VACUUM ANALYZE")  # what autovacuum would do within a minute after so many rows is no cost of sleeping
    after, p50_after = watched(peer, settle), one_at_a_time(peer, 30)
    peer.stop_workers()
    early = sum(x[1] == "wake" for x in read_steps())
    return dict(
        n=n,
        ok=ok and not early,
        asleep=asleep,
        woken_early=early,
        enqueue_s=n / enq,
        asleep_wf_s=asleep / asleep_after,
        messages_wf=sent / n,
        worker_mb_growth=after["worker_mb"] - before["worker_mb"],
        redis_mb_growth=after["redis_mb"] - before["redis_mb"],
        redis_queued=after["redis_queued"],
        core_share_before=before["core_share"],
        core_share_after=after["core_share"],
        p50_ms_before=p50,
        p50_ms_after=p50_after,
        before=before,
        after=after,
    )


def idle(peer, seconds):
    """Nothing to do, one worker: statements a second (BEGIN and COMMIT counted), and CPU without the statement log."""
    peer.a.workers = 1
    peer.reset()
    peer.start_workers()
    warm(peer)
    time.sleep(5.0)
    quiet = watched(peer, seconds)
    with pglog.all_statements_logged():
        time.sleep(1.0)
        log = servers()["pg_log"]
        pos, t0 = os.path.getsize(log), time.time()
        time.sleep(seconds)
        end, dt = os.path.getsize(log), time.time() - t0
    counts = pglog.statements(peer, pos, end)
    peer.stop_workers()
    return dict(n=seconds, statements_s=sum(counts.values()) / dt, top=pglog.top_of(counts), **quiet)
