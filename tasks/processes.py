"""What identifies a process on a Linux host, and whether exactly that process is gone. Elsewhere nothing is proven: the lease is waited for."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from flows.store.workers import Process

_UNKNOWN = ""


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return _UNKNOWN


def start_time(pid: int) -> str:
    """When that process started, in clock ticks since boot; "" if there is none (a zombie counts as gone)."""
    text = _read(f"/proc/{pid}/stat")
    if not text:
        return _UNKNOWN
    fields = text.rpartition(")")[2].split()
    return _UNKNOWN if fields[0] in "ZX" else fields[19]


def this_process() -> Process:
    """This process as it is written into its worker row."""
    try:
        namespace = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        namespace = _UNKNOWN
    pid = os.getpid()
    return Process(platform.node(), _read("/proc/sys/kernel/random/boot_id"), namespace, pid, start_time(pid))


def is_gone(other: Process, me: Process) -> bool:
    """Whether it is proven that the other process has ended: same boot and PID namespace, and its pid free or taken by a later process.

    Another boot id proves nothing: it may be another machine with the same name.
    """
    if not other.boot_id or not me.boot_id or not other.started:
        return False
    if other.boot_id != me.boot_id:
        return False
    if other.pid_namespace != me.pid_namespace:
        return False
    return start_time(other.pid) != other.started


def exists(pid: int) -> bool:
    """Whether a process with that pid runs (a zombie does not)."""
    if Path("/proc").is_dir():
        return start_time(pid) != _UNKNOWN
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
