"""The tooling's promises: real servers, nobody else's touched, and nothing left running whoever is killed."""

from __future__ import annotations

import json
import os
import pwd
import re
import select
import shlex
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from project.dev import engines, folders, servers, supervise

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
# Says what it knows and then lives until it is ended; its own child leaves its session, as daemons do.
LINGERER = """
import json, os, subprocess, sys
child = subprocess.Popen(["sleep", "600"], start_new_session=True, stdout=subprocess.DEVNULL)
print(json.dumps({"pids": [os.getpid(), child.pid], "database": os.environ["DATABASE_URL"]}), flush=True)
child.wait()
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of servers for this test alone, with nothing given from outside."""
    for name in ("DATABASE_URL", "REDIS_URL", "OUTLAST_RUN", "OUTLAST_PG_PORT", "OUTLAST_REDIS_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OUTLAST_HOME", str(tmp_path))
    monkeypatch.setattr(folders, "HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def env(home: Path) -> Iterator[servers.Servers]:
    with servers.running(purpose="t") as running:
        yield running


def command_line(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "project.dev.servers", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False, **options)


def start_lingering(home: Path, *, below_make: bool = False) -> tuple[subprocess.Popen[str], dict[str, Any]]:
    (home / "lingerer.py").write_text(LINGERER)
    command = [sys.executable, "-m", "project.dev.servers", "run", "--purpose", "t", "--"]
    command += [sys.executable, str(home / "lingerer.py")]
    if below_make:  # as the Makefile has it
        (home / "Makefile").write_text(f"all:\n\t@exec {shlex.join(command)}\n")
        command = ["make", "--no-print-directory", "-f", str(home / "Makefile")]
    started = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert started.stdout
    return started, json.loads(started.stdout.readline())


def state_of(home: Path) -> dict[str, Any]:
    return json.loads((home / "t" / "state.json").read_text())


class Watched:
    """Handles that name processes and not numbers; opened while they are known to live."""

    def __init__(self, pids: list[int]) -> None:
        self.handles = {pid: os.pidfd_open(pid) for pid in pids}

    def still_there_after(self, seconds: float) -> list[int]:
        deadline = time.monotonic() + seconds
        waiting, ended = dict(self.handles), [0]
        while waiting and ended:
            ended, _, _ = select.select(list(waiting.values()), [], [], max(0, deadline - time.monotonic()))
            waiting = {pid: handle for pid, handle in waiting.items() if handle not in ended}
        for handle in self.handles.values():
            os.close(handle)
        return list(waiting)


def connect(url: str) -> psycopg.Connection[Any]:
    return psycopg.connect(url, autocommit=True, connect_timeout=5)


def scalar(url: str, query: str) -> Any:
    with connect(url) as connection:
        row = connection.execute(query.encode()).fetchone()
    assert row
    return row[0]


# ---------------------------------------------------------------------- what is promised of the servers


def test_they_are_what_production_has(env: servers.Servers) -> None:
    assert scalar(env.database_url, "SELECT current_setting('server_version_num')::int") >= 180000
    settings = "SELECT string_agg(name || '=' || setting, ' ' ORDER BY name) FROM pg_settings WHERE name IN ({})".format(
        "'fsync', 'full_page_writes', 'listen_addresses', 'server_encoding', 'synchronous_commit', 'TimeZone'"
    )
    assert scalar(env.database_url, settings).split() == [
        "TimeZone=UTC",
        "fsync=on",
        "full_page_writes=on",
        "listen_addresses=127.0.0.1",
        "server_encoding=UTF8",
        "synchronous_commit=on",
    ]
    assert redis.Redis.from_url(env.redis_url).config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}


def test_another_user_of_the_machine_does_not_get_in(env: servers.Servers) -> None:
    with pytest.raises(psycopg.OperationalError, match="no password supplied"):
        connect(re.sub(r":[0-9a-f]+@", "@", env.database_url))
    with pytest.raises(redis.AuthenticationError):
        redis.Redis(port=env.engines["redis"].port, retry=Retry(NoBackoff(), 0)).ping()
    secrets = [path for path in Path(env.folder).glob("*") if path.suffix in {".secret", ".json"}]
    assert len(secrets) == 3
    assert not [path for path in secrets if path.stat().st_mode & 0o077]


def test_a_killed_server_comes_back_at_its_address_with_its_data(env: servers.Servers) -> None:
    with connect(env.database_url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
    before = env.pg_pid
    env.kill("postgres")
    with pytest.raises(psycopg.OperationalError):
        connect(env.database_url)
    env.start("postgres")
    assert env.pg_pid != before
    assert scalar(env.database_url, "SELECT answer FROM kept") == 42
    env.restart("redis")
    assert redis.Redis.from_url(env.redis_url).ping()


def test_data_is_kept_between_runs_unless_fresh(home: Path) -> None:
    with servers.running(purpose="t") as env, connect(env.database_url) as connection:
        connection.execute("CREATE TABLE kept ()")
    with servers.running(purpose="t") as env:
        assert scalar(env.database_url, "SELECT to_regclass('kept')::text") == "kept"
    with servers.running(purpose="t", fresh=True) as env:
        assert scalar(env.database_url, "SELECT to_regclass('kept')::text") is None


def test_two_runs_at_once_do_not_meet(env: servers.Servers) -> None:
    with servers.running(purpose="t") as other:
        assert other.folder != env.folder
        assert other.database_url != env.database_url
        assert other.redis_url != env.redis_url


def test_a_half_made_data_folder_is_never_taken_for_a_database(home: Path) -> None:
    (home / "t" / "pgdata.new").mkdir(parents=True)
    (home / "t" / "pgdata.new" / "PG_VERSION").write_text("18\n")
    with servers.running(purpose="t") as env:
        assert scalar(env.database_url, "SELECT 1") == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="root only: the second way for a root that has no user namespaces")
def test_root_without_user_namespaces_gives_up_root(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTLAST_ROOT_RUNS_AS", "user")
    monkeypatch.setattr(engines, "system_user", lambda: pwd.getpwnam("nobody"))  # a test makes no users
    with servers.running(purpose="t") as env:
        assert env.pg_pid
        assert Path(f"/proc/{env.pg_pid}").stat().st_uid != 0
        assert scalar(env.database_url, "SELECT 1") == 1


# ---------------------------------------------------------------------- the command


def test_run_passes_the_addresses_in_and_the_exit_code_out(home: Path) -> None:
    done = command_line("run", "--purpose", "t", "--", "sh", "-c", "echo $DATABASE_URL $REDIS_URL; exit 7")
    assert done.returncode == 7, done.stderr
    assert done.stdout.startswith("postgresql://outlast:")
    assert " redis://:" in done.stdout


def test_given_servers_are_used_and_none_is_started(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://db.example/one")
    monkeypatch.setenv("REDIS_URL", "redis://cache.example/2")
    done = command_line("run", "--purpose", "t", "--", "sh", "-c", "echo $DATABASE_URL $REDIS_URL")
    assert done.stdout == "postgresql://db.example/one redis://cache.example/2\n"
    assert not list(home.iterdir())


def test_started_servers_stay_until_they_are_stopped(home: Path) -> None:
    started = command_line("start", "--purpose", "t")
    assert started.returncode == 0, started.stderr
    try:
        assert command_line("env", "--purpose", "t").stdout == started.stdout
        assert command_line("start", "--purpose", "t").stdout == started.stdout  # twice is once
        assert command_line("status").stdout.startswith("t: supervisor ")
        url = started.stdout.split("'")[1]
        assert scalar(url, "SELECT 1") == 1
        state = state_of(home)
        watched = Watched([process["pid"] for process in state["processes"].values()])
    finally:
        assert command_line("stop", "--purpose", "t").returncode == 0
    assert watched.still_there_after(0) == []
    assert command_line("stop", "--purpose", "t").returncode == 0


# ---------------------------------------------------------------------- nothing is left


@pytest.mark.parametrize("victim", ["driver", "make", "supervisor"])
def test_nothing_is_left_when_it_is_killed(home: Path, victim: str) -> None:
    started, said = start_lingering(home, below_make=victim == "make")
    state = state_of(home)
    in_servers = [process["pid"] for process in state["processes"].values()]
    keeper = state["supervisor"]["pid"]
    watched = Watched([*said["pids"], keeper, *in_servers])
    if victim == "supervisor":
        watched_servers = Watched(in_servers)
        os.kill(keeper, signal.SIGKILL)
        assert watched_servers.still_there_after(10) == []  # the kernel ends them, while the command goes on
        started.terminate()
    else:
        started.kill()
    started.communicate(timeout=40)
    assert watched.still_there_after(15) == []


def test_a_stranger_with_a_remembered_pid_is_left_alone(home: Path) -> None:
    stranger = subprocess.Popen(["sleep", "600"])
    try:
        (home / "t").mkdir()
        leftover = {"pid": stranger.pid, "started": "1"}
        (home / "t" / "state.json").write_text(json.dumps({"processes": {"postgres": leftover, "redis": leftover}}))
        with servers.running(purpose="t"):
            assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_a_server_that_outlived_its_supervisor_is_ended(home: Path) -> None:
    with subprocess.Popen(["sleep", "600"]) as leftover:
        (home / "t").mkdir()
        process = {"pid": leftover.pid, "started": supervise.started(leftover.pid)}
        (home / "t" / "state.json").write_text(json.dumps({"processes": {"redis": process}}))
        folders.settle_leftovers(str(home / "t"))
        assert leftover.wait(timeout=10) == -signal.SIGTERM


# ---------------------------------------------------------------------- a clear word instead of a traceback


def test_a_busy_port_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        monkeypatch.setenv("OUTLAST_PG_PORT", str(port))
        done = command_line("run", "--purpose", "t", "--", "true")
    assert done.returncode == 1
    assert f"port {port}, which OUTLAST_PG_PORT asks for, is in use by another program" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_full_disk_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = type("Usage", (), {"free": 5 * 2**20})
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage)
    with pytest.raises(servers.ServerError, match="the disk is full: 5 MB are free"), servers.running(purpose="t"):
        pass


def test_a_second_single_run_is_refused(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "wait_for_lock", lambda *_: False)
    with servers.running(purpose="t", single=True):  # noqa: SIM117
        with pytest.raises(servers.ServerError, match="already running"), servers.running(purpose="t", single=True):
            pass
