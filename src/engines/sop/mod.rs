//! The SOP state machine.
