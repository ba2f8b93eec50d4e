"""Settings of this project as somebody has them who uses a theme for the admin: OUTLAST_THEME=unfold, or jazzmin.

`project/dev/themes.py` installs the themes and runs `tests/browser/test_themes.py` with these.
"""

from __future__ import annotations

import os

from project.settings import *  # noqa: F403 - a settings module
from project.settings import INSTALLED_APPS, TEMPLATES

THEME = os.environ.get("OUTLAST_THEME", "")

if THEME:
    INSTALLED_APPS = [THEME, *INSTALLED_APPS]
    TEMPLATES = [{**TEMPLATES[0], "DIRS": []}]  # the project's own name in the admin would stand in the theme's way
