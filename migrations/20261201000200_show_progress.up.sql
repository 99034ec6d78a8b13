-- "One moment, please": sent once while a reply is worked for, and never after it.

ALTER TABLE iit_schema.iit_outbox ADD COLUMN is_progress BOOLEAN NOT NULL DEFAULT false;
COMMENT ON COLUMN iit_schema.iit_outbox.is_progress IS 'Tells that the reply to message_id takes its time; it is no reply.';
CREATE UNIQUE INDEX iit_outbox_progress_once ON iit_schema.iit_outbox (message_id) WHERE is_progress;
