-- What a run says to a language model and what it is answered: the transcript, the journal of calls, the
-- money they may cost, and whether the provider can be asked at all.

CREATE TABLE iit_schema.iit_agent_trace (
    run_id      UUID NOT NULL REFERENCES iit_schema.iit_task_run (id),
    seq         INT NOT NULL,
    thread      TEXT NOT NULL,
    step_no     INT NOT NULL,
    kind        TEXT NOT NULL CONSTRAINT trace_kind_is_known
                CHECK (kind IN ('system', 'instruction', 'data', 'reply', 'correction')),
    content     TEXT NOT NULL,
    created_at  TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (run_id, seq)
);
COMMENT ON TABLE iit_schema.iit_agent_trace IS 'Append only: what was said in a run, in order. A request is made of the rows of one thread, so it is the same after a crash.';
COMMENT ON COLUMN iit_schema.iit_agent_trace.thread IS 'One visit of one node; what earlier threads said is not sent again.';
CREATE TRIGGER iit_agent_trace_append_only BEFORE UPDATE OR DELETE ON iit_schema.iit_agent_trace
    FOR EACH ROW EXECUTE FUNCTION iit_schema.iit_refuse_change();
CREATE TRIGGER iit_agent_trace_no_truncate BEFORE TRUNCATE ON iit_schema.iit_agent_trace
    FOR EACH STATEMENT EXECUTE FUNCTION iit_schema.iit_refuse_change();

CREATE TABLE iit_schema.iit_llm_calls (
    id                 BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    project_id         TEXT NOT NULL REFERENCES iit_schema.iit_projects (id) ON DELETE CASCADE,
    run_id             UUID NOT NULL REFERENCES iit_schema.iit_task_run (id),
    step_no            INT NOT NULL,
    ask                INT NOT NULL CONSTRAINT llm_call_ask_counts_from_one CHECK (ask > 0),
    request_hash       TEXT NOT NULL,
    prompt_version     TEXT NOT NULL,
    provider           TEXT NOT NULL,
    model              TEXT NOT NULL,
    state              TEXT NOT NULL DEFAULT 'asked' CONSTRAINT llm_call_state_is_known
                       CHECK (state IN ('asked', 'answered', 'failed')),
    maybe_billed       BOOLEAN NOT NULL DEFAULT false,
    refused            BOOLEAN NOT NULL DEFAULT false,
    reply              TEXT,
    error              TEXT,
    prompt_tokens      INT,
    completion_tokens  INT,
    day                DATE NOT NULL DEFAULT CURRENT_DATE,
    reserved_tokens    BIGINT NOT NULL,
    reserved_cost      BIGINT NOT NULL,
    reserved           BOOLEAN NOT NULL DEFAULT false,
    cost               BIGINT,
    settled            BOOLEAN NOT NULL DEFAULT false,
    job_id             BIGINT NOT NULL,
    attempt            INT NOT NULL,
    asked_at           TIMESTAMPTZ NOT NULL DEFAULT now(),
    ended_at           TIMESTAMPTZ,
    CONSTRAINT llm_call_ended_when_not_asked CHECK ((state = 'asked') = (ended_at IS NULL)),
    CONSTRAINT llm_call_reply_when_answered CHECK ((state = 'answered') = (reply IS NOT NULL)),
    CONSTRAINT iit_llm_calls_once UNIQUE (run_id, step_no, ask)
) WITH (fillfactor = 80);
COMMENT ON TABLE iit_schema.iit_llm_calls IS 'One row a request. It is committed before the request leaves; the reply is committed, as it came, before anything uses it.';
COMMENT ON COLUMN iit_schema.iit_llm_calls.maybe_billed IS 'Asked, and no answer came: the provider may have charged for it.';
COMMENT ON COLUMN iit_schema.iit_llm_calls.refused IS 'The server took offence at the request itself.';
COMMENT ON COLUMN iit_schema.iit_llm_calls.reserved_cost IS 'In millionths of a yuan, as cost.';
COMMENT ON COLUMN iit_schema.iit_llm_calls.day IS 'The budget day (UTC) it counts for.';
CREATE INDEX iit_llm_calls_open ON iit_schema.iit_llm_calls (asked_at) WHERE NOT settled;
CREATE INDEX iit_llm_calls_by_day ON iit_schema.iit_llm_calls (day, project_id);

CREATE TABLE iit_schema.iit_llm_spend (
    scope            TEXT NOT NULL CONSTRAINT llm_spend_scope_is_known CHECK (scope IN ('project', 'all')),
    owner            TEXT NOT NULL,
    day              DATE NOT NULL,
    calls            BIGINT NOT NULL DEFAULT 0,
    reserved_tokens  BIGINT NOT NULL DEFAULT 0,
    reserved_cost    BIGINT NOT NULL DEFAULT 0,
    tokens           BIGINT NOT NULL DEFAULT 0,
    cost             BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (scope, owner, day),
    CONSTRAINT llm_spend_is_not_negative
        CHECK (reserved_tokens >= 0 AND reserved_cost >= 0 AND tokens >= 0 AND cost >= 0)
) WITH (fillfactor = 50);
COMMENT ON TABLE iit_schema.iit_llm_spend IS 'What is spent and reserved on one day (UTC), by project and in all; owner is the project, or empty.';

CREATE TABLE iit_schema.iit_llm_providers (
    provider     TEXT PRIMARY KEY,
    state        TEXT NOT NULL DEFAULT 'closed' CONSTRAINT llm_provider_state_is_known
                 CHECK (state IN ('closed', 'open', 'half_open')),
    failures     INT NOT NULL DEFAULT 0,
    reason       TEXT,
    wants_person BOOLEAN NOT NULL DEFAULT false,
    opened_at    TIMESTAMPTZ,
    open_until   TIMESTAMPTZ,
    openings     INT NOT NULL DEFAULT 0,
    CONSTRAINT llm_provider_open_until_when_not_closed CHECK ((state = 'closed') = (open_until IS NULL))
);
COMMENT ON TABLE iit_schema.iit_llm_providers IS 'The breaker all workers share. open: nobody asks before open_until; half_open: one probe is under way until then.';
COMMENT ON COLUMN iit_schema.iit_llm_providers.wants_person IS 'It opened for something only a person mends: an unpaid bill, a wrong key.';
