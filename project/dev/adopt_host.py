"""The project that `make adopt` adds us to: what it has before, and what the tutorial's blocks make of it."""

from __future__ import annotations

import re
from pathlib import Path

from project.dev.demo_setup import ROOT, DemoError

TUTORIAL = ROOT / "docs" / "tutorial" / "first-flow.md"
APPROVALS = ROOT / "docs" / "how-to" / "approvals.md"
TESTING = ROOT / "docs" / "how-to" / "testing.md"
BLOCK = re.compile(r"^```python\n# (\S+?\.py)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)

#: What a project on PostgreSQL has before it hears of us. Its addresses come from the environment of `make adopt`.
BEFORE = """
import os
from urllib.parse import urlsplit

_url = urlsplit(os.environ["DATABASE_URL"])
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": _url.path.lstrip("/"),
        "USER": _url.username,
        "PASSWORD": _url.password,
        "HOST": _url.hostname,
        "PORT": _url.port,
    }
}
LOGIN_URL = "/admin/login/"
MAILERS = {"default": {"BACKEND": "django.core.mail.backends.smtp.EmailBackend"}}  # Django 6.1 begins with one that it lets nobody deploy
INSTALLED_APPS += ["yourapp"]
"""
#: The tutorial's address of the broker is a developer's.
AFTER = """
CELERY_BROKER_URL = os.environ["REDIS_URL"]
CELERY_BROKER_TRANSPORT_OPTIONS["global_keyprefix"] = os.environ["PREFIX"]
"""
#: What a command may say of us then: `migrate` that the tables are not there yet, `check` that nobody has made the group of the second flow.
EXPECTED = {"migrate": {"outlast_flows.W105"}, "check": {"outlast_flows.W107"}}
MARK = "\n# ---- what the tutorial adds\n"

#: A customer orders, the provider reports the payment; then a refund is asked for, and rita approves it.
DRIVE = """
import django, json, os, time
os.environ["DJANGO_SETTINGS_MODULE"] = "yourproject.settings"
django.setup()
from django.contrib.auth import get_user_model
from django.test import Client, RequestFactory
from approvals.api import decide
from approvals.models import Request
from flows.models import Workflow
from yourapp import views

def until(what, told):
    ends = time.monotonic() + 60
    while not (found := what()):
        assert time.monotonic() < ends, told
        time.sleep(0.05)
    return found

def at(run, status, node):
    return lambda: Workflow.objects.filter(pk=run, status=status, node=node).first()

users = get_user_model().objects
robin, rita = users.get_or_create(username="robin")[0], users.get_or_create(username="rita")[0]
exec(open("reviewers.py").read())
web = Client(SERVER_NAME="localhost")
web.force_login(robin)
order = web.get("/orders/4711/ship/").json()["workflow"]
assert web.get("/orders/4711/ship/").json()["workflow"] == order
until(at(order, "waiting", "paid"), "the first flow does not come to its wait")
said = web.post("/payments/", json.dumps({"id": "evt-1", "order": 4711, "amount": "12.00"}), content_type="application/json")
assert said.json() == {"received": "accepted"}, said.content
until(at(order, "complete", "done"), "the first flow does not end")
asked = RequestFactory().get("/")
asked.user = robin
refund = json.loads(views.ask_for_refund(asked, 4711).content)["workflow"]
request = until(lambda: Request.objects.filter(workflow_id=refund).first(), "the second flow asks nobody")
web.force_login(rita)
for page in ("", "outlast_approvals/request/", f"outlast_approvals/request/{request.pk}/decide/", f"outlast_flows/workflow/{order}/change/"):
    assert web.get(f"/admin/{page}").status_code == 200, page
assert decide(request, verdict="approve", digest=request.digest, by=rita)
until(at(refund, "complete", "done"), "the second flow does not end")
print("both flows of the tutorial came to their end")
"""


def page(path: Path) -> str:
    return path.read_text()


def shell(after: str) -> list[str]:
    """The lines of the first shell block after some words of the tutorial."""
    found = re.search(r"```sh\n(.*?)```", page(TUTORIAL).partition(f"\n{after}\n")[2], re.DOTALL)
    if found is None:
        raise DemoError(f"the tutorial has no shell block after {after!r}")
    return found[1].strip().splitlines()


def statics() -> list[str]:
    """Our static files, as a template names them."""
    return [
        str(path.relative_to(folder))
        for name in ("flows", "approvals")
        for folder in [ROOT / name / "static"]
        for path in folder.rglob("*.*")
    ]


def before(site: Path) -> None:
    """The project as it is without us."""
    with (site / "yourproject" / "settings.py").open("a") as file:
        file.write(BEFORE)


def write(site: Path) -> None:
    """Each block of the tutorial goes into the file that its first line names."""
    known = set()
    for name, text in BLOCK.findall(page(TUTORIAL)):
        if name not in known and not (site / name).exists():
            (site / name).write_text("")
        known.add(name)
        body = text.replace("    ...,  # your own", "    *INSTALLED_APPS,  # your own") if name.endswith("settings.py") else text
        with (site / name).open("a") as file:
            file.write(MARK + body)
    with (site / "yourproject" / "settings.py").open("a") as file:
        file.write(AFTER)
    wanted = {
        "yourproject/settings.py",
        "yourproject/celery.py",
        "yourproject/__init__.py",
        "yourproject/urls.py",
        "yourapp/flows.py",
        "yourapp/views.py",
    }
    if known != wanted:
        raise DemoError(f"the tutorial writes {sorted(known)}, and not {sorted(wanted)}")
    (lines,) = (
        text
        for text in re.findall(r"^```python\n(.*?)^```$", page(APPROVALS), re.MULTILINE | re.DOTALL)
        if "Group.objects" in text
    )
    (site / "reviewers.py").write_text(lines)
    (site / "drive.py").write_text(DRIVE)


def write_tests(site: Path) -> None:
    """The tests of the how-to, and the two lines of configuration that it names."""
    blocks = BLOCK.findall(page(TESTING))
    if not blocks:
        raise DemoError("docs/how-to/testing.md has no block that names its file")
    for name, text in blocks:
        with (site / name).open("a") as file:
            file.write(MARK + text)
    (found,) = re.findall(r"^```ini\n(.*?)^```$", page(TESTING), re.MULTILINE | re.DOTALL)
    (site / "pytest.ini").write_text(found)


def remove(site: Path) -> None:
    """The project as it was."""
    for path in site.glob("your*/*.py"):
        kept, found, _ = path.read_text().partition(MARK)
        if found:
            path.write_text(kept)
