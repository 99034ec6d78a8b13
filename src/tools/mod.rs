//! What the two brains may use, one tool a file. The model names a tool and writes arguments; what it
//! may see and do is decided here and by the run, never by the model.
//!
//! | file | thought |
//! |---|---|
//! | [`tool`] | what a tool is: name, effect, arguments, observation |
//! | [`registry`] | all tools by name, and who may use which |
//! | [`scope`] | what one run may see |
//! | [`snapshot`] | the study's data at one moment, kept until it changes |
//! | [`fields`], [`filter`], [`records`] | from what people write to fields, conditions and records |
//! | [`lenient`], [`bounded`], [`show`], [`tally`] | arguments as models write them; results they can use |
//!
//! Every other file is the tool of its name.

pub mod aggregate;
pub mod assess_ae_causality;
pub mod bounded;
pub mod check_ethics_compliance;
pub mod check_visit_window;
pub mod fields;
pub mod filter;
pub mod get_project_stats;
pub mod lenient;
pub mod manage_issue;
pub mod read_clinical_data;
pub mod records;
pub mod registry;
pub mod scope;
pub mod search_protocol;
pub mod search_records;
pub mod send_notification;
pub mod show;
pub mod snapshot;
pub mod tally;
pub mod tool;
pub mod update_record;

pub use registry::Registry;
pub use scope::Scope;
pub use snapshot::{Snapshot, Snapshots};
pub use tool::{Effect, Judgement, Observation, Proposal, Tool, ToolError};
