"""What must hold against raw SQL too: the one clock, legal moves with their log row, an append-only log, half moves refused."""

from django.db import migrations

CLOCK = """
CREATE FUNCTION flows_now() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE AS 'SELECT statement_timestamp()';
"""

HALF_MOVE = """
CREATE FUNCTION outlast_half_move(part text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'outlast: the workflow moved but its % did not; the statement was rolled back', part USING ERRCODE = 'OL001';
END $$;
"""

MOVED = """
CREATE FUNCTION outlast_workflow_moved() RETURNS trigger LANGUAGE plpgsql AS $$
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

-- By columns, not by a WHEN: the text of a WHEN would be parsed anew by every statement.
CREATE TRIGGER outlast_workflow_started AFTER INSERT ON outlast_workflow
    FOR EACH ROW EXECUTE FUNCTION outlast_workflow_moved();
CREATE TRIGGER outlast_workflow_moved
    AFTER UPDATE OF version, status, node, outcome, epoch, intent_version, intent_id ON outlast_workflow
    FOR EACH ROW EXECUTE FUNCTION outlast_workflow_moved();
"""

#: A database of Django's test runner may be emptied: the flush of every TransactionTestCase is a TRUNCATE.
APPEND_ONLY = """
CREATE FUNCTION outlast_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'UPDATE' AND current_setting('outlast.retention', true) = 'on' THEN
        RETURN OLD;
    ELSIF TG_OP = 'TRUNCATE' AND left(current_database(), 5) = 'test_' THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION 'outlast: % of % is refused: the log is append-only (retention uses SET LOCAL outlast.retention)',
        TG_OP, TG_TABLE_NAME USING ERRCODE = 'OL005';
END $$;

CREATE TRIGGER outlast_transition_append_only BEFORE UPDATE OR DELETE ON outlast_transition
    FOR EACH ROW EXECUTE FUNCTION outlast_append_only();
CREATE TRIGGER outlast_transition_no_truncate BEFORE TRUNCATE ON outlast_transition
    FOR EACH STATEMENT EXECUTE FUNCTION outlast_append_only();
"""

#: Room on the page for the next version of a row (HOT updates): the hot rows change several times in their life.
STORAGE = """
ALTER TABLE outlast_workflow SET (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE outlast_activity SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE outlast_wait SET (fillfactor = 80);
INSERT INTO outlast_tick (id, ticked_at) VALUES (1, 'epoch');
"""

UNDO = """
DROP TRIGGER outlast_transition_no_truncate ON outlast_transition;
DROP TRIGGER outlast_transition_append_only ON outlast_transition;
DROP TRIGGER outlast_workflow_moved ON outlast_workflow;
DROP TRIGGER outlast_workflow_started ON outlast_workflow;
DROP FUNCTION outlast_append_only();
DROP FUNCTION outlast_workflow_moved();
DROP FUNCTION outlast_half_move(text);
DROP FUNCTION flows_now();
DELETE FROM outlast_tick;
"""


class Migration(migrations.Migration):
    dependencies = [("outlast_flows", "0001_initial")]

    operations = [
        migrations.RunSQL(CLOCK + HALF_MOVE + MOVED + APPEND_ONLY, UNDO),
        migrations.RunSQL(STORAGE, migrations.RunSQL.noop),
    ]
