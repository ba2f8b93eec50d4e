"""Notice: what people are to be told of a request. Rows of an outbox (`flows.services.outbox`)."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from approvals.core.notices import NoticeKind
from approvals.models.request import Request
from flows.models.notice import OWED, Owed

KINDS = {
    NoticeKind.ASKED: pgettext_lazy("notice", "asked"),
    NoticeKind.REMINDER: pgettext_lazy("notice", "reminder"),
    NoticeKind.ESCALATED: pgettext_lazy("notice", "escalated"),
    NoticeKind.ASSIGNED: pgettext_lazy("notice", "assigned"),
    NoticeKind.DECIDED: pgettext_lazy("notice", "decided"),
    NoticeKind.REVOKED: pgettext_lazy("notice", "taken back"),
    NoticeKind.WITHDRAWN: pgettext_lazy("notice", "withdrawn"),
}

#: Not for one person: what has happened, or what a channel for all is told of it.
FOR_ALL = Q(user_label="")


class Notice(Owed):
    """Without a channel: what has happened, written in the transaction in which it did; sending that means to write a row for each person and
    each channel. With one: what one person (`user_label` stays when the account is deleted), or a channel for all, is told. Each is there once.
    """

    request = models.ForeignKey(Request, verbose_name=_("request"), on_delete=models.CASCADE, related_name="notices")
    channel = models.TextField(_("channel"), blank=True)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, verbose_name=_("to"), null=True, on_delete=models.SET_NULL, related_name="+"
    )
    user_label = models.TextField(_("to"), blank=True)
    kind = models.TextField(_("kind"))
    number = models.IntegerField(_("number"), default=0)

    class Meta:
        db_table = "outlast_approval_notice"
        verbose_name = _("approval notice")
        verbose_name_plural = _("approval notices")
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(
                fields=["request", "kind", "number", "channel"], name="outlast_approval_notice_once", condition=FOR_ALL
            ),
            models.UniqueConstraint(
                fields=["request", "kind", "number", "channel", "user"],
                name="outlast_approval_notice_person_once",
                condition=~FOR_ALL,
            ),
            models.CheckConstraint(
                name="outlast_approval_notice_kind", condition=Q(kind__in=sorted(kind.value for kind in NoticeKind))
            ),
        ]
        indexes = [models.Index(fields=["created_at"], name="outlast_approval_notice_owed", condition=OWED)]

    def __str__(self) -> str:
        told = {"kind": KINDS[NoticeKind(self.kind)], "request": self.request_id}
        return gettext("%(kind)s (request %(request)s)") % told
