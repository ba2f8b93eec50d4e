"""What the demonstration stands on: a database, people and a repository of its own, so it meets nothing of yours."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql

from project.dev import folders

ROOT = Path(folders.ROOT)
ROLE = "release-manager"
PASSWORD_BYTES = 9


class DemoError(Exception):
    """The demonstration cannot go on; the text says why."""


@contextlib.contextmanager
def own_folder(kind: str = "demo") -> Iterator[Path]:
    """An empty folder that no other run of this kind uses at this time."""
    for number in range(1, 9):
        folder = Path(folders.HOME, kind, "agent" if number == 1 else f"agent-{number}")
        folder.parent.mkdir(parents=True, exist_ok=True)
        with open(folder.with_suffix(".lock"), "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            yield folder
            return
    raise DemoError(f"eight runs of make {kind} are going on in this checkout already.")


def own_servers(folder: Path) -> dict[str, str]:
    """The given servers, with an empty database and a key prefix that belong to this folder alone."""
    missing = [name for name in ("DATABASE_URL", "REDIS_URL") if not os.environ.get(name)]
    if missing:
        raise DemoError(f"{' and '.join(missing)} not set. `make demo` sets both: run that, or set them to servers of your own.")
    if not os.environ["DATABASE_URL"].startswith(("postgresql://", "postgres://")):
        raise DemoError("DATABASE_URL must begin with postgresql:// : Outlast keeps its guarantees with PostgreSQL only.")
    mark = hashlib.sha256(str(folder).encode()).hexdigest()[:8]
    parts = urlsplit(os.environ["DATABASE_URL"])
    name = f"{parts.path.lstrip('/')[:40]}_{folder.parent.name}_{mark}"
    try:
        with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True, connect_timeout=10) as connection:
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    except psycopg.Error as error:
        raise DemoError(
            f"{error}\nThe demonstration makes a database of its own, {name}, on the server of DATABASE_URL."
        ) from None
    url = urlunsplit(parts._replace(path=f"/{name}"))
    return {"DATABASE_URL": url, "REDIS_KEY_PREFIX": f"{name}:", "DJANGO_SETTINGS_MODULE": "project.settings"}


def start_django(environment: dict[str, str]) -> None:
    """Django with an up-to-date database, in this process."""
    import django
    from django.core.management import call_command

    level = os.environ.get("LOG_LEVEL")
    os.environ.update(environment, LOG_LEVEL=level or "WARNING")  # this process tells a story; the others write logs
    django.setup()
    os.environ["LOG_LEVEL"] = level or "INFO"
    call_command("migrate", verbosity=0)


def make_people(password: str) -> tuple[object, object]:
    """Robin wants the upgrade; Rita may approve it, in the admin. Nobody approves what he asked for himself."""
    from django.contrib.auth import get_user_model
    from django.contrib.auth.models import Group, Permission

    users = get_user_model().objects
    robin = users.create_user("robin", "robin@example.invalid")
    rita = users.create_user("rita", "rita@example.invalid", password, is_staff=True)
    group, _ = Group.objects.get_or_create(name=ROLE)
    ours = Permission.objects.filter(content_type__app_label__in=("outlast_approvals", "outlast_flows"))
    group.permissions.set(ours.filter(codename__startswith="view_") | ours.filter(codename="answer_request"))
    rita.groups.add(group)
    return robin, rita


def make_repository(folder: Path) -> Path:
    """The bare remote, whose hook lets CI answer while the push is still going on."""
    from project.agents.coding.repository import install_hook, make_remote

    remote = make_remote(folder / "shop.git")
    install_hook(remote, [sys.executable, *ci_arguments(remote), "--hook"], ROOT)
    return remote


def ci_arguments(remote: Path) -> list[str]:
    return ["-m", "project.agents.coding.ci", "--remote", str(remote), "--mischief"]


def ci_command(remote: Path) -> str:
    """As a line of a Procfile."""
    return shlex.join(["python", *ci_arguments(remote)])
