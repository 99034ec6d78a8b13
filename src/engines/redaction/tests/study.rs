//! What the study itself knows: the values of identifying fields, wherever they stand.

use super::*;

fn fields() -> Vec<Field> {
    vec![
        field("record_id", "编号"),
        flagged("pname", "姓名"),
        flagged("mrn", "住院号"),
        Field {
            validation: "date_ymd".to_owned(),
            ..field("dob", "出生日期")
        },
        flagged("sex2", "性别"),
        flagged("initials", "缩写"),
        flagged("note", "备注"),
        field("phone", "手机号"),
        field("drug", "药品名称"),
    ]
}

fn redactor() -> Redactor {
    redactor_of(
        &fields(),
        &[
            &[
                "P001",
                "蔺相如",
                "884512",
                "1968-05-12",
                "1",
                "LXR",
                "",
                "62345678",
                "奥希替尼",
            ],
            &[
                "P002",
                "Zhang San",
                "ZY-0042",
                "1971-12-01",
                "2",
                "ZS",
                "曾任某厂厂长",
                "",
                "卡铂",
            ],
            &["P003", "不详", "1", "", "", "是", "无", "13900001111", ""],
        ],
    )
}

#[test]
fn values_of_identifying_fields_are_hidden_wherever_they_stand_and_however_they_are_written() {
    let redactor = redactor();
    for (text, value) in [
        ("昨天蔺相如来复诊", "蔺相如"),
        ("昨天蔺 相 如来复诊", "蔺 相 如"),
        ("蔺\u{200b}相如", "相如"),
        ("ZHANG  SAN came", "ZHANG"),
        ("Ｚｈａｎｇ Ｓａｎ", "Ｚｈａｎｇ"),
        ("号码 884512。", "884512"),
        ("号码８８４５１２", "８８４５１２"),
        ("zy-0042 的化验", "zy-0042"),
        ("1968-05-12 那天", "1968-05-12"),
        ("1968年5月12日", "1968年5月12日"),
        ("19680512", "19680512"),
        ("1968/5/12", "1968/5/12"),
        ("12 May 1968", "12 May 1968"),
        ("他曾任某厂厂长。", "厂长"),
        ("打 62345678", "62345678"),
        ("139-0000-1111", "139-0000-1111"),
        (r#"{"sex2":"1","drug":"卡铂"}"#, "\"1\""),
        (r#"{"sex2": 1}"#, ": 1"),
        (r#"{\"sex2\":\"2\"}"#, "\\\"2\\\""),
        ("性别：男，年龄 45", "男"),
        ("缩写：LXR", "LXR"),
        ("initials=ZS", "ZS"),
    ] {
        let shown = redact(&redactor, text);
        assert!(!shown.contains(value), "{text}: {shown}");
    }
}

#[test]
fn a_value_that_says_nothing_by_itself_hides_nothing_elsewhere() {
    let redactor = redactor();
    for text in [
        "第 1 次访视，共 2 例，是",
        "ZS 评分 1 分，不详",
        "既往无特殊",
        "V3 与 P001 的 C1D1，奥希替尼 80 mg，卡铂 AUC 5",
        "1884512 与 884512.5、88451 都是别的数",
        "日期 2026-05-12",
        r#"{"withheld":{"pname":"姓名","sex2":"性别"}}"#,
        "record P003，dose 1",
    ] {
        assert_eq!(redact(&redactor, text), text);
    }
}

#[test]
fn record_ids_stay_unless_the_dictionary_flags_them() {
    let rows: &[&[&str]] = &[&["13812345678"], &["G12345678"], &["021-65432100"]];
    let text = "质控 13812345678、G12345678 和 021-65432100，电话 13812345679";
    let stays = redactor_of(&[field("record_id", "编号")], rows);
    assert_eq!(
        redact(&stays, text),
        "质控 13812345678、G12345678 和 021-65432100，电话 〔电话1〕"
    );
    let hides = redactor_of(&[flagged("record_id", "编号")], rows);
    assert!(!redact(&hides, text).contains("G12345678"));
}

#[test]
fn a_dictionary_that_flags_nothing_is_read_by_names_and_labels() {
    let fields = [
        field("record_id", "编号"),
        field("patient_name", "患者"),
        field("x1", "家庭住址："),
        Field {
            validation: "email".to_owned(),
            ..field("x2", "其他")
        },
        field("drug_name", "药品名称"),
    ];
    let rows: &[&[&str]] = &[&["1", "禽滑厘", "望京某院", "a@b.cn", "奥希替尼片"]];
    let shown = redact(
        &redactor_of(&fields, rows),
        "禽滑厘住望京某院，服奥希替尼片",
    );
    assert_eq!(shown, "〔姓名1〕住〔地址1〕，服奥希替尼片");
}

#[test]
fn patterns_of_the_project_file_hide_their_group_or_all_they_match() {
    let patterns = vec![r"随访卡(\w+)".to_owned(), r"SX\d{4}".to_owned()];
    let redactor = redactor_with(&[field("record_id", "编号")], &[], &patterns);
    assert_eq!(
        redact(&redactor, "随访卡abc，SX2041"),
        "随访卡〔标识1〕，〔标识2〕"
    );
    let broken = vec!["(".to_owned()];
    let study = Study {
        dictionary: &Dictionary::default(),
        records: &[],
        people: &[],
        patterns: &broken,
    };
    assert!(
        Redactor::new(&study)
            .unwrap_err()
            .to_string()
            .contains("第 1 条")
    );
}

#[test]
fn staff_of_the_study_are_people_too() {
    let people = ["沙僧".to_owned(), String::new()];
    let study = Study {
        dictionary: &Dictionary::default(),
        records: &[],
        people: &people,
        patterns: &[],
    };
    let shown = redact(&Redactor::new(&study).unwrap(), "由沙僧录入");
    assert_eq!(shown, "由〔姓名1〕录入");
}
