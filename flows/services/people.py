"""The people that a flow names: members of Django groups, and those who were given a permission."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any
from uuid import UUID

from django.contrib.auth import get_user_model
from django.db.models import Q

from flows.conf import conf
from flows.models import Workflow
from flows.services import notices

#: So many at most are told of one thing.
MAX_PEOPLE = 100


def keys(names: Sequence[str], using: str) -> list[Any]:
    """The users behind these names: a name with a dot is a permission ("app.codename"), another one a Django group.

    Only active users, in order of their keys. A superuser counts where somebody gave them the group or the permission: to be allowed
    everything is not to be asked for everything.
    """
    users = get_user_model()
    known = {field.name for field in users._meta.get_fields()}  # noqa: SLF001 - Django's documented way to look at a model
    wanted = Q(pk__in=[])
    for name in names:
        app, dot, codename = name.partition(".")
        if not dot and "groups" in known:
            wanted |= Q(groups__name=name)
        for path in ("user_permissions", "groups__permissions") if dot else ():
            if path.partition("__")[0] in known:
                wanted |= Q(**{f"{path}__codename": codename, f"{path}__content_type__app_label": app})
    found = users._default_manager.using(using).filter(wanted)  # noqa: SLF001 - the documented way that does not assume `objects`
    if "is_active" in known:
        found = found.filter(is_active=True)
    return list(found.order_by("pk").values_list("pk", flat=True).distinct()[:MAX_PEOPLE])


def person(user: Any) -> Hashable:
    """What two accounts of one human have in common: by default the e-mail address, without regard to case; else the account itself."""
    model: Any = get_user_model()
    field = model.get_email_field_name() if hasattr(model, "get_email_field_name") else "email"
    address = str(getattr(user, field, "") or "").strip().casefold()
    return ("e-mail", address) if address else ("account", user.pk)


def tell(workflow: UUID, names: Iterable[str], outcome: str, code: str, using: str) -> int:
    """Owe a notice to each of these people (by default those of `ESCALATE_TO`), besides the accountable user; how many.

    In the transaction of what it tells of.
    """
    given = tuple(names) or tuple(conf.ESCALATE_TO)
    if not given:
        return 0
    accountable = Workflow.objects.using(using).values_list("user_id", flat=True).get(pk=workflow)
    others = [key for key in keys(given, using) if key != accountable]
    for key in others:
        notices.owe(workflow, key, outcome, code, using)
    return len(others)
