ALTER TABLE iit_schema.iit_outbox_parts DROP COLUMN left_at;
DROP INDEX iit_schema.iit_outbox_unsent;
ALTER TABLE iit_schema.iit_outbox DROP COLUMN resends, DROP COLUMN queued_at;
DROP TABLE iit_schema.iit_wecom_sends;
DROP TABLE iit_schema.iit_wecom_gate;
