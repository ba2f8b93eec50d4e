"""The servers of a benchmark run, and how the peer scripts are told of them: environment variables and servers.json."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import psycopg

from project.dev import folders, servers

SHARED_BUFFERS = "512MB"
#: What a durable store must not have switched off when its speed is measured.
DURABLE = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}


@dataclass(frozen=True)
class Lab:
    """`home` keeps environments and results of all runs; `environ` is what each peer script gets, with this run's own folder in it."""

    home: Path
    environ: dict[str, str]
    postgres: dict[str, str] = field(default_factory=dict)
    #: Whether the servers' own CPU can be read (not if they are somebody else's).
    cpu_known: bool = True

    @property
    def results(self) -> Path:
        return self.home / "results"


@contextlib.contextmanager
def opened() -> Iterator[Lab]:
    """Servers of our own, or those that `make bench` has started around this process, or those that the environment names."""
    home = Path(folders.HOME, "bench")
    (home / "results").mkdir(parents=True, exist_ok=True)
    around = _started_around_us()
    if around is not None:
        folder, state = around
        pids = {name: process["pid"] for name, process in state["processes"].items()}
        yield _lab(home, folder, dict(os.environ), pids, state["info"])
        return
    with servers.running(purpose="bench", fresh=True, shared_buffers=SHARED_BUFFERS) as env:
        found = {"pg_log": env.pg_log, "pg_bin": env.pg_bin}
        folder = Path(env.folder) if env.folder else home
        yield _lab(home, folder, {**os.environ, **env.environ()}, dict(env.pids), found)


def _started_around_us() -> tuple[Path, dict[str, Any]] | None:
    """Folder and state of the servers whose token this process carries."""
    token = os.environ.get("OUTLAST_RUN")
    if not token:
        return None
    for path in Path(folders.HOME).glob("*/state.json"):
        with contextlib.suppress(OSError, ValueError, KeyError):
            state: dict[str, Any] = json.loads(path.read_text())
            if state["info"]["OUTLAST_RUN"] == token:
                return path.parent, state
    return None


def _lab(home: Path, folder: Path, environ: dict[str, str], pids: dict[str, int], info: dict[str, str]) -> Lab:
    """`folder` is this run's alone (the servers'), so that two runs at once do not write into each other's files."""
    (folder / "logs").mkdir(exist_ok=True)
    database, redis = urlsplit(environ["DATABASE_URL"]), urlsplit(environ["REDIS_URL"])
    known = bool(pids.get("postgres") and pids.get("redis"))
    (folder / "servers.json").write_text(
        json.dumps(
            {
                "pg_pid": pids.get("postgres") or 0,
                "redis_pid": pids.get("redis") or 0,
                "pgbin": info.get("pg_bin", ""),
                "pg_log": info.get("pg_log", ""),
            }
        )
    )
    told = {
        "BENCH_HOME": str(folder),
        "BENCH_PG_HOST": database.hostname or "127.0.0.1",
        "BENCH_PG_PORT": str(database.port or 5432),
        "BENCH_PG_USER": unquote(database.username or "postgres"),
        "BENCH_REDIS_HOST": redis.hostname or "127.0.0.1",
        "BENCH_REDIS_PORT": str(redis.port or 6379),
        "BENCH_REDIS_PASSWORD": unquote(redis.password or ""),
    }
    if database.password:
        told["PGPASSWORD"] = unquote(database.password)
    if not known:
        print("bench: these servers are not ours: their CPU is not counted, and the statement log is not read", file=sys.stderr)
    return Lab(home, {**environ, **told}, _checked(environ["DATABASE_URL"]), known)


def _checked(url: str) -> dict[str, str]:
    """The server's settings that the figures depend on; refuses one that does not write durably."""
    wanted = (*DURABLE, "server_version", "shared_buffers", "wal_sync_method", "max_connections")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM RESET log_statement")  # a trace that was killed has left it on
        connection.execute("SELECT pg_reload_conf()")
        shown = {name: str(connection.execute(f"SHOW {name}").fetchone()[0]) for name in wanted}  # type: ignore[index, arg-type]
    wrong = [f"{name}={shown[name]}" for name, value in DURABLE.items() if shown[name] != value]
    if wrong:
        raise SystemExit(f"bench: this PostgreSQL is not durable ({', '.join(wrong)}); its figures would mean nothing.")
    return shown
