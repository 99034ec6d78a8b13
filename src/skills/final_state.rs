//! How a run can end, and what the end means to people.
//!
//! | final state | written in skills as | means | standing |
//! |---|---|---|---|
//! | `end_success` | `end_success` | every check on the way passed | 通过 |
//! | `end_with_violation` | `end_with_violation` | a rule is broken | 违规 |
//! | `end_with_error` | `end_with_error` | V2.4's end of a broken hard rule | 违规; 需人工复核 when nothing was found broken |
//! | `end_review_required` | `end_review_required`, `review_required` | a person has to look | 需人工复核 |
//! | `end_incomplete` | `end_incomplete` | a form was not opened yet | 数据未录入完 |
//! | any other `end…` | itself | the skill's own end | by what was found |
//!
//! A final state is a name somebody wrote into a graph; a run that found a violation and was routed on
//! to `end_success` has not passed. [`Standing::of`] therefore looks at what was found as well.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// How a run ended. The wire form is the normalised name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FinalState {
    /// `end_success`
    Success,
    /// `end_with_violation`
    WithViolation,
    /// `end_with_error`
    WithError,
    /// `end_review_required`
    ReviewRequired,
    /// `end_incomplete`
    Incomplete,
    /// The skill's own end; its name begins with `end`.
    Other(String),
}

/// Final states a skill can name without inventing one, `review_required` apart.
pub const KNOWN: [&str; 5] = [
    "end_success",
    "end_with_violation",
    "end_with_error",
    "end_review_required",
    "end_incomplete",
];

impl FinalState {
    /// The final state a branch's target names; `None` when it names a node.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "end_success" => Self::Success,
            "end_with_violation" => Self::WithViolation,
            "end_with_error" => Self::WithError,
            "end_review_required" | "review_required" => Self::ReviewRequired,
            "end_incomplete" => Self::Incomplete,
            other if other.starts_with("end") => Self::Other(other.to_owned()),
            _ => return None,
        })
    }

    /// The normalised name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Success => "end_success",
            Self::WithViolation => "end_with_violation",
            Self::WithError => "end_with_error",
            Self::ReviewRequired => "end_review_required",
            Self::Incomplete => "end_incomplete",
            Self::Other(name) => name,
        }
    }
}

impl fmt::Display for FinalState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for FinalState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for FinalState {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::parse(&name)
            .ok_or_else(|| serde::de::Error::custom(format!("`{name}` is no final state")))
    }
}

/// What a run's end means to people, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Everything that had to hold was decided and holds.
    Clean,
    /// Some data has not been entered yet; nothing is wrong so far.
    Incomplete,
    /// Something could not be decided, or the skill wants a person to look.
    Review,
    /// Something is broken.
    Violation,
}

impl Standing {
    /// What a run that ended in `end` amounts to, given whether something was found broken (`failed`)
    /// or could not be decided (`undecided`) on the way and was not dismissed by a person.
    ///
    /// Never [`Standing::Clean`] when either is true, whatever the end is called.
    #[must_use]
    pub fn of(end: &FinalState, failed: bool, undecided: bool) -> Self {
        match end {
            FinalState::ReviewRequired => Self::Review,
            FinalState::WithViolation if undecided && !failed => Self::Review,
            FinalState::WithViolation => Self::Violation,
            FinalState::WithError if !failed => Self::Review,
            _ if failed => Self::Violation,
            _ if undecided => Self::Review,
            FinalState::Incomplete => Self::Incomplete,
            _ => Self::Clean,
        }
    }

    /// The word people read.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Clean => "通过",
            Self::Incomplete => "数据未录入完",
            Self::Review => "需人工复核",
            Self::Violation => "违规",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{FinalState, KNOWN, Standing};

    #[test]
    fn both_shapes_names_are_normalised_and_nodes_are_not_taken_for_ends() {
        for name in KNOWN {
            assert_eq!(
                FinalState::parse(name).map(|s| s.to_string()),
                Some(name.to_owned())
            );
        }
        assert_eq!(
            FinalState::parse("review_required"),
            Some(FinalState::ReviewRequired)
        );
        assert_eq!(
            FinalState::parse("end"),
            Some(FinalState::Other("end".to_owned()))
        );
        assert_eq!(FinalState::parse("check_end"), None);
        assert_eq!(FinalState::parse("review_required_2"), None);
    }

    #[test]
    fn no_end_is_clean_once_something_failed_or_stayed_undecided() {
        for name in KNOWN.into_iter().chain(["end", "end_screened"]) {
            let Some(end) = FinalState::parse(name) else {
                unreachable!("{name} is a final state")
            };
            for (failed, undecided) in [(true, false), (false, true), (true, true)] {
                assert!(
                    Standing::of(&end, failed, undecided) > Standing::Incomplete,
                    "{name}"
                );
            }
        }
    }

    #[test]
    fn only_a_found_violation_is_called_one_when_data_was_missing() {
        let end = FinalState::WithViolation;
        assert_eq!(Standing::of(&end, true, true).label(), "违规");
        assert_eq!(Standing::of(&end, false, true).label(), "需人工复核");
        assert_eq!(
            Standing::of(&FinalState::Success, false, false).label(),
            "通过"
        );
        assert_eq!(
            Standing::of(&FinalState::Incomplete, false, false).label(),
            "数据未录入完"
        );
        assert_eq!(
            Standing::of(&FinalState::WithError, true, false).label(),
            "违规"
        );
        assert_eq!(
            Standing::of(&FinalState::WithError, false, false).label(),
            "需人工复核"
        );
    }
}
