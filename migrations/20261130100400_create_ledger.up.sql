-- The ledger of findings (shadow state: never written into clinical data) and the audit log.

CREATE TABLE iit_schema.iit_pending_actions (
    id            UUID PRIMARY KEY,
    project_id    TEXT NOT NULL REFERENCES iit_schema.iit_projects (id) ON DELETE CASCADE,
    fingerprint   TEXT NOT NULL CONSTRAINT iit_pending_actions_fingerprint_once UNIQUE,
    skill_type    TEXT NOT NULL,
    rule          TEXT NOT NULL,
    record        TEXT NOT NULL,
    event         TEXT,
    instance      INT,
    field         TEXT NOT NULL,
    outcome       TEXT NOT NULL CONSTRAINT pending_action_outcome_is_known
                  CHECK (outcome IN ('fail', 'not_evaluable')),
    severity      TEXT NOT NULL CONSTRAINT pending_action_severity_is_known
                  CHECK (severity IN ('info', 'query', 'warning', 'error')),
    message       TEXT NOT NULL,
    values        JSONB NOT NULL,
    status        TEXT NOT NULL DEFAULT 'open' CONSTRAINT pending_action_status_is_known
                  CHECK (status IN ('open', 'answered', 'close_proposed', 'closed', 'dismissed')),
    assignee      TEXT,
    due           TIMESTAMPTZ,
    run_id        UUID REFERENCES iit_schema.iit_task_run (id) ON DELETE SET NULL,
    waits_for     UUID REFERENCES iit_schema.iit_task_run (id) ON DELETE SET NULL,
    verdict       TEXT CONSTRAINT pending_action_verdict_is_known CHECK (verdict IN ('confirmed', 'dismissed')),
    created_at    TIMESTAMPTZ NOT NULL DEFAULT now(),
    updated_at    TIMESTAMPTZ NOT NULL DEFAULT now()
);
COMMENT ON COLUMN iit_schema.iit_pending_actions.waits_for IS 'The run that a verdict on this action lets go on (human_review).';
COMMENT ON COLUMN iit_schema.iit_pending_actions.verdict IS 'What a person said to what stands here now; NULL again when it is found anew or changed.';
CREATE INDEX iit_pending_actions_by_status ON iit_schema.iit_pending_actions (project_id, status, created_at, id);
CREATE INDEX iit_pending_actions_in_order ON iit_schema.iit_pending_actions (project_id, id);
CREATE INDEX iit_pending_actions_waiting ON iit_schema.iit_pending_actions (waits_for) WHERE waits_for IS NOT NULL;
CREATE INDEX iit_pending_actions_by_record ON iit_schema.iit_pending_actions (project_id, record, rule);

CREATE TABLE iit_schema.iit_pending_action_history (
    id           BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    action_id    UUID NOT NULL REFERENCES iit_schema.iit_pending_actions (id) ON DELETE CASCADE,
    from_status  TEXT,
    to_status    TEXT NOT NULL,
    message      TEXT NOT NULL,
    values       JSONB NOT NULL,
    actor        TEXT NOT NULL,
    reason       TEXT NOT NULL,
    run_id       UUID,
    at           TIMESTAMPTZ NOT NULL DEFAULT now()
);
CREATE INDEX iit_pending_action_history_of ON iit_schema.iit_pending_action_history (action_id, id);

CREATE TABLE iit_schema.iit_audit_log (
    seq         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at          TIMESTAMPTZ NOT NULL DEFAULT now(),
    project_id  TEXT,
    actor       TEXT NOT NULL,
    action      TEXT NOT NULL,
    entity      TEXT NOT NULL,
    entity_id   TEXT NOT NULL,
    old         JSONB,
    new         JSONB,
    reason      TEXT
);
COMMENT ON TABLE iit_schema.iit_audit_log IS 'Who changed what, when, from what to what, and why. Append only.';
CREATE INDEX iit_audit_log_of ON iit_schema.iit_audit_log (entity, entity_id, seq);

CREATE TRIGGER iit_audit_log_append_only BEFORE UPDATE OR DELETE ON iit_schema.iit_audit_log
    FOR EACH ROW EXECUTE FUNCTION iit_schema.iit_refuse_change();
CREATE TRIGGER iit_audit_log_no_truncate BEFORE TRUNCATE ON iit_schema.iit_audit_log
    FOR EACH STATEMENT EXECUTE FUNCTION iit_schema.iit_refuse_change();
