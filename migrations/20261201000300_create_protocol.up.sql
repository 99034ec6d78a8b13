-- What studies have written down: protocol, manuals, consent forms. Cut into passages, and searched without
-- any extension: Chinese as pairs of neighbouring characters, so that a phrase of pairs is an exact substring.

CREATE TABLE iit_schema.iit_protocol_documents (
    id          BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    project_id  TEXT NOT NULL REFERENCES iit_schema.iit_projects (id) ON DELETE CASCADE,
    name        TEXT NOT NULL CONSTRAINT protocol_name_is_there CHECK (name <> ''),
    version     INT NOT NULL CONSTRAINT protocol_version_counts CHECK (version > 0),
    label       TEXT,
    media       TEXT NOT NULL CONSTRAINT protocol_media_is_known CHECK (media IN ('markdown', 'text', 'pdf', 'docx')),
    file_name   TEXT NOT NULL,
    sha256      TEXT NOT NULL,
    bytes       BIGINT NOT NULL,
    pages       INT,
    passages    INT NOT NULL,
    current     BOOLEAN NOT NULL DEFAULT true,
    added_by    TEXT NOT NULL,
    created_at  TIMESTAMPTZ NOT NULL DEFAULT now(),
    ended_at    TIMESTAMPTZ,
    CONSTRAINT iit_protocol_documents_version_once UNIQUE (project_id, name, version),
    CONSTRAINT protocol_ends_when_replaced CHECK (current = (ended_at IS NULL))
);
COMMENT ON TABLE iit_schema.iit_protocol_documents IS 'One row a version of a document; earlier ones are kept and not searched.';
COMMENT ON COLUMN iit_schema.iit_protocol_documents.version IS 'Counted here, from 1.';
COMMENT ON COLUMN iit_schema.iit_protocol_documents.label IS 'The version as the document itself calls it: V2.0.';
CREATE UNIQUE INDEX iit_protocol_documents_current ON iit_schema.iit_protocol_documents (project_id, name) WHERE current;

-- Full-width as half-width, compatibility forms as their plain ones, ASCII letters in lower case: the same on
-- every server, whatever its locale.
CREATE FUNCTION iit_schema.iit_fold(said TEXT) RETURNS TEXT
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN lower(normalize(said, NFKC) COLLATE "C");

-- What a text is compared by, in order: each Chinese character with its right neighbour (the last of a run
-- alone), each run of letters, each run of digits, and the signs that change a figure's meaning. Whatever else
-- there is, spaces and punctuation, separates and counts for nothing; white space between two Chinese characters
-- does not even separate.
CREATE FUNCTION iit_schema.iit_protocol_tokens(said TEXT) RETURNS TABLE (at BIGINT, token TEXT, lone BOOLEAN)
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    SELECT row_number() OVER (ORDER BY runs.no, steps.i), substr(runs.run[1], steps.i, steps.width), steps.lone
    FROM regexp_matches(
            regexp_replace(iit_schema.iit_fold(said), '([\u3005\u3007\u3400-\u9fff\uf900-\ufaff\U00020000-\U000323af])\s+(?=[\u3005\u3007\u3400-\u9fff\uf900-\ufaff\U00020000-\U000323af])', '\1', 'g'),
            '[\u3005\u3007\u3400-\u9fff\uf900-\ufaff\U00020000-\U000323af]+|[a-z\u00df-\u00f6\u00f8-\u024f\u0370-\u03ff]+|[0-9]+|[±≥≤<>=%‰~]',
            'g') WITH ORDINALITY AS runs (run, no)
    CROSS JOIN LATERAL (
        SELECT i, 2 AS width, i = length(runs.run[1]) AS lone
        FROM generate_series(1, length(runs.run[1])) AS i
        WHERE runs.run[1] ~ '^[\u3005\u3007\u3400-\u9fff\uf900-\ufaff\U00020000-\U000323af]'
        UNION ALL
        SELECT 1, length(runs.run[1]), false
        WHERE runs.run[1] !~ '^[\u3005\u3007\u3400-\u9fff\uf900-\ufaff\U00020000-\U000323af]'
    ) AS steps;
END;

-- A passage as it is searched: its section with weight A, far enough before its text that no phrase reaches
-- over. Positions end at 16383, which is why text is put at 4001.
CREATE FUNCTION iit_schema.iit_protocol_vector(section TEXT, content TEXT) RETURNS TSVECTOR
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    SELECT coalesce(string_agg('''' || token || ''':' || least(place, 16383) || weight, ' '), '')::tsvector
    FROM (
        SELECT token, least(at, 3900) AS place, 'A' AS weight FROM iit_schema.iit_protocol_tokens(section)
        UNION ALL
        SELECT token, at + 4000, 'D' FROM iit_schema.iit_protocol_tokens(content)
    ) AS placed;
END;

-- What finds exactly this text: its tokens in a row. What follows the last character of a Chinese run is not
-- known, so that one is asked for as a beginning.
CREATE FUNCTION iit_schema.iit_protocol_phrase(said TEXT) RETURNS TSQUERY
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    SELECT coalesce(string_agg('''' || token || '''' || CASE WHEN lone THEN ':*' ELSE '' END, ' <-> ' ORDER BY at), '')::tsquery
    FROM iit_schema.iit_protocol_tokens(said);
END;

CREATE TABLE iit_schema.iit_protocol_passages (
    project_id   TEXT NOT NULL,
    document_id  BIGINT NOT NULL REFERENCES iit_schema.iit_protocol_documents (id) ON DELETE CASCADE,
    no           INT NOT NULL,
    number       TEXT,
    section      TEXT NOT NULL,
    page         INT,
    content      TEXT NOT NULL,
    terms        TSVECTOR NOT NULL GENERATED ALWAYS AS (iit_schema.iit_protocol_vector(section, content)) STORED,
    PRIMARY KEY (document_id, no)
);
COMMENT ON COLUMN iit_schema.iit_protocol_passages.project_id IS 'As the document says; here for the reader, who sees one study.';
COMMENT ON COLUMN iit_schema.iit_protocol_passages.number IS 'Of the section, as an answer cites it: 5.2.';
COMMENT ON COLUMN iit_schema.iit_protocol_passages.section IS 'Headings from the outermost, as written.';
CREATE INDEX iit_protocol_passages_terms ON iit_schema.iit_protocol_passages USING gin (terms);

SELECT iit_schema.iit_open_to_reader('iit_schema.iit_protocol_documents');
SELECT iit_schema.iit_open_to_reader('iit_schema.iit_protocol_passages');
SELECT iit_schema.iit_grant_reader();
