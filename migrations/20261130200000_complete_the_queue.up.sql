-- Suspects, cancellation, what operators set per queue, and a place for finished jobs.

ALTER TABLE iit_schema.iit_jobs
    ADD COLUMN suspect       BOOLEAN NOT NULL DEFAULT false,
    ADD COLUMN lost_by       UUID,
    ADD COLUMN cancel_reason TEXT;
COMMENT ON COLUMN iit_schema.iit_jobs.crashes IS
    'Leases that ran out and are put down to this job; three quarantine it.';
COMMENT ON COLUMN iit_schema.iit_jobs.suspect IS
    'Its lease ran out, so it may have taken its process down: it runs apart from other suspects.';
COMMENT ON COLUMN iit_schema.iit_jobs.lost_by IS 'The worker that lost it last.';
COMMENT ON COLUMN iit_schema.iit_jobs.cancel_reason IS
    'An operator cancelled it while it ran: whoever holds it ends it, whoever claims it does not run it.';

CREATE INDEX iit_jobs_suspects ON iit_schema.iit_jobs (queue, priority, run_at, id)
    WHERE state = 'available' AND suspect;
CREATE INDEX iit_jobs_lost ON iit_schema.iit_jobs (lost_by) WHERE lost_by IS NOT NULL;

CREATE TABLE iit_schema.iit_queues (
    name         TEXT PRIMARY KEY,
    paused_at    TIMESTAMPTZ,
    paused_by    TEXT,
    max_running  INT CONSTRAINT queue_limit_is_positive CHECK (max_running > 0),
    CONSTRAINT queue_pause_has_an_actor CHECK ((paused_at IS NULL) = (paused_by IS NULL))
);
COMMENT ON TABLE iit_schema.iit_queues IS
    'What operators set; a queue nobody ever paused or limited has no row.';

-- Settled jobs move here in small batches, so that the table workers claim from stays small. Days later
-- they are deleted.
CREATE TABLE iit_schema.iit_job_history (
    id           BIGINT PRIMARY KEY,
    queue        TEXT NOT NULL,
    kind         TEXT NOT NULL,
    payload      JSONB NOT NULL,
    state        TEXT NOT NULL CONSTRAINT job_history_is_settled CHECK (state IN ('done', 'cancelled')),
    attempt      INT NOT NULL,
    crashes      INT NOT NULL,
    job_key      TEXT,
    group_key    TEXT,
    last_error   TEXT,
    created_at   TIMESTAMPTZ NOT NULL,
    started_at   TIMESTAMPTZ,
    finished_at  TIMESTAMPTZ NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX iit_job_history_age ON iit_schema.iit_job_history (finished_at);
