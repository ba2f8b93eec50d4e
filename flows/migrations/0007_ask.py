"""One more kind of wait, for an answer that authorises nothing; and one more cause of waking up, that answer."""

from django.db import migrations

KNOWN = """
CREATE OR REPLACE FUNCTION outlast_known(noun text, value text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    CASE noun
        WHEN 'activity' THEN RETURN value = ANY ('{scheduled,running,done,failed,fenced}'::text[]);
        WHEN 'attempt' THEN RETURN value = ANY ('{succeeded,failed,timed_out,lost,fenced,refused,returned}'::text[]);
        WHEN 'wait' THEN RETURN value = ANY ('{open,satisfied,expired,withdrawn}'::text[]);
        WHEN 'wait kind' THEN RETURN value = ANY ('{
            timer,human,approval,ask,external_job,resource,dependency_health,event,retry_window,reconciliation}'::text[]);
        WHEN 'timer' THEN RETURN value = ANY ('{pending,fired,handled,stale}'::text[]);
        WHEN 'operation' THEN RETURN value = ANY ('{planned,in_flight,succeeded,failed,uncertain,compensated,abandoned}'::text[]);
        WHEN 'operation kind' THEN RETURN value = ANY ('{effect,compensation,release}'::text[]);
        WHEN 'commitment' THEN RETURN value = ANY ('{
            planned,active,breached,releasing,fulfilled,released,void,deferred,transferred}'::text[]);
        WHEN 'resolution' THEN RETURN value = ANY ('{happened,did_not_happen,unknown,retry,give_up}'::text[]);
        WHEN 'resolution source' THEN RETURN value = ANY ('{attempt,probe,person}'::text[]);
        WHEN 'timer kind' THEN RETURN value = ANY ('{
            sleep,retry,wait_deadline,workflow_deadline,commitment_deadline,freshness,sla,reminder,escalation}'::text[]);
        WHEN 'verdict' THEN RETURN value = ANY ('{
            ALLOWED,INTENT_SUPERSEDED,POLICY_BLOCKED,WORKFLOW_MIGRATION_REQUIRED,RELEASE_INCOMPATIBLE,CANDIDATE_INVALID,APPROVAL_REQUIRED,
            REVALIDATION_REQUIRED,COMMITMENT_UNSOUND,BUDGET_EXHAUSTED,COMPETENCE_EXCEEDED,AUTHORITY_DENIED,VERIFICATION_REQUIRED,
            PLACEMENT_DENIED,HUMAN_REQUIRED}'::text[]);
        WHEN 'wake cause' THEN RETURN value = ANY ('{start,step,event,timer,approval,answer,retry,recovery,resume}'::text[]);
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
        WHEN 'timer kind' THEN RETURN value = ANY ('{
            sleep,retry,wait_deadline,workflow_deadline,commitment_deadline,freshness,sla,reminder,escalation}'::text[]);
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


class Migration(migrations.Migration):
    dependencies = [("outlast_flows", "0006_notices")]

    operations = [migrations.RunSQL(KNOWN, KNOWN_BEFORE)]
