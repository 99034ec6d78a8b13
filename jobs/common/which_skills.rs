//! Which skills a message asks for: “做入排质控” means the eligibility skill, not everything.

use crate::{store::skills::StoredSkill, types::text::half_width};

/// Words people use for a kind of check, and the words by which skills of that kind are called.
const TOPICS: [(&[&str], &[&str]); 4] = [
    (
        &["入排", "纳排", "入选标准", "排除标准", "eligibility"],
        &["入排", "纳排", "入选", "eligibility", "inclusion"],
    ),
    (
        &["访视窗", "超窗", "窗口期", "visit window"],
        &["访视窗", "visit_window", "visit"],
    ),
    (
        &["伦理", "知情", "icf", "consent"],
        &["伦理", "知情", "ethics", "consent"],
    ),
    (&["不良事件", "ae", "sae"], &["不良事件", "ae", "adverse"]),
];

/// The skills that `text` names, by name, type or kind; all of them when it names none that the study
/// has.
#[must_use]
pub fn asked_for<'a>(text: &str, skills: &'a [StoredSkill]) -> Vec<&'a StoredSkill> {
    let text = half_width(text).to_lowercase();
    let named: Vec<&StoredSkill> = skills
        .iter()
        .filter(|skill| {
            let own = format!("{} {}", skill.skill_type, skill.name).to_lowercase();
            mentions(&text, &skill.skill_type.to_lowercase())
                || text.contains(&skill.name.to_lowercase())
                || TOPICS.iter().any(|(asked, called)| {
                    asked.iter().any(|word| mentions(&text, word))
                        && called.iter().any(|word| mentions(&own, word))
                })
        })
        .collect();
    if named.is_empty() {
        skills.iter().collect()
    } else {
        named
    }
}

/// Whether `text` holds `word`; one of ASCII letters only as a word of its own (`ae` is not in `data_entry`
/// nor in `aerobic`).
fn mentions(text: &str, word: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric();
    text.match_indices(word).any(|(at, found)| {
        let ascii = word.is_ascii();
        let before = text.get(..at).and_then(|head| head.chars().next_back());
        let after = text
            .get(at + found.len()..)
            .and_then(|tail| tail.chars().next());
        !ascii || !(before.is_some_and(is_letter) || after.is_some_and(is_letter))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skills() -> Vec<StoredSkill> {
        [
            ("eligibility", "入排标准核查"),
            ("visit_window", "访视窗核查"),
            ("ethics", "伦理合规核查"),
            ("ae_dates", "不良事件与日期一致性核查"),
            ("data_entry", "录入核查"),
        ]
        .map(|(skill_type, name)| StoredSkill {
            skill_type: skill_type.to_owned(),
            name: name.to_owned(),
            version: 1,
            config: serde_json::Value::Null,
        })
        .to_vec()
    }

    #[test]
    fn a_kind_of_check_means_its_skills_and_none_means_all() {
        let skills = skills();
        for (text, wanted) in [
            ("对 P001 做入排质控", vec!["eligibility"]),
            ("质控 P001 的AE", vec!["ae_dates"]),
            ("检查P001访视窗和知情", vec!["visit_window", "ethics"]),
            ("用 ethics 质控 P001", vec!["ethics"]),
            ("跑一遍录入核查 P001", vec!["data_entry"]),
        ] {
            let found: Vec<&str> = asked_for(text, &skills)
                .iter()
                .map(|skill| skill.skill_type.as_str())
                .collect();
            assert_eq!(found, wanted, "{text}");
        }
        for text in ["质控 ID=001", "QC P001 aerobic", "检查 P001 的影像"] {
            assert_eq!(asked_for(text, &skills).len(), 5, "{text}");
        }
    }
}
