DROP TABLE iit_schema.iit_unmapped_names;

-- The role stays: other databases of the cluster may use it.
DO $$
DECLARE
    tab regclass;
BEGIN
    FOR tab IN SELECT polrelid FROM pg_policy WHERE polname = 'iit_reader_sees_one_study' LOOP
        EXECUTE format('DROP POLICY iit_reader_sees_one_study ON %s', tab);
        EXECUTE format('ALTER TABLE %s DISABLE ROW LEVEL SECURITY', tab);
        IF to_regrole('iit_reader') IS NOT NULL THEN
            EXECUTE format('REVOKE SELECT ON %s FROM iit_reader', tab);
        END IF;
    END LOOP;
    IF to_regrole('iit_reader') IS NOT NULL THEN
        REVOKE USAGE ON SCHEMA iit_schema FROM iit_reader;
    END IF;
END $$;
DROP FUNCTION iit_schema.iit_grant_reader();
DROP FUNCTION iit_schema.iit_open_to_reader(regclass, text);
