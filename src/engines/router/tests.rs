//! The router's promises.
