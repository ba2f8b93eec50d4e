"""`make demo`: real processes, a worker killed in the middle, and every effect once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run_demo(*without: str) -> subprocess.CompletedProcess[str]:
    unwanted = {"INTERACTIVE", "DJANGO_SETTINGS_MODULE", *without}
    return subprocess.run(
        [sys.executable, "-m", "project.dev.demo"],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name not in unwanted},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.req("O6", "V2", "B1", "E1", "F3", "F4")
def test_the_demonstration_ends_complete_with_every_effect_once() -> None:
    done = run_demo()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Outcome: COMPLETE" in done.stdout
    assert "NO " not in done.stdout.partition("Every effect exactly once?")[2]


def test_without_servers_it_says_what_to_do() -> None:
    done = run_demo("DATABASE_URL", "REDIS_URL")
    assert done.returncode == 1
    assert "make demo" in done.stderr
