"""A delegation as a browser posts it, and the one call of the service behind it."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from approvals.models import Delegation, Pool
from approvals.services import people
from approvals.services.delegating import OWN, delegate
from flows import registry
from flows.admin.reasoned import ReasonedForm
from flows.core import visible
from flows.services import identify

#: So many people at most are suggested while a name is typed; any other may be typed too.
MAX_SUGGESTED = 200
#: The longest name of an account that is an e-mail address.
MAX_NAME = 254
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
    giver = forms.CharField(
        label=_("For whom"), max_length=MAX_NAME, help_text=_("The name of the account whose place is taken.")
    )
    to = forms.CharField(
        label=_("Who stands in"),
        max_length=MAX_NAME,
        help_text=_(
            "The name of the account. It needs the permission to answer of its own: a delegation gives a place, never a permission."
        ),
    )
    starts = Moment(label=_("From"), required=False)
    until = Moment(label=_("Until"))
    role = forms.ChoiceField(label=_("Only for the role"), required=False)
    pool = forms.ChoiceField(label=_("Only for the pool"), required=False)
    flow = forms.ChoiceField(label=_("Only for the flow"), required=False)
    field_order = ("giver", "to", "starts", "until", "role", "pool", "flow", "reason")

    def __init__(self, *args: Any, user: Any, others: bool, using: str, **options: Any) -> None:
        """`others`: whether `user` may also arrange it for somebody else."""
        super().__init__(*args, **options)
        self._using = using
        zone = {"zone": timezone.get_current_timezone_name()}
        self.fields["starts"].help_text = gettext("Leave it empty to begin now. Time zone: %(zone)s.") % zone
        self.fields["until"].help_text = gettext("At most a year. Time zone: %(zone)s.") % zone
        for name in ("giver", "to"):
            self.fields[name].widget.attrs |= {"list": "oa-people", "autocomplete": "off"}
        if not others:
            del self.fields["giver"]
        elif user.has_perm(OWN):
            self.fields["giver"].initial = identify.label(user)
        flows = sorted({name for name, _version in registry.known()})
        groups = Group.objects.using(using).order_by("name").values_list("name", flat=True)
        pools = Pool.objects.using(using).order_by("name").values_list("name", flat=True)
        for name, known in (("role", groups), ("pool", pools), ("flow", flows)):
            choices = [("", _("any")), *((one, visible.plain(one)) for one in known)]
            self.fields[name].choices = choices  # type: ignore[attr-defined]

    @property
    def suggested(self) -> list[str]:
        """The names of people who may answer, as tables say. None that looks like another because of a character that nobody sees."""
        names = map(identify.label, people.holders(people.ANSWER, self._using)[:MAX_SUGGESTED])
        return [name for name in names if not any(map(visible.is_hidden, name))]

    def clean_giver(self) -> Any:
        return self._account("giver")

    def clean_to(self) -> Any:
        return self._account("to")

    def _account(self, name: str) -> Any:
        """The active user of that name."""
        model: Any = get_user_model()
        try:
            found = people.users(self._using).filter(**{model.USERNAME_FIELD: self.cleaned_data[name].strip()}).first()
        except (TypeError, ValueError, forms.ValidationError):  # a model whose accounts are called by a number, say
            found = None
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
