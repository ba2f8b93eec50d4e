"""Settings from the environment alone; without any, those of a developer's machine.

DATABASE_URL, REDIS_URL    the two servers; `make` sets both to private ones
OUTLAST_ENV=production     the strict switches below; then SECRET_KEY and ALLOWED_HOSTS must be given
SECRET_KEY, ALLOWED_HOSTS, CSRF_TRUSTED_ORIGINS, LOG_LEVEL, REDIS_KEY_PREFIX, BEHIND_TLS_PROXY
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured
from kombu import Exchange, Queue

BASE_DIR = Path(__file__).resolve().parent.parent
LOCAL_DIR = BASE_DIR / ".outlast"  # what processes of this checkout write; not in git
PRODUCTION = os.environ.get("OUTLAST_ENV", "development") == "production"


def database_from_url(url: str) -> dict[str, Any]:
    """postgresql://user:password@host:port/name?sslmode=require, as libpq reads it."""
    parts = urlsplit(url)
    if parts.scheme not in {"postgresql", "postgres"}:
        message = "DATABASE_URL must begin with postgresql:// : Outlast keeps its guarantees with PostgreSQL only."
        raise ImproperlyConfigured(message)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.lstrip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": unquote(parts.hostname or ""),
        "PORT": str(parts.port or ""),
        # A connection is kept, and looked at before it is used again: PostgreSQL may have been restarted meanwhile.
        "CONN_MAX_AGE": None,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": dict(parse_qsl(parts.query)),
    }


def words(name: str) -> list[str]:
    return [word for word in os.environ.get(name, "").replace(",", " ").split() if word]


# ---------------------------------------------------------------------- Django

DEBUG = not PRODUCTION
SECRET_KEY = os.environ.get("SECRET_KEY") or "development only: anyone can read this key in the repository"
ALLOWED_HOSTS = words("ALLOWED_HOSTS") or ["localhost", "127.0.0.1", "[::1]"]
CSRF_TRUSTED_ORIGINS = words("CSRF_TRUSTED_ORIGINS")

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",  # lists of text in columns; Django 6.0 and later ask for the app
    *(["django_celery_beat"] if find_spec("django_celery_beat") else []),
    "flows",
    "approvals",
    "tasks",
    "project.agents.browser",
    "project.agents.coding",
    "project.agents.deployment",
    "project.agents.research",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "project.urls"
WSGI_APPLICATION = "project.wsgi.application"
ASGI_APPLICATION = "project.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],  # before the apps' own, so a project may override them
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]
DATABASES = {"default": database_from_url(os.environ.get("DATABASE_URL", "postgresql://127.0.0.1/outlast"))}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
STATIC_URL = "static/"
STATIC_ROOT = LOCAL_DIR / "static"
MEDIA_ROOT = LOCAL_DIR / "media"

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": os.environ.get("LOG_LEVEL", "INFO")},
}

if PRODUCTION:
    if not os.environ.get("SECRET_KEY"):
        message = "OUTLAST_ENV=production needs a SECRET_KEY in the environment."
        raise ImproperlyConfigured(message)
    if not words("ALLOWED_HOSTS"):
        message = "OUTLAST_ENV=production needs ALLOWED_HOSTS in the environment, for example: www.example.org"
        raise ImproperlyConfigured(message)
    SECURE_SSL_REDIRECT = True
    SECURE_HSTS_SECONDS = 365 * 24 * 3600
    SECURE_HSTS_INCLUDE_SUBDOMAINS = True
    SECURE_HSTS_PRELOAD = True
    SESSION_COOKIE_SECURE = True
    CSRF_COOKIE_SECURE = True
    if os.environ.get("BEHIND_TLS_PROXY"):  # only where a proxy sets or strips this header on every request
        SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

# Django 6.1 wants its mail servers named; the versions before do not read this.
MAILERS = {"default": {"BACKEND": "django.core.mail.backends.smtp.EmailBackend"}}

# ---------------------------------------------------------------------- Celery: a message is only a hint

CELERY_BROKER_URL = os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/0")
CELERY_BROKER_TRANSPORT_OPTIONS = {
    # Without it, Celery 5.7 ends when it loses its Redis, and a message costs three times as much.
    "ack_emulation": False,
    # kombu's default is to wait for ever: a web request must not hang on a dead connection.
    "socket_timeout": 10,
    "socket_connect_timeout": 3,
    "socket_keepalive": True,
    "health_check_interval": 10,
    "global_keyprefix": os.environ.get("REDIS_KEY_PREFIX", ""),  # several projects on one Redis
}
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_BROKER_POOL_LIMIT = 10
CELERY_BROKER_POOL_ACQUIRE_TIMEOUT = 3
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_IGNORE_RESULT = True
# Attempts are counted in PostgreSQL, and leases there bring lost work back: the broker must not do so as well.
CELERY_TASK_ACKS_LATE = False
CELERY_TASK_REJECT_ON_WORKER_LOST = False
CELERY_TASK_RETRY_ON_WORKER_LOST = False
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = False
# Nothing is hoarded, so a killed worker loses nothing but what it was running.
CELERY_WORKER_DISABLE_PREFETCH = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
# With Redis down a publish fails at once; `retry=False` would block six seconds a call.
CELERY_TASK_PUBLISH_RETRY = True
CELERY_TASK_PUBLISH_RETRY_POLICY = {"max_retries": 0}
CELERY_WORKER_SOFT_SHUTDOWN_TIMEOUT = 20
CELERY_WORKER_ETA_TASK_LIMIT = 1000
CELERY_TASK_SEND_SENT_EVENT = False
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_CONTROL_QUEUE_EXPIRES = 60
# A task keeps its database connection; the worker's own hook looks whether it still lives.
CELERY_DB_REUSE_MAX = 1_000_000
CELERY_TIMEZONE = "UTC"  # Beat has its time zone faults everywhere else
CELERY_ENABLE_UTC = True
CELERY_BEAT_MAX_LOOP_INTERVAL = 5
if "django_celery_beat" in INSTALLED_APPS:
    CELERY_BEAT_SCHEDULER = "tasks.schedulers:CalmScheduler"
else:
    CELERY_BEAT_SCHEDULER = "tasks.schedulers:CalmFileScheduler"
    CELERY_BEAT_SCHEDULE_FILENAME = str(LOCAL_DIR / "beat-schedule")
# Each with an exchange and key of its own: Celery gives a bare Queue(name) the default queue's, and with those every
# message would reach all three.
CELERY_TASK_QUEUES = [Queue(name, Exchange(name), routing_key=name) for name in ("control", "agents", "cleanup")]
CELERY_TASK_DEFAULT_QUEUE = "control"

# ---------------------------------------------------------------------- Outlast

OUTLAST: dict[str, Any] = {}
