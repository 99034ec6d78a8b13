DROP TABLE iit_schema.iit_job_history;
DROP TABLE iit_schema.iit_queues;
DROP INDEX iit_schema.iit_jobs_lost;
DROP INDEX iit_schema.iit_jobs_suspects;
ALTER TABLE iit_schema.iit_jobs
    DROP COLUMN cancel_reason,
    DROP COLUMN lost_by,
    DROP COLUMN suspect;
COMMENT ON COLUMN iit_schema.iit_jobs.crashes IS 'Leases that ran out; three quarantine the job.';
