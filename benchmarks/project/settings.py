"""The project's own settings and one app more; the servers come from DATABASE_URL and REDIS_URL, which the harness sets."""

from __future__ import annotations

from project.settings import *  # noqa: F403 - that is how settings are extended
from project.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "benchmarks.project.bench"]
DEBUG = False
