DROP TABLE iit_schema.iit_card_clicks;
ALTER TABLE iit_schema.iit_conversations DROP COLUMN pending_of;
DELETE FROM iit_schema.iit_outbox_parts WHERE kind = 'card';
ALTER TABLE iit_schema.iit_outbox_parts
    DROP CONSTRAINT outbox_text_is_never_skipped,
    DROP CONSTRAINT outbox_part_state_is_known,
    ADD CONSTRAINT outbox_part_state_is_known CHECK (state IN ('queued', 'sending', 'sent', 'unknown', 'failed')),
    DROP COLUMN kind;
COMMENT ON COLUMN iit_schema.iit_outbox_parts.state IS 'sending is committed before the request leaves; found again after a crash it becomes unknown and is not sent blindly.';
