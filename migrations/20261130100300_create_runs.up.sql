-- Batches, runs and their steps. The run's step number is the fence: a step commits only on the number
-- it started from.

CREATE TABLE iit_schema.iit_batches (
    id            UUID PRIMARY KEY,
    project_id    TEXT NOT NULL REFERENCES iit_schema.iit_projects (id) ON DELETE CASCADE,
    skill_type    TEXT,
    records       JSONB,
    skills        JSONB NOT NULL DEFAULT '[]',
    state         TEXT NOT NULL DEFAULT 'planning' CONSTRAINT batch_state_is_known
                  CHECK (state IN ('planning', 'running', 'done', 'failed', 'cancelled')),
    total         INT NOT NULL DEFAULT 0,
    done          INT NOT NULL DEFAULT 0,
    failed        INT NOT NULL DEFAULT 0,
    findings      INT NOT NULL DEFAULT 0,
    message_id    UUID REFERENCES iit_schema.iit_inbox (id) ON DELETE SET NULL,
    message_part  INT,
    requested_by  TEXT NOT NULL,
    note          TEXT,
    error         TEXT,
    created_at    TIMESTAMPTZ NOT NULL DEFAULT now(),
    started_at    TIMESTAMPTZ,
    finished_at   TIMESTAMPTZ,
    CONSTRAINT batch_counts_add_up CHECK (done >= 0 AND failed >= 0 AND done + failed <= total)
);
COMMENT ON COLUMN iit_schema.iit_batches.records IS 'The records asked for; NULL = the whole project.';
COMMENT ON COLUMN iit_schema.iit_batches.skills IS 'The skills and versions it checks with, fixed when it starts: [["eligibility", 3], …].';
COMMENT ON COLUMN iit_schema.iit_batches.note IS 'What people are told beside the result; error is for operators.';
CREATE INDEX iit_batches_message ON iit_schema.iit_batches (message_id) WHERE message_id IS NOT NULL;
COMMENT ON COLUMN iit_schema.iit_batches.total IS 'Records; one is done when none of its runs is running any more.';

CREATE TABLE iit_schema.iit_batch_pages (
    batch_id   UUID NOT NULL REFERENCES iit_schema.iit_batches (id) ON DELETE CASCADE,
    no         INT NOT NULL,
    records    JSONB NOT NULL,
    state      TEXT NOT NULL DEFAULT 'queued' CONSTRAINT batch_page_state_is_known
               CHECK (state IN ('queued', 'done', 'failed')),
    PRIMARY KEY (batch_id, no)
);

CREATE TABLE iit_schema.iit_task_run (
    id             UUID PRIMARY KEY,
    project_id     TEXT NOT NULL REFERENCES iit_schema.iit_projects (id) ON DELETE CASCADE,
    kind           TEXT NOT NULL CONSTRAINT run_kind_is_known CHECK (kind IN ('sop', 'react', 'vision', 'report')),
    skill_type     TEXT NOT NULL,
    skill_version  INT NOT NULL,
    record         TEXT NOT NULL,
    status         TEXT NOT NULL CONSTRAINT run_status_is_known
                   CHECK (status IN ('running', 'waiting', 'done', 'failed', 'cancelled')),
    node           TEXT,
    step_no        INT NOT NULL DEFAULT 0 CONSTRAINT run_step_no_counts_up CHECK (step_no >= 0),
    walk           JSONB,
    final_state    TEXT,
    standing       TEXT CONSTRAINT run_standing_is_known
                   CHECK (standing IN ('clean', 'incomplete', 'review', 'violation')),
    site           TEXT,
    findings       INT NOT NULL DEFAULT 0,
    tokens         BIGINT NOT NULL DEFAULT 0,
    batch_id       UUID REFERENCES iit_schema.iit_batches (id) ON DELETE SET NULL,
    in_batch       BOOLEAN NOT NULL DEFAULT false,
    data_version   TEXT,
    error          TEXT,
    created_at     TIMESTAMPTZ NOT NULL DEFAULT now(),
    updated_at     TIMESTAMPTZ NOT NULL DEFAULT now(),
    finished_at    TIMESTAMPTZ,
    CONSTRAINT run_skill_version_is_kept FOREIGN KEY (project_id, skill_type, skill_version)
        REFERENCES iit_schema.iit_skill_versions (project_id, skill_type, version),
    CONSTRAINT run_finished_when_final CHECK ((status IN ('done', 'failed', 'cancelled')) = (finished_at IS NOT NULL))
) WITH (fillfactor = 85);
COMMENT ON COLUMN iit_schema.iit_task_run.walk IS 'Where the run stands in its graph, as the SOP engine keeps it.';
COMMENT ON COLUMN iit_schema.iit_task_run.standing IS 'What the ended run amounts to; never clean when something was found or left undecided.';
COMMENT ON COLUMN iit_schema.iit_task_run.in_batch IS 'Still counted by its batch; cleared once, when the run first stops running.';
CREATE INDEX iit_task_run_batch ON iit_schema.iit_task_run (batch_id, record);
CREATE INDEX iit_task_run_record ON iit_schema.iit_task_run (project_id, record, created_at DESC);
-- A page job that is run again finds the runs it already committed.
CREATE UNIQUE INDEX iit_task_run_once_per_batch ON iit_schema.iit_task_run (batch_id, record, skill_type)
    WHERE batch_id IS NOT NULL;

CREATE TABLE iit_schema.iit_task_step (
    run_id        UUID NOT NULL REFERENCES iit_schema.iit_task_run (id),
    no            INT NOT NULL,
    node          TEXT NOT NULL,
    outcome       TEXT NOT NULL,
    note          TEXT,
    findings      JSONB NOT NULL DEFAULT '[]',
    llm_calls     INT NOT NULL DEFAULT 0,
    attempt       INT NOT NULL,
    job_id        BIGINT,
    started_at    TIMESTAMPTZ NOT NULL,
    committed_at  TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (run_id, no)
);
COMMENT ON TABLE iit_schema.iit_task_step IS 'Append only: one row a committed step.';

CREATE FUNCTION iit_schema.iit_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append only: % refused', TG_TABLE_NAME, TG_OP USING ERRCODE = '42501';
END $$;
CREATE TRIGGER iit_task_step_append_only BEFORE UPDATE OR DELETE ON iit_schema.iit_task_step
    FOR EACH ROW EXECUTE FUNCTION iit_schema.iit_refuse_change();
CREATE TRIGGER iit_task_step_no_truncate BEFORE TRUNCATE ON iit_schema.iit_task_step
    FOR EACH STATEMENT EXECUTE FUNCTION iit_schema.iit_refuse_change();
