"""The runnable project: settings, Celery app and the example agents."""

from project.celery import app as celery_app  # loaded with Django, so that every process publishes to the same broker

__all__ = ["celery_app"]
