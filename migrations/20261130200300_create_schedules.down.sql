DROP TRIGGER iit_skills_stop_schedule ON iit_schema.iit_skills;
DROP FUNCTION iit_schema.iit_skills_stop_schedule();
DROP TABLE iit_schema.iit_firings;
DROP TABLE iit_schema.iit_schedules;
