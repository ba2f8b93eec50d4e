"""The project's own settings with one source of webhooks and the flows of this benchmark; nothing is published."""

from __future__ import annotations

from project.settings import *  # noqa: F403 - that is how settings are extended
from project.settings import INSTALLED_APPS, OUTLAST

INSTALLED_APPS = [*INSTALLED_APPS, "benchmarks.webhooks"]
WEBHOOKS = {"storm": {"SCHEME": "standard", "SECRETS": ["env:STORM_SECRET"], "EVENT": "storm.said", "KEY": "body.key"}}
OUTLAST = {**OUTLAST, "DISPATCHER": "", "WEBHOOKS": WEBHOOKS}
DEBUG = False
ALLOWED_HOSTS = ["127.0.0.1"]
LOGGING = {"version": 1, "disable_existing_loggers": True}
