//! The one integration-test binary.
mod edc;
