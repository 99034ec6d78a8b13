//! When a check is started, of whom, and when not.

use super::*;

#[test]
fn a_check_names_its_records_in_order() {
    for (text, ids) in [
        ("质控 ID=001", vec!["001"]),
        ("质控P001、P002和P003", vec!["P001", "P002", "P003"]),
        ("质控P001，P002，P003", vec!["P001", "P002", "P003"]),
        ("P001、P002，质控一下", vec!["P001", "P002"]),
        ("P001这个病人，帮我质控一下", vec!["P001"]),
        ("质控P001到P003", vec!["P001", "P002", "P003"]),
        (
            "质控P001到P005，P003不用",
            vec!["P001", "P002", "P004", "P005"],
        ),
        ("质控P001到P003，除了P002", vec!["P001", "P003"]),
        ("质控P001到P003（P002除外）", vec!["P001", "P003"]),
        ("质控P001到P003，P002除外", vec!["P001", "P003"]),
        ("除P002外，P001到P003都质控一下", vec!["P001", "P003"]),
        ("质控P001，不要P002", vec!["P001"]),
        ("质控P001不要质控P002", vec!["P001"]),
        ("质控P001，说错了，P002", vec!["P002"]),
        ("质控P001，不对，应该是P002", vec!["P002"]),
        ("质控P001，不是P001，是P002", vec!["P002"]),
        ("重新质控，P007刚改了数据", vec!["P007"]),
        ("删除P004的第二条不良事件", vec!["P004"]),
        ("P001 年龄核对一下", vec!["P001"]),
        ("检查P002有没有没做的访视", vec!["P002"]),
        ("核对P003停止用药日期", vec!["P003"]),
        ("质控P001不要漏掉AE", vec!["P001"]),
        ("检查P001的不良事件和性别", vec!["P001"]),
    ] {
        let intent = one(text);
        assert_eq!(intent.kind, IntentKind::QcTask, "{text}: {intent:?}");
        assert_eq!(intent.entities.record_ids, ids, "{text}");
        assert!(!intent.entities.whole_project, "{text}");
    }
}

#[test]
fn a_command_taken_back_starts_nothing() {
    for text in [
        "不要质控P001",
        "别检查了",
        "先不做质控",
        "P001不用查",
        "P001 不用质控了",
        "不要对P001进行入排质控",
        "质控P001，算了不用了",
        "质控P001，P001不用了",
        "P001的质控先别做了",
        "取消P001的质控",
        "停止全项目质控",
        "不质控",
        "暂时不需要核查P003",
        "这周就不用做全项目质控了",
        "质控P001这事先不急，别做",
        "don't qc P001",
        "please do not check P001",
        "no need to validate 01-701-1015",
        "skip QC for P001",
        "不要修改P001的年龄",
        "别把P001的体重改成60",
        "不要删除P004的记录",
        "千万别动P001的质控",
        "不用再质控P001了",
        "停止对P001再做质控",
        "不要在没有我同意的情况下，对P001做质控",
        "不要，质控P001",
        "质控P001明天再说",
        "明天再质控P001",
        "下周对P001做质控",
    ] {
        let intent = one(text);
        assert_eq!(intent.kind, IntentKind::Unclear, "{text}: {intent:?}");
        assert!(!intent.wishes_write, "{text}");
        let question = intent.clarification.unwrap().question;
        assert!(question.starts_with("好的"), "{text}: {question}");
    }
}

#[test]
fn a_word_that_only_looks_like_a_negation_does_not_take_the_command_back() {
    for text in [
        "别忘了质控P001",
        "不要忘记质控P001",
        "能不能质控一下P001",
        "检查P001的不良事件",
        "检查P001性别",
        "特别检查一下P001",
        "核对P001数据是不是一致",
        "质控P001，别漏了AE",
    ] {
        assert_eq!(one(text).kind, IntentKind::QcTask, "{text}");
    }
}

#[test]
fn a_question_about_a_check_is_no_check() {
    for (text, kind) in [
        ("质控是什么意思", IntentKind::Help),
        ("怎么发起质控", IntentKind::Help),
        ("P001上次质控结果怎么样", IntentKind::QaQuery),
        ("P001质控过了吗", IntentKind::QaQuery),
        ("P001的质控报告", IntentKind::QaQuery),
        ("为什么P001质控没通过", IntentKind::QaQuery),
        ("哪些患者还没质控", IntentKind::QaQuery),
        ("P001需要质控吗", IntentKind::QaQuery),
        ("P006做了哪些检查", IntentKind::QaQuery),
        ("P012的体格检查正常吗", IntentKind::QaQuery),
        ("检查结果出来了吗 P001", IntentKind::QaQuery),
    ] {
        assert_eq!(one(text).kind, kind, "{text}");
    }
}

#[test]
fn the_whole_project_is_checked_only_when_it_is_named() {
    for text in [
        "对全项目做质控",
        "全部受试者质控一遍",
        "把所有病人都检查一下",
        "qc all",
        "所有患者，质控一遍",
        "批量质控",
    ] {
        let intent = one(text);
        assert_eq!(intent.kind, IntentKind::QcTask, "{text}");
        assert!(intent.entities.whole_project, "{text}");
        assert_eq!(intent.entities.record_ids, Vec::<String>::new(), "{text}");
    }
    for text in ["其他患者都质控一遍", "除了P001其他都质控"] {
        assert_eq!(one(text).kind, IntentKind::Unclear, "{text}");
    }
    let except = one("全项目质控，除了P005");
    assert_eq!(except.kind, IntentKind::Unclear);
    assert!(except.clarification.unwrap().question.contains("P005"));
}

#[test]
fn a_missing_patient_is_asked_for() {
    for text in [
        "他怎么样了",
        "质控一下",
        "检查入排",
        "把她的体重改成60",
        "年龄多大",
    ] {
        let intent = one(text);
        assert_eq!(intent.kind, IntentKind::Unclear, "{text}");
        let clarification = intent.clarification.unwrap();
        assert_eq!(clarification.question, "请问您指的是哪位患者？", "{text}");
        assert!(!clarification.choices.is_empty(), "{text}");
    }
}
