//! Connections that can't write: what tools read our own tables through. Not the promise of our code but
//! the database's: a role with SELECT alone.
