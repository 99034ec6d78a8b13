-- The job queue. States and their arrows are drawn in ARCHITECTURE.md.

CREATE TABLE iit_schema.iit_jobs (
    id                BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue             TEXT NOT NULL,
    kind              TEXT NOT NULL,
    payload           JSONB NOT NULL,
    state             TEXT NOT NULL DEFAULT 'available' CONSTRAINT job_state_is_known
                      CHECK (state IN ('available', 'running', 'done', 'cancelled', 'dead')),
    priority          SMALLINT NOT NULL DEFAULT 0,
    run_at            TIMESTAMPTZ NOT NULL DEFAULT now(),
    attempt           INT NOT NULL DEFAULT 0,
    max_attempts      INT NOT NULL DEFAULT 5,
    crashes           INT NOT NULL DEFAULT 0,
    job_key           TEXT,
    group_key         TEXT,
    lease_token       UUID,
    lease_expires_at  TIMESTAMPTZ,
    worker            UUID,
    last_error        TEXT,
    created_at        TIMESTAMPTZ NOT NULL DEFAULT now(),
    started_at        TIMESTAMPTZ,
    finished_at       TIMESTAMPTZ,
    CONSTRAINT job_attempt_is_counted CHECK (attempt >= 0 AND crashes >= 0),
    CONSTRAINT job_max_attempts_is_positive CHECK (max_attempts > 0),
    CONSTRAINT job_payload_is_small CHECK (octet_length(payload::text) <= 8192),
    CONSTRAINT job_leased_while_running CHECK ((state = 'running')
        = (lease_token IS NOT NULL AND lease_expires_at IS NOT NULL AND worker IS NOT NULL)),
    CONSTRAINT job_finished_when_final CHECK ((state IN ('done', 'cancelled', 'dead')) = (finished_at IS NOT NULL))
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500,
        autovacuum_vacuum_cost_delay = 1);
COMMENT ON COLUMN iit_schema.iit_jobs.attempt IS 'Counted at the claim, so a crash uses one up.';
COMMENT ON COLUMN iit_schema.iit_jobs.crashes IS 'Leases that ran out; three quarantine the job.';
COMMENT ON COLUMN iit_schema.iit_jobs.job_key IS 'At most one unfinished job per (kind, key).';
COMMENT ON COLUMN iit_schema.iit_jobs.group_key IS 'Jobs of one group run in order of id, one at a time.';

CREATE INDEX iit_jobs_ready ON iit_schema.iit_jobs (queue, priority, run_at, id) WHERE state = 'available';
CREATE INDEX iit_jobs_leases ON iit_schema.iit_jobs (lease_expires_at) WHERE state = 'running';
CREATE UNIQUE INDEX iit_jobs_key_once ON iit_schema.iit_jobs (kind, job_key)
    WHERE job_key IS NOT NULL AND state IN ('available', 'running');
CREATE INDEX iit_jobs_group_order ON iit_schema.iit_jobs (group_key, id)
    WHERE group_key IS NOT NULL AND state IN ('available', 'running');
-- The guarantee behind the order: whatever races, a group never runs two jobs at once.
CREATE UNIQUE INDEX iit_jobs_group_runs_one ON iit_schema.iit_jobs (group_key)
    WHERE group_key IS NOT NULL AND state = 'running';
CREATE INDEX iit_jobs_dead ON iit_schema.iit_jobs (queue, finished_at) WHERE state = 'dead';

-- Our own connections wake workers after their commit (a NOTIFY inside the settling transaction would
-- serialise commits); this trigger wakes them for rows that other programs insert.
CREATE FUNCTION iit_schema.iit_jobs_wake() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('iit.quiet', true) IS DISTINCT FROM 'on' THEN
        PERFORM pg_notify('iit_jobs', '*');
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER iit_jobs_wake AFTER INSERT ON iit_schema.iit_jobs
    FOR EACH STATEMENT EXECUTE FUNCTION iit_schema.iit_jobs_wake();
