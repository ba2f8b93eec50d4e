"""What is in the hands of the project that takes us up: its transactions, its databases, its connections, its Celery."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.test import Client
from django.urls import path

import flows
from flows import Flow
from flows.models import Workflow
from flows.testing import LocalWorker
from tests import factories

pytestmark = pytest.mark.req("V3")
ROOT = Path(__file__).parents[2]
Declare = Callable[..., type[Flow]]

#: What the view starts.
wanted: list[type[Flow]] = []


def order(request: HttpRequest) -> HttpResponse:
    run = wanted[0].start({"n": 1}, key=request.GET["key"])
    if request.GET.get("then") == "break":
        raise RuntimeError(run.id)
    return JsonResponse({"workflow": str(run.id), "atomic": connection.in_atomic_block})


urlpatterns = [path("order/", order)]


def test_under_atomic_requests_a_start_lives_and_dies_with_its_request(
    declare: Declare, worker: LocalWorker, hints: Any, settings: Any
) -> None:
    """And its hint goes out only when it is there to be found."""
    settings.ROOT_URLCONF = __name__
    wanted[:] = [declare(name="t-host", work=flows.Activity(factories.work, then="done"), done=flows.End(flows.COMPLETE))]
    client = Client(raise_request_exception=False)
    connection.settings_dict["ATOMIC_REQUESTS"] = True
    try:
        hints.clear()
        assert client.get("/order/?key=a&then=break").status_code == 500
        assert (Workflow.objects.count(), hints.hints) == (0, [])
        kept = client.get("/order/?key=a").json()
    finally:
        connection.settings_dict["ATOMIC_REQUESTS"] = False
    assert kept["atomic"] is True
    assert [hint.ids for hint in hints.hints] == [(kept["workflow"],)]
    worker.run()
    assert Workflow.objects.get(pk=kept["workflow"]).status == "complete"


def test_in_a_block_that_is_rolled_back_nothing_was_signalled(worker: LocalWorker) -> None:
    with transaction.atomic():
        flows.signal("evt-host", "host.paid", key="1")
        transaction.set_rollback(True)
    assert flows.signal("evt-host", "host.paid", key="1").answer != "already"


def test_an_app_of_theirs_may_have_the_short_names_for_labels() -> None:
    """Ours are `outlast_…`: a project's own `shop.flows` with the label `flows` meets nothing."""
    found = in_a_project(
        """
        from django.apps import apps
        from django.core.management import call_command
        call_command("check")
        print(json.dumps({name: apps.get_app_config(name).name for name in ("flows", "tasks", "approvals")}))
        """,
        """
        from django.apps import AppConfig
        for label in ("flows", "tasks", "approvals"):
            package = ModuleType(f"host_{label}")
            package.__file__, package.__path__ = "/nowhere/__init__.py", ["/nowhere"]
            package.Config = type("Config", (AppConfig,), {"name": f"host_{label}", "label": label, "__module__": package.__name__})
            sys.modules[package.__name__] = package
            INSTALLED_APPS = [*INSTALLED_APPS, f"host_{label}.Config"]
        OUTLAST = {"DISPATCHER": ""}
        """,
    )
    assert found == {"flows": "host_flows", "tasks": "host_tasks", "approvals": "host_approvals"}


def in_a_project(program: str, settings: str) -> Any:
    """What a program prints as JSON on its last line, in a process of its own with these settings after ours."""
    code = f"""
import json, os, sys
from types import ModuleType
from project import settings as ours
host = ModuleType("host_settings")
vars(host).update({{name: value for name, value in vars(ours).items() if name.isupper()}})
vars(host).update(sys=sys, ModuleType=ModuleType)
exec({textwrap.dedent(settings)!r}, vars(host))
sys.modules["host_settings"] = host
os.environ["DJANGO_SETTINGS_MODULE"] = "host_settings"
import django
django.setup()
{textwrap.dedent(program)}
"""
    database = connection.settings_dict
    url = f"postgresql://{database['USER']}:{database['PASSWORD']}@{database['HOST']}:{database['PORT']}/{database['NAME']}"
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": url},
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_a_record_in_a_second_database_by_a_router(transactional_db: None) -> None:
    """`OUTLAST["DATABASE"]` says where the record is; the router sends our labels and the accounts there, and nothing else of the project."""
    found = in_a_project(
        """
        import flows
        from django.core import checks
        from django.db import connections
        from flows.models import Workflow
        from flows.testing import local_worker

        class HostRouted(flows.Flow):
            done = flows.End(flows.COMPLETE)

        run = HostRouted.start({})
        with local_worker() as worker:
            worker.run()
        said = [one.id for one in checks.run_checks(databases=["record"]) if one.id and one.id.startswith("outlast_")]
        row = Workflow.objects.get(pk=run.id)
        opened = connections["default"].connection is not None
        said = sorted({*said} - {"outlast_flows.W107"})  # nobody has made the groups of our examples
        print(json.dumps({"status": row.status, "database": row._state.db, "opened": opened, "said": said}))
        """,
        """
        there = {"outlast_flows", "outlast_approvals", "auth", "contenttypes"}
        class Router:
            def db_for_read(self, model, **hints):
                return "record" if model._meta.app_label in there else None
            db_for_write = db_for_read
            def allow_relation(self, one, other, **hints):
                return True
            def allow_migrate(self, db, app_label, **hints):
                return (db == "record") == (app_label in there)
        DATABASES = {"record": DATABASES["default"], "default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
        DATABASE_ROUTERS = [Router()]
        OUTLAST = {"DATABASE": "record", "DISPATCHER": ""}
        """,
    )
    assert found == {"status": "complete", "database": "record", "opened": False, "said": []}


def test_celery_with_a_namespace_and_routes_of_its_own(transactional_db: None) -> None:
    """Hints go to the queues that the project's own names stand for, past a catch-all route; its own tasks go where it says."""
    found = in_a_project(
        """
        from celery import Celery
        app = Celery("host", set_as_current=True)
        app.config_from_object("django.conf:settings", namespace="QUEUEING")
        app.set_default()
        sent = []
        app.amqp.send_task_message = lambda producer, name, message, queue, **options: sent.append((name, queue.name))
        from flows.dispatch import Hint, dispatcher
        dispatcher().publish([Hint("agents", "x", ("01a22e76-dc24-7f3f-869f-8f4c46099767",))])
        print(json.dumps(sent))
        """,
        """
        QUEUEING_BROKER_URL = "memory://"
        QUEUEING_TASK_ROUTES = {"*": {"queue": "everything-else"}}
        OUTLAST = {"QUEUES": {"agents": "host-agents"}}
        """,
    )
    assert found == [["outlast.turn", "host-agents"]]
