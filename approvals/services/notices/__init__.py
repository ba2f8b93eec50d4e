"""Telling people of requests: noted when it happens (`owing`), judged and sent later (`outbox`), by channels (`approvals.services.channels`).

    something happens ──► one row, in the same transaction                                                   `owing`
    the sender takes it ──► one row for each person and each channel                       `recipients`, `outbox.expand`
    the sender takes that ──► judged anew: nobody needs it any more: dropped; else sent              `outbox`, `message`

An answer, a withdrawal or a lost right between any two of these is seen by the next one. Somebody who was being told at the very moment of a
withdrawal is told of it: what is being sent was claimed before, and the claim is what a withdrawal looks for.
"""
