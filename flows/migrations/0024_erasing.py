"""Values of runs that have ended may be erased, with a row of the log that says so, and sealed anew; nothing else of what is append-only."""

from django.db import migrations

#: A run that has ended stays where it is: its values are erased by an arrow of its own.
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
        runnable>running,runnable>runnable,runnable>waiting,runnable>paused,runnable>cancelling,runnable>superseded,
        running>running,running>runnable,running>waiting,running>paused,running>reconciling,running>complete,running>failed,
        running>cancelling,running>superseded,
        waiting>runnable,waiting>waiting,waiting>paused,waiting>cancelling,waiting>superseded,
        paused>runnable,paused>paused,paused>cancelling,paused>superseded,
        reconciling>runnable,reconciling>waiting,reconciling>paused,reconciling>complete,reconciling>failed,reconciling>cancelling,
        reconciling>superseded,
        cancelling>cancelling,cancelling>cancelled,cancelling>superseded,cancelling>failedERASE
        }'::text[]) THEN
        RAISE EXCEPTION 'outlast: illegal move of workflow % from % to %', NEW.id, source, NEW.status USING ERRCODE = 'OL003';
    END IF;
    PERFORM FROM outlast_transition t
    WHERE t.workflow_id = NEW.id AND t.seq = NEW.version AND t.to_status = NEW.status AND t.to_node = NEW.node
      AND t.epoch = NEW.epoch AND t.outcome = NEW.outcome AND t.from_status = source;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'outlast: workflow % moved to % without its log row', NEW.id, NEW.status USING ERRCODE = 'OL004';
    END IF;
    IF (NEW.parent_id IS NOT NULL OR NEW.slots > 0) AND NEW.status IN ('complete', 'failed', 'cancelled', 'superseded') THEN
        IF NEW.parent_id IS NOT NULL AND NEW.outcome <> 'CONTINUED' THEN
            UPDATE outlast_branch SET ended_at = flows_now(), outcome = NEW.outcome, error_code = NEW.error_code, result = NEW.result
            WHERE workflow_id = NEW.id AND ended_at IS NULL;
        END IF;
        IF NEW.slots > 0 THEN
            UPDATE outlast_slot SET workflow_id = NULL, fence = NULL, since = flows_now()
            WHERE workflow_id = NEW.id AND activity_seq IS NULL;
        END IF;
    END IF;
    RETURN NULL;
END $$;
"""

#: The one switch under which what was given, made and told may be written anew: erased, or sealed by another key. All the rest stays as it is.
APPEND_ONLY = """
CREATE OR REPLACE FUNCTION outlast_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF TG_NARGS > 0 AND to_jsonb(NEW) - TG_ARGV = to_jsonb(OLD) - TG_ARGV
            AND NOT EXISTS (SELECT FROM unnest(TG_ARGV) AS link WHERE to_jsonb(NEW) ->> link IS NOT NULL) THEN
            RETURN NEW;
        END IF;
REWRITE    ELSIF current_setting('outlast.retention', true) = 'on' THEN
        RETURN OLD;
    ELSIF TG_OP = 'TRUNCATE' AND left(current_database(), 5) = 'test_' THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION 'outlast: % of % is refused: it is append-only (retention uses SET LOCAL outlast.retention)',
        TG_OP, TG_TABLE_NAME USING ERRCODE = 'OL005';
END $$;
"""

REWRITE = """        IF current_setting('outlast.rewrite', true) = 'on' AND TG_TABLE_NAME = 'outlast_resolution'
            AND to_jsonb(NEW) - '{evidence,reason}'::text[] = to_jsonb(OLD) - '{evidence,reason}'::text[] THEN
            RETURN NEW;
        END IF;
"""
ERASE = """,
        complete>complete,failed>failed,cancelled>cancelled,superseded>superseded"""

NOW = MOVED.replace("ERASE", ERASE)


class Migration(migrations.Migration):
    dependencies = [("outlast_flows", "0023_liveness")]

    operations = [
        migrations.RunSQL(
            NOW + APPEND_ONLY.replace("REWRITE", REWRITE),
            MOVED.replace("ERASE", "") + APPEND_ONLY.replace("REWRITE", ""),
        ),
        migrations.AlterModelOptions(
            name="workflow",
            options={
                "default_permissions": ("view",),
                "permissions": [
                    ("operate_workflow", "Can cancel, pause and resume workflows"),
                    ("erase_workflow", "Can erase what ended workflows were given, made and were told"),
                    ("see_redacted", "Can see redacted values"),
                ],
                "verbose_name": "workflow",
                "verbose_name_plural": "workflows",
            },
        ),
    ]
