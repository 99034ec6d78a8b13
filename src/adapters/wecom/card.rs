//! Choices as buttons: a `template_card` of type `button_interaction`, and what its clicks name.
//!
//! Source: developer.work.weixin.qq.com, 发送应用消息, 按钮交互型 (path 90236): at most six buttons, ten
//! characters on each, twenty-six in a row of the list, 112 in the text; a task id of 128 bytes of
//! `[0-9A-Za-z_-@]` that the app uses once. What is longer is cut on the screen without an error, and two
//! ids cut to the same would look alike, so nothing longer is ever put on a card.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::types::ids::OutboxId;

/// Most buttons a card has.
pub const MAX_BUTTONS: usize = 6;
/// Characters on a button.
const MAX_BUTTON_CHARS: usize = 10;
/// Characters in a row that says what a numbered button stands for.
const MAX_ROW_CHARS: usize = 26;
/// Characters of the text under the title.
const MAX_TEXT_CHARS: usize = 112;

const TASK: &str = "chips-";
const KEY: &str = "chip-";

/// The card of an outbound message that asks `question` with these choices; `None` when they don't fit
/// on one, and the text with its numbers has to do.
///
/// Buttons say the labels, or, when one is too long or two are alike, the numbers they have in the text,
/// with a list of what each stands for.
#[must_use]
pub fn choices(message: OutboxId, question: &str, labels: &[&str]) -> Option<Value> {
    let shown = buttons(labels)?;
    let mut card = json!({
        "card_type": "button_interaction",
        "main_title": { "title": "请点选，或回复数字" },
        "sub_title_text": match question.trim() {
            whole if !whole.is_empty() && whole.chars().count() <= MAX_TEXT_CHARS => whole,
            _ => "请就上一条消息中的问题作答",
        },
        "task_id": task_id(message),
        "button_list": shown
            .iter()
            .enumerate()
            .map(|(no, text)| json!({ "text": text, "key": key(no) }))
            .collect::<Vec<_>>(),
    });
    if shown.iter().zip(labels).any(|(text, label)| text != label) {
        card["horizontal_content_list"] = shown
            .iter()
            .zip(labels)
            .map(|(text, label)| json!({ "keyname": text, "value": label }))
            .collect();
    }
    Some(card)
}

/// What the buttons of these choices say; `None` when the choices don't fit on a card.
#[must_use]
pub fn buttons(labels: &[&str]) -> Option<Vec<String>> {
    let fits = |max: usize| {
        labels.iter().all(|label| {
            (1..=max).contains(&label.chars().count())
                && !label.trim().is_empty()
                && !label.chars().any(char::is_control)
        })
    };
    if labels.is_empty() || labels.len() > MAX_BUTTONS || !fits(MAX_ROW_CHARS) {
        return None;
    }
    let all_differ = labels.iter().collect::<HashSet<_>>().len() == labels.len();
    Some(if all_differ && fits(MAX_BUTTON_CHARS) {
        labels.iter().map(|label| (*label).to_owned()).collect()
    } else {
        (1..=labels.len()).map(|no| format!("选项 {no}")).collect()
    })
}

/// The card's name for WeCom. A message has one card, and its id is never used again: WeCom shows a second
/// card of one name to nobody and says ok.
#[must_use]
pub fn task_id(message: OutboxId) -> String {
    format!("{TASK}{}", message.0.simple())
}

/// The message whose card has that name; `None` for other people's cards.
#[must_use]
pub fn message_of(task_id: &str) -> Option<OutboxId> {
    let id: OutboxId = task_id.strip_prefix(TASK)?.parse().ok()?;
    (self::task_id(id) == task_id).then_some(id)
}

/// The button of the choice at `no`, from 0. Its place and never its words: a label may be a number.
fn key(no: usize) -> String {
    format!("{KEY}{no}")
}

/// The place of the choice whose button was clicked; `None` for a key that is not ours.
#[must_use]
pub fn choice_of(key: &str) -> Option<usize> {
    let no = key.strip_prefix(KEY)?.parse().ok()?;
    (no < MAX_BUTTONS && self::key(no) == key).then_some(no)
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::expect_used,
        reason = "a failed expectation is the test's verdict"
    )]

    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;

    const ID: OutboxId = OutboxId(Uuid::from_u128(0x0197_a2b0_0000_7000_8000_0000_0000_0042));

    #[test]
    fn short_labels_stand_on_the_buttons() {
        let card = choices(
            ID,
            "请问您指的是哪位患者？是刚刚讨论的 P001 吗？",
            &["是，P001", "其他患者", "全项目"],
        );
        insta::assert_json_snapshot!(card.unwrap(), @r#"
        {
          "button_list": [
            {
              "key": "chip-0",
              "text": "是，P001"
            },
            {
              "key": "chip-1",
              "text": "其他患者"
            },
            {
              "key": "chip-2",
              "text": "全项目"
            }
          ],
          "card_type": "button_interaction",
          "main_title": {
            "title": "请点选，或回复数字"
          },
          "sub_title_text": "请问您指的是哪位患者？是刚刚讨论的 P001 吗？",
          "task_id": "chips-0197a2b0000070008000000000000042"
        }
        "#);
    }

    #[test]
    fn long_labels_are_numbered_and_listed_whole() {
        let card = choices(ID, &"长".repeat(113), &["01-701-1015", "01-702-1015"]).unwrap();
        insta::assert_json_snapshot!(card, @r#"
        {
          "button_list": [
            {
              "key": "chip-0",
              "text": "选项 1"
            },
            {
              "key": "chip-1",
              "text": "选项 2"
            }
          ],
          "card_type": "button_interaction",
          "horizontal_content_list": [
            {
              "keyname": "选项 1",
              "value": "01-701-1015"
            },
            {
              "keyname": "选项 2",
              "value": "01-702-1015"
            }
          ],
          "main_title": {
            "title": "请点选，或回复数字"
          },
          "sub_title_text": "请就上一条消息中的问题作答",
          "task_id": "chips-0197a2b0000070008000000000000042"
        }
        "#);
    }

    #[test]
    fn labels_that_are_alike_are_numbered_apart() {
        let shown = buttons(&["其他患者", "其他患者"]).unwrap();
        assert_eq!(shown, ["选项 1", "选项 2"]);
    }

    #[test]
    fn what_does_not_fit_makes_no_card() {
        let long = "九".repeat(27);
        for labels in [
            &[][..],
            &["1", "2", "3", "4", "5", "6", "7"],
            &["是", ""],
            &["是", "  "],
            &["是", "两\n行"],
            &["是", &long],
        ] {
            assert_eq!(buttons(labels), None, "{labels:?}");
            assert_eq!(choices(ID, "？", labels), None, "{labels:?}");
        }
    }

    #[test]
    fn a_name_or_a_key_that_is_not_ours_names_nothing() {
        assert_eq!(message_of(&task_id(ID)), Some(ID));
        for foreign in [
            "",
            "chips-",
            "fb-ans_42",
            "chips-7",
            "chips-0197a2b0-0000-7000-8000-000000000042",
            "chips-0197A2B0000070008000000000000042",
            "0197a2b0000070008000000000000042",
        ] {
            assert_eq!(message_of(foreign), None, "{foreign}");
        }
        assert_eq!(choice_of("chip-5"), Some(5));
        for foreign in ["", "chip-", "chip-6", "chip-01", "chip-+1", "fb:up:1", "1"] {
            assert_eq!(choice_of(foreign), None, "{foreign}");
        }
    }

    proptest! {
        #[test]
        fn a_card_keeps_every_limit_and_shows_every_label_whole(
            question in ".{0,200}", labels in proptest::collection::vec("[0-9A-Za-z，质控患者 -]{0,30}", 0..8)
        ) {
            let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
            let Some(card) = choices(ID, &question, &labels) else { return Ok(()) };
            let buttons = card["button_list"].as_array().unwrap();
            prop_assert_eq!(buttons.len(), labels.len());
            prop_assert!(buttons.len() <= MAX_BUTTONS);
            let mut texts = HashSet::new();
            for (no, button) in buttons.iter().enumerate() {
                let text = button["text"].as_str().unwrap();
                prop_assert!((1..=MAX_BUTTON_CHARS).contains(&text.chars().count()));
                prop_assert!(texts.insert(text));
                prop_assert_eq!(choice_of(button["key"].as_str().unwrap()), Some(no));
                let listed = card.get("horizontal_content_list").map(|list| list[no]["value"].as_str().unwrap());
                prop_assert_eq!(listed.unwrap_or(text), labels[no]);
            }
            let subtitle = card["sub_title_text"].as_str().unwrap();
            prop_assert!(!subtitle.is_empty() && subtitle.chars().count() <= MAX_TEXT_CHARS);
            let task = card["task_id"].as_str().unwrap();
            prop_assert!(task.len() <= 128 && task.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-@".contains(&b)));
        }

        #[test]
        fn each_message_has_a_name_of_its_own(id: u128) {
            let id = OutboxId(Uuid::from_u128(id));
            prop_assert_eq!(message_of(&task_id(id)), Some(id));
        }
    }
}
