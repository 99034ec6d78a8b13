//! A run's placeholders: stable, not to be forged, and put back for those who may see.

use super::{redact, stranger};
use crate::engines::redaction::{Hidden, Kind, Placeholder, Whose};

fn kept(hidden: &Hidden) -> Vec<Placeholder> {
    hidden.fresh().to_vec()
}

#[test]
fn the_same_value_has_the_same_placeholder_in_every_turn_and_after_a_crash() {
    let redactor = stranger();
    let mut hidden = Hidden::default();
    let first = redactor
        .redact("患者张三，电话 13812345678", &mut hidden)
        .unwrap();
    assert_eq!(first, "患者〔姓名1〕，电话 〔电话1〕");
    let mut reloaded = Hidden::of(kept(&hidden));
    assert!(reloaded.fresh().is_empty());
    let later = redactor
        .redact("患者李四问 13812345678，张三在旁", &mut reloaded)
        .unwrap();
    assert_eq!(later, "患者〔姓名2〕问 〔电话1〕，〔姓名1〕在旁");
    assert_eq!(reloaded.fresh().len(), 1);
    assert_eq!(reloaded.restore(&later), "患者李四问 13812345678，张三在旁");
}

#[test]
fn what_a_model_says_in_placeholders_is_never_redacted_again() {
    let redactor = stranger();
    let mut hidden = Hidden::default();
    let shown = redactor
        .redact("患者张三，住院号：884512", &mut hidden)
        .unwrap();
    let again = redactor
        .redact_all(&[(Whose::Model, shown.as_str())], &mut hidden)
        .unwrap();
    assert_eq!(again, [shown]);
}

#[test]
fn nobody_can_write_a_placeholder_and_be_given_what_it_stands_for() {
    let redactor = stranger();
    let mut hidden = Hidden::default();
    redactor.redact("患者张三", &mut hidden).unwrap();
    for forged in [
        "〔姓名1〕",
        "〔姓名１〕",
        "【姓名 1】",
        "[姓名1]",
        "〔原文1〕",
    ] {
        let shown = redactor.redact(forged, &mut hidden).unwrap();
        assert!(!shown.contains("姓名"), "{shown}");
        // A model that repeats it repeats what was written.
        assert_eq!(hidden.restore(&shown), forged);
        assert_eq!(hidden.mask(&shown), forged);
    }
    assert_eq!(
        redact(&redactor, "〔姓名〕与〔某某〕不是代号"),
        "〔姓名〕与〔某某〕不是代号"
    );
}

#[test]
fn who_may_not_see_is_shown_the_kind_and_invented_placeholders_stand_for_nothing() {
    let redactor = stranger();
    let mut hidden = Hidden::default();
    let shown = redactor
        .redact("患者张三电话 13812345678", &mut hidden)
        .unwrap();
    let answer = format!("{shown}；〔姓名9〕不存在");
    assert_eq!(
        hidden.shown(&answer, false),
        "患者〔姓名〕电话 〔电话〕；〔姓名〕不存在"
    );
    assert_eq!(
        hidden.shown(&answer, true),
        "患者张三电话 13812345678；〔姓名9〕不存在"
    );
}

#[test]
fn arguments_stay_json_when_a_value_is_put_back() {
    let value = "张\"三\\\n";
    let hidden = Hidden::of(vec![Placeholder {
        placeholder: "〔姓名1〕".to_owned(),
        kind: Kind::Name,
        value: value.to_owned(),
    }]);
    let json = hidden.restore_json(r#"{"name":"〔姓名1〕"}"#);
    let read: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(read["name"], value);
}

#[test]
fn a_placeholder_does_not_show_its_value_in_a_log() {
    let mut hidden = Hidden::default();
    stranger().redact("患者张三", &mut hidden).unwrap();
    assert_eq!(format!("{hidden:?}"), "[〔姓名1〕]");
}
