from __future__ import annotations

from django.apps import AppConfig


class DesignsConfig(AppConfig):
    name = "benchmarks.designs"
    label = "outlast_designs"

    def ready(self) -> None:
        """The deployment agent's calls are recorded like those of every other design."""
        from benchmarks.designs.task import Recorded
        from project.agents.deployment import activities

        vars(activities)["Cloud"] = Recorded
