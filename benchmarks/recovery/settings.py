"""The project's own settings, with the flows of this benchmark."""

from __future__ import annotations

from project.settings import *  # noqa: F403 - that is how settings are extended
from project.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "benchmarks.recovery"]
DEBUG = False
