DROP TABLE iit_schema.iit_skill_versions;
DROP TABLE iit_schema.iit_skills;
DROP FUNCTION iit_schema.iit_skills_next_version();
DROP FUNCTION iit_schema.iit_skills_first_version();
DROP FUNCTION iit_schema.iit_skills_keep_version();
DROP TABLE iit_schema.iit_field_mapping;
DROP TABLE iit_schema.iit_members;
DROP TABLE iit_schema.iit_projects;
