"""The folders that servers live in, and who owns one: whoever holds its lock, which ends with its holder."""

import contextlib
import fcntl
import json
import os
import shutil
import signal
import sys

from project.dev import engines, supervise
from project.dev.engines import ServerError

ROOT = os.path.dirname(os.path.dirname(engines.HERE))
HOME = os.environ.get("OUTLAST_HOME") or os.path.join(ROOT, ".outlast")


def claim(purpose, single):
    """(lock, folder) of a folder that nobody uses."""
    for number in range(1, 33):
        folder = os.path.join(HOME, purpose if number == 1 else "%s-%d" % (purpose, number))
        os.makedirs(folder, exist_ok=True)
        # Passable for the user that PostgreSQL runs as under root; what is secret in it has its own mode.
        os.chmod(folder, 0o711)
        lock = os.open(os.path.join(folder, "lock"), os.O_RDWR | os.O_CREAT, 0o600)
        if try_lock(lock) or (single and wait_for_lock(lock, folder)):
            return lock, folder
        os.close(lock)
        if single:
            raise ServerError(
                "the servers for '%s' are already running in this checkout (process %s)."
                % (purpose, read_state(folder).get("supervisor", {}).get("pid", "unknown"))
            )
    raise ServerError("32 runs for '%s' are active in this checkout already." % purpose)


def try_lock(lock):
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def wait_for_lock(lock, folder):
    """A run that was killed a moment ago needs a few seconds to end its servers."""
    text = "The servers in %s are in use; waiting a moment ..."
    print(text % os.path.relpath(folder, ROOT), file=sys.stderr, flush=True)
    return engines.wait_until(lambda: try_lock(lock), 10)


def settle_leftovers(folder):
    """Servers that outlived their supervisor (where the kernel does not see to it) are ended, by verified pid."""
    for name, process in read_state(folder).get("processes", {}).items():
        for number in (signal.SIGINT if name == "postgres" else signal.SIGTERM, signal.SIGKILL):
            if is_running(process):
                os.kill(process["pid"], number)
                engines.wait_until(lambda process=process: not is_running(process), 10)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(folder, "state.json"))


def is_running(process):
    """The very process that was noted, and not another that got its number since."""
    return process["started"] is not None and supervise.started(process["pid"]) == process["started"]


def read_state(folder):
    try:
        with open(os.path.join(folder, "state.json")) as file:
            return json.load(file)
    except (OSError, ValueError):
        return {}


def check_room(folder):
    free = shutil.disk_usage(folder).free // 2**20
    if free < 200:
        text = "the disk is full: %d MB are free at %s and 200 MB are needed. Free some and run the same command again."
        raise ServerError(text % (free, folder))


def running_state(purpose):
    state = read_state(os.path.join(HOME, purpose))
    keeper = state.get("supervisor")
    return state if keeper and state["info"] and is_running(keeper) else None
