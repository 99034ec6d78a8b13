//! The one integration-test binary.
mod skills;
mod sop;
