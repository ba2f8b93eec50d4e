"""The Procfile's runner: pids are the processes' own, kills are real, and nothing outlives it."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from project.dev import procs

ROOT = Path(__file__).resolve().parents[2]
# Prints its pid and its child's, then waits; says so when it is asked to stop.
COMMAND = """
import os, signal, subprocess, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit("asked to stop"))
child = subprocess.Popen(["sleep", "600"])
print("up", os.getpid(), child.pid, os.environ.get("GREETING", "-"), flush=True)
signal.pause()
"""
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); signal.pause()"


@pytest.fixture
def running(tmp_path: Path) -> procs.Procs:
    (tmp_path / "one.py").write_text(COMMAND)
    (tmp_path / "stubborn.py").write_text(STUBBORN)
    (tmp_path / "Procfile").write_text(
        f"# a comment\none: env GREETING=${{GREETING:-hello}} python {tmp_path}/one.py\n"
        f"stubborn: python {tmp_path}/stubborn.py\nbrief: sh -c 'echo gone; exit 3'\n"
    )
    return procs.Procs(procfile=str(tmp_path / "Procfile"), log_dir=str(tmp_path / "logs"))


def is_gone(pid: int) -> bool:
    try:
        return "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True


def test_the_pid_is_the_process_and_not_a_shell(running: procs.Procs) -> None:
    with running:
        one = running.start("one")
        assert one.wait_for(r"up (\d+) \d+ hello")[1] == str(one.pid)
        assert one.is_alive()


def test_a_second_one_has_its_own_name_log_and_environment(running: procs.Procs) -> None:
    with running:
        first = running.start("one")
        second = running.start("one", name="two", env={"GREETING": "good-day"})
        first.wait_for("up .* hello")
        second.wait_for("up .* good-day")
        assert first.log != second.log


def test_a_kill_takes_the_children_along_and_a_new_start_is_a_new_process(running: procs.Procs) -> None:
    with running:
        one = running.start("one")
        child = int(one.wait_for(r"up \d+ (\d+)")[1])
        handle = os.pidfd_open(child)
        one.kill()
        assert one.popen.returncode == -signal.SIGKILL
        ended_within(handle, 5)
        again = running.start("one")
        assert again.wait_for(r"up (\d+)")[1] == str(again.pid) != str(one.pid)


def test_stop_asks_first_and_kills_after_the_grace(running: procs.Procs) -> None:
    with running:
        one, stubborn = running.start("one"), running.start("stubborn")
        one.wait_for("up")
        stubborn.wait_for("up")
        assert one.stop() == 1
        assert "asked to stop" in one.output()
        assert stubborn.stop(grace=0.2) == -signal.SIGKILL


def test_waiting_for_a_line_of_an_ended_process_shows_its_last_words(running: procs.Procs) -> None:
    with running, pytest.raises(TimeoutError, match=r"(?s)ended, code 3.*gone"):
        running.start("brief").wait_for("never")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_outlives_the_runner(running: procs.Procs, tmp_path: Path, number: int) -> None:
    with start_runner(tmp_path, "one") as runner:
        assert runner.stdout
        pid, child = map(int, runner.stdout.readline().split("up ")[1].split()[:2])
        handles = [os.pidfd_open(pid), *([os.pidfd_open(child)] if number == signal.SIGTERM else [])]
        runner.send_signal(number)
        for handle in handles:
            ended_within(handle, 10)
        if number == signal.SIGKILL and not is_gone(child):
            os.kill(child, signal.SIGKILL)  # a plain sleep knows nothing of its parent; see servers.py for the sweep


def test_what_ends_is_started_again(running: procs.Procs, tmp_path: Path) -> None:
    with start_runner(tmp_path, "brief") as runner:
        assert runner.stdout
        lines = [runner.stdout.readline().strip() for _ in range(4)]
        runner.terminate()
        runner.communicate(timeout=30)
    assert lines == [
        "brief | gone",
        "brief | ended with code 3; starting it again",
        "brief | gone",
        "brief | ended with code 3; starting it again in 1 s",
    ]


def test_children_of_a_killed_process_do_not_delay_its_new_start(running: procs.Procs, tmp_path: Path) -> None:
    with start_runner(tmp_path, "one") as runner:
        assert runner.stdout
        pid, child = map(int, runner.stdout.readline().split("up ")[1].split()[:2])
        handle = os.pidfd_open(child)
        os.kill(pid, signal.SIGKILL)
        ended_within(handle, 5)
        assert runner.stdout.readline() == "one | ended with code -9; starting it again\n"
        assert " up " in runner.stdout.readline()
        runner.terminate()
        runner.communicate(timeout=30)


def start_runner(tmp_path: Path, name: str) -> subprocess.Popen[str]:
    procfile = str(tmp_path / "Procfile")
    program = f"from project.dev import procs; procs.Runner(procs.Procs({procfile!r}), [{name!r}]).run()"
    return subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True)


def ended_within(handle: int, seconds: float) -> None:
    ended, _, _ = select.select([handle], [], [], seconds)
    os.close(handle)
    assert ended, "still running"
