"""What people were asked about and wrote may be erased, and sealed anew; who answered what, and when, stays."""

from django.db import migrations

APPEND_ONLY = """
CREATE OR REPLACE FUNCTION outlast_review_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF to_jsonb(NEW) - '{by_id,for_user_id}'::text[] = to_jsonb(OLD) - '{by_id,for_user_id}'::text[]
            AND coalesce(NEW.by_id = OLD.by_id, NEW.by_id IS NULL) AND coalesce(NEW.for_user_id = OLD.for_user_id, NEW.for_user_id IS NULL)
        THEN
            RETURN NEW;
        END IF;
REWRITE    ELSIF current_setting('outlast.retention', true) = 'on' THEN
        RETURN OLD;
    ELSIF TG_OP = 'TRUNCATE' AND left(current_database(), 5) = 'test_' THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION 'outlast: % of % is refused: what people answered is append-only (retention uses SET LOCAL outlast.retention)',
        TG_OP, TG_TABLE_NAME USING ERRCODE = 'OL005';
END $$;
"""

REWRITE = """        IF current_setting('outlast.rewrite', true) = 'on' AND TG_TABLE_NAME = 'outlast_review'
            AND to_jsonb(NEW) - '{comment,values}'::text[] = to_jsonb(OLD) - '{comment,values}'::text[] THEN
            RETURN NEW;
        END IF;
"""


#: Under the switch, what a request froze is not compared; this one then sees to it that nothing but its values changes.
REQUESTS = """
CREATE FUNCTION outlast_approval_request_rewritten() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF to_jsonb(NEW) - '{candidate,evidence}'::text[] <> to_jsonb(OLD) - '{candidate,evidence}'::text[] THEN
        RAISE EXCEPTION 'outlast: approval request % is frozen: only what it is about may be erased or sealed anew', OLD.id
            USING ERRCODE = 'OL006';
    END IF;
    RETURN NEW;
END $$;

DROP TRIGGER outlast_approval_request_moved ON outlast_approval_request;
CREATE TRIGGER outlast_approval_request_moved BEFORE INSERT OR UPDATE ON outlast_approval_request
    FOR EACH ROW WHEN (current_setting('outlast.rewrite', true) IS DISTINCT FROM 'on')
    EXECUTE FUNCTION outlast_approval_request_moved();
CREATE TRIGGER outlast_approval_request_rewritten BEFORE UPDATE ON outlast_approval_request
    FOR EACH ROW WHEN (current_setting('outlast.rewrite', true) = 'on')
    EXECUTE FUNCTION outlast_approval_request_rewritten();
"""

REQUESTS_BEFORE = """
DROP TRIGGER outlast_approval_request_rewritten ON outlast_approval_request;
DROP TRIGGER outlast_approval_request_moved ON outlast_approval_request;
CREATE TRIGGER outlast_approval_request_moved BEFORE INSERT OR UPDATE ON outlast_approval_request
    FOR EACH ROW EXECUTE FUNCTION outlast_approval_request_moved();
DROP FUNCTION outlast_approval_request_rewritten();
"""


class Migration(migrations.Migration):
    dependencies = [("outlast_approvals", "0007_tools")]

    operations = [
        migrations.RunSQL(
            APPEND_ONLY.replace("REWRITE", REWRITE) + REQUESTS, APPEND_ONLY.replace("REWRITE", "") + REQUESTS_BEFORE
        ),
    ]
