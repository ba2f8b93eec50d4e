"""The ways on of a run that stands still, each as a link to where it is gone: a form of its page, or the page of what stops it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from django.contrib.admin.utils import quote
from django.contrib.auth import get_user_model
from django.utils.translation import gettext as _

from flows.admin import rendering
from flows.core.protocol import ASKING
from flows.core.verdicts import Way
from flows.models import Competence, Operation, Policy, Release, Wait, Workflow
from flows.services import budgets, competence, holds
from flows.services.describe import Description
from flows.services.verdicts import NEEDS_PERSON

MAX_LINKS = 20
Url = Callable[..., str]
#: What is said to who may not do it themselves.
ASK = {
    Way.RESUME: "operate_workflow",
    Way.CANCEL: "operate_workflow",
    Way.ADOPT: "publish_policy",
    Way.MIGRATE: "operate_workflow",
}


def steps(obj: Workflow, told: Description, verbs: Collection[str], using: str, url: Url) -> list[dict[str, Any]]:
    """What a person does, in order: each with its words and links. `verbs`: what this person finds a form for on this page."""
    found = []
    for way in map(Way, told.ways_on):
        says, links = WAYS[way](At(obj, using, url))
        here = way in ASK
        may = way.value in verbs
        found.append(
            {
                "way": way.value,
                "says": says,
                "links": [{"text": rendering.inline(text), "url": address} for text, address in links if address],
                "here": f"#oa-{way.value}" if here and may else "",
                "needs": f"outlast_flows.{ASK[way]}" if here and not may else "",
            }
        )
    return found


@dataclass(frozen=True, slots=True)
class At:
    """A run, and how to find rows and addresses."""

    obj: Workflow
    using: str
    url: Url


Step = tuple[str, list[tuple[str, str]]]


def _adopt(at: At) -> Step:
    name = at.obj.policy_version.rpartition("@")[0]
    rows = Policy.objects.using(at.using).filter(name=name).order_by("-version")[:1]
    links = [(str(row), at.url("outlast_flows_policy_change", row.pk)) for row in rows]
    return _("Adopt the newest version of its policy"), links


def _move(at: At) -> Step:
    row = Release.objects.using(at.using).filter(name=at.obj.release).first()
    page = at.url("outlast_flows_release_change", row.pk) if row is not None else ""
    return _("Move it to another release, or let it keep its own"), [
        (at.obj.release, f"{page}?run={at.obj.pk}#oa-move")
    ] if page else []


def _settle(at: At) -> Step:
    rows = at.obj.commitments.using(at.using).order_by("pk")[:MAX_LINKS]
    links = [(f"{row.name}: {row.status}", at.url("outlast_flows_commitment_change", row.pk)) for row in rows]
    return _("Settle what it owes"), links


def _raise(at: At) -> Step:
    rows = [row for row in budgets.of(at.obj, using=at.using) if row.allowance is not None]
    short = [row for row in rows if not budgets.left(row)] or rows
    return _("Allow more"), [(_named(row), at.url("outlast_flows_budget_change", row.pk)) for row in short]


def _named(row: Any) -> str:
    return row.kind if row.workflow_id else _("%(kind)s of the intent") % {"kind": row.kind}


def _open(at: At) -> Step:
    rows = Competence.objects.using(at.using).filter(flow_name=at.obj.flow_name, release=at.obj.release)
    if node := competence.envelope_of(at.obj):
        rows = rows.filter(node=node)
    links = [(f"{row.flow_name}.{row.node}", at.url("outlast_flows_competence_change", row.pk)) for row in rows[:MAX_LINKS]]
    return _("Open the envelope again"), links


def _resolve(at: At) -> Step:
    rows = Operation.objects.using(at.using).filter(NEEDS_PERSON, workflow_id=at.obj.pk).order_by("pk")[:MAX_LINKS]
    links = [(row.pk, at.url("outlast_flows_operation_change", quote(row.pk))) for row in rows]
    return _("Say what became of its operation"), links


def _answer(at: At) -> Step:
    rows = Wait.objects.using(at.using).filter(workflow_id=at.obj.pk, kind__in=ASKING, closed_at__isnull=True)
    return _("Answer the request"), [(row.node, at.url("outlast_approvals_request_of_wait", row.pk)) for row in rows]


def _grant(at: At) -> Step:
    meta = get_user_model()._meta  # noqa: SLF001 - the documented way to a model's names
    page = at.url(f"{meta.app_label}_{meta.model_name}_change", at.obj.user_id) if at.obj.user_id is not None else ""
    return _("Give the accountable user the right"), [(at.obj.user_label, page)]


def _workers(at: At) -> Step:
    return _("Start a worker that may take it"), [(_("Workers"), at.url("outlast_flows_worker_changelist"))]


def _lift(at: At) -> Step:
    links = [
        (f"{one.scope} {one.name}".strip(), at.url("outlast_flows_hold_change", one.id)) for one in holds.of(at.obj, at.using)
    ]
    return _("Lift what holds it"), links


#: The words and the links of each way; a test looks for one that is missing.
WAYS: dict[Way, Callable[[At], Step]] = {
    Way.RESUME: lambda _at: (_("Resume it"), []),
    Way.CANCEL: lambda _at: (_("Or cancel it"), []),
    Way.MIGRATE: lambda _at: (_("Migrate it to a newer version"), []),
    Way.ADOPT: _adopt,
    Way.MOVE: _move,
    Way.SETTLE: _settle,
    Way.RAISE: _raise,
    Way.OPEN: _open,
    Way.RESOLVE: _resolve,
    Way.ANSWER: _answer,
    Way.GRANT: _grant,
    Way.WORKERS: _workers,
    Way.LIFT: _lift,
}
