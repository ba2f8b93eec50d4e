"""The outside world (docs/decisions/0006): columns of tables that are there, the words of the protocol, and what an end tells.

The tables that are new come with the migrations after this one.
"""

import django.contrib.postgres.fields
from django.db import migrations, models

STATE = """
CREATE OR REPLACE FUNCTION outlast_state_ok(status text, outcome text, owner uuid) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN (status = 'running') = (owner IS NOT NULL) AND (status || ':' || outcome) = ANY ('{
        runnable:,running:,cancelling:,cancelling:HUMAN_REQUIRED,
        waiting:WAITING,waiting:HUMAN_REQUIRED,waiting:REVALIDATION_REQUIRED,waiting:RECONCILIATION_REQUIRED,
        waiting:WORKFLOW_MIGRATION_REQUIRED,waiting:POLICY_BLOCKED,
        paused:WAITING,paused:HUMAN_REQUIRED,paused:REVALIDATION_REQUIRED,paused:RECONCILIATION_REQUIRED,
        paused:WORKFLOW_MIGRATION_REQUIRED,paused:POLICY_BLOCKED,
        reconciling:RECONCILIATION_REQUIRED,
        complete:COMPLETE,complete:COMPLETE_WITH_DEFERRED_COMMITMENTS,FURTHER
        failed:FAILED,cancelled:CANCELLED,superseded:SUPERSEDED
        }'::text[]);
END $$;
"""

KNOWN = """
CREATE OR REPLACE FUNCTION outlast_known(noun text, value text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    CASE noun
        WHEN 'activity' THEN RETURN value = ANY ('{scheduled,running,done,failed,fenced}'::text[]);
        WHEN 'attempt' THEN RETURN value = ANY ('{succeeded,failed,timed_out,lost,fenced,refused,returned}'::text[]);
        WHEN 'wait' THEN RETURN value = ANY ('{open,satisfied,expired,withdrawn}'::text[]);
        WHEN 'wait kind' THEN RETURN value = ANY ('{
            WAIT_KINDS}'::text[]);
        WHEN 'timer' THEN RETURN value = ANY ('{pending,fired,handled,stale}'::text[]);
        WHEN 'operation' THEN RETURN value = ANY ('{planned,in_flight,succeeded,failed,uncertain,compensated,abandoned}'::text[]);
        WHEN 'operation kind' THEN RETURN value = ANY ('{effect,compensation,release}'::text[]);
        WHEN 'commitment' THEN RETURN value = ANY ('{
            planned,active,breached,releasing,fulfilled,released,void,deferred,transferred}'::text[]);
        WHEN 'resolution' THEN RETURN value = ANY ('{happened,did_not_happen,unknown,retry,give_up}'::text[]);
        WHEN 'resolution source' THEN RETURN value = ANY ('{attempt,probe,person}'::text[]);
        WHEN 'timer kind' THEN RETURN value = ANY ('{
            TIMER_KINDS}'::text[]);
        WHEN 'verdict' THEN RETURN value = ANY ('{
            ALLOWED,INTENT_SUPERSEDED,POLICY_BLOCKED,WORKFLOW_MIGRATION_REQUIRED,RELEASE_INCOMPATIBLE,CANDIDATE_INVALID,APPROVAL_REQUIRED,
            REVALIDATION_REQUIRED,COMMITMENT_UNSOUND,BUDGET_EXHAUSTED,COMPETENCE_EXCEEDED,AUTHORITY_DENIED,VERIFICATION_REQUIRED,
            PLACEMENT_DENIED,HUMAN_REQUIRED}'::text[]);
        WHEN 'wake cause' THEN RETURN value = ANY ('{
            WAKE_CAUSES}'::text[]);
        WHEN 'budget kind' THEN RETURN value = ANY ('{
            model_tokens,model_calls,tool_calls,search_expansions,compute_seconds,cost,human_reviews}'::text[]);
        WHEN 'budget entry' THEN RETURN value = ANY ('{reserved,settled,spent,raised,carried}'::text[]);
    END CASE;
END $$;
"""

#: A run that is not admitted yet goes from runnable to waiting. At the end of a run its parent is told, and what it held until then is free again:
#: here, for there are several statements that end a run. The two tables come with later migrations; nobody has a parent or a slot before that.
MOVED = """
CREATE OR REPLACE FUNCTION outlast_workflow_moved() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    source text := '';
BEGIN
    IF TG_OP = 'UPDATE' THEN
        source := OLD.status;
        IF NEW.version = OLD.version THEN
            IF (OLD.status, OLD.node, OLD.outcome, OLD.epoch, OLD.intent_version, OLD.intent_id)
                IS DISTINCT FROM (NEW.status, NEW.node, NEW.outcome, NEW.epoch, NEW.intent_version, NEW.intent_id) THEN
                RAISE EXCEPTION 'outlast: workflow % changed without its version moving by one', NEW.id USING ERRCODE = 'OL002';
            END IF;
            RETURN NULL;
        END IF;
        IF NEW.version <> OLD.version + 1 THEN
            RAISE EXCEPTION 'outlast: workflow % changed without its version moving by one', NEW.id USING ERRCODE = 'OL002';
        END IF;
    ELSIF NEW.version <> 1 THEN
        RAISE EXCEPTION 'outlast: workflow % does not start at version 1', NEW.id USING ERRCODE = 'OL002';
    END IF;
    IF NOT (source || '>' || NEW.status) = ANY ('{
        >runnable,
        runnable>running,runnable>runnable,FURTHERrunnable>paused,runnable>cancelling,runnable>superseded,
        running>running,running>runnable,running>waiting,running>paused,running>reconciling,running>complete,running>failed,
        running>cancelling,running>superseded,
        waiting>runnable,waiting>waiting,waiting>paused,waiting>cancelling,waiting>superseded,
        paused>runnable,paused>paused,paused>cancelling,paused>superseded,
        reconciling>runnable,reconciling>waiting,reconciling>paused,reconciling>complete,reconciling>failed,reconciling>cancelling,
        reconciling>superseded,
        cancelling>cancelling,cancelling>cancelled,cancelling>superseded,cancelling>failed
        }'::text[]) THEN
        RAISE EXCEPTION 'outlast: illegal move of workflow % from % to %', NEW.id, source, NEW.status USING ERRCODE = 'OL003';
    END IF;
    PERFORM FROM outlast_transition t
    WHERE t.workflow_id = NEW.id AND t.seq = NEW.version AND t.to_status = NEW.status AND t.to_node = NEW.node
      AND t.epoch = NEW.epoch AND t.outcome = NEW.outcome AND t.from_status = source;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'outlast: workflow % moved to % without its log row', NEW.id, NEW.status USING ERRCODE = 'OL004';
    END IF;
ENDED    RETURN NULL;
END $$;
"""

ENDS = """    IF (NEW.parent_id IS NOT NULL OR NEW.slots > 0) AND NEW.status IN ('complete', 'failed', 'cancelled', 'superseded') THEN
        IF NEW.parent_id IS NOT NULL AND NEW.outcome <> 'CONTINUED' THEN
            UPDATE outlast_branch SET ended_at = flows_now(), outcome = NEW.outcome, error_code = NEW.error_code, result = NEW.result
            WHERE workflow_id = NEW.id AND ended_at IS NULL;
        END IF;
        IF NEW.slots > 0 THEN
            UPDATE outlast_slot SET workflow_id = NULL, fence = NULL, since = flows_now()
            WHERE workflow_id = NEW.id AND activity_seq IS NULL;
        END IF;
    END IF;
"""

WAITS = "timer,human,approval,ask,external_job,resource,dependency_health,event,retry_window,reconciliation,tool_approval"
TIMERS = "sleep,retry,wait_deadline,workflow_deadline,commitment_deadline,freshness,sla,reminder,escalation,request_expiry"
CAUSES = "start,step,event,timer,approval,answer,retry,recovery,resume"


def known(waits: str, timers: str, causes: str) -> str:
    return KNOWN.replace("WAIT_KINDS", waits).replace("TIMER_KINDS", timers).replace("WAKE_CAUSES", causes)


def moved(further: str, ends: str) -> str:
    return MOVED.replace("FURTHER", further).replace("ENDED", ends)


NOW = (
    STATE.replace("FURTHER", "complete:CONTINUED,"),
    known(f"{WAITS},children", f"{TIMERS},poll", f"{CAUSES},child,capacity"),
    moved("runnable>waiting,", ENDS),
)
BEFORE = (STATE.replace("FURTHER", ""), known(WAITS, TIMERS, CAUSES), moved("", ""))

EVENT_STATUSES = [
    ("pending", "Pending"),
    ("held", "Held"),
    ("consumed", "Consumed"),
    ("conflict", "Conflict"),
    ("aside", "Aside"),
]


class Migration(migrations.Migration):
    dependencies = [("outlast_flows", "0008_tools")]

    operations = [
        migrations.RunSQL("".join(NOW), "".join(BEFORE)),
        migrations.AddField(
            "workflow",
            "ledgers",
            django.contrib.postgres.fields.ArrayField(base_field=models.UUIDField(), null=True, size=None),
        ),
        migrations.AddField("workflow", "depth", models.SmallIntegerField(db_default=0, default=0)),
        migrations.AddField("workflow", "chain", models.UUIDField(null=True)),
        migrations.AddField("workflow", "continued_to", models.UUIDField(null=True)),
        migrations.AddField("workflow", "slots", models.SmallIntegerField(db_default=0, default=0)),
        migrations.AddField("workflow", "tenant", models.TextField(blank=True, db_default="", default="", verbose_name="tenant")),
        migrations.AddField(
            "workflow", "started_by", models.TextField(blank=True, db_default="", default="", verbose_name="started by")
        ),
        migrations.AddField("wait", "need", models.IntegerField(db_default=0, default=0)),
        migrations.AddField("wait", "got", models.IntegerField(db_default=0, default=0)),
        migrations.AddField("wait", "event_id", models.BigIntegerField(null=True)),
        migrations.AddField("wait", "priority", models.SmallIntegerField(db_default=0, default=0)),
        migrations.AddIndex(
            "wait",
            models.Index(
                fields=["key", "-priority", "deadline_at", "id"],
                condition=models.Q(("closed_at__isnull", True), ("kind__in", ["dependency_health", "resource"])),
                name="outlast_wait_capacity",
            ),
        ),
        migrations.AddField("event", "place", models.TextField(blank=True, db_default="", default="", verbose_name="place")),
        migrations.AddField("event", "about_workflow", models.UUIDField(null=True)),
        migrations.AddField("event", "about_epoch", models.IntegerField(null=True)),
        migrations.AddField("event", "about_intent", models.IntegerField(null=True)),
        migrations.AddField("event", "about_wait", models.BigIntegerField(null=True)),
        migrations.AddField("event", "position", models.BigIntegerField(null=True, verbose_name="position")),
        migrations.AddField("event", "held_until", models.DateTimeField(null=True, verbose_name="held until")),
        migrations.AddField("event", "redelivered", models.IntegerField(db_default=0, default=0, verbose_name="redelivered")),
        migrations.AddField("event", "copy_of", models.BigIntegerField(null=True)),
        migrations.AlterField("event", "status", models.TextField(choices=EVENT_STATUSES, verbose_name="status")),
        migrations.RemoveConstraint("event", "outlast_event_status"),
        migrations.AddConstraint(
            "event",
            models.CheckConstraint(
                condition=models.Q(("status__in", [status for status, _ in EVENT_STATUSES])), name="outlast_event_status"
            ),
        ),
    ]
