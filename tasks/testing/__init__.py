"""The pytest plugin for projects that use Outlast, and the kit behind its fixture.

    outlast          a kit (`Outlast`) for one test: workers until nothing is ready, durable time, events, answers, crashes, the record

The fixture comes with the distribution (entry point `pytest11`); it asks for pytest-django. docs/how-to/testing.md is the guide.
`from tasks.testing import Outlast` is for annotations, and for tests without pytest (`kit()`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tasks.testing.network import NetworkRefused
    from tasks.testing.toolkit import CannotCrash, Outlast, kit

_HOMES = {"CannotCrash": "toolkit", "NetworkRefused": "network", "Outlast": "toolkit", "kit": "toolkit"}


def __getattr__(name: str) -> Any:
    """Lazily: pytest loads the plugin of this package before there are any settings."""
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["CannotCrash", "NetworkRefused", "Outlast", "kit"]
