"""This project with accounts of its own."""

from __future__ import annotations

import os

from project.settings import *  # noqa: F403 - a settings module
from project.settings import DATABASES, INSTALLED_APPS

INSTALLED_APPS = ["tests.support.anyuser.apps.AnyUserConfig", *(name for name in INSTALLED_APPS if name != "django_celery_beat")]
AUTH_USER_MODEL = "anyuser.Account"
DATABASES = {"default": {**DATABASES["default"], "TEST": {"NAME": f"test_anyuser_{os.getpid()}"}}}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
OUTLAST = {"DISPATCHER": "tests.support.record.counting"}
