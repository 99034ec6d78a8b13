//! The job queue: a Postgres backend for apalis. It knows no job by name.
