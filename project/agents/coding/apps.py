from __future__ import annotations

from django.apps import AppConfig


class CodingAgentConfig(AppConfig):
    name = "project.agents.coding"
    label = "coding_agent"
    verbose_name = "Coding agent"
