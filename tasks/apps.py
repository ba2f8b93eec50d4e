"""The execution plane as a Django app: it owns no table; it connects the worker's life to Celery's signals."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class TasksConfig(AppConfig):
    name = "tasks"
    label = "outlast_tasks"
    verbose_name = _("Workers")

    def ready(self) -> None:
        from flows.services import doctor
        from tasks import beat, checks, lifecycle  # noqa: F401 - registers the system check
        from tasks.doctor import broker, settings

        doctor.register("broker", broker)
        doctor.register("Celery's settings", settings)
        beat.connect()
        lifecycle.connect()
