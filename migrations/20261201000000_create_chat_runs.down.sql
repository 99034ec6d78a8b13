ALTER TABLE iit_schema.iit_agent_trace DISABLE TRIGGER iit_agent_trace_append_only;
DELETE FROM iit_schema.iit_agent_trace WHERE run_id IN (SELECT id FROM iit_schema.iit_task_run WHERE kind IN ('intent', 'react', 'judge'));
ALTER TABLE iit_schema.iit_agent_trace ENABLE TRIGGER iit_agent_trace_append_only;
ALTER TABLE iit_schema.iit_task_step DISABLE TRIGGER iit_task_step_append_only;
DELETE FROM iit_schema.iit_task_step WHERE run_id IN (SELECT id FROM iit_schema.iit_task_run WHERE kind IN ('intent', 'react', 'judge'));
ALTER TABLE iit_schema.iit_task_step ENABLE TRIGGER iit_task_step_append_only;
DELETE FROM iit_schema.iit_llm_calls WHERE run_id IN (SELECT id FROM iit_schema.iit_task_run WHERE kind IN ('intent', 'react', 'judge'));
DELETE FROM iit_schema.iit_task_run WHERE kind IN ('intent', 'react', 'judge');
ALTER TABLE iit_schema.iit_agent_trace
    DROP CONSTRAINT trace_kind_is_known,
    ADD CONSTRAINT trace_kind_is_known CHECK (kind IN ('system', 'instruction', 'data', 'reply', 'correction'));
DROP INDEX iit_schema.iit_task_run_message;
ALTER TABLE iit_schema.iit_task_run
    DROP CONSTRAINT run_parent_has_a_step,
    DROP COLUMN parent_step,
    DROP COLUMN parent_id,
    DROP COLUMN asked_by,
    DROP COLUMN message_part,
    DROP COLUMN message_id,
    DROP CONSTRAINT run_of_a_skill_is_whole,
    ALTER COLUMN record SET NOT NULL,
    ALTER COLUMN skill_version SET NOT NULL,
    ALTER COLUMN skill_type SET NOT NULL,
    DROP CONSTRAINT run_kind_is_known,
    ADD CONSTRAINT run_kind_is_known CHECK (kind IN ('sop', 'react', 'vision', 'report'));
