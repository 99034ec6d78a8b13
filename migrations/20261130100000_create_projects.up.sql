-- Studies, their people, names and skills. Project ids are the short ids of the project files.

CREATE TABLE iit_schema.iit_projects (
    id          TEXT PRIMARY KEY,
    name        TEXT NOT NULL,
    timezone    TEXT NOT NULL,
    config      JSONB NOT NULL,
    created_at  TIMESTAMPTZ NOT NULL DEFAULT now(),
    updated_at  TIMESTAMPTZ NOT NULL DEFAULT now()
);
COMMENT ON COLUMN iit_schema.iit_projects.config IS 'The whole project file as applied, folders made absolute; holds names of secrets, never secrets.';

CREATE TABLE iit_schema.iit_members (
    project_id  TEXT NOT NULL REFERENCES iit_schema.iit_projects (id) ON DELETE CASCADE,
    wecom_user  TEXT NOT NULL,
    name        TEXT NOT NULL DEFAULT '',
    role        TEXT NOT NULL CONSTRAINT member_role_is_known
                CHECK (role IN ('admin', 'pi', 'crc', 'cra', 'dm', 'ops', 'readonly')),
    created_at  TIMESTAMPTZ NOT NULL DEFAULT now()
);
-- WeCom user ids are case-insensitive.
CREATE UNIQUE INDEX iit_members_project_user ON iit_schema.iit_members (project_id, lower(wecom_user));
CREATE INDEX iit_members_user ON iit_schema.iit_members (lower(wecom_user));

CREATE TABLE iit_schema.iit_field_mapping (
    id           UUID PRIMARY KEY DEFAULT gen_random_uuid(),
    project_id   TEXT NOT NULL REFERENCES iit_schema.iit_projects (id) ON DELETE CASCADE,
    alias_name   TEXT NOT NULL,
    actual_name  TEXT NOT NULL,
    created_at   TIMESTAMPTZ NOT NULL DEFAULT now(),
    CONSTRAINT iit_field_mapping_alias_once UNIQUE (project_id, alias_name)
);

CREATE TABLE iit_schema.iit_skills (
    id          UUID PRIMARY KEY DEFAULT gen_random_uuid(),
    project_id  TEXT NOT NULL REFERENCES iit_schema.iit_projects (id) ON DELETE CASCADE,
    skill_type  TEXT NOT NULL,
    name        TEXT NOT NULL,
    config      JSONB NOT NULL,
    schedule    TEXT,
    is_active   BOOLEAN NOT NULL DEFAULT true,
    version     INT NOT NULL DEFAULT 1,
    created_at  TIMESTAMPTZ NOT NULL DEFAULT now(),
    updated_at  TIMESTAMPTZ NOT NULL DEFAULT now(),
    CONSTRAINT iit_skills_type_once UNIQUE (project_id, skill_type)
);

CREATE TABLE iit_schema.iit_skill_versions (
    project_id  TEXT NOT NULL REFERENCES iit_schema.iit_projects (id) ON DELETE CASCADE,
    skill_type  TEXT NOT NULL,
    version     INT NOT NULL,
    name        TEXT NOT NULL,
    config      JSONB NOT NULL,
    created_at  TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (project_id, skill_type, version)
);
COMMENT ON TABLE iit_schema.iit_skill_versions IS 'Every version a skill ever had; runs pin one, so an edit never changes a run in flight.';

-- A changed configuration is a new version, whoever changes it: a run pins (project, type, version).
CREATE FUNCTION iit_schema.iit_skills_next_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.config IS DISTINCT FROM OLD.config OR NEW.name IS DISTINCT FROM OLD.name THEN
        NEW.version := OLD.version + 1;
    ELSE
        NEW.version := OLD.version;
    END IF;
    NEW.updated_at := now();
    RETURN NEW;
END $$;
CREATE TRIGGER iit_skills_next_version BEFORE UPDATE ON iit_schema.iit_skills
    FOR EACH ROW EXECUTE FUNCTION iit_schema.iit_skills_next_version();

-- A skill that was deleted and comes back goes on counting: its earlier versions may be pinned by runs.
CREATE FUNCTION iit_schema.iit_skills_first_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.version := COALESCE((SELECT max(version) FROM iit_schema.iit_skill_versions
                             WHERE project_id = NEW.project_id AND skill_type = NEW.skill_type), 0) + 1;
    RETURN NEW;
END $$;
CREATE TRIGGER iit_skills_first_version BEFORE INSERT ON iit_schema.iit_skills
    FOR EACH ROW EXECUTE FUNCTION iit_schema.iit_skills_first_version();

CREATE FUNCTION iit_schema.iit_skills_keep_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO iit_schema.iit_skill_versions (project_id, skill_type, version, name, config)
    VALUES (NEW.project_id, NEW.skill_type, NEW.version, NEW.name, NEW.config)
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER iit_skills_keep_version AFTER INSERT OR UPDATE ON iit_schema.iit_skills
    FOR EACH ROW EXECUTE FUNCTION iit_schema.iit_skills_keep_version();

-- So that a plain psql session finds the tables by the names of the design documents.
DO $$
BEGIN
    EXECUTE format('ALTER DATABASE %I SET search_path TO iit_schema, public', current_database());
EXCEPTION WHEN insufficient_privilege THEN
    RAISE NOTICE 'search_path of the database left as it is: not its owner';
END $$;
