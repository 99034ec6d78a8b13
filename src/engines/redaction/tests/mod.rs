//! Redaction, tested.
