-- Messages in, what the agent remembers of a conversation, messages out.

CREATE TABLE iit_schema.iit_inbox (
    id           UUID PRIMARY KEY,
    channel      TEXT NOT NULL CONSTRAINT inbox_channel_is_known CHECK (channel IN ('wecom', 'rest')),
    dedupe_key   TEXT CONSTRAINT iit_inbox_dedupe_once UNIQUE,
    project_id   TEXT REFERENCES iit_schema.iit_projects (id) ON DELETE CASCADE,
    sender       TEXT NOT NULL,
    kind         TEXT NOT NULL,
    text         TEXT NOT NULL,
    detail       JSONB NOT NULL DEFAULT '{}',
    status       TEXT NOT NULL DEFAULT 'queued' CONSTRAINT inbox_status_is_known
                 CHECK (status IN ('queued', 'working', 'answered', 'failed')),
    intents      JSONB NOT NULL DEFAULT '[]',
    degraded     BOOLEAN NOT NULL DEFAULT false,
    created_at   TIMESTAMPTZ NOT NULL DEFAULT now(),
    answered_at  TIMESTAMPTZ
);
COMMENT ON COLUMN iit_schema.iit_inbox.project_id IS 'NULL until the sender''s study is known.';
CREATE INDEX iit_inbox_recent ON iit_schema.iit_inbox (project_id, sender, created_at DESC);

CREATE TABLE iit_schema.iit_reply_parts (
    message_id  UUID NOT NULL REFERENCES iit_schema.iit_inbox (id) ON DELETE CASCADE,
    no          INT NOT NULL,
    text        TEXT,
    chips       JSONB NOT NULL DEFAULT '[]',
    batch_id    UUID,
    PRIMARY KEY (message_id, no)
);
COMMENT ON COLUMN iit_schema.iit_reply_parts.text IS 'NULL while the work behind it goes on; the reply leaves when no part is NULL.';

CREATE TABLE iit_schema.iit_outbox (
    id           UUID PRIMARY KEY,
    message_id   UUID REFERENCES iit_schema.iit_inbox (id) ON DELETE CASCADE,
    project_id   TEXT REFERENCES iit_schema.iit_projects (id) ON DELETE CASCADE,
    channel      TEXT NOT NULL CONSTRAINT outbox_channel_is_known CHECK (channel IN ('wecom', 'rest')),
    recipient    TEXT NOT NULL,
    text         TEXT NOT NULL,
    chips        JSONB NOT NULL DEFAULT '[]',
    degraded     BOOLEAN NOT NULL DEFAULT false,
    state        TEXT NOT NULL DEFAULT 'queued' CONSTRAINT outbox_state_is_known
                 CHECK (state IN ('queued', 'sent', 'unknown', 'failed')),
    error        TEXT,
    created_at   TIMESTAMPTZ NOT NULL DEFAULT now(),
    sent_at      TIMESTAMPTZ
);
CREATE INDEX iit_outbox_message ON iit_schema.iit_outbox (message_id);
CREATE INDEX iit_outbox_notices ON iit_schema.iit_outbox (project_id, lower(recipient), created_at)
    WHERE message_id IS NULL;

CREATE TABLE iit_schema.iit_outbox_parts (
    outbox_id   UUID NOT NULL REFERENCES iit_schema.iit_outbox (id) ON DELETE CASCADE,
    no          INT NOT NULL,
    text        TEXT NOT NULL,
    state       TEXT NOT NULL DEFAULT 'queued' CONSTRAINT outbox_part_state_is_known
                CHECK (state IN ('queued', 'sending', 'sent', 'unknown', 'failed')),
    remote_id   TEXT,
    sent_at     TIMESTAMPTZ,
    PRIMARY KEY (outbox_id, no)
);
COMMENT ON COLUMN iit_schema.iit_outbox_parts.state IS 'sending is committed before the request leaves; found again after a crash it becomes unknown and is not sent blindly.';

CREATE TABLE iit_schema.iit_conversations (
    project_id       TEXT NOT NULL REFERENCES iit_schema.iit_projects (id) ON DELETE CASCADE,
    user_id          TEXT NOT NULL,
    last_patient     TEXT,
    last_patient_at  TIMESTAMPTZ,
    pending          JSONB,
    updated_at       TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (project_id, user_id)
);
COMMENT ON COLUMN iit_schema.iit_conversations.pending IS 'The question asked last, while it waits for an answer: a typed 1, 2 or 3 means one of its choices.';

CREATE TABLE iit_schema.iit_conversation_history (
    id           BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    project_id   TEXT NOT NULL REFERENCES iit_schema.iit_projects (id) ON DELETE CASCADE,
    user_id      TEXT NOT NULL,
    role         TEXT NOT NULL CONSTRAINT history_role_is_known CHECK (role IN ('user', 'assistant')),
    text         TEXT NOT NULL,
    message_id   UUID REFERENCES iit_schema.iit_inbox (id) ON DELETE SET NULL,
    created_at   TIMESTAMPTZ NOT NULL DEFAULT now()
);
CREATE INDEX iit_conversation_history_recent
    ON iit_schema.iit_conversation_history (project_id, user_id, id DESC);

CREATE TABLE iit_schema.iit_sender_projects (
    sender      TEXT PRIMARY KEY,
    project_id  TEXT REFERENCES iit_schema.iit_projects (id) ON DELETE CASCADE,
    waiting     UUID REFERENCES iit_schema.iit_inbox (id) ON DELETE SET NULL,
    updated_at  TIMESTAMPTZ NOT NULL DEFAULT now()
);
COMMENT ON TABLE iit_schema.iit_sender_projects IS 'Which of several studies a sender talks about; waiting = the message that made us ask.';

CREATE TABLE iit_schema.iit_wecom_tokens (
    app            TEXT PRIMARY KEY,
    token          TEXT,
    expires_at     TIMESTAMPTZ,
    obtained_at    TIMESTAMPTZ,
    refresh_owner  UUID,
    refresh_until  TIMESTAMPTZ
);
COMMENT ON TABLE iit_schema.iit_wecom_tokens IS 'One access token per app shared by all processes; refresh_owner holds a short lease while it fetches a new one.';

CREATE TABLE iit_schema.iit_idempotency_keys (
    key         TEXT NOT NULL,
    route       TEXT NOT NULL,
    request     TEXT NOT NULL,
    status      INT NOT NULL,
    response    JSONB NOT NULL,
    created_at  TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (key, route)
);
