//! What holds of any message at all.

use proptest::prelude::*;

use super::{super::message, *};

fn id() -> impl Strategy<Value = String> {
    prop_oneof![
        "P[0-9]{3}",
        "[pPsS]-[0-9]{3}",
        "0[0-9]{2,3}",
        "01-70[1-9]-1[0-9]{3}",
        "S0[1-9]-0[0-9]{2}",
        "ID=[0-9]{1,4}",
        "Ｐ００[１-９]",
    ]
}

fn folded(text: &str) -> String {
    message::Message::new(text).plain().to_ascii_uppercase()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn any_text_comes_to_at_least_one_intent(text in any::<String>(), patient in ".{0,8}", fresh: bool) {
        let mut conversation = about(&patient);
        conversation.memory.fresh = fresh;
        let routing = route(&text, &conversation);
        prop_assert!(!routing.intents.is_empty());
        for intent in routing.intents {
            prop_assert_eq!(intent.kind == IntentKind::Unclear, intent.clarification.is_some());
            prop_assert!((0.0..=1.0).contains(&intent.confidence));
        }
    }

    #[test]
    fn any_mixture_of_the_fields_words_comes_to_intents_about_people_who_were_named(
        words in prop::collection::vec(prop_oneof![
            3 => id(),
            6 => prop::sample::select(vec![
                "质控", "检查", "他", "这个患者", "不要", "，", "、", "和", "到", "-", "再", "然后", "年龄", "的",
                "改成45", "全部", "除了", "呢", "怎么样", "V3", "2026-11-30", "。", "？", "说错了", "算了", " ", "qc",
                "方案", "周报", "谢谢", "「", "」", "号", "患者", "第3次访视", "不用", "帮我", "\n", "其他",
            ]).prop_map(str::to_owned),
        ], 0..14),
        remembered in id(),
        fresh: bool,
    ) {
        let text = words.concat();
        let mut conversation = about(&remembered);
        conversation.memory.fresh = fresh;
        let named = format!("{} {}", folded(&text), folded(&remembered));
        for intent in route(&text, &conversation).intents {
            prop_assert_eq!(intent.kind == IntentKind::Unclear, intent.clarification.is_some());
            prop_assert!(text.contains(&intent.text) || intent.text.is_empty(), "{} in {}", intent.text, text);
            for id in &intent.entities.record_ids {
                let in_a_range = text.contains('到') || text.contains('-');
                prop_assert!(named.contains(id.as_str()) || in_a_range, "{id} was named by nobody in {text}");
            }
            // What a button stands for must be understood when it is tapped.
            for choice in intent.clarification.into_iter().flat_map(|c| c.choices) {
                prop_assert!(!route(&choice.text, &conversation).intents.is_empty());
            }
        }
    }

    #[test]
    fn a_negated_command_never_starts_a_check(
        negation in prop::sample::select(vec![
            "不要", "不用", "不必", "不需要", "无需", "别", "先别", "先不", "暂不", "暂时不", "千万不要", "请不要", "没必要",
            "不想", "取消", "停止", "甭", "不", "don't ", "do not ", "never ", "please don't ",
        ]),
        verb in prop::sample::select(vec![
            "质控", "检查", "校验", "核查", "核对", "qc", "做质控", "进行入排质控", "做入排检查", "检查一下", "QC ",
        ]),
        id in id(),
        shape in 0_u8..6,
        tail in prop::sample::select(vec!["", "了", "吧", "了。", "！", "，谢谢", " ", "哈", "了吧"]),
        fresh: bool,
    ) {
        let text = match shape {
            0 => format!("{negation}{verb}{id}{tail}"),
            1 => format!("{negation}对{id}{verb}{tail}"),
            2 => format!("{id}{negation}{verb}{tail}"),
            3 => format!("{negation}{verb}{tail}"),
            4 => format!("患者{id}的数据{negation}{verb}{tail}"),
            _ => format!("{negation}再{verb}患者{id}的数据{tail}"),
        };
        let mut conversation = about("P777");
        conversation.memory.fresh = fresh;
        for intent in route(&text, &conversation).intents {
            prop_assert!(intent.kind != IntentKind::QcTask, "{text}: {intent:?}");
        }
    }

    #[test]
    fn a_plain_command_names_exactly_its_record(
        lead in prop::sample::select(vec!["", "请", "帮我", "麻烦", "再"]),
        verb in prop::sample::select(vec!["质控", "检查", "校验", "核查", "qc "]),
        id in prop_oneof!["P[0-9]{3}", "01-70[1-9]-1[0-9]{3}", "S0[1-9]-0[0-9]{2}", "0[0-9]{2,3}"],
        tail in prop::sample::select(vec!["", "吧", "一下", "的数据", "的入排", "，谢谢", "。"]),
    ) {
        let text = format!("{lead}{verb}{id}{tail}");
        let intents = route(&text, &Conversation::default()).intents;
        prop_assert_eq!(intents.len(), 1, "{}: {:?}", &text, &intents);
        for intent in intents {
            prop_assert_eq!(intent.kind, IntentKind::QcTask, "{}", &text);
            prop_assert_eq!(&intent.entities.record_ids, std::slice::from_ref(&id), "{}", &text);
        }
    }
}
