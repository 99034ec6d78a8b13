-- What a run's placeholders stand for. The model is shown the placeholder and never the value.

CREATE TABLE iit_schema.iit_placeholders (
    run_id       UUID NOT NULL REFERENCES iit_schema.iit_task_run (id) ON DELETE CASCADE,
    placeholder  TEXT NOT NULL,
    kind         TEXT NOT NULL,
    value        TEXT NOT NULL,
    created_at   TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (run_id, placeholder)
);
-- Of the digest, since a value may be longer than an index takes.
CREATE UNIQUE INDEX iit_placeholders_one_a_value ON iit_schema.iit_placeholders (run_id, md5(value));
COMMENT ON TABLE iit_schema.iit_placeholders IS 'Personal data. Committed before the request that uses it leaves; kept as long as its run and its transcript, which holds the same values. Never opened to the role of the read tools.';
REVOKE ALL ON iit_schema.iit_placeholders FROM PUBLIC;
