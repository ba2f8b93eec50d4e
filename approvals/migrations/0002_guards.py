"""What must hold against raw SQL too: legal moves of a request, nothing of its binding changes, an append-only audit."""

from django.db import migrations

MOVED = """
CREATE FUNCTION outlast_approval_request_moved() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    source text := '';
    frozen jsonb;
BEGIN
    IF TG_OP = 'UPDATE' THEN
        source := OLD.status;
        frozen := to_jsonb(OLD) - '{status,answer,answered_at,used_by,used_at,requester_id}'::text[];
        IF frozen <> to_jsonb(NEW) - '{status,answer,answered_at,used_by,used_at,requester_id}'::text[]
            OR (OLD.answer <> '' AND (OLD.answer, OLD.answered_at) IS DISTINCT FROM (NEW.answer, NEW.answered_at))
            OR (OLD.used_by IS NOT NULL AND (OLD.used_by, OLD.used_at) IS DISTINCT FROM (NEW.used_by, NEW.used_at))
            OR (NEW.requester_id IS NOT NULL AND NEW.requester_id IS DISTINCT FROM OLD.requester_id)
        THEN
            RAISE EXCEPTION 'outlast: approval request % is frozen: only its status, its answer and its use may be written, once', OLD.id
                USING ERRCODE = 'OL006';
        END IF;
    END IF;
    IF source <> NEW.status AND NOT (source || '>' || NEW.status) = ANY ('{
        >pending,
        pending>approved,pending>denied,pending>changes_requested,pending>expired,pending>withdrawn,pending>invalidated,
        approved>consumed,approved>expired,approved>invalidated
        }'::text[]) THEN
        RAISE EXCEPTION 'outlast: illegal move of approval request % from % to %', NEW.id, source, NEW.status USING ERRCODE = 'OL003';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER outlast_approval_request_moved BEFORE INSERT OR UPDATE ON outlast_approval_request
    FOR EACH ROW EXECUTE FUNCTION outlast_approval_request_moved();
"""

#: A review loses its link to a user that is deleted (the label stays), and nothing else of it changes.
APPEND_ONLY = """
CREATE FUNCTION outlast_review_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
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
    RAISE EXCEPTION 'outlast: % of % is refused: what people answered is append-only (retention uses SET LOCAL outlast.retention)',
        TG_OP, TG_TABLE_NAME USING ERRCODE = 'OL005';
END $$;

CREATE TRIGGER outlast_review_append_only BEFORE UPDATE OR DELETE ON outlast_review
    FOR EACH ROW EXECUTE FUNCTION outlast_review_append_only();
CREATE TRIGGER outlast_review_no_truncate BEFORE TRUNCATE ON outlast_review
    FOR EACH STATEMENT EXECUTE FUNCTION outlast_review_append_only();
CREATE TRIGGER outlast_approval_request_kept BEFORE DELETE ON outlast_approval_request
    FOR EACH ROW EXECUTE FUNCTION outlast_review_append_only();
"""

UNDO = """
DROP TRIGGER outlast_approval_request_kept ON outlast_approval_request;
DROP TRIGGER outlast_review_no_truncate ON outlast_review;
DROP TRIGGER outlast_review_append_only ON outlast_review;
DROP TRIGGER outlast_approval_request_moved ON outlast_approval_request;
DROP FUNCTION outlast_review_append_only();
DROP FUNCTION outlast_approval_request_moved();
"""


class Migration(migrations.Migration):
    dependencies = [("outlast_approvals", "0001_initial"), ("outlast_flows", "0002_guards")]

    operations = [migrations.RunSQL(MOVED + APPEND_ONLY, UNDO)]
