"""A delegation as a browser posts it, and the one call of the service behind it."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.utils.translation import gettext_lazy as _

from approvals.models import Delegation, Pool
from approvals.services import people
from approvals.services.delegating import delegate
from flows import registry
from flows.admin.reasoned import ReasonedForm
from flows.core import visible
from flows.services import identify

#: So many people at most are suggested while a name is typed; any other may be typed too.
MAX_SUGGESTED = 200
NOBODY = _("There is no active account of that name.")


class Moment(forms.DateTimeField):
    """A moment, by the browser's own field: no script is needed."""

    def __init__(self, **options: Any) -> None:
        widget = forms.DateTimeInput(format="%Y-%m-%dT%H:%M", attrs={"type": "datetime-local"})
        wrong = {"invalid": _("Give a day and a time, such as 2026-12-24 18:00.")}
        super().__init__(widget=widget, error_messages={"required": wrong["invalid"], **wrong}, **options)


class DelegateForm(ReasonedForm):
    """Who stands in for whom, until when, for what. Whether that can be is the service's business."""

    purpose = "delegate"
    giver = forms.CharField(label=_("For whom"), max_length=250, help_text=_("The name of the account whose place is taken."))
    to = forms.CharField(
        label=_("Who stands in"),
        max_length=250,
        help_text=_(
            "The name of the account. It needs the permission to answer of its own: a delegation gives a place, never a permission."
        ),
    )
    starts = Moment(label=_("From"), required=False, help_text=_("Leave it empty to begin now."))
    until = Moment(label=_("Until"), help_text=_("At most a year."))
    role = forms.ChoiceField(label=_("Only for the role"), required=False)
    pool = forms.ChoiceField(label=_("Only for the pool"), required=False)
    flow = forms.ChoiceField(label=_("Only for the flow"), required=False)
    field_order = ("giver", "to", "starts", "until", "role", "pool", "flow", "reason")

    def __init__(self, *args: Any, user: Any, others: bool, using: str, **options: Any) -> None:
        """`others`: whether `user` may also arrange it for somebody else."""
        super().__init__(*args, **options)
        self._user, self._using = user, using
        for name in ("giver", "to"):
            self.fields[name].widget.attrs |= {"list": "oa-people", "autocomplete": "off"}
        if not others:
            del self.fields["giver"]
        else:
            self.fields["giver"].initial = identify.label(user)
        flows = sorted({name for name, _version in registry.known()})
        groups = Group.objects.using(using).order_by("name").values_list("name", flat=True)
        pools = Pool.objects.using(using).order_by("name").values_list("name", flat=True)
        for name, known in (("role", groups), ("pool", pools), ("flow", flows)):
            choices = [("", _("any")), *((one, visible.plain(one)) for one in known)]
            self.fields[name].choices = choices  # type: ignore[attr-defined]

    @property
    def suggested(self) -> list[str]:
        """The names of people who may answer, as tables say."""
        found = people.holders(people.ANSWER, self._using)[:MAX_SUGGESTED]
        return [identify.label(user) for user in found]

    def clean_giver(self) -> Any:
        return self._account("giver")

    def clean_to(self) -> Any:
        return self._account("to")

    def _account(self, name: str) -> Any:
        """The active user of that name."""
        model: Any = get_user_model()
        found = people.users(self._using).filter(**{model.USERNAME_FIELD: self.cleaned_data[name].strip()}).first()
        if found is None or not found.is_active:
            raise forms.ValidationError(NOBODY)
        return found


def make(form: DelegateForm, by: Any, using: str) -> Delegation:
    """Make it.

    Raises:
        OutlastError: it could never hold, or `by` may not.
    """
    given = form.cleaned_data
    return delegate(
        given.get("giver") or people.current(by, using),
        given["to"],
        until=given["until"],
        starts=given["starts"],
        reason=given["reason"],
        by=by,
        role=given["role"],
        pool=given["pool"],
        flow=given["flow"],
        using=using,
    )
