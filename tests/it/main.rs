//! The one integration-test binary.

mod router;
