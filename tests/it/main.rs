//! The one integration-test binary.
mod demo_study;
mod edc;
mod rules;
