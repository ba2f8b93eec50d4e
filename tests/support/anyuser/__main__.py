"""python -m tests.support.anyuser: a database is made, the scene is played in it, and it is removed."""

from __future__ import annotations

import os

import django
from django.test.utils import setup_databases, setup_test_environment, teardown_databases

if __name__ == "__main__":
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.support.anyuser.settings"
    django.setup()
    from tests.support.anyuser import scene

    setup_test_environment(debug=False)
    made = setup_databases(verbosity=0, interactive=False)
    try:
        scene.play()
    finally:
        teardown_databases(made, verbosity=0)
