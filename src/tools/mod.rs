//! What the two brains may use, one tool a file. The model names a tool and writes arguments; what it
//! may see and do is decided here and by the run, never by the model.
//!
//! | file | thought |
//! |---|---|
//! | [`tool`] | what a tool is: name, effect, arguments, observation |
//! | [`registry`] | all tools by name, and who may use which |
//! | [`scope`] | what one run may see |
//! | [`snapshot`] | the study's data at one moment, kept until it changes |

pub mod registry;
pub mod scope;
pub mod snapshot;
pub mod tool;

pub use registry::Registry;
pub use scope::Scope;
pub use snapshot::{Snapshot, Snapshots};
pub use tool::{Effect, Observation, Proposal, Tool, ToolError};
