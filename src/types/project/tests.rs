#![allow(
    clippy::unwrap_used,
    reason = "a failed expectation is the test's verdict"
)]
use super::*;

const WHOLE: &str = r#"id = "lung"
name = "肺癌"
[edc]
kind = "redcap_files"
dir = "study"
[fields]
consent_date = "icf_date"
guardian_consent_date = ""
[[members]]
wecom_user = "ZhangSan"
role = "pi"
[[members]]
wecom_user = "LiSi"
role = "crc"
[report]
weekly = "0 9 * * 1"
recipients = ["admins", "lisi"]
sections = ["enrollment", "deviations"]
[groups]
admins = ["zhangsan"]
"#;

/// The refusal of the file with one text replaced by another.
fn refusal(old: &str, new: &str) -> String {
    assert!(WHOLE.contains(old), "{old}");
    let text = ProjectFile::parse(&WHOLE.replace(old, new))
        .unwrap_err()
        .to_string();
    assert!(!text.contains('\n'), "{text}");
    text
}

#[test]
fn a_file_from_a_windows_editor_is_the_same_file() {
    let plain = ProjectFile::parse(WHOLE).unwrap();
    assert_eq!(plain.oddities(), Vec::<String>::new());
    let windows = format!("\u{feff}{}", WHOLE.replace('\n', "\r\n"));
    assert_eq!(ProjectFile::parse(&windows).unwrap(), plain);
}

#[test]
fn what_would_quietly_disable_a_check_or_a_report_is_refused_with_its_key_and_a_remedy() {
    insta::assert_snapshot!(
        [
            refusal("consent_date = \"icf", "consent_dat = \"icf"),
            refusal("consent_date = \"icf", "blood_group = \"icf"),
            refusal("\"LiSi\"", "\"ZHANGSAN\""),
            refusal("\"LiSi\"", "\" \""),
            refusal("\"lisi\"", "\"admin\""),
            refusal("\"lisi\"", "\"boss\""),
            refusal("\"enrollment\"", "\"enrolment\""),
            refusal("\"enrollment\"", "\"天气\""),
            refusal("id = \"lung\"", "id = \"lung 01\""),
            refusal("id = \"lung\"", "id = \"lung\"\ntimezone = \"Beijing\""),
        ]
        .join("\n")
    );
}

#[test]
fn a_fault_of_syntax_is_one_sentence_with_its_line_and_column() {
    insta::assert_snapshot!(
        [
            refusal("name = \"肺癌\"", "name = \"肺癌"),
            refusal("name = \"肺癌\"", "name = \"肺癌\"\nnam = 1"),
            refusal("role = \"crc\"", "role = \"boss\""),
            refusal("name = \"肺癌\"\n", ""),
            refusal("[groups]", "[groups"),
        ]
        .join("\n")
    );
}

#[test]
fn a_group_that_reaches_nobody_known_is_odd() {
    let text = WHOLE.replace("[\"zhangsan\"]", "[\"WangWu\"]\nnobody = []");
    insta::assert_snapshot!(ProjectFile::parse(&text).unwrap().oddities().join("\n"));
}

#[test]
fn who_may_see_what_identifies_a_subject_is_decided_by_the_strictest_reader() {
    let file = ProjectFile::parse(&WHOLE.replace(
        "[report]",
        "[[members]]\nwecom_user = \"Dm\"\nrole = \"dm\"\n[report]",
    ))
    .unwrap();
    let may = |readers: &[&str]| file.may_see_identifiers(readers.iter().copied());
    assert!(may(&["zhangsan"]) && may(&["ZhangSan", "LiSi"]));
    assert!(!may(&["dm"]) && !may(&["ZhangSan", "Dm"]));
    assert!(!may(&["a stranger"]) && !may(&[]));
    let strict = WHOLE.to_owned() + "[privacy]\nsee_identifiers = []\n";
    let strict = ProjectFile::parse(&strict).unwrap();
    assert!(!strict.may_see_identifiers(["ZhangSan"]));
}

#[test]
fn a_pattern_that_can_not_work_or_hides_everything_is_refused() {
    let refused = |pattern: &str| {
        let text = format!("{WHOLE}[privacy]\npatterns = ['SX\\d+', '{pattern}']\n");
        ProjectFile::parse(&text).unwrap_err().to_string()
    };
    insta::assert_snapshot!([refused("("), refused("\\d*"), refused(&"x".repeat(2000))].join("\n"));
}
