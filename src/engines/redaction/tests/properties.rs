//! For any text and anybody: nothing known is left, and everything comes back.

use proptest::prelude::*;

use super::{field, flagged, redactor_of};
use crate::engines::redaction::{
    Hidden, Redactor, Whose, certificates,
    surnames::{COMPOUND, SINGLE},
};

/// One generated person.
#[derive(Debug, Clone)]
struct Person {
    name: String,
    card: String,
    phone: String,
    mrn: String,
    email: String,
    born: String,
    address: String,
}

fn person() -> impl Strategy<Value = Person> {
    let single: Vec<String> = SINGLE.chars().map(String::from).collect();
    let compound: Vec<String> = COMPOUND.map(str::to_owned).into();
    let surname = prop_oneof![
        proptest::sample::select(single),
        proptest::sample::select(compound)
    ];
    let given = "[伟芳娜敏静丽强磊军洋艳勇杰娟涛超秀霞燚翀赟懿]{1,2}";
    let day = (1930i32..2010, 1u32..13, 1u32..29);
    let digits = (
        13_000_000_000u64..19_999_999_999,
        100_000u64..99_999_999,
        0u32..1000,
    );
    let place = proptest::sample::select(vec!["110105", "310115", "440305", "510104", "650102"]);
    (surname, given, day, digits, place, "[a-z]{4,8}").prop_map(
        |(surname, given, (y, m, d), (phone, mrn, sequence), place, account)| {
            let body = format!("{place}{y:04}{m:02}{d:02}{sequence:03}");
            let check = certificates::check_digit(&body).unwrap();
            Person {
                name: format!("{surname}{given}"),
                card: format!("{body}{check}"),
                phone: phone.to_string(),
                mrn: format!("ZY{mrn}"),
                email: format!("{account}@example.com"),
                born: format!("{y:04}-{m:02}-{d:02}"),
                address: format!("北京市朝阳区建国路{}号{}室", d + 7, sequence + 101),
            }
        },
    )
}

fn knows(person: &Person) -> Redactor {
    let born = crate::types::dictionary::Field {
        validation: "date_ymd".to_owned(),
        ..field("dob", "出生日期")
    };
    redactor_of(
        &[
            field("record_id", "编号"),
            flagged("pname", "姓名"),
            flagged("mrn", "号"),
            born,
        ],
        &[&["P001", &person.name, &person.mrn, &person.born]],
    )
}

/// As people write: full width, or with blanks in it.
fn written(text: &str, how: u8) -> String {
    match how % 3 {
        0 => text.to_owned(),
        1 => text
            .chars()
            .map(|c| match c {
                '!'..='~' => char::from_u32(u32::from(c) + 0xfee0).unwrap(),
                other => other,
            })
            .collect(),
        _ => text.chars().flat_map(|c| [c, '\u{200b}']).collect(),
    }
}

/// Compared without what only dresses it.
fn bare(text: &str) -> String {
    crate::types::text::half_width(text).replace(['\u{200b}', ' ', '-'], "")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_text_comes_back_as_it_was(text in "\\PC{0,80}", person in person()) {
        let mut hidden = Hidden::default();
        let redactor = knows(&person);
        let shown = redactor.redact(&text, &mut hidden).unwrap();
        prop_assert_eq!(hidden.restore(&shown), text);
    }

    #[test]
    fn any_text_of_our_own_alphabet_comes_back_as_it_was(
        pieces in proptest::collection::vec(proptest::sample::select(vec![
            "〔", "姓名", "原文", "1", "〕", "患者", "张三", "138", "12345678", "-", " ", "：", "号", "\\", "\"", "出生", "2000-01-01", "【", "】",
        ]), 0..24),
        person in person(),
    ) {
        let text = pieces.concat();
        let mut hidden = Hidden::default();
        let redactor = knows(&person);
        let shown = redactor.redact(&text, &mut hidden).unwrap();
        prop_assert_eq!(hidden.restore(&shown), text);
        prop_assert_eq!(redactor.left_in(&shown, &hidden), None);
        let own = [(Whose::Model, shown.as_str())];
        prop_assert_eq!(&redactor.redact_all(&own, &mut hidden).unwrap()[0], &shown);
    }

    #[test]
    fn nothing_of_a_known_person_is_left_in_any_text(
        person in person(),
        how in any::<u8>(),
        around in "[，。；a-z\u{4e00}-\u{4e20} ]{0,6}",
    ) {
        let redactor = knows(&person);
        for value in [&person.name, &person.card, &person.phone, &person.mrn, &person.email, &person.born] {
            let text = format!("{around}。{}，{around}", written(value, how));
            let mut hidden = Hidden::default();
            let shown = redactor.redact(&text, &mut hidden).unwrap();
            prop_assert!(!bare(&shown).contains(&bare(value)), "{} in {}", value, shown);
            prop_assert_eq!(hidden.restore(&shown), text);
        }
        let text = format!("{around}。家住{}，{around}", person.address);
        let shown = redactor.redact(&text, &mut Hidden::default()).unwrap();
        prop_assert!(!shown.contains("建国路"), "{}", shown);
    }
}
