-- When skills run by themselves, and what became of each time they were due.

CREATE TABLE iit_schema.iit_schedules (
    id                BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    project_id        TEXT NOT NULL REFERENCES iit_schema.iit_projects (id) ON DELETE CASCADE,
    skill_type        TEXT NOT NULL,
    cron              TEXT NOT NULL,
    timezone          TEXT NOT NULL,
    catchup           TEXT NOT NULL CONSTRAINT schedule_catchup_is_known CHECK (catchup IN ('none', 'last', 'all')),
    catchup_window_s  INT NOT NULL CONSTRAINT schedule_window_is_positive CHECK (catchup_window_s > 0),
    enabled           BOOLEAN NOT NULL,
    disabled_by       TEXT CONSTRAINT schedule_reason_is_known
                      CHECK (disabled_by IN ('inactive', 'unscheduled', 'report', 'unreadable')),
    next_fire_at      TIMESTAMPTZ,
    last_fire_at      TIMESTAMPTZ,
    missed            BIGINT NOT NULL DEFAULT 0,
    created_at        TIMESTAMPTZ NOT NULL DEFAULT now(),
    updated_at        TIMESTAMPTZ NOT NULL DEFAULT now(),
    CONSTRAINT iit_schedules_skill_once UNIQUE (project_id, skill_type),
    CONSTRAINT schedule_due_while_enabled CHECK (enabled = (next_fire_at IS NOT NULL)),
    CONSTRAINT schedule_says_why_disabled CHECK (enabled = (disabled_by IS NULL))
);
COMMENT ON TABLE iit_schema.iit_schedules IS 'One row a scheduled skill; follows the skill and the time zone of its project.';
COMMENT ON COLUMN iit_schema.iit_schedules.cron IS 'Five fields, on the clocks of timezone; Monday = 1, Sunday = 0 or 7.';
COMMENT ON COLUMN iit_schema.iit_schedules.missed IS 'Times that came and were neither fired nor caught up with, ever; firings are kept for a year.';
CREATE INDEX iit_schedules_due ON iit_schema.iit_schedules (next_fire_at) WHERE enabled;

CREATE TABLE iit_schema.iit_firings (
    id           BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    schedule_id  BIGINT NOT NULL REFERENCES iit_schema.iit_schedules (id) ON DELETE CASCADE,
    fire_time    TIMESTAMPTZ NOT NULL,
    state        TEXT NOT NULL CONSTRAINT firing_state_is_known
                 CHECK (state IN ('queued', 'started', 'skipped', 'missed', 'cancelled', 'failed')),
    late         BOOLEAN NOT NULL DEFAULT false,
    job_id       BIGINT,
    batch_id     UUID REFERENCES iit_schema.iit_batches (id) ON DELETE SET NULL,
    note         TEXT,
    created_at   TIMESTAMPTZ NOT NULL DEFAULT now(),
    updated_at   TIMESTAMPTZ NOT NULL DEFAULT now(),
    -- The guarantee: however many schedulers, whatever their clocks, a time fires once.
    CONSTRAINT iit_firings_once UNIQUE (schedule_id, fire_time)
);
COMMENT ON COLUMN iit_schema.iit_firings.late IS 'Caught up with after the time had passed.';
COMMENT ON COLUMN iit_schema.iit_firings.batch_id IS 'The QC it started; how that went stands there.';
CREATE INDEX iit_firings_batch ON iit_schema.iit_firings (batch_id) WHERE batch_id IS NOT NULL;

-- A skill that is switched off, taken away, or loses its schedule does not run again, whoever does it.
-- What a new schedule comes to is for the program to compute: it looks for skills nobody follows.
CREATE FUNCTION iit_schema.iit_skills_stop_schedule() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    reason TEXT;
BEGIN
    IF TG_OP = 'DELETE' THEN
        reason := 'inactive';
    ELSIF NOT NEW.is_active THEN
        reason := 'inactive';
    ELSIF NEW.schedule IS NULL THEN
        reason := 'unscheduled';
    ELSE
        RETURN NULL;
    END IF;
    UPDATE iit_schema.iit_schedules
    SET enabled = false, disabled_by = reason, next_fire_at = NULL, updated_at = now()
    WHERE project_id = OLD.project_id AND skill_type = OLD.skill_type AND disabled_by IS DISTINCT FROM reason;
    RETURN NULL;
END $$;
CREATE TRIGGER iit_skills_stop_schedule AFTER UPDATE OR DELETE ON iit_schema.iit_skills
    FOR EACH ROW EXECUTE FUNCTION iit_schema.iit_skills_stop_schedule();
