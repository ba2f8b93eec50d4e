"""Why an answer changed nothing, in codes and in words: one sentence for each code, and others where these would not fit who is told. Pure."""

from __future__ import annotations

from enum import StrEnum

from approvals.core.status import RequestKind


class Code(StrEnum):
    """Why an answer changed nothing. Stored in the audit; ALREADY is no refusal but the same answer given twice."""

    USER_INACTIVE = "USER_INACTIVE"
    NOT_PERMITTED = "NOT_PERMITTED"
    NOT_ASKED = "NOT_ASKED"
    SELF_APPROVAL = "SELF_APPROVAL"
    ALREADY = "ALREADY"
    ANSWERED_BEFORE = "ANSWERED_BEFORE"
    COUNTED_BEFORE = "COUNTED_BEFORE"
    INTENT_SUPERSEDED = "INTENT_SUPERSEDED"
    WORKFLOW_ENDED = "WORKFLOW_ENDED"
    REQUEST_EXPIRED = "REQUEST_EXPIRED"
    REQUEST_CANCELLED = "REQUEST_CANCELLED"
    REQUEST_REVOKED = "REQUEST_REVOKED"
    REQUEST_INVALIDATED = "REQUEST_INVALIDATED"
    NOT_WAITING = "NOT_WAITING"
    STALE_CANDIDATE = "STALE_CANDIDATE"
    CANDIDATE_INVALID = "CANDIDATE_INVALID"
    PLACE_CHANGED = "PLACE_CHANGED"
    ANSWER_NOT_OFFERED = "ANSWER_NOT_OFFERED"
    COMMENT_REQUIRED = "COMMENT_REQUIRED"


class Told(StrEnum):
    """To whom a refusal is told, where other words fit than for who has just answered and was not the first."""

    ANYBODY = ""
    WHO_ANSWERED = "who answered"
    WHO_LOOKS = "who looks"
    SOMEBODY_ELSE = "somebody else"


def template(code: Code, kind: str, told: Told) -> str:
    """The sentence for this code, with places for its parameters. `kind`: of the request."""
    of_asks = SENTENCES_OF_ASKS.get(code) if kind == RequestKind.ASK else None
    return SENTENCES_FOR.get((code, told)) or of_asks or SENTENCES[code]


def _(text: str) -> str:
    """Marks a text for `makemessages`; the core does not translate, the services do."""
    return text


SENTENCES: dict[Code, str] = {
    Code.USER_INACTIVE: _("Your account is not active, so it cannot answer. Ask an administrator to activate it."),
    Code.NOT_PERMITTED: _(
        "Your account may not answer approval requests. Ask an administrator for the permission “Can answer approval requests”."
    ),
    Code.NOT_ASKED: _(
        "This request is put to %(whom)s. Leave it to them, ask an administrator to add you, or have one of them delegate to you."
    ),
    Code.SELF_APPROVAL: _(
        "You are accountable for this workflow (or stand in for who is), and its flow lets nobody answer about their own work. "
        "Somebody else of %(whom)s has to."
    ),
    Code.ALREADY: _("You gave this very answer before. It stands, and nothing was changed."),
    Code.ANSWERED_BEFORE: _(
        "%(who)s answered this request first (%(answer)s). That answer stands; yours is recorded and changes nothing."
    ),
    Code.COUNTED_BEFORE: _(
        "You, or the person you stand in for, have answered this request before: nobody counts twice. "
        "It needs somebody else of those who are asked."
    ),
    Code.INTENT_SUPERSEDED: _(
        "The goal has changed since this was asked: version %(bound)s then, version %(now)s now (%(status)s). "
        "Your answer changes nothing; work for the new goal asks anew."
    ),
    Code.WORKFLOW_ENDED: _(
        "The workflow is %(status)s, so there is nothing left to answer. Your answer is recorded and changes nothing."
    ),
    Code.REQUEST_EXPIRED: _(
        "The time to answer is over, and silence never approves. What the flow declares for that case happens now; "
        "if it asks again, a new request appears in the inbox."
    ),
    Code.REQUEST_CANCELLED: _("This request was withdrawn: the workflow no longer needs an answer. There is nothing to do."),
    Code.REQUEST_REVOKED: _(
        "The approval was taken back. If the workflow still needs one, it asks anew, and a new request appears in the inbox."
    ),
    Code.REQUEST_INVALIDATED: _(
        "This request no longer counts: a newer candidate was proposed, or the workflow has ended. "
        "Answer the newest request of the workflow, if there is one."
    ),
    Code.NOT_WAITING: _("The workflow does not wait for this answer any more. Go back to the inbox for what is open."),
    Code.STALE_CANDIDATE: _(
        "You answered about candidate %(seen)s, and the one that would be executed is %(now)s. "
        "Nothing was changed: read the current candidate, then answer that one."
    ),
    Code.CANDIDATE_INVALID: _(
        "The recorded candidate does not hash to its recorded digest, so it cannot be approved, nor a part of it kept. "
        "Request changes or deny it, and tell the operators."
    ),
    Code.PLACE_CHANGED: _(
        "Your answer would count for %(whom)s now, in the name of %(who)s; the page said otherwise, for the request or a delegation has changed "
        "since. Nothing was changed: read the page again, then answer."
    ),
    Code.ANSWER_NOT_OFFERED: _("This flow has no way on for “%(verdict)s”. It takes: %(answers)s."),
    Code.COMMENT_REQUIRED: _("Say why: the next step reads your comment when you request changes or deny."),
}

#: Where the words for an approval would not fit what is asked by a form.
SENTENCES_OF_ASKS: dict[Code, str] = {
    Code.SELF_APPROVAL: _(
        "You are accountable for this workflow (or stand in for who is), and its flow wants the answer of somebody else of %(whom)s."
    ),
    Code.REQUEST_EXPIRED: _(
        "The time to answer is over. What the flow declares for that case happens now; if it asks again, a new request appears in the inbox."
    ),
    Code.REQUEST_INVALIDATED: _(
        "This request no longer counts: it was asked anew, or the workflow has ended. "
        "Answer the newest request of the workflow, if there is one."
    ),
    Code.STALE_CANDIDATE: _(
        "You filled in form %(seen)s, and the one that is asked is %(now)s. Nothing was changed: open the request again, and fill in that form."
    ),
    Code.CANDIDATE_INVALID: _(
        "The recorded form does not hash to its recorded digest, so it cannot be answered. Tell the operators: somebody wrote to the table."
    ),
    Code.ANSWER_NOT_OFFERED: _(
        "“%(verdict)s” is no answer to this: a form is to be filled in, and it approves nothing. Open it from the inbox."
    ),
}

#: Where other words fit whoever is told.
SENTENCES_FOR: dict[tuple[Code, Told], str] = {
    (Code.ANSWERED_BEFORE, Told.WHO_ANSWERED): _(
        "You have answered this request (%(answer)s). That answer stands, and another one changes nothing."
    ),
    (Code.ANSWERED_BEFORE, Told.WHO_LOOKS): _("%(who)s answered this request first (%(answer)s). That answer stands."),
    (Code.ANSWERED_BEFORE, Told.SOMEBODY_ELSE): _("%(who)s answered this request first (%(answer)s). That answer stands."),
    (Code.COUNTED_BEFORE, Told.WHO_ANSWERED): _(
        "You have answered this request, and your answer counts. Nobody counts twice: what is still needed comes from others of those who "
        "are asked."
    ),
    (Code.COUNTED_BEFORE, Told.SOMEBODY_ELSE): _(
        "%(account)s, or whom they stand in for, has answered this request before: nobody counts twice. Choose somebody else."
    ),
    (Code.USER_INACTIVE, Told.SOMEBODY_ELSE): _(
        "The account of %(account)s is not active, so it cannot answer. Choose somebody else."
    ),
    (Code.NOT_PERMITTED, Told.SOMEBODY_ELSE): _(
        "%(account)s may not answer approval requests. Choose somebody else, or have an administrator give the permission "
        "“Can answer approval requests”."
    ),
    (Code.NOT_ASKED, Told.SOMEBODY_ELSE): _(
        "This request is put to %(whom)s, and %(account)s is none of them. Choose somebody else."
    ),
    (Code.SELF_APPROVAL, Told.SOMEBODY_ELSE): _(
        "%(account)s is accountable for this workflow (or stands in for who is), and its flow wants the answer of somebody else of %(whom)s."
    ),
}
