-- A run that waits for judgements finds them by its id.
CREATE INDEX iit_task_run_parent ON iit_schema.iit_task_run (parent_id, parent_step) WHERE parent_id IS NOT NULL;
