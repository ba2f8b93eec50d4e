from __future__ import annotations

from flows import (
    COMPLETE,
    ESCALATE,
    FAILED,
    Activity,
    Approval,
    Ask,
    Branch,
    Commits,
    Deadline,
    Decision,
    Effect,
    End,
    Field,
    Flow,
    Gate,
    Retry,
    Servicing,
    Verdict,
    Visits,
    Wait,
    minutes,
    seconds,
)
from flows.errors import StateConflict, VerificationFailed
from project.agents.browser.activities import (
    assemble_form,
    attach_document,
    fill_form,
    form_version,
    open_site,
    submit_form,
    verify_submission,
)
from project.agents.browser.policy import (
    applicant,
    check_value,
    document_number,
    document_state,
    document_wanted,
    said_of_document,
    submission_wanted,
    submitted_as,
    why_upload,
)
from project.agents.browser.sessions import log_out
from project.agents.browser.undoing import find_document, find_submission, remove_document, withdraw

#: What was sent by a browser that has gone may still be on its way: nobody asks about it before it must have arrived.
GRACE = seconds(2)
PATIENT = Retry(max_attempts=5, initial=seconds(1), maximum=minutes(1))


class FilePermit(Flow):
    """Ask for a permit on a site that has no API: fill in its form, hand in a document, and send it when a person has confirmed it."""

    class Meta:
        version = 1
        deadline = Deadline(days=30, then=ESCALATE)

    open = Activity(
        open_site,
        timeout=minutes(2),
        retry=PATIENT,
        commits=Commits(
            "session", release=Servicing(log_out, idempotent=True, timeout=minutes(2)), reference=lambda result: result["site"]
        ),
        then="fill",
    )
    fill = Decision(
        fill_form,
        choices={"form": "document", "give_up": "gave_up"},
        schema=check_value,
        timeout=minutes(2),
        retry=PATIENT,
        visits=Visits(6, then="gave_up"),
    )
    document = Branch(document_state, choices={"missing": "upload", "accepted": "assemble"})
    upload = Ask(
        [Field("document", kind="file", most=2_000_000, label="Plan of the place")],
        why=why_upload,
        to=applicant,
        deadline=Deadline(days=7, then=ESCALATE),
        then="attach",
    )
    attach = Activity(
        attach_document,
        effect=Effect(
            reconcile=find_document,
            compensate=Servicing(remove_document, idempotent=True, timeout=minutes(2)),
            request=document_wanted,
            grace=GRACE,
        ),
        timeout=minutes(2),
        retry=PATIENT,
        then="check",
    )
    check = Wait(
        "document.checked",
        key=document_number,
        read=said_of_document,
        choices={"accepted": "assemble", "refused": "upload"},
        deadline=Deadline(days=14, then=ESCALATE),
    )
    assemble = Activity(
        assemble_form,
        timeout=minutes(2),
        retry=PATIENT,
        on={StateConflict: "fill", VerificationFailed: "upload"},
        then="confirm",
    )
    confirm = Approval(
        candidate="assemble",
        to=applicant,
        self_approval=True,  # whoever wanted it may well be the one in whose name it is sent
        expires=Deadline(days=7, then=ESCALATE),
        approved="submit",
        changes="fill",
        denied="gave_up",
    )
    submit = Activity(
        submit_form,
        gate=Gate(approved_by="confirm", fresh={"form": form_version}),
        effect=Effect(
            reconcile=find_submission,
            compensate=Servicing(withdraw, idempotent=True, timeout=minutes(2)),
            request=submission_wanted,
            grace=GRACE,
        ),
        timeout=minutes(2),
        retry=PATIENT,
        on={StateConflict: "fill", Verdict.REVALIDATION_REQUIRED: "fill"},
        then="verify",
    )
    verify = Activity(verify_submission, timeout=minutes(2), retry=PATIENT, then="done")
    done = End(COMPLETE, result=submitted_as)
    gave_up = End(FAILED)
