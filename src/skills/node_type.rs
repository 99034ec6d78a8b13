//! What each node type must and may hold.

/// A node type as written in skills.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeType {
    /// `hard_rule`
    HardRule,
    /// `soft_instruction`
    SoftInstruction,
    /// `human_review`
    HumanReview,
    /// `tool`
    Tool,
    /// `notify`
    Notify,
}

/// Node types in the order people read about them.
pub const NAMES: [&str; 5] = [
    "hard_rule",
    "soft_instruction",
    "human_review",
    "tool",
    "notify",
];

/// Keys of one rule; a V2.4 node holds them itself.
pub const RULE_KEYS: [&str; 8] = [
    "id",
    "field",
    "logic",
    "message",
    "severity",
    "function_name",
    "args",
    "description",
];

impl NodeType {
    /// The type of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "hard_rule" => Self::HardRule,
            "soft_instruction" => Self::SoftInstruction,
            "human_review" => Self::HumanReview,
            "tool" => Self::Tool,
            "notify" => Self::Notify,
            _ => return None,
        })
    }

    /// Branches that must be written, then those that may be.
    ///
    /// A branch the type never takes is not accepted: it would make a node look reachable.
    #[must_use]
    pub fn branches(self) -> (&'static [&'static str], &'static [&'static str]) {
        match self {
            Self::HardRule | Self::SoftInstruction => {
                (&["on_pass", "on_fail"], &["on_error", "on_not_evaluable"])
            }
            Self::HumanReview => (&["on_pass", "on_fail"], &["on_error"]),
            Self::Tool => (&["on_pass"], &["on_fail", "on_error", "on_not_evaluable"]),
            Self::Notify => (&["on_pass"], &["on_error"]),
        }
    }

    /// Every key a node of this type may have.
    #[must_use]
    pub fn keys(self) -> Vec<&'static str> {
        let own: &[&str] = match self {
            Self::HardRule => &["rules"],
            Self::SoftInstruction => &["instruction", "tools"],
            Self::HumanReview => &["message"],
            Self::Tool => &["tool", "args"],
            Self::Notify => &["message", "to"],
        };
        let rule: &[&str] = match self {
            Self::HardRule => &RULE_KEYS,
            _ => &[],
        };
        let (must, may) = self.branches();
        let mut keys = vec!["type", "description", "max_visits"];
        for group in [own, rule, must, may] {
            keys.extend(group);
        }
        keys
    }
}
