"""One virtual environment for each peer, built on first use and rebuilt when its pinned requirements change."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

PEERS = Path(__file__).resolve().parent / "peers"


def requirements_of(peer: str) -> Path:
    """The pinned requirements of one peer."""
    return PEERS / f"requirements-{peer}.txt"


def ensure(peer: str, home: Path) -> Path:
    """Return the interpreter of the peer's environment; at most one build for each content of its requirements."""
    wanted = requirements_of(peer)
    stamp = f"{sys.version_info.major}.{sys.version_info.minor} {hashlib.sha256(wanted.read_bytes()).hexdigest()}"
    folder = home / f"v_{peer}"
    python = folder / "bin" / "python"
    marker = folder / "outlast-bench.stamp"
    with _alone(home / "environments.lock"):
        if python.exists() and marker.exists() and marker.read_text() == stamp:
            return python
        print(f"bench: building the environment of {peer} ({wanted.name})", file=sys.stderr, flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        _build(folder, python, wanted)
        marker.write_text(stamp)
    return python


@contextlib.contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """One build at a time in this checkout; the lock ends with its holder."""
    with lock.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def site_packages(python: Path) -> Path:
    """The folder in which the environment of this interpreter keeps its packages."""
    found = sorted((python.parent.parent / "lib").glob("python*/site-packages"))
    return found[0]


def _build(folder: Path, python: Path, wanted: Path) -> None:
    base = getattr(sys, "_base_executable", sys.executable)
    if importlib.util.find_spec("uv"):
        _run([sys.executable, "-m", "uv", "venv", "--quiet", "--python", base, str(folder)])
        _run([sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", str(python), "-r", str(wanted)])
    else:
        _run([base, "-m", "venv", str(folder)])
        _run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", str(wanted)])


def _run(command: list[str]) -> None:
    done = subprocess.run(command, check=False, stdout=sys.stderr)
    if done.returncode:
        raise SystemExit(f"bench: exit {done.returncode} from: {' '.join(command)}")
