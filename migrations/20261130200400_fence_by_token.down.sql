ALTER TABLE iit_schema.iit_jobs DROP CONSTRAINT job_token_while_running;
