"""The workloads W1..W5 and the statement trace over a Peer, and the command line of every peer script."""

import argparse
import json
import os
import random
import signal
import sys
import time

import extra
import pglog
from common import (
    HOME,
    StepTail,
    cpu,
    messages,
    pctl,
    pgstat,
    pss_mb,
    read_steps,
    servers,
    wait_until,
    warm,
)


# ------------------------------------------------------------------ workloads
def w1(peer, n):
    s = servers()
    peer.reset()
    wids = peer.wids(n)
    t = time.time()
    peer.submit("w1", wids)
    enq = time.time() - t
    base = pgstat(peer)
    tail = StepTail("3")
    peer.start_workers()
    if not wait_until(lambda: (tail.poll(), tail.first)[1], 90, 0.005):
        raise RuntimeError("no step ran; see logs")
    c0 = (cpu(peer.pids()), cpu([s["pg_pid"]]), cpu([s["redis_pid"]]))
    ok = wait_until(lambda: tail.poll() >= n, peer.a.timeout, 0.02)
    ok = ok and wait_until(lambda: peer.done_count() >= n, 30, 0.01)
    t1 = time.time()
    c1 = (cpu(peer.pids()), cpu([s["pg_pid"]]), cpu([s["redis_pid"]]))
    dt = t1 - tail.first
    done = n if ok else peer.done_count()
    mem = pss_mb(peer.pids())
    peer.stop_workers()
    end = pgstat(peer)
    return dict(
        n=n,
        ok=ok,
        secs=dt,
        wf_s=done / dt,
        step_s=3 * done / dt,
        enqueue_s=n / enq,
        worker_cpu_ms_step=1e3 * (c1[0] - c0[0]) / (3 * n),
        pg_cpu_ms_step=1e3 * (c1[1] - c0[1]) / (3 * n),
        redis_cpu_ms_step=1e3 * (c1[2] - c0[2]) / (3 * n),
        mem_mb=mem,
        commits_wf=(end[0] - base[0]) / n,
        wal_kb_wf=(end[1] - base[1]) / n / 1024,
        wal_fsyncs_wf=(end[2] - base[2]) / n,
        write_tx_wf=(end[3] - base[3]) / n,
    )


def w2(peer, n):
    peer.reset()
    peer.start_workers()
    warm(peer)
    lat = []
    for _ in range(n):
        w = peer.wids(1)
        t = time.perf_counter()
        peer.submit("w2", w)
        while not peer.is_done(w[0]):
            if time.perf_counter() - t > 60:
                raise RuntimeError("W2 workflow lost")
            time.sleep(0.001)
        lat.append(time.perf_counter() - t)
        time.sleep(random.uniform(0.005, peer.think))
    peer.stop_workers()
    return dict(n=n, p50_ms=1e3 * pctl(lat, 50), p99_ms=1e3 * pctl(lat, 99), min_ms=1e3 * min(lat))


def w3(peer, n):
    s = servers()
    peer.reset()
    peer.start_workers()
    warm(peer)
    base_done, idle = peer.done_count(), pss_mb(peer.pids())
    due = time.time() + peer.a.due
    t = time.time()
    peer.submit("w3", peer.wids(n), due=due)
    enq = time.time() - t
    time.sleep(max(0, due - 2 - time.time()))
    c0, g0 = cpu(peer.pids()), cpu([s["pg_pid"]])
    mem = pss_mb(peer.pids())
    early = len([x for x in read_steps() if x[1] == "wake"])
    time.sleep(max(0, due - time.time()))
    tail = StepTail("wake")
    ok = wait_until(lambda: tail.poll() >= n, peer.a.timeout, 0.02) and wait_until(
        lambda: peer.done_count() - base_done >= n, 60, 0.01
    )
    t1 = time.time()
    c1, g1 = cpu(peer.pids()), cpu([s["pg_pid"]])
    late = [x[2] - due for x in read_steps() if x[1] == "wake"]
    peer.stop_workers()
    return dict(
        n=n,
        ok=ok,
        enq_secs=enq,
        before_due=early,
        wake_wf_s=len(late) / (t1 - due),
        late_p50_s=pctl(late, 50),
        late_p99_s=pctl(late, 99),
        late_max_s=max(late, default=None),
        idle_mb=idle,
        asleep_mb=mem,
        worker_cpu_ms_wake=1e3 * (c1 - c0) / n,
        pg_cpu_ms_wake=1e3 * (g1 - g0) / n,
    )


def w4(peer, n):
    peer.reset()
    peer.start_workers()
    warm(peer)
    base_done = peer.done_count()
    wids = peer.wids(n)
    peer.submit("w4", wids)
    tail = StepTail("before")
    if not wait_until(lambda: tail.poll() >= n, 120):
        raise RuntimeError("W4: not all waiting")
    time.sleep(3.0)
    mem = pss_mb(peer.pids())
    k = min(100, n // 5)
    lat = []
    for w in wids[:k]:
        t = time.perf_counter()
        peer.signal([w])
        while not peer.is_done(w):
            if time.perf_counter() - t > 60:
                raise RuntimeError("W4 workflow lost")
            time.sleep(0.001)
        lat.append(time.perf_counter() - t)
        time.sleep(random.uniform(0.005, peer.think))
    t0 = time.time()
    peer.signal(wids[k:])
    sent = time.time() - t0
    wait_until(lambda: peer.done_count() - base_done >= n, 120, 0.01)
    t1 = time.time()
    rest = set(wids[k:])
    bulk = [x[2] - t0 for x in read_steps() if x[0] in rest and x[1] == "after"]
    ok = peer.done_count() - base_done >= n
    peer.stop_workers()
    return dict(
        n=n,
        ok=ok,
        one_p50_ms=1e3 * pctl(lat, 50),
        one_p99_ms=1e3 * pctl(lat, 99),
        send_secs=sent,
        bulk_p50_ms=1e3 * pctl(bulk, 50),
        bulk_p99_ms=1e3 * pctl(bulk, 99),
        bulk_wf_s=(n - k) / (t1 - t0),
        waiting_mb=mem,
    )


def w5(peer, n):
    peer.reset()
    peer.submit("w5", peer.wids(n))
    tail = StepTail("3")
    peer.start_workers()
    wait_until(lambda: tail.poll() >= n // 3, 120, 0.002)
    at = tail.n
    peer.before_kill()
    peer.kill_worker(0)
    tk = time.time()
    first = tail.first
    time.sleep(1.0)
    peer.start_worker(0)  # what systemd / Kubernetes does; same identity
    ok = wait_until(lambda: peer.done_count() >= n, peer.a.crash_timeout, 0.05)
    t1 = time.time()
    done = peer.done_count()
    seen = {}
    for w, s, _, _ in read_steps():
        if s in "123":
            seen[(w, s)] = seen.get((w, s), 0) + 1
    peer.stop_workers()
    return dict(
        n=n,
        ok=ok,
        done=done,
        stuck=n - done,
        killed_at=at,
        kill_to_done_s=(t1 - tk) if ok else None,
        total_s=t1 - first,
        steps_rerun=sum(v > 1 for v in seen.values()),
        steps_missing=3 * n - len(seen),
    )


def trace(peer, n):
    """Statements, writing transactions and messages per workflow (W1 with few workflows, log_statement=all)."""
    with pglog.all_statements_logged():
        peer.reset()
        log = servers()["pg_log"]
        sent = messages()
        peer.submit("w1", peer.wids(n))
        pos, base = os.path.getsize(log), pgstat(peer)
        tail = StepTail("3")
        peer.start_workers()
        wait_until(lambda: tail.poll() >= n, 90)
        time.sleep(0.5)
        end, stat, sent = os.path.getsize(log), pgstat(peer), messages() - sent
        peer.stop_workers()
    counts = pglog.statements(peer, pos, end)
    return dict(
        n=n,
        statements_wf=sum(counts.values()) / n,
        write_tx_wf=(stat[3] - base[3]) / n,
        messages_wf=sent / n,
        top=pglog.top_of(counts),
    )


WORKLOADS = dict(
    w1=(w1, 2000),
    w2=(w2, 200),
    w3=(w3, 2000),
    w4=(w4, 500),
    w5=(w5, 500),
    trace=(trace, 100),
    w3one=(extra.w3one, 100),
    w3many=(extra.w3many, 100_000),
    idle=(extra.idle, 30),
)


def main(cls):
    ap = argparse.ArgumentParser()
    ap.add_argument("--workload", choices=list(WORKLOADS))
    ap.add_argument("--n", type=int)
    ap.add_argument("--variant", default=cls.variants[0], choices=cls.variants)
    ap.add_argument("--workers", type=int, default=2)
    ap.add_argument("--conc", type=int)
    ap.add_argument("--runs", type=int, default=1)
    ap.add_argument("--due", type=float, default=20.0)
    ap.add_argument("--timeout", type=float, default=240.0)
    ap.add_argument("--crash-timeout", type=float, default=180.0)
    ap.add_argument("--out", default=f"{HOME}/results/results.jsonl")
    ap.add_argument("--worker", type=int)
    a = ap.parse_args()
    peer = cls(a)
    if a.worker is not None:
        return peer.worker(a.worker)
    from importlib.metadata import version

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the workers are stopped, too
    vers = {p: version(p) for p in cls.packages}
    fn, n = WORKLOADS[a.workload]
    for r in range(a.runs):
        rec = dict(
            peer=cls.name,
            variant=a.variant,
            workload=a.workload,
            run=r,
            conc=peer.conc,
            workers=a.workers,
            versions=vers,
            settings=peer.settings(),
            at=time.strftime("%H:%M:%S"),
            load1=os.getloadavg()[0],
        )
        try:
            rec["res"] = fn(peer, a.n or n)
        except Exception as e:
            rec["error"] = repr(e)
        finally:
            peer.stop_workers()
        os.makedirs(os.path.dirname(a.out), exist_ok=True)
        with open(a.out, "a") as f:
            f.write(json.dumps(rec) + "\n")
        print(
            json.dumps(
                {k: rec.get(k) for k in ("peer", "variant", "workload", "run", "conc", "res", "error")}, default=str
            ),
            flush=True,
        )
