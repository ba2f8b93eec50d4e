"""The gate's records: verdicts, observations, verifications, candidates, policies, releases, competence, budgets; append-only where they are."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

#: The words of the protocol, the new ones included; the constraints of all tables ask this one function.
KNOWN = """
CREATE OR REPLACE FUNCTION outlast_known(noun text, value text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    CASE noun
        WHEN 'activity' THEN RETURN value = ANY ('{scheduled,running,done,failed,fenced}'::text[]);
        WHEN 'attempt' THEN RETURN value = ANY ('{succeeded,failed,timed_out,lost,fenced,refused,returned}'::text[]);
        WHEN 'wait' THEN RETURN value = ANY ('{open,satisfied,expired,withdrawn}'::text[]);
        WHEN 'wait kind' THEN RETURN value = ANY ('{
            timer,human,approval,external_job,resource,dependency_health,event,retry_window,reconciliation}'::text[]);
        WHEN 'timer' THEN RETURN value = ANY ('{pending,fired,handled,stale}'::text[]);
        WHEN 'operation' THEN RETURN value = ANY ('{planned,in_flight,succeeded,failed,uncertain,compensated,abandoned}'::text[]);
        WHEN 'operation kind' THEN RETURN value = ANY ('{effect,compensation,release}'::text[]);
        WHEN 'commitment' THEN RETURN value = ANY ('{
            planned,active,breached,releasing,fulfilled,released,void,deferred,transferred}'::text[]);
        WHEN 'resolution' THEN RETURN value = ANY ('{happened,did_not_happen,unknown,retry,give_up}'::text[]);
        WHEN 'resolution source' THEN RETURN value = ANY ('{attempt,probe,person}'::text[]);
        WHEN 'timer kind' THEN RETURN value = ANY ('{sleep,retry,wait_deadline,workflow_deadline,commitment_deadline,freshness,sla}'::text[]);
        WHEN 'verdict' THEN RETURN value = ANY ('{
            ALLOWED,INTENT_SUPERSEDED,POLICY_BLOCKED,WORKFLOW_MIGRATION_REQUIRED,RELEASE_INCOMPATIBLE,CANDIDATE_INVALID,APPROVAL_REQUIRED,
            REVALIDATION_REQUIRED,COMMITMENT_UNSOUND,BUDGET_EXHAUSTED,COMPETENCE_EXCEEDED,AUTHORITY_DENIED,VERIFICATION_REQUIRED,
            PLACEMENT_DENIED,HUMAN_REQUIRED}'::text[]);
        WHEN 'wake cause' THEN RETURN value = ANY ('{start,step,event,timer,approval,retry,recovery,resume}'::text[]);
        WHEN 'budget kind' THEN RETURN value = ANY ('{
            model_tokens,model_calls,tool_calls,search_expansions,compute_seconds,cost,human_reviews}'::text[]);
        WHEN 'budget entry' THEN RETURN value = ANY ('{reserved,settled,spent,raised,carried}'::text[]);
    END CASE;
END $$;
"""

KNOWN_BEFORE = """
CREATE OR REPLACE FUNCTION outlast_known(noun text, value text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    CASE noun
        WHEN 'activity' THEN RETURN value = ANY ('{scheduled,running,done,failed,fenced}'::text[]);
        WHEN 'attempt' THEN RETURN value = ANY ('{succeeded,failed,timed_out,lost,fenced,refused,returned}'::text[]);
        WHEN 'wait' THEN RETURN value = ANY ('{open,satisfied,expired,withdrawn}'::text[]);
        WHEN 'wait kind' THEN RETURN value = ANY ('{
            timer,human,approval,external_job,resource,dependency_health,event,retry_window,reconciliation}'::text[]);
        WHEN 'timer' THEN RETURN value = ANY ('{pending,fired,handled,stale}'::text[]);
        WHEN 'operation' THEN RETURN value = ANY ('{planned,in_flight,succeeded,failed,uncertain,compensated,abandoned}'::text[]);
        WHEN 'operation kind' THEN RETURN value = ANY ('{effect,compensation,release}'::text[]);
        WHEN 'commitment' THEN RETURN value = ANY ('{
            planned,active,breached,releasing,fulfilled,released,void,deferred,transferred}'::text[]);
        WHEN 'resolution' THEN RETURN value = ANY ('{happened,did_not_happen,unknown,retry,give_up}'::text[]);
        WHEN 'resolution source' THEN RETURN value = ANY ('{attempt,probe,person}'::text[]);
        WHEN 'timer kind' THEN RETURN value = ANY ('{sleep,retry,wait_deadline,workflow_deadline,commitment_deadline}'::text[]);
    END CASE;
END $$;
"""

#: A run that is bound to another policy, release or definition stays where it is: a move of its own, with its log row.
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
        runnable>running,runnable>runnable,runnable>paused,runnable>cancelling,runnable>superseded,
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
    RETURN NULL;
END $$;
"""

MOVED_BEFORE = """
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
        runnable>running,runnable>paused,runnable>cancelling,runnable>superseded,
        running>running,running>runnable,running>waiting,running>paused,running>reconciling,running>complete,running>failed,
        running>cancelling,running>superseded,
        waiting>runnable,waiting>paused,waiting>cancelling,waiting>superseded,
        paused>runnable,paused>cancelling,paused>superseded,
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
    RETURN NULL;
END $$;
"""

#: One function for everything that is only added to. The arguments of its trigger name the columns that may become NULL: a link to a user who is
#: deleted (the label stays). A database of Django's test runner may be emptied: the flush of every TransactionTestCase is a TRUNCATE.
APPEND_ONLY = """
CREATE OR REPLACE FUNCTION outlast_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF TG_NARGS > 0 AND to_jsonb(NEW) - TG_ARGV = to_jsonb(OLD) - TG_ARGV
            AND NOT EXISTS (SELECT FROM unnest(TG_ARGV) AS link WHERE to_jsonb(NEW) ->> link IS NOT NULL) THEN
            RETURN NEW;
        END IF;
    ELSIF current_setting('outlast.retention', true) = 'on' THEN
        RETURN OLD;
    ELSIF TG_OP = 'TRUNCATE' AND left(current_database(), 5) = 'test_' THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION 'outlast: % of % is refused: it is append-only (retention uses SET LOCAL outlast.retention)',
        TG_OP, TG_TABLE_NAME USING ERRCODE = 'OL005';
END $$;

DROP TRIGGER outlast_resolution_append_only ON outlast_resolution;
DROP TRIGGER outlast_resolution_no_truncate ON outlast_resolution;
DROP FUNCTION outlast_resolution_append_only();
"""

#: table → columns that may become NULL
KEPT = {
    "outlast_resolution": "'by_id'",
    "outlast_verdict": "",
    "outlast_observation": "",
    "outlast_verification": "",
    "outlast_candidate": "",
    "outlast_policy": "'by_id'",
    "outlast_release": "'by_id'",
    "outlast_budget_entry": "'by_id'",
    "outlast_competence_opening": "'by_id'",
}

TRIGGERS = "".join(
    f"""
CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE ON {table}
    FOR EACH ROW EXECUTE FUNCTION outlast_append_only({links});
CREATE TRIGGER {table}_no_truncate BEFORE TRUNCATE ON {table}
    FOR EACH STATEMENT EXECUTE FUNCTION outlast_append_only();
"""
    for table, links in KEPT.items()
)

UNDO_TRIGGERS = "".join(
    f"DROP TRIGGER {table}_no_truncate ON {table}; DROP TRIGGER {table}_append_only ON {table};\n" for table in KEPT
)

#: What earlier migrations made, for the way back.
RESOLUTION_BEFORE = """
CREATE OR REPLACE FUNCTION outlast_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'UPDATE' AND current_setting('outlast.retention', true) = 'on' THEN
        RETURN OLD;
    ELSIF TG_OP = 'TRUNCATE' AND left(current_database(), 5) = 'test_' THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION 'outlast: % of % is refused: the log is append-only (retention uses SET LOCAL outlast.retention)',
        TG_OP, TG_TABLE_NAME USING ERRCODE = 'OL005';
END $$;

CREATE FUNCTION outlast_resolution_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF NEW.by_id IS NULL AND to_jsonb(NEW) - 'by_id' = to_jsonb(OLD) - 'by_id' THEN
            RETURN NEW;
        END IF;
    ELSIF current_setting('outlast.retention', true) = 'on' THEN
        RETURN OLD;
    ELSIF TG_OP = 'TRUNCATE' AND left(current_database(), 5) = 'test_' THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION 'outlast: % of % is refused: answers about an operation are append-only (retention uses SET LOCAL outlast.retention)',
        TG_OP, TG_TABLE_NAME USING ERRCODE = 'OL005';
END $$;

CREATE TRIGGER outlast_resolution_append_only BEFORE UPDATE OR DELETE ON outlast_resolution
    FOR EACH ROW EXECUTE FUNCTION outlast_resolution_append_only();
CREATE TRIGGER outlast_resolution_no_truncate BEFORE TRUNCATE ON outlast_resolution
    FOR EACH STATEMENT EXECUTE FUNCTION outlast_resolution_append_only();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("outlast_flows", "0003_effects"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RunSQL(KNOWN + MOVED, KNOWN_BEFORE + MOVED_BEFORE),
        migrations.AddField("timer", "name", models.TextField(db_default="", default="", verbose_name="name")),
        migrations.AddField("timer", "on_expiry", models.TextField(db_default="", default="", verbose_name="then")),
        migrations.AddField("timer", "untold", models.BooleanField(db_default=False, default=False)),
        migrations.AddIndex(
            "timer", models.Index(condition=models.Q(("untold", True)), fields=["id"], name="outlast_timer_untold")
        ),
        migrations.RemoveIndex("commitment", "outlast_commitment_untold"),
        migrations.AddIndex(
            "commitment",
            models.Index(
                condition=models.Q(("breached_at__isnull", False), ("told_at__isnull", True)),
                fields=["breached_at"],
                name="outlast_commitment_untold",
            ),
        ),
        migrations.CreateModel(
            name="CurrentRelease",
            fields=[
                ("flow_name", models.TextField(primary_key=True, serialize=False, verbose_name="flow")),
                ("release", models.TextField(verbose_name="release")),
                ("reason", models.TextField(blank=True, verbose_name="reason")),
                ("by_label", models.TextField(blank=True, verbose_name="by")),
                ("since", models.DateTimeField(verbose_name="since")),
            ],
            options={
                "db_table": "outlast_current_release",
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Budget",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("kind", models.TextField(verbose_name="kind")),
                ("allowance", models.DecimalField(decimal_places=6, max_digits=20, null=True, verbose_name="limit")),
                ("soft", models.DecimalField(decimal_places=6, max_digits=20, null=True, verbose_name="soft limit")),
                (
                    "kept",
                    models.DecimalField(
                        decimal_places=6, default=0, max_digits=20, verbose_name="kept for verification and reconciliation"
                    ),
                ),
                ("spent", models.DecimalField(decimal_places=6, default=0, max_digits=20, verbose_name="spent")),
                ("reserved", models.DecimalField(decimal_places=6, default=0, max_digits=20, verbose_name="reserved")),
                ("warned_at", models.DateTimeField(null=True, verbose_name="warned")),
                ("updated_at", models.DateTimeField(verbose_name="updated")),
                (
                    "intent",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="budgets",
                        to="outlast_flows.intent",
                    ),
                ),
                (
                    "workflow",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="budgets",
                        to="outlast_flows.workflow",
                    ),
                ),
            ],
            options={
                "verbose_name": "budget",
                "verbose_name_plural": "budgets",
                "db_table": "outlast_budget",
                "permissions": [("raise_budget", "Can raise budgets")],
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="BudgetEntry",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("entry", models.TextField(verbose_name="entry")),
                ("amount", models.DecimalField(decimal_places=6, max_digits=20, verbose_name="amount")),
                ("workflow_id", models.UUIDField(null=True)),
                ("node", models.TextField(blank=True, verbose_name="node")),
                ("activity_seq", models.IntegerField(null=True)),
                ("attempt", models.IntegerField(null=True)),
                ("reason", models.TextField(blank=True, verbose_name="reason")),
                ("by_label", models.TextField(blank=True, verbose_name="by")),
                ("at", models.DateTimeField(verbose_name="at")),
                (
                    "budget",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="entries",
                        to="outlast_flows.budget",
                    ),
                ),
                (
                    "by",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "budget entry",
                "verbose_name_plural": "budget entries",
                "db_table": "outlast_budget_entry",
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="Candidate",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("node", models.TextField(verbose_name="node")),
                ("activity_seq", models.IntegerField()),
                ("attempt", models.IntegerField()),
                ("revision", models.IntegerField(verbose_name="revision")),
                ("choice", models.TextField(blank=True, verbose_name="choice")),
                ("digest", models.TextField(blank=True, verbose_name="digest")),
                ("refused", models.TextField(blank=True, verbose_name="refused")),
                ("release", models.TextField(blank=True, verbose_name="release")),
                ("model", models.TextField(blank=True, verbose_name="model")),
                ("prompt_hash", models.TextField(blank=True, verbose_name="prompt")),
                ("context_hash", models.TextField(blank=True, verbose_name="context")),
                ("output_hash", models.TextField(blank=True, verbose_name="output")),
                ("usage", models.JSONField(verbose_name="usage")),
                ("evidence_digest", models.TextField(blank=True, verbose_name="evidence")),
                ("at", models.DateTimeField(verbose_name="at")),
                (
                    "workflow",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="candidates",
                        to="outlast_flows.workflow",
                    ),
                ),
            ],
            options={
                "verbose_name": "candidate",
                "verbose_name_plural": "candidates",
                "db_table": "outlast_candidate",
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="Competence",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("flow_name", models.TextField(verbose_name="flow")),
                ("node", models.TextField(verbose_name="node")),
                ("release", models.TextField(blank=True, verbose_name="release")),
                ("allowed", models.IntegerField(verbose_name="errors allowed")),
                ("burned", models.IntegerField(default=0, verbose_name="errors")),
                ("closed_at", models.DateTimeField(null=True, verbose_name="closed")),
                ("note", models.TextField(blank=True, verbose_name="note")),
                ("by_label", models.TextField(blank=True, verbose_name="by")),
                ("updated_at", models.DateTimeField(verbose_name="updated")),
            ],
            options={
                "verbose_name": "competence envelope",
                "verbose_name_plural": "competence envelopes",
                "db_table": "outlast_competence",
                "permissions": [("open_competence", "Can open a closed competence envelope again")],
                "default_permissions": ("view",),
                "constraints": [
                    models.UniqueConstraint(fields=("flow_name", "node", "release"), name="outlast_competence_once"),
                    models.CheckConstraint(
                        condition=models.Q(("allowed__gte", 0), ("burned__gte", 0)), name="outlast_competence_counts"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="CompetenceOpening",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("flow_name", models.TextField(verbose_name="flow")),
                ("node", models.TextField(verbose_name="node")),
                ("release", models.TextField(blank=True, verbose_name="release")),
                ("burned", models.IntegerField(verbose_name="errors")),
                ("allowed", models.IntegerField(verbose_name="errors allowed")),
                ("closed_at", models.DateTimeField(verbose_name="closed")),
                ("reason", models.TextField(verbose_name="reason")),
                ("by_label", models.TextField(blank=True, verbose_name="by")),
                ("at", models.DateTimeField(verbose_name="at")),
                (
                    "by",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "opening of an envelope",
                "verbose_name_plural": "openings of envelopes",
                "db_table": "outlast_competence_opening",
                "default_permissions": ("view",),
                "indexes": [models.Index(fields=["flow_name", "node", "release", "id"], name="outlast_competence_opened")],
            },
        ),
        migrations.CreateModel(
            name="Observation",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("node", models.TextField(verbose_name="node")),
                ("activity_seq", models.IntegerField()),
                ("attempt", models.IntegerField()),
                ("name", models.TextField(verbose_name="name")),
                ("version", models.TextField(verbose_name="version")),
                ("baseline", models.BooleanField(verbose_name="baseline")),
                ("at", models.DateTimeField(verbose_name="at")),
                (
                    "workflow",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="observations",
                        to="outlast_flows.workflow",
                    ),
                ),
            ],
            options={
                "verbose_name": "observation",
                "verbose_name_plural": "observations",
                "db_table": "outlast_observation",
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="Policy",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.TextField(verbose_name="name")),
                ("version", models.IntegerField(verbose_name="version")),
                ("body", models.JSONField(verbose_name="body")),
                ("digest", models.TextField(verbose_name="digest")),
                ("blocks", models.BooleanField(verbose_name="blocks older runs")),
                ("note", models.TextField(blank=True, verbose_name="note")),
                ("by_label", models.TextField(blank=True, verbose_name="by")),
                ("at", models.DateTimeField(verbose_name="at")),
                (
                    "by",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "policy",
                "verbose_name_plural": "policies",
                "db_table": "outlast_policy",
                "permissions": [("publish_policy", "Can publish policies and adopt them for runs")],
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="Release",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.TextField(unique=True, verbose_name="name")),
                ("model_hashes", models.JSONField(verbose_name="models")),
                ("prompt_hashes", models.JSONField(verbose_name="prompts")),
                ("tool_hashes", models.JSONField(verbose_name="tools")),
                ("policy_hashes", models.JSONField(verbose_name="policies")),
                ("digest", models.TextField(verbose_name="digest")),
                ("compatible_with", models.JSONField(verbose_name="compatible with")),
                ("note", models.TextField(blank=True, verbose_name="note")),
                ("by_label", models.TextField(blank=True, verbose_name="by")),
                ("at", models.DateTimeField(verbose_name="at")),
                (
                    "by",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "release",
                "verbose_name_plural": "releases",
                "db_table": "outlast_release",
                "permissions": [("manage_release", "Can register releases, make one current and move runs")],
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="Verdict",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("version", models.IntegerField()),
                ("epoch", models.IntegerField()),
                ("intent_version", models.IntegerField()),
                ("node", models.TextField(verbose_name="node")),
                ("activity_seq", models.IntegerField(null=True)),
                ("attempt", models.IntegerField(null=True)),
                ("cause", models.TextField(verbose_name="woken by")),
                ("verdict", models.TextField(verbose_name="verdict")),
                ("reason", models.TextField(blank=True, verbose_name="reason")),
                ("checks", models.JSONField(verbose_name="checks")),
                ("at", models.DateTimeField(verbose_name="at")),
                (
                    "workflow",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="verdicts",
                        to="outlast_flows.workflow",
                    ),
                ),
            ],
            options={
                "verbose_name": "verdict",
                "verbose_name_plural": "verdicts",
                "db_table": "outlast_verdict",
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="Verification",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("node", models.TextField(verbose_name="verifier")),
                ("activity_seq", models.IntegerField()),
                ("attempt", models.IntegerField()),
                ("candidate_node", models.TextField(verbose_name="candidate of")),
                ("digest", models.TextField(verbose_name="digest of the candidate")),
                ("revision", models.IntegerField(verbose_name="revision")),
                ("state_versions", models.JSONField(verbose_name="state versions")),
                ("passed", models.BooleanField(verbose_name="passed")),
                ("code", models.TextField(blank=True)),
                ("at", models.DateTimeField(verbose_name="at")),
                (
                    "workflow",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="verifications",
                        to="outlast_flows.workflow",
                    ),
                ),
            ],
            options={
                "verbose_name": "verification",
                "verbose_name_plural": "verifications",
                "db_table": "outlast_verification",
                "default_permissions": ("view",),
            },
        ),
        migrations.AddConstraint(
            model_name="budget",
            constraint=models.CheckConstraint(
                condition=models.Func(
                    models.Value("budget kind"), models.F("kind"), function="outlast_known", output_field=models.BooleanField()
                ),
                name="outlast_budget_kind",
            ),
        ),
        migrations.AddConstraint(
            model_name="budget",
            constraint=models.UniqueConstraint(
                condition=models.Q(("workflow__isnull", False)), fields=("workflow", "kind"), name="outlast_budget_of_workflow"
            ),
        ),
        migrations.AddConstraint(
            model_name="budget",
            constraint=models.UniqueConstraint(
                condition=models.Q(("intent__isnull", False)), fields=("intent", "kind"), name="outlast_budget_of_intent"
            ),
        ),
        migrations.AddConstraint(
            model_name="budget",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("intent__isnull", True), ("workflow__isnull", False)),
                    models.Q(("intent__isnull", False), ("workflow__isnull", True)),
                    _connector="OR",
                ),
                name="outlast_budget_of_one",
            ),
        ),
        migrations.AddConstraint(
            model_name="budget",
            constraint=models.CheckConstraint(
                condition=models.Q(("kept__gte", 0), ("reserved__gte", 0), ("spent__gte", 0)), name="outlast_budget_counts"
            ),
        ),
        migrations.AddIndex(
            model_name="budgetentry",
            index=models.Index(fields=["workflow_id", "activity_seq"], name="outlast_budget_entry_of"),
        ),
        migrations.AddConstraint(
            model_name="budgetentry",
            constraint=models.CheckConstraint(
                condition=models.Func(
                    models.Value("budget entry"), models.F("entry"), function="outlast_known", output_field=models.BooleanField()
                ),
                name="outlast_budget_entry_entry",
            ),
        ),
        migrations.AddConstraint(
            model_name="candidate",
            constraint=models.UniqueConstraint(fields=("workflow", "activity_seq", "attempt"), name="outlast_candidate_once"),
        ),
        migrations.AddIndex(
            model_name="observation",
            index=models.Index(fields=["workflow", "name", "id"], name="outlast_observation_of"),
        ),
        migrations.AddConstraint(
            model_name="policy",
            constraint=models.UniqueConstraint(fields=("name", "version"), name="outlast_policy_once"),
        ),
        migrations.AddIndex(
            model_name="verdict",
            index=models.Index(fields=["workflow", "id"], name="outlast_verdict_of"),
        ),
        migrations.AddConstraint(
            model_name="verdict",
            constraint=models.CheckConstraint(
                condition=models.Func(
                    models.Value("verdict"), models.F("verdict"), function="outlast_known", output_field=models.BooleanField()
                ),
                name="outlast_verdict_verdict",
            ),
        ),
        migrations.AddConstraint(
            model_name="verdict",
            constraint=models.CheckConstraint(
                condition=models.Func(
                    models.Value("wake cause"), models.F("cause"), function="outlast_known", output_field=models.BooleanField()
                ),
                name="outlast_verdict_cause",
            ),
        ),
        migrations.AddIndex(
            model_name="verification",
            index=models.Index(fields=["workflow", "node", "id"], name="outlast_verification_of"),
        ),
        migrations.RunSQL(APPEND_ONLY + TRIGGERS, UNDO_TRIGGERS + RESOLUTION_BEFORE),
        migrations.AddField("workflow", "passed_over", models.TextField(null=True, verbose_name="release passed over")),
        migrations.AddField("workflow", "alerted_at", models.DateTimeField(null=True)),
        migrations.AddIndex(
            model_name="workflow",
            index=models.Index(
                fields=["release"],
                name="outlast_workflow_pinned",
                condition=models.Q(
                    ("release__gt", ""),
                    ("status__in", ["cancelling", "paused", "reconciling", "runnable", "running", "waiting"]),
                ),
            ),
        ),
    ]
