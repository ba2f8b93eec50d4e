from __future__ import annotations

from django.apps import AppConfig


class DeploymentAgentConfig(AppConfig):
    name = "project.agents.deployment"
    label = "deployment_agent"
    verbose_name = "Deployment agent"
