//! Reading, searching and checking single subjects.

use serde_json::{Value, json};

use super::{Subject, five, study, told};

/// The value of a field at its first place.
fn first<'a>(value: &'a Value, field: &str) -> &'a Value {
    let fields = value["fields"].as_array().unwrap();
    let row = fields.iter().find(|row| row["field"] == field).unwrap();
    &row["values"][0]
}

#[tokio::test]
async fn names_people_use_are_mapped_and_what_was_taken_for_what_is_told() {
    let rig = five();
    let args = json!({ "record_id": "S001", "fields": ["岁数", "年龄", "ＳＥＸ", "收缩压"] });
    let read = rig.ok("read_clinical_data", args).await;
    insta::assert_json_snapshot!(told(&read));
    assert!(read.unmapped.is_empty());
}

#[tokio::test]
async fn a_name_that_means_no_field_or_several_is_not_guessed_and_is_kept() {
    let rig = five();
    let args = json!({ "record_id": "S001", "fields": ["年龄", "aeterms", "日期", "血型"] });
    let read = rig.ok("read_clinical_data", args).await;
    assert_eq!(read.value["fields"].as_array().unwrap().len(), 1);
    assert_eq!(read.unmapped, ["aeterms", "日期", "血型"]);
    insta::assert_json_snapshot!(read.notes);
    let none = rig
        .call(
            "read_clinical_data",
            json!({ "record_id": "S001", "fields": ["血型"] }),
        )
        .await
        .unwrap_err();
    assert_eq!(none.unmapped(), ["血型"]);
    insta::assert_snapshot!(none.to_string(), @"没有名为“血型”的字段");
}

#[tokio::test]
async fn a_blank_says_what_kind_of_blank_it_is() {
    let rig = five();
    let state = async |record: &str, field: &str| {
        let args = json!({ "record_id": record, "fields": [field] });
        let read = rig.ok("read_clinical_data", args).await;
        let value = first(&read.value, field);
        format!(
            "{} {}",
            value["value"],
            value["state"].as_str().unwrap_or("-")
        )
    };
    insta::assert_snapshot!(state("S003", "age").await, @"null 空白（未填写）");
    insta::assert_snapshot!(state("S001", "preg").await, @"null 空白（分支逻辑隐藏，不适用）");
    insta::assert_snapshot!(state("S002", "sbp").await, @r#""NI" 缺失码：没有资料"#);
    insta::assert_snapshot!(state("S002", "vs_date").await, @r#""2026-04" 日期不完整，不作推测"#);
    insta::assert_snapshot!(state("S004", "age").await, @r#""十七" 值不符合字段类型"#);
    insta::assert_snapshot!(state("S004", "guardian_date").await, @"null 空白（未填写）");
}

#[tokio::test]
async fn nothing_there_is_told_in_friendly_words_and_no_number_is_made_up() {
    let rig = five();
    let args = json!({ "record_id": "S004", "fields": ["收缩压", "不良事件名称"] });
    let read = rig.ok("read_clinical_data", args).await;
    insta::assert_json_snapshot!(told(&read));
}

#[tokio::test]
async fn a_whole_subject_shows_what_has_a_value_with_its_visit_and_instance() {
    let read = five()
        .ok("read_clinical_data", json!({ "record_id": "s001" }))
        .await;
    insta::assert_json_snapshot!(told(&read));
    assert_eq!(read.identifiers, ["pt_name"]);
    let week = five()
        .ok(
            "read_clinical_data",
            json!({ "record_id": "S001", "event": "第2周", "fields": "收缩压" }),
        )
        .await;
    assert_eq!(
        week.value["fields"][0]["values"].as_array().unwrap().len(),
        1
    );
    assert_eq!(first(&week.value, "sbp")["value"], "130");
}

#[tokio::test]
async fn a_record_that_does_not_exist_is_never_replaced_by_a_neighbour() {
    let rig = five();
    let refused = rig
        .refused("read_clinical_data", json!({ "record_id": "S0001" }))
        .await;
    insta::assert_snapshot!(refused, @"研究里没有受试者“S0001”，编号相近的有 S001、S002、S003；请与提问者核对，不要自行更换");
    let mut rig = five();
    rig.record = Some("S002".to_owned());
    for tool in ["read_clinical_data", "check_ethics_compliance"] {
        let refused = rig.refused(tool, json!({ "record_id": "S001" })).await;
        assert_eq!(
            refused,
            "本次只能查看受试者 S002 的数据，不能查看其他受试者"
        );
    }
    let found = rig.ok("search_records", json!({})).await;
    assert_eq!(
        (found.value["matched"].clone(), found.records),
        (json!(1), vec!["S002".to_owned()])
    );
    let counted = rig.ok("aggregate", json!({ "op": "count" })).await;
    assert_eq!(counted.value["value"], 1);
    let refused = rig.refused("get_project_stats", json!({})).await;
    assert!(refused.contains("S002"), "{refused}");
}

#[tokio::test]
async fn who_cannot_be_judged_is_counted_and_not_dropped() {
    let rig = five();
    let args = json!({
        "filter": { "and": [{ "==": [{ "var": "性别" }, "女"] }, { ">=": [{ "var": "年龄" }, 18] }] },
        "fields": ["年龄", "sex"],
    });
    let found = rig.ok("search_records", args).await;
    insta::assert_json_snapshot!(told(&found));
}

#[tokio::test]
async fn the_recently_enrolled_come_first_and_those_without_a_date_last() {
    let found = five()
        .ok("search_records", json!({ "sort": "recent", "limit": 4 }))
        .await;
    assert_eq!(found.records, ["S005", "S002", "S001", "S003"]);
    insta::assert_json_snapshot!(told(&found));
    let rising = five()
        .ok(
            "search_records",
            json!({ "sort": "年龄", "order": "asc", "fields": [] }),
        )
        .await;
    assert_eq!(rising.records, ["S005", "S001", "S002", "S003", "S004"]);
    let refused = five()
        .refused("search_records", json!({ "sort": "性别" }))
        .await;
    assert!(refused.contains("不能用来排序"), "{refused}");
}

#[tokio::test]
async fn a_condition_on_events_shows_the_events_it_holds_for_and_not_the_others() {
    let args =
        json!({ "filter": { "==": [{ "var": "aeser" }, "1"] }, "fields": ["aeterm", "age"] });
    let found = five().ok("search_records", args).await;
    assert_eq!(found.records, ["S001"]);
    assert_eq!(found.value["rows"][0]["aeterm"], "第2周 第2条：肺炎");
    assert_eq!(found.value["not_evaluable"], 1, "S002's event says nothing");
    insta::assert_json_snapshot!(found.notes);
}

#[tokio::test]
async fn long_lists_are_cut_with_a_word_how_to_ask_for_more() {
    let subjects = (0..200)
        .map(|n| {
            Subject::new(
                &format!("P{n:03}"),
                &[("age", "40"), ("pt_name", &"长".repeat(50))],
            )
        })
        .collect();
    let found = study(subjects)
        .ok(
            "search_records",
            json!({ "fields": ["pt_name"], "limit": 500 }),
        )
        .await;
    let rows = found.value["rows"].as_array().unwrap().len();
    assert!(rows < 50 && found.value["matched"] == 200, "{rows}");
    assert!(found.value.to_string().len() < 7_000);
    assert!(
        found
            .notes
            .iter()
            .any(|note| note.contains(&format!("还有 {} 例没有显示", 200 - rows)))
    );
    assert_eq!(found.records.len(), rows);
}

#[tokio::test]
async fn a_condition_that_is_none_is_refused_with_its_place() {
    let rig = five();
    for (filter, said) in [
        (json!({ "=": [{ "var": "age" }, 1] }), "="),
        (json!({ "==": [{ "var": "sex" }, "3"] }), "3"),
        (
            json!({ "<": [{ "var": "pt_name" }, 3] }),
            "text has no order",
        ),
        (json!({ "==": [{ "var": "血型" }, "A"] }), "血型"),
        (
            json!({ ">": [{ "var": "nowhere_event.age" }, 1] }),
            "nowhere_event",
        ),
        (json!("age > 3"), "JSON Logic"),
        (json!([1]), "JSON Logic"),
    ] {
        let refused = rig
            .refused("search_records", json!({ "filter": filter }))
            .await;
        assert!(refused.contains(said), "{filter}: {refused}");
    }
    // A condition by a wrong name would otherwise be none at all, and everybody would match.
    let refused = rig
        .refused(
            "search_records",
            json!({ "where": { "==": [{ "var": "sex" }, "2"] } }),
        )
        .await;
    assert!(refused.contains("where"), "{refused}");
}

#[tokio::test]
async fn a_visit_is_judged_with_inclusive_bounds_and_open_dates_stay_open() {
    let rig = five();
    let text = async |record: &str, visit: &str, date: Option<&str>| {
        let args = json!({ "record_id": record, "visit_id": visit, "actual_date": date });
        let told = rig.ok("check_visit_window", args).await;
        told.value["text"].as_str().unwrap().to_owned()
    };
    let whole = rig
        .ok(
            "check_visit_window",
            json!({ "record_id": "S001", "visit_id": "w2" }),
        )
        .await;
    insta::assert_json_snapshot!(told(&whole));
    insta::assert_snapshot!(text("S001", "W1", None).await, @"受试者 S001 的 W1 访视日期 2026-03-09 在窗口 Day 5 - Day 9（2026-03-07 至 2026-03-11） 内");
    insta::assert_snapshot!(text("S003", "W1", None).await, @"受试者 S003 的 W1 访视日期 2026-02-20 超出窗口 Day 5 - Day 9（2026-02-07 至 2026-02-11），偏离 9 天");
    insta::assert_snapshot!(text("S002", "W1", None).await, @"受试者 S002 的 W1 访视无法判定是否在窗口 Day 5 - Day 9（2026-04-06 至 2026-04-10） 内：访视日期“2026-04”日期不完整，不作推测");
    insta::assert_snapshot!(text("S004", "W1", Some("2026-05-10")).await, @"受试者 S004 的 W1 访视无法判定是否在窗口 Day 5 - Day 9 内：锚点日期空白（未填写）");
    insta::assert_snapshot!(text("S003", "W2", None).await, @"受试者 S003 的 W2 访视无法判定是否在窗口 Day 12 - Day 16（2026-02-14 至 2026-02-18） 内：访视日期尚未填写");
    insta::assert_snapshot!(text("S005", "W1", Some("2026-05-10")).await, @"受试者 S005 的 W1 访视无法判定是否在窗口 Day 5 - Day 9 内：锚点日期“2026-05”日期不完整，不作推测");
    for (days, inside) in [(4, false), (5, true), (9, true), (10, false)] {
        let date = super::day("2026-03-02") + chrono::Days::new(days);
        let args = json!({ "record_id": "S001", "visit_id": "W1", "actual_date": date });
        let told = rig.ok("check_visit_window", args).await;
        assert_eq!(told.value["inWindow"], inside, "day {days}");
        assert_eq!(told.value["deviation"], u8::from(!inside), "day {days}");
    }
    for args in [
        json!({ "record_id": "S001", "visit_id": "W9" }),
        json!({ "record_id": "S001", "visit_id": "W1", "actual_date": "2026/03/09" }),
        json!({ "record_id": "S001", "visit_id": "W1", "actual_date": "2026-02-30" }),
        json!({ "record_id": "S001" }),
    ] {
        rig.refused("check_visit_window", args).await;
    }
}

#[tokio::test]
async fn ethics_is_checked_and_what_the_study_has_not_told_is_not_passed() {
    let mut rig = five();
    for record in ["S001", "S002", "S003", "S004", "S005"] {
        let told = rig
            .ok("check_ethics_compliance", json!({ "record_id": record }))
            .await;
        insta::assert_json_snapshot!(format!("ethics_{record}"), told.value["checks"]);
    }
    rig.project.file.fields.remove("vulnerable_population");
    rig.project.file.fields.remove("consent_date");
    for check in ["informed_consent", "vulnerable_population"] {
        let args = json!({ "record_id": "S001", "check_type": check });
        let told = rig.ok("check_ethics_compliance", args).await;
        assert_eq!(told.value["checks"][0]["result"], "not_evaluable");
        assert_eq!(told.notes.len(), 1);
    }
    let refused = rig
        .refused(
            "check_ethics_compliance",
            json!({ "record_id": "S001", "check_type": "all" }),
        )
        .await;
    assert!(refused.contains("informed_consent"), "{refused}");
}
