"""The project's settings, as an outside project would extend them: one more app, and Outlast settings from the environment."""

from __future__ import annotations

import json
import os

from project.settings import *  # noqa: F403 - that is how settings are extended
from project.settings import INSTALLED_APPS, OUTLAST

INSTALLED_APPS = [*INSTALLED_APPS, "tests.support.chaosapp"]
OUTLAST = {**OUTLAST, **json.loads(os.environ.get("CHAOS_OUTLAST", "{}"))}
CELERY_WORKER_SOFT_SHUTDOWN_TIMEOUT = float(os.environ.get("CHAOS_SOFT_SECONDS", "20"))
