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

/// Words right before a kind of check that leave it out.
const LEAVES_OUT: [&str; 6] = ["不", "别", "除", "勿", "免", "无需"];
/// How far before it they stand, in characters.
const REACH: usize = 6;

/// The skills that `text` names, by name, type or kind; all but those it leaves out; all of them when it names
/// none that the study has.
#[must_use]
pub fn asked_for<'a>(text: &str, skills: &'a [StoredSkill]) -> Vec<&'a StoredSkill> {
    let text = half_width(text).to_lowercase();
    let named = |skill: &StoredSkill, left_out: bool| {
        words_for(skill)
            .iter()
            .any(|word| places(&text, word).any(|at| is_left_out(&text, at) == left_out))
    };
    let wanted: Vec<&StoredSkill> = skills.iter().filter(|skill| named(skill, false)).collect();
    if !wanted.is_empty() {
        return wanted;
    }
    let others: Vec<&StoredSkill> = skills.iter().filter(|skill| !named(skill, true)).collect();
    if others.is_empty() {
        skills.iter().collect()
    } else {
        others
    }
}

/// The kind of check `text` asks for, as it says it, so that a question about the patient can keep it.
#[must_use]
pub fn kind_asked_for(text: &str) -> Option<&'static str> {
    let text = half_width(text).to_lowercase();
    TOPICS
        .iter()
        .flat_map(|(asked, _)| *asked)
        .copied()
        .find(|word| places(&text, word).any(|at| !is_left_out(&text, at)))
}

/// Everything people may call a skill by.
fn words_for(skill: &StoredSkill) -> Vec<String> {
    let own = format!("{} {}", skill.skill_type, skill.name).to_lowercase();
    let mut words = vec![skill.skill_type.to_lowercase(), skill.name.to_lowercase()];
    for (asked, called) in TOPICS {
        if called
            .iter()
            .any(|word| places(&own, word).next().is_some())
        {
            words.extend(asked.iter().map(|word| (*word).to_owned()));
        }
    }
    words
}

fn is_left_out(text: &str, at: usize) -> bool {
    let before = text.get(..at).unwrap_or_default();
    let from = before
        .char_indices()
        .rev()
        .nth(REACH - 1)
        .map_or(0, |(from, _)| from);
    let near = before.get(from..).unwrap_or_default();
    // A comma begins another thought.
    let near = near
        .rsplit([',', '，', '。', ';', '；'])
        .next()
        .unwrap_or_default();
    LEAVES_OUT.iter().any(|word| near.contains(word))
}

/// Where `text` holds `word`; one of ASCII letters only as a word of its own (`ae` is not in `data_entry` nor
/// in `aerobic`).
fn places<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let is_letter = |c: char| c.is_ascii_alphanumeric();
    text.match_indices(word)
        .filter(move |(at, found)| {
            let before = text.get(..*at).and_then(|head| head.chars().next_back());
            let after = text
                .get(at + found.len()..)
                .and_then(|tail| tail.chars().next());
            !word.is_ascii() || !(before.is_some_and(is_letter) || after.is_some_and(is_letter))
        })
        .map(|(at, _)| at)
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
        for (text, left_out) in [
            ("质控001但不要做入排", "eligibility"),
            ("质控002，除了入排", "eligibility"),
            ("质控 001，别查知情", "ethics"),
        ] {
            let found = asked_for(text, &skills);
            assert_eq!(found.len(), 4, "{text}");
            assert!(found.iter().all(|skill| skill.skill_type != left_out));
        }
        for text in ["质控 ID=001", "QC P001 aerobic", "检查 P001 的影像"] {
            assert_eq!(asked_for(text, &skills).len(), 5, "{text}");
        }
    }
}
