//! Whom “he” means: the patient spoken of last, while that is fresh.

use super::*;

#[test]
fn a_stale_memory_is_offered_and_never_used() {
    let conversation = long_ago_about("p001");
    let intent = with("对他做质控", &conversation);
    assert_eq!(intent.kind, IntentKind::Unclear);
    let clarification = intent.clarification.unwrap();
    insta::assert_json_snapshot!(clarification, @r#"
    {
      "question": "请问您指的是哪位患者？是刚刚讨论的 P001 吗？",
      "choices": [
        {
          "label": "是，P001",
          "text": "对P001做质控"
        },
        {
          "label": "其他患者",
          "text": "其他患者"
        },
        {
          "label": "全项目",
          "text": "对全项目做质控"
        }
      ],
      "resume": "对{patient}做质控"
    }
    "#);
    for (typed, ids, whole) in [
        ("1", vec!["P001"], false),
        ("是的", vec!["P001"], false),
        ("３", vec![], true),
        ("P009", vec!["P009"], false),
        ("12", vec!["12"], false),
    ] {
        let answered = Conversation {
            pending: Some(&clarification),
            ..conversation
        };
        let intent = with(typed, &answered);
        assert_eq!(intent.kind, IntentKind::QcTask, "{typed}");
        assert_eq!(intent.entities.record_ids, ids, "{typed}");
        assert_eq!(intent.entities.whole_project, whole, "{typed}");
    }
}

#[test]
fn another_patient_is_asked_for_until_it_is_named() {
    let conversation = long_ago_about("P001");
    let first = with("他怎么样了", &conversation).clarification.unwrap();
    let second = with(
        "2",
        &Conversation {
            pending: Some(&first),
            ..conversation
        },
    );
    assert_eq!(second.kind, IntentKind::Unclear);
    let second = second.clarification.unwrap();
    let third = with(
        "P007",
        &Conversation {
            pending: Some(&second),
            ..conversation
        },
    );
    assert_eq!(third.kind, IntentKind::QaQuery);
    assert_eq!(third.entities.record_ids, ["P007"]);
}

#[test]
fn a_new_request_is_not_taken_for_an_answer() {
    let conversation = long_ago_about("P001");
    let pending = with("他怎么样了", &conversation).clarification.unwrap();
    let waiting = Conversation {
        pending: Some(&pending),
        ..conversation
    };
    assert_eq!(with("质控P002", &waiting).entities.record_ids, ["P002"]);
    assert_eq!(
        with("今天天气怎么样", &waiting).kind,
        IntentKind::OutOfScope
    );
    let again = with("9", &waiting).clarification.unwrap();
    assert!(again.question.contains("1–2"), "{}", again.question);
}

#[test]
fn a_fresh_memory_resolves_a_reference() {
    let conversation = about("P001");
    for text in [
        "他的入排状态",
        "她怎么样了",
        "那个病人的血压",
        "上一个呢，入组了吗",
        "年龄多大",
    ] {
        let intent = with(text, &conversation);
        assert_eq!(intent.kind, IntentKind::QaQuery, "{text}");
        assert_eq!(intent.entities.record_ids, ["P001"], "{text}");
    }
    let both = with("把他和P002都质控一下", &conversation);
    assert_eq!(both.kind, IntentKind::QcTask);
    assert_eq!(both.entities.record_ids, ["P001", "P002"]);
    for text in [
        "其他人还有发烧的吗",
        "用他汀的有几个",
        "查下那个发烧的病人是谁",
    ] {
        let intent = with(text, &conversation);
        assert_eq!(intent.kind, IntentKind::QaQuery, "{text}");
        assert_eq!(intent.entities.record_ids, Vec::<String>::new(), "{text}");
    }
    for text in ["质控那个发烧的病人", "质控新入组的患者", "他们都质控一下"]
    {
        assert_eq!(
            with(text, &conversation).kind,
            IntentKind::Unclear,
            "{text}"
        );
    }
}

#[test]
fn a_follow_up_asks_the_same_about_somebody_else() {
    let history = [
        Turn {
            role: Speaker::User,
            text: "质控P001的V3访视".into(),
        },
        Turn {
            role: Speaker::Assistant,
            text: "P001 质控完成。".into(),
        },
    ];
    let mut conversation = about("P001");
    conversation.history = &history;
    let intent = with("那P002呢", &conversation);
    assert_eq!(intent.kind, IntentKind::QcTask);
    assert_eq!(intent.entities.record_ids, ["P002"]);
    assert_eq!(intent.entities.visit.as_deref(), Some("V3"));
    let nothing_before = one("P002呢");
    assert_eq!(nothing_before.kind, IntentKind::Unclear);
    assert!(
        nothing_before
            .clarification
            .unwrap()
            .question
            .contains("P002")
    );
    let written = [Turn {
        role: Speaker::User,
        text: "把P001的年龄改成45".into(),
    }];
    conversation.history = &written;
    assert_eq!(with("P002呢", &conversation).kind, IntentKind::Unclear);
}

#[test]
fn a_patient_nobody_could_read_is_not_replaced_by_the_remembered_one() {
    let conversation = about("P777");
    for text in ["质控X9Y", "质控一下 2026", "质控P00I9", "质控5楼那位新来的"] {
        for intent in route(text, &conversation).intents {
            assert_eq!(intent.kind, IntentKind::Unclear, "{text}: {intent:?}");
        }
    }
}

#[test]
fn a_memory_is_fresh_until_its_idle_time_has_passed() {
    let at = chrono::DateTime::from_timestamp(1_000_000, 0).unwrap();
    let later = |minutes| at + chrono::TimeDelta::minutes(minutes);
    let memory = |now| Memory::since(Some("P001"), Some(at), now, DEFAULT_IDLE);
    assert_eq!(memory(later(30)).resolved(), Some("P001"));
    assert_eq!(memory(later(31)).resolved(), None);
    assert_eq!(memory(later(-5)).resolved(), Some("P001"));
    assert_eq!(about(" ").memory.resolved(), None);
    assert!(!Memory::since(None, Some(at), at, DEFAULT_IDLE).fresh);
    assert!(!Memory::since(Some("P001"), None, at, DEFAULT_IDLE).fresh);
}
