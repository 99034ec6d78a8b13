//! What a person types in answer to a question with choices: a number, a label, yes or no, an id.

use super::{
    Clarification, PATIENT_SLOT, cues, ids,
    message::{Message, patterns},
    reference, texts,
};

/// What a message means as an answer to the pending question.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The same as this message.
    Means(String),
    /// Another patient than offered; which one must still be said.
    OtherPatient,
    /// A number no choice has.
    NoSuchChoice,
    /// Not an answer: a message of its own.
    MessageOfItsOwn,
}

patterns! {
    ORDINAL = r"(?x)
        ^(?:我)?(?:要|选择?|就|是|用)?\s*(?:the\s+)?(?:第|选项|option\s*|no\.?\s*|\#)?\s*(\d{1,2}
        |[一二两三四五六七八九十①②③④⑤⑥⑦⑧⑨]|first|second|third)\s*(?:个|项|号|条|位
        |种)?(?:选项)?(?:吧|了|的)?$";
    YES = r"(?x)
        ^(?:是|是的|对|对的|对对|嗯|嗯嗯|没错|是他|是她|是这个|就是他|就是她|就是这个|就他|就她|好
        |好的|可以|确认|确定|要|行|yes|y|yep|yeah|ok|sure|right|correct)(?:啊|呀|哦|吧|了)?$";
    NO = r"^(?:不|不是|不对|否|不是他|不是她|不是的|不是这个|别的|其他|其它|另一个|换一个|不要|取消|算了|不用|no|n|nope|other|cancel)(?:啊|呀|哦|吧|了|的)?$";
}

/// Reads `message` as the answer to `pending`.
pub(super) fn read(message: &Message, pending: &Clarification) -> Answer {
    let text = message.plain().trim().trim_matches(|c: char| {
        c.is_ascii_punctuation() || "。，、！？；：“”「」（） ".contains(c)
    });
    if text.is_empty() {
        return Answer::MessageOfItsOwn;
    }
    let label = |choice: &&super::Choice| bare_label(&choice.label) == bare_label(text);
    if let Some(choice) = pending.choices.iter().find(label) {
        return chosen(choice);
    }
    if let Some(number) = ORDINAL.captures(text).and_then(|c| c.get(1)) {
        let at = position(number.as_str());
        // Over 9, or with a leading zero, it is rather a patient's number than a choice.
        let small = number.as_str().len() == 1 || !number.as_str().is_ascii();
        match at.and_then(|at| pending.choices.get(at.checked_sub(1)?)) {
            Some(choice) if small || at.is_some_and(|at| at >= 10) => return chosen(choice),
            _ if small && !pending.choices.is_empty() => return Answer::NoSuchChoice,
            _ => {}
        }
        if let Some(resume) = &pending.resume
            && number.as_str().is_ascii()
            && number.as_str().bytes().all(|b| b.is_ascii_digit())
        {
            return Answer::Means(fill(resume, &format!("编号{}", number.as_str())));
        }
    }
    let yes_choice = pending
        .choices
        .iter()
        .find(|choice| choice.label.starts_with('是') || choice.label == texts::CONFIRM);
    if let Some(choice) = yes_choice {
        if YES.is_match(text) {
            return chosen(choice);
        }
        if NO.is_match(text) {
            return pending
                .choices
                .iter()
                .find(|c| c.label == texts::OTHER_PATIENT || c.label == texts::CANCEL)
                .map_or(Answer::MessageOfItsOwn, chosen);
        }
    }
    pending
        .resume
        .as_ref()
        .and_then(|resume| named(message, resume))
        .map_or(Answer::MessageOfItsOwn, Answer::Means)
}

fn chosen(choice: &super::Choice) -> Answer {
    if choice.label == texts::OTHER_PATIENT {
        Answer::OtherPatient
    } else {
        Answer::Means(choice.text.clone())
    }
}

/// The request completed, when the message only names records.
fn named(message: &Message, resume: &str) -> Option<String> {
    let plain = message.plain();
    let mentions = ids::mentions(plain);
    let first = mentions.first()?;
    let last = mentions.last()?;
    let mut rest = plain.to_owned();
    for mention in mentions.iter().rev() {
        rest.replace_range(mention.start..mention.end, "");
    }
    let only_names = cues::is_filler(&rest) && reference::references(&rest).is_empty();
    only_names.then(|| {
        let names = message.written(first.start, last.end);
        let names = if names.bytes().all(|b| b.is_ascii_digit()) {
            format!("编号{names}")
        } else {
            names.to_owned()
        };
        fill(resume, &names)
    })
}

/// Puts `names` where the request needs them.
pub(super) fn fill(resume: &str, names: &str) -> String {
    resume.replacen(PATIENT_SLOT, names, 1)
}

fn bare_label(label: &str) -> String {
    crate::types::text::half_width(label)
        .chars()
        .filter(|c| c.is_alphanumeric())
        .collect::<String>()
        .to_lowercase()
}

fn position(number: &str) -> Option<usize> {
    let words: [&[&str]; 10] = [
        &["一", "①", "first"],
        &["二", "两", "②", "second"],
        &["三", "③", "third"],
        &["四", "④"],
        &["五", "⑤"],
        &["六", "⑥"],
        &["七", "⑦"],
        &["八", "⑧"],
        &["九", "⑨"],
        &["十"],
    ];
    words
        .iter()
        .position(|same| same.contains(&number))
        .map(|at| at + 1)
        .or_else(|| number.parse().ok())
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::expect_used,
        reason = "a failed expectation is the test's verdict"
    )]
    use super::*;
    use crate::engines::router::Choice;

    fn pending() -> Clarification {
        let choice = |label: &str, text: &str| Choice {
            label: label.into(),
            text: text.into(),
        };
        Clarification {
            question: texts::which_patient(Some("P001")),
            choices: vec![
                choice("是，P001", "P001 质控一下"),
                choice(texts::OTHER_PATIENT, texts::OTHER_PATIENT),
                choice(texts::WHOLE_PROJECT, texts::WHOLE_PROJECT_QC),
            ],
            resume: Some(format!("{PATIENT_SLOT} 质控一下")),
        }
    }

    fn answer(text: &str) -> Answer {
        read(&Message::new(text), &pending())
    }

    #[test]
    fn every_pattern_compiles() {
        compile_all();
    }

    #[test]
    fn the_first_choice_can_be_typed_in_many_ways() {
        for text in [
            "1",
            "１",
            "①",
            "一",
            "1.",
            "1)",
            "选1",
            "选一",
            "第一个",
            "第1个",
            "是",
            "是的",
            "对",
            "对的。",
            "嗯",
            "是，P001",
            "是,p001",
            "是 P001",
            "ok",
            "Yes!",
        ] {
            assert_eq!(
                answer(text),
                Answer::Means("P001 质控一下".into()),
                "{text}"
            );
        }
    }

    #[test]
    fn another_patient_is_asked_for_and_the_whole_project_is_taken() {
        for text in ["2", "其他患者", "不是", "不是他", "否", "no"] {
            assert_eq!(answer(text), Answer::OtherPatient, "{text}");
        }
        for text in ["3", "３", "第三个", "全项目"] {
            assert_eq!(
                answer(text),
                Answer::Means("对全项目做质控".into()),
                "{text}"
            );
        }
    }

    #[test]
    fn an_id_completes_the_request() {
        assert_eq!(answer("P002"), Answer::Means("P002 质控一下".into()));
        assert_eq!(
            answer("ｐ００２吧"),
            Answer::Means("ｐ００２ 质控一下".into())
        );
        assert_eq!(answer("12"), Answer::Means("编号12 质控一下".into()));
        assert_eq!(answer("001"), Answer::Means("编号001 质控一下".into()));
        assert_eq!(
            answer("P002和P003"),
            Answer::Means("P002和P003 质控一下".into())
        );
    }

    #[test]
    fn a_number_without_a_choice_is_asked_again_and_a_message_stays_a_message() {
        assert_eq!(answer("7"), Answer::NoSuchChoice);
        for text in ["质控P009", "今天天气怎么样", "P003的年龄是多少", "", "？？"]
        {
            assert_eq!(answer(text), Answer::MessageOfItsOwn, "{text}");
        }
    }
}
