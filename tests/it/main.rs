//! The one integration-test binary.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed expectation is the test's verdict"
)]

mod api;
mod architecture;
mod cards;
mod chaos_parts;
mod cli;
mod commands;
mod cron;
mod database;
mod demo_run;
mod demo_study;
mod edc;
mod ledger;
mod llm;
mod outbox;
mod postgres;
mod postgres_choice;
mod privacy;
mod protocol;
mod queue;
mod react;
mod readme;
mod router;
mod routing;
mod rules;
mod scenarios;
mod skills;
mod soft;
mod sop;
mod support;
mod test_databases;
mod tools;
mod verdicts;
mod wecom;
