from __future__ import annotations

from django.apps import AppConfig


class BrowserAgentConfig(AppConfig):
    name = "project.agents.browser"
    label = "browser_agent"
    verbose_name = "Browser agent"
