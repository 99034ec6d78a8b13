-- A token is a lease: with this the fence of a settlement needs the job's id and its token and nothing else.
ALTER TABLE iit_schema.iit_jobs
    ADD CONSTRAINT job_token_while_running CHECK ((state = 'running') = (lease_token IS NOT NULL));
