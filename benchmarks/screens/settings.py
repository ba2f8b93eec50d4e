"""The project's own settings, with the flow of this benchmark; nothing is published."""

from __future__ import annotations

from project.settings import *  # noqa: F403 - that is how settings are extended
from project.settings import INSTALLED_APPS, OUTLAST

INSTALLED_APPS = [*INSTALLED_APPS, "benchmarks.screens"]
OUTLAST = {**OUTLAST, "DISPATCHER": ""}
DEBUG = False
LOGGING = {"version": 1, "disable_existing_loggers": True}
