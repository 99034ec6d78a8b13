-- The read tools' role: it may SELECT some tables, nothing else, and of them it sees one study at a time.

-- Of a table opened to the reader, everybody sees what he saw before, and the reader only the rows of the
-- study its transaction names, none when it names none: a query that forgets the study finds nothing.
-- No policy names the role, so it may come later, or never.
CREATE FUNCTION iit_schema.iit_open_to_reader(tab regclass, project_column text DEFAULT 'project_id')
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', tab);
    EXECUTE format(
        $policy$CREATE POLICY iit_reader_sees_one_study ON %s
                USING (current_user <> 'iit_reader' OR %I = current_setting('iit.project', true))
                WITH CHECK (true)$policy$,
        tab, project_column);
END $$;
COMMENT ON FUNCTION iit_schema.iit_open_to_reader IS
    'For a migration that makes a table the read tools need; follow it with iit_grant_reader().';

-- Makes the role where it is missing and may be made, and grants it what was opened to it. Runs again
-- without harm. Roles belong to the whole cluster, so another database may be making it just now.
CREATE FUNCTION iit_schema.iit_grant_reader() RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    tab regclass;
    -- Since 16 one may be a member of a role and yet not take it on.
    usable text := CASE WHEN current_setting('server_version_num')::int >= 160000 THEN 'SET' ELSE 'MEMBER' END;
BEGIN
    IF to_regrole('iit_reader') IS NULL THEN
        BEGIN
            CREATE ROLE iit_reader NOLOGIN;
        EXCEPTION
            WHEN duplicate_object OR unique_violation THEN NULL;
            WHEN insufficient_privilege THEN
                RAISE NOTICE 'role iit_reader is missing and may not be made by %', current_user;
                RETURN false;
        END;
    END IF;
    GRANT USAGE ON SCHEMA iit_schema TO iit_reader;
    FOR tab IN SELECT polrelid FROM pg_policy WHERE polname = 'iit_reader_sees_one_study' LOOP
        EXECUTE format('GRANT SELECT ON %s TO iit_reader', tab);
    END LOOP;
    IF NOT pg_has_role(current_user, 'iit_reader', usable) THEN
        BEGIN
            EXECUTE format('GRANT iit_reader TO %I', current_user);
        EXCEPTION WHEN insufficient_privilege THEN
            RAISE NOTICE '% may not take the role iit_reader', current_user;
            RETURN false;
        END;
    END IF;
    RETURN true;
END $$;

SELECT iit_schema.iit_open_to_reader('iit_schema.iit_projects', 'id');
SELECT iit_schema.iit_open_to_reader('iit_schema.iit_pending_actions');
SELECT iit_schema.iit_open_to_reader('iit_schema.iit_task_run');
SELECT iit_schema.iit_open_to_reader('iit_schema.iit_batches');
SELECT iit_schema.iit_grant_reader();

-- Names that no field, alias or label answers to, for the data manager to map.
CREATE TABLE iit_schema.iit_unmapped_names (
    project_id  TEXT NOT NULL REFERENCES iit_schema.iit_projects (id) ON DELETE CASCADE,
    name        TEXT NOT NULL,
    count       BIGINT NOT NULL DEFAULT 1,
    first_seen  TIMESTAMPTZ NOT NULL DEFAULT now(),
    last_seen   TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (project_id, name)
);
