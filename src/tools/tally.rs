//! Who was left out of an answer, and why: said beside every count.

use crate::engines::rules::Verdict;

/// Most ids that are named.
const MOST_NAMED: usize = 5;

/// Subjects a condition could not be decided for.
#[derive(Debug, Default)]
pub struct Undecided {
    unknown: usize,
    not_opened: usize,
    hidden: usize,
    some: Vec<String>,
}

impl Undecided {
    /// Counts a subject the condition does not hold for, if that is because it can't be decided.
    pub fn count(&mut self, verdict: Verdict, record: &str) {
        match verdict {
            Verdict::Holds | Verdict::Fails => return,
            Verdict::Unknown => self.unknown += 1,
            Verdict::NotOpened => self.not_opened += 1,
            Verdict::Hidden => self.hidden += 1,
        }
        if self.some.len() < MOST_NAMED && verdict == Verdict::Unknown {
            self.some.push(record.to_owned());
        }
    }

    /// How many.
    #[must_use]
    pub fn total(&self) -> usize {
        self.unknown + self.not_opened + self.hidden
    }

    /// What the model is told; nothing when there are none.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        if self.total() == 0 {
            return None;
        }
        let mut parts = Vec::new();
        for (count, why) in [
            (self.unknown, "相关字段空白、无效或日期不完整"),
            (self.not_opened, "相关表单尚未填写"),
            (self.hidden, "相关字段不适用"),
        ] {
            if count > 0 {
                parts.push(format!("{count} 例{why}"));
            }
        }
        let some = match self.some.is_empty() {
            true => String::new(),
            false => format!("（如 {}）", self.some.join("、")),
        };
        Some(format!(
            "另有 {} 例无法判定是否符合条件，未计入：{}{some}；回答时请说明",
            self.total(),
            parts.join("，"),
        ))
    }
}
