-- Choices as buttons: a reply's card is a part of it, a click on a card is taken once, and only while its
-- question is the one that waits.

ALTER TABLE iit_schema.iit_outbox_parts
    ADD COLUMN kind TEXT NOT NULL DEFAULT 'text' CONSTRAINT outbox_part_kind_is_known CHECK (kind IN ('text', 'card')),
    DROP CONSTRAINT outbox_part_state_is_known,
    ADD CONSTRAINT outbox_part_state_is_known
        CHECK (state IN ('queued', 'sending', 'sent', 'unknown', 'failed', 'skipped')),
    ADD CONSTRAINT outbox_text_is_never_skipped CHECK (kind = 'card' OR state NOT IN ('failed', 'skipped'));
COMMENT ON COLUMN iit_schema.iit_outbox_parts.kind IS 'card: the choices of the message as buttons, made from its chips when it leaves; all they say stands in the text before it.';
COMMENT ON COLUMN iit_schema.iit_outbox_parts.state IS 'sending is committed before the request leaves; found again after a crash it becomes unknown and is not sent blindly. failed, skipped: a card that WeCom refused, or that was not wanted.';

ALTER TABLE iit_schema.iit_conversations ADD COLUMN pending_of UUID REFERENCES iit_schema.iit_inbox (id) ON DELETE SET NULL;
COMMENT ON COLUMN iit_schema.iit_conversations.pending_of IS 'The message whose reply asked the pending question: a click on the card of another reply answers nothing.';

CREATE TABLE iit_schema.iit_card_clicks (
    outbox_id      UUID PRIMARY KEY REFERENCES iit_schema.iit_outbox (id) ON DELETE CASCADE,
    message_id     UUID NOT NULL REFERENCES iit_schema.iit_inbox (id) ON DELETE CASCADE,
    choice         INT NOT NULL,
    verdict        TEXT NOT NULL CONSTRAINT card_verdict_is_known CHECK (verdict IN ('taken', 'late')),
    clicked_at     TIMESTAMPTZ NOT NULL DEFAULT now(),
    update_state   TEXT NOT NULL DEFAULT 'queued' CONSTRAINT card_update_state_is_known
                   CHECK (update_state IN ('queued', 'sending', 'done', 'unknown', 'failed'))
);
COMMENT ON TABLE iit_schema.iit_card_clicks IS 'The first click on a card by the person it was sent to; later ones do nothing.';
COMMENT ON COLUMN iit_schema.iit_card_clicks.message_id IS 'The click''s event in the inbox.';
COMMENT ON COLUMN iit_schema.iit_card_clicks.verdict IS 'late: its question was not the one that waited any more.';
COMMENT ON COLUMN iit_schema.iit_card_clicks.update_state IS 'Showing the choice on the card, tried once: sending is committed before the request leaves, and never sent again.';
CREATE INDEX iit_card_clicks_message ON iit_schema.iit_card_clicks (message_id);
