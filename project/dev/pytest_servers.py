"""A pytest plugin: private servers where none are given, and for each parallel worker a Redis database of its own.

Loaded by `-p` in pyproject.toml, because Django's settings are read before any conftest.py.
"""

import contextlib
import os
import re

import pytest

from project.dev import servers

OPENED = contextlib.ExitStack()


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests():
    worker = os.environ.get("PYTEST_XDIST_WORKER")  # gw0, gw1, ...: its environment is the main process's
    if not worker:
        env = OPENED.enter_context(servers.running(purpose="test", fresh=True))
        os.environ.update(env.environ())
    else:
        os.environ["REDIS_URL"] = re.sub(r"(/\d*)?$", "/%d" % (int(worker[2:]) + 1), os.environ["REDIS_URL"], count=1)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure():
    OPENED.close()
