"""What a person does to one run from its page: resume, retry now, pause, cancel, adopt; and the one call of the service behind each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from flows import registry
from flows.admin import rendering
from flows.admin.reasoned import ReasonedForm, Took
from flows.core.protocol import SUSPENDED, TERMINAL, Status
from flows.models import Workflow
from flows.services import control, policies
from flows.services.control import Answer, Controlled

OPERATE = "outlast_flows.operate_workflow"
#: The wait beside an activity that is to be tried again.
RETRYING = "retry_window"
Url = Callable[..., str]


class ControlForm(ReasonedForm):
    """Why, and the state of the run that was on the page."""

    seen = forms.CharField(max_length=200, widget=forms.HiddenInput, error_messages={"required": _("Load the page again.")})


class AdoptForm(ControlForm):
    """And the version that was the newest then: nobody adopts one that they have not seen."""

    version = forms.IntegerField(min_value=1, widget=forms.HiddenInput, error_messages={"required": _("Load the page again.")})


class ResumeForm(ControlForm):
    """Also where it goes on, where a gate has stopped it. What the choice may be is the service's business; only names of nodes are offered."""

    at = forms.ChoiceField(label=_("Goes on"), required=False)

    def __init__(self, *args: Any, nodes: Sequence[str], **options: Any) -> None:
        super().__init__(*args, **options)
        field: Any = self.fields["at"]
        field.choices = [
            ("", _("where it stands")),
            *((name, _("at “%(node)s”, which is done anew") % {"node": name}) for name in nodes),
        ]
        self.order_fields(["at", "reason", "seen"])


@dataclass(frozen=True, slots=True)
class Verb:
    """One thing that can be done to a run.

    Attributes:
        act: the service. label: of the button. leads: what follows from it, said before. done: said after it. noted: kept in the history.
    """

    act: Callable[..., Controlled]
    permission: str
    label: Any
    leads: Any
    done: Any
    noted: str


VERBS: dict[str, Verb] = {
    "adopt": Verb(
        policies.adopt,
        policies.PERMISSION,
        _("Adopt the policy"),
        _("It is bound to the newest version of its policy. If an older one has stopped it, it goes on through the gate."),
        _("It is bound to the newest version of its policy; its status is %(status)s."),
        "Adopted the newest version of its policy.",
    ),
    "resume": Verb(
        control.resume,
        OPERATE,
        _("Resume"),
        _("It becomes ready. The gate looks at everything anew before anything runs."),
        _("Resumed: its status is %(status)s."),
        "Resumed.",
    ),
    "retry": Verb(
        control.resume,
        OPERATE,
        _("Retry now"),
        _(
            "Its next attempt does not wait for its time: it becomes ready now, through the gate. Its attempts are counted as ever."
        ),
        _("It is tried again now: its status is %(status)s."),
        "Retried before its time.",
    ),
    "pause": Verb(
        control.pause,
        OPERATE,
        _("Pause"),
        _("It is held until somebody resumes it. What is running now is finished first, and its result is kept."),
        _("It pauses as soon as nothing of it computes; its status is %(status)s."),
        "Paused.",
    ),
    "cancel": Verb(
        control.cancel,
        OPERATE,
        _("Cancel"),
        _(
            "Nothing late of it counts any more. What it owes is serviced and what is declared is undone; then it is cancelled, for good."
        ),
        _("Cancelled: its status is %(status)s."),
        "Cancelled.",
    ),
}


def form_of(verb: str, obj: Workflow, data: Mapping[str, Any] | None = None, **options: Any) -> ControlForm:
    """The form of a verb; several stand on one page."""
    options["auto_id"] = f"id_{verb}_%s"
    definition = registry.definition(obj.flow_name, obj.flow_version)
    suspended = obj.status == Status.WAITING and obj.outcome in SUSPENDED
    nodes = sorted(definition.again_at(obj.node)) if definition is not None and suspended else []
    if verb == "resume" and nodes:
        return ResumeForm(data, nodes=nodes, **options)
    return (AdoptForm if verb == "adopt" else ControlForm)(data, **options)


def controls(
    obj: Workflow, waits_for: Collection[str], user: Any, refused: tuple[str, ReasonedForm] | None, using: str, url: Url
) -> list[dict[str, Any]]:
    """What this person may do to it now, each with its form. `waits_for`: the kinds of its open waits. `refused`: one that was sent, and what
    is wrong with it; it is shown again also
    where the run has moved on meanwhile: nobody is left without an answer.
    """
    found = []
    names = offered(obj, waits_for, using)
    for name in names if refused is None or refused[0] in names else [refused[0], *names]:
        verb = VERBS[name]
        if not user.has_perm(verb.permission):
            continue
        newer = policies.newer(obj, using) if name == "adopt" else ""
        seen = {"seen": control.seen_of(obj), "version": newer.rpartition("@")[2]}
        sent = refused[1] if refused is not None and refused[0] == name else None
        found.append(
            {
                "verb": name,
                "label": verb.label,
                "leads": verb.leads,
                "url": url(f"outlast_flows_workflow_{name}", obj.pk),
                "form": sent or form_of(name, obj, initial=seen),
                "detail": rendering.inline(f"{obj.policy_version} → {newer}") if newer else "",
                "errors": sent.errors if sent is not None else {},
            }
        )
    return found


def offered(obj: Workflow, waits_for: Collection[str], using: str) -> list[str]:
    """The verbs that would do something to it as it is now. Whether they do is the service's business."""
    if obj.status in TERMINAL:
        return []
    suspended = obj.status == Status.WAITING and obj.outcome in SUSPENDED
    computing = obj.status in (Status.RUNNING, Status.RECONCILING)
    asked = computing and obj.pause_requested_at is not None
    may = {
        "adopt": obj.status in (Status.WAITING, Status.PAUSED, Status.RUNNABLE) and bool(policies.newer(obj, using)),
        "resume": suspended or asked or obj.status == Status.PAUSED,
        "retry": _waits(obj) and RETRYING in waits_for,
        "pause": not obj.target and (obj.status == Status.RUNNABLE or (computing and not asked) or _waits(obj)),
        "cancel": obj.status != Status.CANCELLING or obj.target != Status.CANCELLED,
    }
    return [name for name, offers in may.items() if offers]


def _waits(obj: Workflow) -> bool:
    """Whether it waits by plan: one that is suspended for a person stands still already."""
    return obj.status == Status.WAITING and obj.outcome not in SUSPENDED


def take(verb: str, obj: Workflow, by: Any, given: Mapping[str, Any], using: str) -> Took:
    """Do it, if the run is still where it was seen.

    Raises:
        OutlastError: it cannot be done, and why.
    """
    known = VERBS[verb]
    more = {name: given[name] for name in ("version", "at") if given.get(name)}
    found = known.act(obj.pk, reason=given["reason"], by=by, seen=given["seen"], using=using, **more)
    facts = {"status": found.status}
    match found.answer:
        case Answer.ACCEPTED:
            said, level = known.done, messages.SUCCESS
        case Answer.ALREADY:
            said, level = _("It was so already: nothing was changed. Its status is %(status)s."), messages.INFO
        case Answer.TOO_LATE:
            said, level = _("Too late: its status is %(status)s. Nothing was changed."), messages.WARNING
        case Answer.MOVED:
            said, level = (
                _("It has moved since you looked at it; its status is %(status)s. Nothing was changed: look again."),
                messages.WARNING,
            )
    return Took(bool(found), gettext(said) % facts, level, known.noted)
