"""The project's own settings, with the flows of this benchmark and one source of webhooks."""

from __future__ import annotations

from project.settings import *  # noqa: F403 - that is how settings are extended
from project.settings import INSTALLED_APPS, OUTLAST

INSTALLED_APPS = [*INSTALLED_APPS, "benchmarks.storm"]
OUTLAST = {
    **OUTLAST,
    "WEBHOOKS": {
        "storm": {"SCHEME": "standard", "SECRETS": ["env:STORM_SECRET"], "EVENT": "storm.hook", "KEY": "body.key"},
    },
}
DEBUG = False
ALLOWED_HOSTS = ["127.0.0.1"]
