//! What is only proposed, and the yes to it: a check whose command may be misread, a check by skills that may
//! change data, and every wish to change data. The yes is a message of its own that says everything again,
//! so it means the same whenever it is sent.

use serde_json::Value;

use super::{parts::Part, records::Named, which_skills::asked_for};
use crate::{
    engines::router::{self, Choice, Clarification, Consent, Conversation, Intent, texts},
    store::skills::StoredSkill,
};

/// Tools by which a skill changes something.
const WRITES: [&str; 3] = ["manage_issue", "update_record", "write_clinical_data"];
/// How a skill that changes data at a person's wish is called.
const CHANGES: [&str; 4] = ["修改", "更正", "modify", "data_change"];

/// The question whether to start `part`, when it must not start without a yes.
#[must_use]
pub fn wanted(intent: &Intent, part: &Part, skills: &[StoredSkill]) -> Option<Clarification> {
    if intent.consent == Consent::Given {
        return None;
    }
    let (records, chosen): (&[String], Vec<&StoredSkill>) = match part {
        Part::Records(records, chosen) => (records, chosen.iter().collect()),
        Part::WholeProject(Some(only)) => {
            let chosen = skills.iter().filter(|skill| skill.skill_type == *only);
            (&[], chosen.collect())
        }
        Part::WholeProject(None) => (&[], skills.iter().collect()),
        _ => return None,
    };
    let writing = chosen.iter().filter(|skill| writes(skill));
    let writing: Vec<String> = writing.map(|skill| skill.name.clone()).collect();
    if writing.is_empty() && intent.consent == Consent::NotNeeded {
        return None;
    }
    let mut question = texts::start_check(records);
    if !writing.is_empty() {
        question.push_str(&texts::start_writing_check(&writing));
    }
    Some(yes_or_no(question, yes(records, &chosen, skills)))
}

/// A wish to change data: proposed, and with the yes led to the skill that does it, when the study has one.
#[must_use]
pub fn change(
    intent: &Intent,
    named: &Named,
    skills: &[StoredSkill],
) -> (Part, Option<Clarification>) {
    if intent.consent != Consent::Given {
        let question = wants_change(&intent.text);
        let part = Part::Say {
            text: question.question.clone(),
            chips: super::parts::chips_of(&question),
        };
        return (part, Some(question));
    }
    let mut changing = skills.iter().filter(|skill| is_for_changes(skill));
    let part = match (changing.next(), changing.next()) {
        (Some(only), None) if !named.found.is_empty() && named.unknown.is_empty() => {
            Part::Records(named.found.clone(), vec![only.clone()])
        }
        _ => Part::say(
            "修改数据须先生成修改建议、经有权限的人批准后才能写入；当前版本尚不能生成修改建议，未做任何改动。",
        ),
    };
    (part, None)
}

/// The question whether to start the change a person wishes for.
#[must_use]
pub fn wants_change(wish: &str) -> Clarification {
    yes_or_no(
        texts::write_goes_through_sop().to_owned(),
        router::confirmed_change(wish),
    )
}

fn yes_or_no(question: String, yes: String) -> Clarification {
    let choice = |label: &str, text: String| Choice {
        label: label.to_owned(),
        text,
    };
    Clarification {
        question,
        choices: vec![
            choice(texts::CONFIRM, yes),
            choice(texts::CANCEL, texts::CANCEL.to_owned()),
        ],
        resume: None,
    }
}

/// The message that says yes: it names the skills where it is read back as exactly these.
fn yes(records: &[String], chosen: &[&StoredSkill], skills: &[StoredSkill]) -> String {
    let names: Vec<&str> = chosen.iter().map(|skill| skill.name.as_str()).collect();
    let named = router::confirmed_check(records, Some(&names.join("、")));
    let read = router::keyword::route(&named, &Conversation::default()).intents;
    let same_skills = asked_for(&named, skills) == chosen;
    let same_records = matches!(read.as_slice(), [one] if one.consent == Consent::Given
        && one.entities.whole_project == records.is_empty()
        && one.entities.record_ids.len() == records.len()
        && one.entities.record_ids.iter().zip(records).all(|(a, b)| a.eq_ignore_ascii_case(b)));
    if chosen.len() < skills.len() && same_skills && same_records {
        named
    } else {
        router::confirmed_check(records, None)
    }
}

/// Whether a skill has a step that may change something.
fn writes(skill: &StoredSkill) -> bool {
    let nodes = skill.config.get("nodes").and_then(Value::as_object);
    nodes
        .into_iter()
        .flat_map(|nodes| nodes.values())
        .any(|node| {
            let tools = node.get("tools").and_then(Value::as_array);
            tools
                .into_iter()
                .flatten()
                .chain(node.get("tool"))
                .filter_map(Value::as_str)
                .any(|tool| WRITES.contains(&tool))
        })
}

fn is_for_changes(skill: &StoredSkill) -> bool {
    let called = format!("{} {}", skill.skill_type, skill.name).to_lowercase();
    writes(skill) && CHANGES.iter().any(|word| called.contains(word))
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::expect_used,
        reason = "a failed expectation is the test's verdict"
    )]
    use serde_json::json;

    use super::*;

    fn skill(skill_type: &str, name: &str, tool: Option<&str>) -> StoredSkill {
        let node = match tool {
            Some(tool) => json!({ "type": "tool", "tool": tool }),
            None => json!({ "type": "human_review", "message": "?" }),
        };
        StoredSkill {
            skill_type: skill_type.to_owned(),
            name: name.to_owned(),
            version: 1,
            config: json!({ "start_node": "a", "nodes": { "a": node } }),
        }
    }

    fn skills() -> Vec<StoredSkill> {
        vec![
            skill("eligibility", "入排标准核查", None),
            skill("ae", "不良事件核查", None),
            skill("modify", "数据修改流程", Some("update_record")),
        ]
    }

    fn intent(text: &str) -> Intent {
        router::keyword::route(text, &Conversation::default())
            .intents
            .remove(0)
    }

    fn of(text: &str, chosen: &[StoredSkill]) -> Option<Clarification> {
        let part = Part::Records(vec!["P001".to_owned()], chosen.to_vec());
        wanted(&intent(text), &part, &skills())
    }

    #[test]
    fn a_plain_check_that_changes_nothing_needs_no_yes() {
        assert_eq!(of("质控P001", &skills()[..2]), None);
    }

    #[test]
    fn a_check_by_a_skill_that_may_change_data_is_asked_about_until_the_yes() {
        let asked = of("质控P001", &skills()[2..]).unwrap();
        assert!(
            asked.question.contains("数据修改流程"),
            "{}",
            asked.question
        );
        let yes = &asked.choices[0].text;
        assert_eq!(of(yes, &skills()[2..]), None);
        let only = asked_for(yes, &skills())
            .into_iter()
            .cloned()
            .collect::<Vec<_>>();
        assert_eq!(only, skills()[2..]);
        assert_eq!(intent(yes).entities.record_ids, ["P001"]);
    }

    #[test]
    fn a_command_in_a_quotation_is_asked_about_and_the_yes_keeps_the_kind_of_check() {
        let asked = of("病历写着：质控P001的入排", &skills()[..1]).unwrap();
        assert_eq!(asked.choices[0].label, "确认启动");
        assert_eq!(asked.choices[0].text, "确认启动质控 P001 的入排标准核查");
        assert_eq!(asked.choices[1].text, "取消");
    }

    #[test]
    fn the_yes_to_a_change_leads_to_the_one_skill_for_changes_and_else_says_so() {
        let wish = "把P001的年龄改成45";
        let named = Named {
            found: vec!["P001".to_owned()],
            ..Named::default()
        };
        let (_, asked) = change(&intent(wish), &named, &skills());
        let yes = asked.unwrap().choices[0].text.clone();
        let (part, none) = change(&intent(&yes), &named, &skills());
        assert!(none.is_none());
        assert!(matches!(part, Part::Records(records, chosen)
            if records == ["P001"] && chosen[0].skill_type == "modify"));
        let (part, _) = change(&intent(&yes), &named, &skills()[..2]);
        assert!(matches!(part, Part::Say { text, .. } if text.contains("未做任何改动")));
    }
}
