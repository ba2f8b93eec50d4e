"""The project's own settings, with the deployment agent and the flow of this benchmark."""

from __future__ import annotations

from project.settings import *  # noqa: F403 - that is how settings are extended
from project.settings import INSTALLED_APPS

_AGENT = "project.agents.deployment"
INSTALLED_APPS = [*(app for app in INSTALLED_APPS if app != _AGENT), _AGENT, "benchmarks.designs"]
DEBUG = False
