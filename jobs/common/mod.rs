//! What several job kinds share. Not a job itself: each file is a step of the same use case.
//!
//! | file | thought |
//! |---|---|
//! | [`services`] | what a job works with |
//! | [`study`] | a study at hand: settings, data source, compiled skills |
//! | [`steps`] | what a step came to, written with the ledger in one settlement |
//! | [`reply`] | from finished work to the message that leaves |
//! | [`answer`] | the words of a QC answer |
//! | [`tokens`] | the WeCom token, kept in Postgres |

pub mod answer;
pub mod reply;
pub mod services;
pub mod steps;
pub mod study;
pub mod tokens;
