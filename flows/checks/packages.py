"""The three apps are installed, and are Outlast's."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

from django.apps import apps
from django.core import checks

from flows.checks.catalogue import TAG
from flows.checks.values import value_of

#: Our packages have plain names; another package of such a name may be found first.
#: Name → what is missing without it.
PACKAGES = {
    "flows": "nothing is recorded",
    "tasks": "no worker serves the record, and no clock wakes it",
    "approvals": "an Approval asks nobody",
}
HOME = Path(__file__).resolve().parents[2]


@checks.register(TAG)
def check_packages(**_: Any) -> list[checks.CheckMessage]:
    """The packages `flows`, `tasks` and `approvals` that Python finds are Outlast's own."""
    wanted = {name for name in PACKAGES if any(app.name == name for app in apps.get_app_configs())}
    wanted |= {name for name in PACKAGES if str(value_of("DISPATCHER")).startswith(f"{name}.")}
    return [_foreign(name, place) for name in PACKAGES if name in wanted and (place := _elsewhere(name)) is not None]


@checks.register(TAG)
def check_installed(**_: Any) -> list[checks.CheckMessage]:
    """All three apps are installed: each is a plane that the others rely on."""
    return [_absent(name, what) for name, what in PACKAGES.items() if not apps.is_installed(name)]


def _absent(name: str, what: str) -> checks.CheckMessage:
    message = f"{name!r} is not in INSTALLED_APPS: {what}."
    hint = 'Add the three of them: INSTALLED_APPS = [..., "flows", "approvals", "tasks"].'
    return checks.Error(message, hint=hint, id="outlast_flows.E107")


def _elsewhere(name: str) -> str | None:
    """Where a package is found, if that is not beside this one."""
    module = sys.modules.get(name)
    try:
        spec = module.__spec__ if module is not None else importlib.util.find_spec(name)
    except (ImportError, ValueError):
        spec = None
    origin = getattr(module, "__file__", None) or (spec.origin if spec else None)
    places = [origin] if origin else list(spec.submodule_search_locations or ()) if spec else []
    if not places:
        return "nowhere"
    found = Path(places[0]).resolve()
    return None if HOME / name in (found, found.parent) else str(found)


def _foreign(name: str, place: str) -> checks.CheckMessage:
    message = f"The package {name!r} that Python finds is not Outlast's: it is {place}, Outlast is in {HOME}."
    hint = (
        f"A module of the project with the name {name!r} comes first on sys.path. Rename it (a module inside an app, such as "
        f"shop/{name}.py, is no problem), or move the project's own code into a package."
    )
    return checks.Error(message, hint=hint, id="outlast_flows.E105")
