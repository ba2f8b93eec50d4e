"""The project's settings; nothing is published, and nothing is logged."""

from project.settings import *  # noqa: F403

OUTLAST = {"DISPATCHER": "", "LIVENESS_SECONDS": None}
LOGGING_CONFIG = None
