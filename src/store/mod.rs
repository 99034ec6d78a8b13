//! The only domain SQL: one file per aggregate, functions over `&mut PgConnection`.
//!
//! Transactions are opened by the use case (jobs, entry handlers, commands), never here.

pub mod audit;
pub mod batches;
pub mod cards;
pub mod chat_runs;
pub mod conversations;
pub mod db;
pub mod idempotency;
pub mod inbox;
pub mod judgements;
pub mod ledger;
pub mod llm;
pub mod outbox;
pub mod outbox_parts;
pub mod placeholders;
pub mod progress;
pub mod project_stats;
pub mod projects;
pub mod protocol;
pub mod reader;
pub mod replies;
pub mod results;
pub mod run_view;
pub mod runs;
pub mod schedules;
pub mod skills;
pub mod trace;
pub mod unmapped_names;
pub mod wecom_gate;
pub mod wecom_sends;
pub mod wecom_tokens;
