from __future__ import annotations

from django.apps import AppConfig


class AnyUserConfig(AppConfig):
    name = "tests.support.anyuser"
    label = "anyuser"
