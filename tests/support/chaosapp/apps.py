from __future__ import annotations

from django.apps import AppConfig


class ChaosConfig(AppConfig):
    name = "tests.support.chaosapp"
    label = "chaosapp"

    def ready(self) -> None:
        from tests.support import crash
        from tests.support.chaosapp import copies

        crash.install_from_environment()
        copies.install_from_environment()
