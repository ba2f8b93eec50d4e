from __future__ import annotations

from flows import (
    ALL,
    COMPLETE,
    FAILED,
    REQUEST,
    Activity,
    Approval,
    Branch,
    Child,
    Deadline,
    Decision,
    Effect,
    End,
    Flow,
    Gate,
    Map,
    On,
    Retry,
    Servicing,
    Visits,
    Wait,
    minutes,
    seconds,
)
from flows.errors import CompetenceFailure, InvalidCandidate
from project.agents.research import policy
from project.agents.research.activities import (
    admit_sources,
    compose_answer,
    find_affected,
    hear,
    judge_claim,
    keep_claims,
    list_requests,
    place_order,
    plan_question,
    read_source,
    record_verdicts,
    refuse_sources,
    vet_sources,
    weigh_sources,
)
from project.agents.research.undoing import find_order, withdraw_order

PATIENT = Retry(max_attempts=5, initial=seconds(1), maximum=minutes(1))
#: Of a decision that people need not look at: what cannot be judged is a gap, and the question goes on without it.
BEYOND = {CompetenceFailure: "beyond", InvalidCandidate: "beyond"}


class AssessClaim(Flow):
    """Judge one claim, by the versions of its sources and the verdicts on its premises that its basis names."""

    class Meta:
        version = 1

    judge = Decision(
        judge_claim,
        choices={"judged": "done"},
        schema=policy.check_judgement_value,
        timeout=minutes(5),
        retry=PATIENT,
        on=BEYOND,
    )
    done = End(COMPLETE, result=policy.judgement)
    beyond = End(FAILED)


class SecondOpinion(Flow):
    """Another agent, which is asked about claims on which sources disagree."""

    class Meta:
        version = 1

    weigh = Decision(
        weigh_sources,
        choices={"weighed": "done"},
        schema=policy.check_opinions,
        timeout=minutes(5),
        retry=PATIENT,
        on=BEYOND,
    )
    done = End(COMPLETE, result=policy.opinions)
    beyond = End(FAILED)


class Research(Flow):
    """A question that stays open for as long as it takes: claims, what they stand on, and what is still to come."""

    class Meta:
        version = 1

    plan = Decision(
        plan_question,
        choices={"plan": "claims", "give_up": "gave_up"},
        schema=policy.check_plan_value,
        timeout=minutes(5),
        retry=PATIENT,
    )
    claims = Activity(keep_claims, retry=PATIENT, then="vet")

    # What there is to read
    vet = Activity(vet_sources, retry=PATIENT, then="trust")
    trust = Branch(policy.trust, choices={"ask": "approve", "known": "gather"})
    approve = Approval(
        candidate="vet",
        role="research-editor",
        expires=Deadline(days=7, then="gather"),
        approved="admit",
        denied="refuse",
        visits=Visits(100, then="gather"),
    )
    admit = Activity(admit_sources, gate=Gate(approved_by="approve"), then="gather")
    refuse = Activity(refuse_sources, retry=PATIENT, then="gather")
    gather = Map(
        policy.admitted,
        do=read_source,
        retry=PATIENT,
        concurrency=5,
        tolerate=ALL,
        deadline=Deadline(days=1, then="affected"),
        then="affected",
    )

    # What it means: only the claims that it concerns are judged, those first on which others rest
    affected = Activity(find_affected, retry=PATIENT, visits=Visits(2000, then="requests"), then="wave")
    wave = Branch(policy.wave, choices={"some": "assess", "none": "requests"})
    assess = Map(
        policy.to_judge,
        child=AssessClaim,
        concurrency=5,
        tolerate=ALL,
        deadline=Deadline(days=1, then="record"),  # what nobody has judged by then is a gap
        then="record",
    )
    record = Activity(record_verdicts, retry=PATIENT, then="affected")

    # What is lacking
    requests = Activity(list_requests, retry=PATIENT, then="gaps")
    gaps = Branch(policy.gaps, choices={"order": "order", "second": "colleague", "wait": "evidence", "none": "answer"})
    order = Activity(
        place_order,
        effect=Effect(reconcile=find_order, compensate=Servicing(withdraw_order, idempotent=True), request=policy.order_wanted),
        retry=PATIENT,
        then="contested",
    )
    contested = Branch(policy.contested, choices={"second": "colleague", "wait": "evidence", "none": "answer"})
    colleague = Child(SecondOpinion, input=policy.to_weigh, wait=False, on_cancel=REQUEST, then="evidence")
    evidence = Wait(
        any=[
            On("data.released", key=policy.datasets, name="data"),
            On("document.ready", key=policy.documents, name="document"),
            On("workflow.ended", key=policy.colleagues, name="colleague"),
        ],
        need=1,
        read=policy.what_came,
        deadline=Deadline(days=90, then="answer"),
        visits=Visits(500, then="answer"),
        then="hear",
    )
    hear = Activity(hear, retry=PATIENT, then="vet")

    # What is said, and what keeps it open
    answer = Activity(compose_answer, retry=PATIENT, then="goes_on")
    goes_on = Branch(policy.goes_on, choices={"watch": "watch", "end": "done"})
    watch = Wait(
        any=[On("data.released", key=policy.datasets, name="data")],
        need=1,
        read=policy.what_came,
        deadline=Deadline(days=365, then="done"),
        visits=Visits(100, then="done"),
        then="vet",
    )
    done = End(COMPLETE, result=policy.answered)
    gave_up = End(FAILED)
