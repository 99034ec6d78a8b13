//! The SOP state machine: what a step found, and where the run goes next.
//!
//! ```text
//! Skill ──compile──▶ CompiledSkill ──begin──▶ Walk ──check │ decide │ notify │ unavailable──▶ NodeOutcome
//!                                              ▲                                                 │
//!                                              └───────────── stored with the run ◀──────────────┘
//! ```
//!
//! Pure: a job loads a [`Walk`] with its run, takes one step, and stores the [`Walk`] and the
//! [`NodeOutcome`] in one transaction. A step that is computed twice (the process died in between) starts
//! from the same stored [`Walk`], so it counts once.
//!
//! | a hard node's rules | branch |
//! |---|---|
//! | any broken | `on_fail`; what could not be decided is recorded as well |
//! | else any not decidable | `on_not_evaluable` |
//! | else any on a form nobody opened yet | the run ends `end_incomplete`, without a finding |
//! | else | `on_pass`; rules hidden by branching logic don't count |

mod compile;
mod notice;
mod outcome;
mod step;
mod walk;

#[cfg(test)]
mod random_walks;
#[cfg(test)]
mod tests;

pub use compile::CompiledSkill;
pub use notice::Notice;
pub use outcome::{Next, NodeOutcome, NodeResult};
pub use step::{Decision, Found, NO_MODEL, StepError};
pub use walk::Walk;

pub use crate::skills::{FinalState, Standing};
