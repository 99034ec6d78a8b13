COMMENT ON SCHEMA iit_schema IS 'IIT Manager: studies, runs, jobs, findings and what was done about them.';
