"""The admin works with accounts of any model: a UUID for a key, an e-mail address for a name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.req("F5", "F7"), pytest.mark.django_db]


def test_reviewers_may_be_accounts_of_another_model() -> None:
    """In a process of its own, for which model has the accounts is settled once."""
    command = [sys.executable, "-m", "tests.support.anyuser"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2], timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
