from __future__ import annotations

from django.apps import AppConfig


class ResearchAgentConfig(AppConfig):
    name = "project.agents.research"
    label = "research_agent"
    verbose_name = "Research agent"
    default_auto_field = "django.db.models.BigAutoField"
