DROP INDEX iit_schema.iit_outbox_progress_once;
DELETE FROM iit_schema.iit_outbox WHERE is_progress;
ALTER TABLE iit_schema.iit_outbox DROP COLUMN is_progress;
