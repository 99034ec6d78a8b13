-- Messages out, at WeCom's pace: a gate that closes for all processes at once, a count of what each
-- member was sent, and what an operator needs to send something again on purpose.

CREATE TABLE iit_schema.iit_wecom_gate (
    app           TEXT PRIMARY KEY,
    cause         TEXT NOT NULL,
    reason        TEXT NOT NULL,
    needs_person  BOOLEAN NOT NULL,
    failures      INT NOT NULL DEFAULT 1 CONSTRAINT gate_failures_are_counted CHECK (failures > 0),
    closed_at     TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    closed_until  TIMESTAMPTZ NOT NULL,
    probe         UUID,
    probe_until   TIMESTAMPTZ,
    CONSTRAINT gate_probe_ends CHECK ((probe IS NULL) = (probe_until IS NULL))
);
COMMENT ON TABLE iit_schema.iit_wecom_gate IS 'A row per app whose messages WeCom refuses as a whole; no row = open. After closed_until one message at a time may try.';
COMMENT ON COLUMN iit_schema.iit_wecom_gate.cause IS 'WeCom''s errcode, or not_sent, unclear, http_<status>.';
COMMENT ON COLUMN iit_schema.iit_wecom_gate.probe IS 'Lease of the message that tries; a new one may after probe_until.';

CREATE TABLE iit_schema.iit_wecom_sends (
    id      BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    app     TEXT NOT NULL,
    member  TEXT NOT NULL,
    at      TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE iit_schema.iit_wecom_sends IS 'What left for whom in the last hour: WeCom drops what exceeds its limits without a word.';
CREATE INDEX iit_wecom_sends_recent ON iit_schema.iit_wecom_sends (app, member, at);

ALTER TABLE iit_schema.iit_outbox
    ADD COLUMN queued_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    ADD COLUMN resends INT NOT NULL DEFAULT 0 CONSTRAINT outbox_resends_are_counted CHECK (resends >= 0);
COMMENT ON COLUMN iit_schema.iit_outbox.queued_at IS 'When it was last asked to be sent; a message is given up when a closed gate kept it for a day.';
CREATE INDEX iit_outbox_unsent ON iit_schema.iit_outbox (state, created_at) WHERE state <> 'sent';

ALTER TABLE iit_schema.iit_outbox_parts ADD COLUMN left_at TIMESTAMPTZ;
COMMENT ON COLUMN iit_schema.iit_outbox_parts.left_at IS 'When it first left; WeCom compares a repeated notice with what left before, for some hours.';
