//! What the agent says when it answers by itself. Chinese; the names of commands as people type them.

use super::{
    ids::{MAX_RANGE, Trouble},
    message::MAX_CHARS,
};

/// A chip: another patient than the one offered.
pub const OTHER_PATIENT: &str = "其他患者";
/// A chip: every record of the project.
pub const WHOLE_PROJECT: &str = "全项目";
/// The message [`WHOLE_PROJECT`] stands for.
pub const WHOLE_PROJECT_QC: &str = "对全项目做质控";
/// A chip: what the agent can do.
pub const HELP_CHIP: &str = "使用帮助";
/// A chip: yes, start what was proposed.
pub const CONFIRM: &str = "确认启动";
/// A chip, and the message it stands for: nothing of the sort.
pub const CANCEL: &str = "取消";

/// Asks for the patient; with a candidate, whether it is that one.
#[must_use]
pub fn which_patient(candidate: Option<&str>) -> String {
    match candidate {
        Some(id) => format!("请问您指的是哪位患者？是刚刚讨论的 {id} 吗？"),
        None => "请问您指的是哪位患者？".to_owned(),
    }
}

/// Asks for the patient again, after the offered one was declined.
#[must_use]
pub fn patient_id_please() -> String {
    "请问是哪位患者？请直接回复患者编号，例如 P001 或 01-701-1015。".to_owned()
}

/// Asks what to do with a named patient.
#[must_use]
pub fn what_about(ids: &[String]) -> String {
    format!("请问您想了解 {} 的什么情况？", ids.join("、"))
}

/// Asks what is wanted, when nothing is known.
#[must_use]
pub fn what_do_you_need() -> String {
    "请问您需要我做什么？可以直接说，例如“质控 P001”“P001 的年龄是多少”。".to_owned()
}

/// A message too long to be read.
#[must_use]
pub fn too_long() -> String {
    format!("这条消息太长，没有处理。请分成几条发送，每条不超过 {MAX_CHARS} 字。")
}

/// A command was taken back.
#[must_use]
pub fn nothing_started(ids: &[String]) -> String {
    let whom = if ids.is_empty() {
        String::new()
    } else {
        format!("（{}）", ids.join("、"))
    };
    format!("好的，不启动质控，也不做任何修改{whom}。请问您还需要什么？")
}

/// A typed number that no choice has.
#[must_use]
pub fn no_such_choice(question: &str, choices: usize) -> String {
    format!("没有这个选项，请回复 1–{choices} 中的数字。{question}")
}

/// A QC of the whole project can't leave records out.
#[must_use]
pub fn whole_project_without(ids: &[String]) -> String {
    format!(
        "全项目质控不能单独排除 {}。要照常对全项目质控吗？",
        ids.join("、")
    )
}

/// A range that must be asked about.
#[must_use]
pub(super) fn range_trouble(trouble: &Trouble) -> String {
    match trouble {
        Trouble::TooMany { from, to, count } => format!(
            "{from} 到 {to} 共 {count} 位，一次最多 {MAX_RANGE} 位。请缩小范围，或对全项目做质控。"
        ),
        Trouble::NoRange { from, to } => {
            format!("没看懂“{from} 到 {to}”这个范围，请问您指的是哪些患者？请逐个写出编号。")
        }
        Trouble::IdOrRange { id, from, to } => {
            format!("请问“{id}”是一位患者的编号，还是从 {from} 到 {to}？")
        }
    }
}

/// What the agent can do.
#[must_use]
pub fn help() -> &'static str {
    "我是临床研究助手，可以帮您：
1. 质控：质控 ID=001、对 P001 做入排质控、检查 P001 到 P005、对全项目做质控
2. 查数据：P001 的年龄是多少、最近入组的病人有哪些（须接通语言模型）
3. 问方案：入排标准是什么、V3 的访视窗口是多少天（须接通语言模型）
4. 看报告：本周进展、上周周报（须接通语言模型）
改数据须走修改流程，我不会直接改动。
说“他”“这个患者”时，指的是刚刚讨论的那一位。需要我给出选项时，回复数字即可。
觉得回答好或不好，回复“有用”或“没用”。"
}

/// A polite refusal.
#[must_use]
pub fn out_of_scope() -> &'static str {
    "抱歉，这个问题超出了我的范围。我只负责本研究的质控、数据查询、方案问答和进展报告；如果与研究有关，请带上患者编号或换个说法再问一次。"
}

/// A wish to change data is led to the SOP; nothing is changed yet.
#[must_use]
pub fn write_goes_through_sop() -> &'static str {
    "看来你需要修改数据，这属于质控流程，请确认是否启动【修改 SOP】？"
}

/// A check that is proposed, because the command may be misread.
#[must_use]
pub fn start_check(ids: &[String]) -> String {
    if ids.is_empty() {
        "您是想对全项目启动质控吗？请确认，确认前不会启动。".to_owned()
    } else {
        format!(
            "您是想对 {} 启动质控吗？请确认，确认前不会启动。",
            ids.join("、")
        )
    }
}

/// A check by skills that may change data is proposed, never started at once.
#[must_use]
pub fn start_writing_check(skills: &[String]) -> String {
    format!(
        "这次核查包含会提出数据修改的流程（{}），请确认是否启动。",
        skills.join("、")
    )
}

/// A reading too uncertain to act on.
#[must_use]
pub fn not_sure() -> &'static str {
    "我不太确定您的意思，请问您是想："
}

/// Feedback was noted.
#[must_use]
pub fn feedback_noted() -> &'static str {
    "已记下您的反馈，谢谢。"
}

/// Stands at the head of every reply the keyword rules decided.
#[must_use]
pub fn degraded_note() -> &'static str {
    "（当前为关键词模式：未接通语言模型，理解可能不准确。）"
}

/// The answer to a question, a protocol question or a report no language model is there to answer.
#[must_use]
pub fn needs_language_model() -> &'static str {
    "当前为关键词模式：尚未配置语言模型，暂时不能回答数据提问、方案问答和生成总结。现在可以做的：
1. 质控：质控 ID=001、对 P001 做入排质控、对全项目做质控
2. 发现的问题都在待处理清单里，由数据管理员跟进
请管理员配置语言模型后再问一次。"
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::expect_used,
        reason = "a failed expectation is the test's verdict"
    )]
    use super::*;

    #[test]
    fn nothing_ever_says_that_no_command_was_found() {
        for text in [
            help(),
            out_of_scope(),
            write_goes_through_sop(),
            needs_language_model(),
            degraded_note(),
            &what_do_you_need(),
            &which_patient(None),
        ] {
            assert!(!text.contains("未找到指令"), "{text}");
        }
    }

    #[test]
    fn the_questions_read_as_promised() {
        assert_eq!(which_patient(None), "请问您指的是哪位患者？");
        assert_eq!(
            which_patient(Some("P001")),
            "请问您指的是哪位患者？是刚刚讨论的 P001 吗？"
        );
    }
}
