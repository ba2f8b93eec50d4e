"""What `settings.OUTLAST` says, also where it is written in a way that nothing else could read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings

from flows.conf import DEFAULTS


def value_of(key: str) -> Any:
    """A setting as it is given, or its default, also where `settings.OUTLAST` is no dict."""
    given = getattr(settings, "OUTLAST", {})
    return given.get(key, DEFAULTS[key]) if isinstance(given, Mapping) else DEFAULTS[key]


def is_sound() -> bool:
    """Whether `settings.OUTLAST` can be read at all."""
    return isinstance(getattr(settings, "OUTLAST", {}), Mapping)
