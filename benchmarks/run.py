"""`make bench`: Outlast and its peers on one PostgreSQL and one Valkey, in one run.

    .venv/bin/python benchmarks/run.py                                       everything, three rounds
    .venv/bin/python benchmarks/run.py --workloads w1,w2 --peers absurd --runs 5
    .venv/bin/python benchmarks/run.py --quick                               that it works; its figures mean nothing
    .venv/bin/python benchmarks/run.py --report FILE                         the tables and lines of an earlier run

Progress goes to stderr. On stdout: a table per workload, then one JSON line per workload with the bars of issue 2.
Exit code: 0, or 1 if a measurement failed; a missed bar is a result, not a failure.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT)]

from benchmarks import environments, plan, report  # noqa: E402 - found through the line above
from benchmarks.lab import Lab, opened  # noqa: E402


def main() -> int:
    options = read_options()
    if options.report:
        return show(report.read(options.report), cpu_known=True, quick=False)
    entries = plan.chosen(options.workloads, options.peers, ours=not options.no_ours)
    with opened() as lab:
        pythons = {peer: environments.ensure(peer, lab.home) for peer in dict.fromkeys(entry.peer for entry in entries)}
        out = lab.results / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.jsonl"
        out.touch()
        todo = plan.rounds(entries, options.runs)
        for done, (number, entry) in enumerate(todo):
            say(f"{done + 1}/{len(todo)} round {number + 1}: {entry.workload} {entry.name}")
            measure(lab, pythons[entry.peer], entry, number, out, options)
        print(f"\n{machine(lab)}\n")
        code = show(report.read(out), cpu_known=lab.cpu_known, quick=options.quick)
        say(f"records: {out}")
    return code


def read_options() -> argparse.Namespace:
    def names(allowed: tuple[str, ...]) -> Callable[[str], tuple[str, ...]]:
        def read(text: str) -> tuple[str, ...]:
            found = tuple(name for name in text.split(",") if name)
            unknown = set(found) - set(allowed)
            if unknown:
                raise argparse.ArgumentTypeError(f"not known: {', '.join(sorted(unknown))}; there are {', '.join(allowed)}")
            return found

        return read

    parser = argparse.ArgumentParser(prog="bench", description="Speed, beside other durable workflows.")
    parser.add_argument("--workloads", type=names(plan.WORKLOADS), default=plan.WORKLOADS, help=",".join(plan.WORKLOADS))
    parser.add_argument("--peers", type=names(plan.PEERS), default=plan.PEERS, help=",".join(plan.PEERS))
    parser.add_argument("--runs", type=int, help="rounds; 3, or 1 with --quick")
    parser.add_argument("--n", type=int, help="workflows per measurement, instead of each workload's own number")
    parser.add_argument("--conc", type=int, help="concurrency of our workers in w1 to w4")
    parser.add_argument("--pool", choices=("prefork", "threads"), help="pool of our workers; prefork")
    parser.add_argument("--quick", action="store_true", help="small sizes: shows that it works")
    parser.add_argument("--no-ours", action="store_true", help="the peers alone")
    parser.add_argument("--report", type=Path, metavar="FILE", help="show the records of an earlier run")
    options = parser.parse_args()
    options.runs = options.runs or (1 if options.quick else 3)
    return options


def measure(lab: Lab, python: Path, entry: plan.Entry, number: int, out: Path, options: argparse.Namespace) -> None:
    """One measurement in a process of its own; its record, or why there is none, is appended to `out`."""
    record = out.with_suffix(".part")
    record.unlink(missing_ok=True)
    command = [str(python), str(ROOT / "benchmarks" / "peers" / f"peer_{entry.peer}.py")]
    variant = options.pool if options.pool and entry.peer == plan.OURS else entry.variant
    command += ["--workload", entry.workload, "--variant", variant, "--out", str(record), *entry.arguments]
    size = options.n or (plan.QUICK[entry.workload] if options.quick else None)
    command += ["--n", str(size)] if size else []
    command += plan.QUICK_ARGUMENTS.get(entry.workload, ()) if options.quick else ()
    if options.conc and entry.peer == plan.OURS and not entry.arguments:
        command += ["--conc", str(options.conc)]
    # Importing `project` has set DJANGO_SETTINGS_MODULE: a peer that uses Django must not find ours.
    environ = {name: value for name, value in lab.environ.items() if name not in {"DJANGO_SETTINGS_MODULE", "PYTHONPATH"}}
    folder = Path(lab.environ["BENCH_HOME"])
    if entry.peer == plan.OURS:
        # The project's own interpreter; what the harness needs besides comes from the peer's environment.
        command[0] = sys.executable
        environ["PYTHONPATH"] = str(environments.site_packages(python))
        folder = ROOT
    code = run(command, environ, folder)
    if record.exists():
        found = json.loads(record.read_text())
        record.unlink()
    else:
        found = {"peer": entry.peer, "variant": variant, "workload": entry.workload, "error": f"exit code {code}"}
    with out.open("a") as file:
        file.write(json.dumps({**found, "round": number}) + "\n")


class _ToldToEnd(BaseException):
    """SIGINT, SIGTERM or SIGHUP came while a peer was measured."""


def run(command: list[str], environ: dict[str, str], folder: Path) -> int:
    """The exit code. Told to end, the peer is told, too: its workers are in sessions of their own."""
    process = subprocess.Popen(command, env=environ, cwd=folder, stdout=sys.stderr)

    def end(received: int, _frame: object) -> None:
        raise _ToldToEnd(received)  # out of the wait below; a second wait inside it would wait for its lock for ever

    before = {received: signal.signal(received, end) for received in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        return process.wait()
    except _ToldToEnd as told:
        for received in before:
            signal.signal(received, signal.SIG_IGN)
        process.terminate()
        process.wait()
        raise SystemExit(128 + told.args[0]) from None
    finally:
        for received, handler in before.items():
            signal.signal(received, handler)


def show(records: report.Records, *, cpu_known: bool, quick: bool) -> int:
    print(report.table(records))
    found = report.lines(records, cpu_known=cpu_known, quick=quick)
    for line in found:
        for bar in line["bars"]:
            mark = {True: "held", False: "MISSED", None: "not measured"}[bar["ok"]]
            say(f"{line['workload']}: {bar['name']}: want {bar['want']}, got {bar['got']}: {mark}")
    print()
    for line in found:
        print(json.dumps(line, ensure_ascii=False))
    failed = [error for line in found for error in line["errors"]]
    for error in failed:
        say(f"failed: {error}")
    return 1 if failed else 0


def machine(lab: Lab) -> str:
    server = ", ".join(f"{name} {value}" for name, value in lab.postgres.items())
    return f"{os.cpu_count()} CPUs, {platform.machine()}, Python {platform.python_version()}; PostgreSQL: {server}"


def say(text: str) -> None:
    print(f"bench: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
