"""What a notice says beside its code: which operations, commitments and budgets it is about, and how a person settles them.

Read when the notice is sent, so it is what is still open then. Names of flows, nodes and effects, keys, ids and codes only: nothing that a
provider or a model wrote.
"""

from __future__ import annotations

from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from flows.conf import conf
from flows.core import visible
from flows.core.budget import written
from flows.core.effects import OperationStatus
from flows.models import Budget, Commitment, Notice, Operation, Workflow
from flows.services.verdicts import NEEDS_PERSON, offered

BUDGET_SOFT = "BUDGET_SOFT"
#: So many of each are named; the admin lists all of them.
MAX_NAMED = 5
#: Characters that stand for themselves in an address of the admin are few; the same as `django.contrib.admin.utils.quote`.
QUOTED = {number: f"_{number:02X}" for number in b'":/_#?;@&=+$,"[]<>%\n\\'}


def way_out(notice: Notice, using: str) -> str:
    """The paragraphs about what the notice is about, each with its page and its command; empty if nothing is open any more."""
    parts = [_operation(one) for one in _operations(notice, using)]
    parts += [_commitment(one) for one in _commitments(notice, using)]
    parts += [_budget(one, notice.workflow) for one in over_soft(notice, using)]
    return "\n\n".join(parts)


def admin_path(model: str, pk: object, page: str = "change", app: str = "outlast_flows") -> str:
    """Where the page of a row is in the admin: a whole address, or what follows the admin's."""
    path = f"{app}/{model}/{str(pk).translate(QUOTED)}/{page}/"
    return f"{conf.ADMIN_URL.rstrip('/')}/{path}" if conf.ADMIN_URL else path


def _operations(notice: Notice, using: str) -> QuerySet[Operation]:
    mine = Operation.objects.using(using).filter(workflow_id=notice.workflow_id).select_related("workflow").order_by("pk")
    if notice.code == "LATE_EFFECT":
        late = {"resolutions__source": "attempt", "resolutions__answer": "happened", "resolutions__counted": False}
        return mine.filter(
            status__in=[OperationStatus.PLANNED, OperationStatus.FAILED, OperationStatus.ABANDONED], **late
        ).distinct()[:MAX_NAMED]
    return mine.filter(NEEDS_PERSON)[:MAX_NAMED]


def _commitments(notice: Notice, using: str) -> QuerySet[Commitment]:
    mine = Commitment.objects.using(using).filter(workflow_id=notice.workflow_id).select_related("workflow").order_by("pk")
    if notice.code == "COMMITMENT_BREACHED":
        return mine.filter(status="breached")[:MAX_NAMED]
    if notice.code == "COMMITMENT_OPEN":
        return mine.filter(status__in=("active", "breached"), releasable=False, may_defer=False)[:MAX_NAMED]
    return mine.none()


def over_soft(notice: Notice, using: str) -> list[Budget]:
    """The ledgers of which a notice tells: their soft limit was passed by the statement that wrote it."""
    if notice.code != BUDGET_SOFT:
        return []
    own = Q(workflow_id=notice.workflow_id) | Q(intent_id=notice.workflow.intent_id)
    return list(Budget.objects.using(using).filter(own, warned_at=notice.created_at).order_by("pk"))


def _budget(row: Budget, workflow: Workflow) -> str:
    command = f'python manage.py flows budget raise {workflow.pk} {row.kind} --by-amount N --reason "…" --by USERNAME'
    told = {
        "kind": row.kind,
        "of": _("the workflow") if row.workflow_id else _("its intent"),
        "spent": written(row.kind, row.spent),
        "soft": written(row.kind, row.soft),
        "limit": written(row.kind, row.allowance),
    }
    return visible_lines(
        [
            _("budget of %(kind)s of %(of)s: %(spent)s spent; the soft limit is %(soft)s, the limit %(limit)s") % told,
            _("In the admin: %(path)s") % {"path": admin_path("budget", row.pk)},
            _("In a terminal: %(command)s") % {"command": command + ("" if row.workflow_id else " --intent")},
        ]
    )


def _operation(row: Operation) -> str:
    named = f" ({row.name})" if row.name else ""
    lines = [
        _("%(kind)s %(what)s, %(run)s: %(status)s, code %(code)s")
        % {
            "kind": row.kind,
            "what": f"{row.workflow.flow_name}.{row.node}{named}",
            "run": _run(row.workflow),
            "status": row.status,
            "code": row.error_code or "–",
        },
        _("In the admin: %(path)s") % {"path": admin_path("operation", row.pk)},
    ]
    verdicts = "|".join(offered(row))
    if verdicts:
        command = f'python manage.py flows resolve {row.pk} --verdict {verdicts} --reason "…" --by USERNAME'
        lines.append(_("In a terminal: %(command)s") % {"command": command})
    return visible_lines(lines)


def _commitment(row: Commitment) -> str:
    told = {"name": row.name, "what": f"{row.workflow.flow_name}.{row.node}", "run": _run(row.workflow), "status": row.status}
    command = f'python manage.py flows commitments fulfil {row.pk} --reason "…" --by USERNAME (or transfer, or defer)'
    return visible_lines(
        [
            _("commitment %(name)s of %(what)s, %(run)s: %(status)s") % told,
            _("In the admin: %(path)s") % {"path": admin_path("commitment", row.pk)},
            _("In a terminal: %(command)s") % {"command": command},
        ]
    )


def _run(workflow: Workflow) -> str:
    return _("key %(key)s") % {"key": workflow.key} if workflow.key else str(workflow.pk)


def visible_lines(lines: list[str]) -> str:
    """One line each, with what hides in a name or a key made visible."""
    return "\n".join(visible.plain(line) for line in lines)
