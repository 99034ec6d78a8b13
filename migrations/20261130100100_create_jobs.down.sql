DROP TABLE iit_schema.iit_jobs;
DROP FUNCTION iit_schema.iit_jobs_wake();
