"""The class that admin pages come from: Unfold styles only what comes from its own, so where it is installed that is taken; else Django's."""

from __future__ import annotations

import importlib
from typing import Any

from django.apps import apps
from django.contrib import admin


def model_admin() -> Any:
    """Chosen once, when the pages are imported; the apps are known by then."""
    if apps.is_installed("unfold"):
        return importlib.import_module("unfold.admin").ModelAdmin
    return admin.ModelAdmin
