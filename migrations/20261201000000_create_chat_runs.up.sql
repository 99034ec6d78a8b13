-- Runs that no skill drives: understanding a message, and answering a question by reasoning over tools.

ALTER TABLE iit_schema.iit_task_run
    DROP CONSTRAINT run_kind_is_known,
    ADD CONSTRAINT run_kind_is_known CHECK (kind IN ('sop', 'intent', 'react', 'judge', 'vision', 'report')),
    ALTER COLUMN skill_type DROP NOT NULL,
    ALTER COLUMN skill_version DROP NOT NULL,
    ALTER COLUMN record DROP NOT NULL,
    ADD CONSTRAINT run_of_a_skill_is_whole
        CHECK (kind <> 'sop' OR (skill_type IS NOT NULL AND skill_version IS NOT NULL AND record IS NOT NULL)),
    ADD COLUMN message_id UUID REFERENCES iit_schema.iit_inbox (id) ON DELETE SET NULL,
    ADD COLUMN message_part INT,
    ADD COLUMN asked_by TEXT,
    ADD COLUMN parent_id UUID REFERENCES iit_schema.iit_task_run (id),
    ADD COLUMN parent_step INT,
    ADD CONSTRAINT run_parent_has_a_step CHECK ((parent_id IS NULL) = (parent_step IS NULL));
COMMENT ON COLUMN iit_schema.iit_task_run.kind IS 'sop: a skill over a record; intent: one message understood; react: one question reasoned about; judge: one judgement for a tool call of another run.';
COMMENT ON COLUMN iit_schema.iit_task_run.message_id IS 'The message whose reply this run fills in, at message_part.';
COMMENT ON COLUMN iit_schema.iit_task_run.asked_by IS 'Who is answered: decides what may be shown.';
COMMENT ON COLUMN iit_schema.iit_task_run.parent_id IS 'The run that waits for this one, at parent_step.';
CREATE INDEX iit_task_run_message ON iit_schema.iit_task_run (message_id) WHERE message_id IS NOT NULL;

ALTER TABLE iit_schema.iit_agent_trace
    DROP CONSTRAINT trace_kind_is_known,
    ADD CONSTRAINT trace_kind_is_known CHECK (kind IN
        ('system', 'instruction', 'data', 'reply', 'correction', 'question', 'history', 'calls', 'result', 'note'));
COMMENT ON COLUMN iit_schema.iit_agent_trace.kind IS 'calls: an assistant message with tool calls, as JSON; result: what one call gave back, as JSON; note: for people, never sent.';
