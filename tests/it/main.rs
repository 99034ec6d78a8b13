//! The one integration-test binary.

mod support;
mod wecom;
