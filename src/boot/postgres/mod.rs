//! The private Postgres of this user.
