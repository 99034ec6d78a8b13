//! Figures: what they rest on, and that they are right.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Subject, five, study, told};

#[tokio::test]
async fn a_mean_says_of_how_many_and_who_is_missing() {
    let rig = five();
    let mean = rig
        .ok("aggregate", json!({ "op": "mean", "field": "年龄" }))
        .await;
    insta::assert_json_snapshot!(told(&mean));
    let women = rig
        .ok(
            "aggregate",
            json!({
                "op": "mean", "field": "age", "filter": { "==": [{ "var": "sex" }, "女"] },
            }),
        )
        .await;
    assert_eq!(
        (&women.value["value"], &women.value["n"]),
        (&json!(60), &json!(1))
    );
}

#[tokio::test]
async fn values_of_several_visits_are_never_thrown_together() {
    let rig = five();
    let mean = rig
        .ok("aggregate", json!({ "op": "mean", "field": "sbp" }))
        .await;
    assert_eq!(mean.value.get("value"), None);
    insta::assert_json_snapshot!(told(&mean));
    let first = rig
        .ok(
            "aggregate",
            json!({ "op": "max", "field": "sbp", "event": "第1周" }),
        )
        .await;
    assert_eq!(
        (&first.value["value"], &first.records[..]),
        (&json!(140), &["S003".to_owned()][..])
    );
}

#[tokio::test]
async fn serious_events_are_counted_and_not_the_events_of_who_had_one() {
    let rig = five();
    let args =
        json!({ "op": "count", "field": "aeterm", "filter": { "==": [{ "var": "aeser" }, "1"] } });
    let count = rig.ok("aggregate", args).await;
    assert_eq!(
        (&count.value["value"], &count.value["records"]),
        (&json!(1), &json!(1))
    );
    insta::assert_json_snapshot!(told(&count));
    // Asked about people, a condition on their events means any of them, and each counts once.
    let args =
        json!({ "op": "mean", "field": "age", "filter": { "!=": [{ "var": "aeterm" }, "皮疹"] } });
    let mean = rig.ok("aggregate", args).await;
    assert_eq!(
        (&mean.value["value"], &mean.value["n"]),
        (&json!(45), &json!(1))
    );
}

#[tokio::test]
async fn groups_have_a_place_for_those_without_one() {
    let rig = five();
    let by = async |group: &str| {
        let counted = rig
            .ok("aggregate", json!({ "op": "count", "group_by": group }))
            .await;
        counted.value["groups"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| format!("{} {}", row["group"].as_str().unwrap(), row["n"]))
            .collect::<Vec<_>>()
            .join("; ")
    };
    insta::assert_snapshot!(by("性别").await, @"1（男） 2; 2（女） 3");
    insta::assert_snapshot!(by("中心").await, @"site_a 3; site_b 2");
    insta::assert_snapshot!(by("入组日期").await, @"2026-02 1; 2026-03 1; 2026-04 1; 2026-05 1; （空白（未填写）） 0");
    insta::assert_snapshot!(by("慢性病").await, @"1（高血压） 1; （空白（未填写）） 0");
    insta::assert_snapshot!(by("aeser").await, @"0（否） 1; 1（是） 1; （空白（未填写）） 0");
}

#[tokio::test]
async fn the_first_or_the_last_of_each_subject_can_be_asked_for() {
    let rig = five();
    let earliest = async |take: &str| {
        let args = json!({ "op": "min", "field": "ae_start", "take": take });
        let told = rig.ok("aggregate", args).await;
        format!(
            "{} n={} 缺日={}",
            told.value["value"], told.value["n"], told.value["partial_dates"]
        )
    };
    assert_eq!(earliest("first").await, "\"2026-03-10\" n=2 缺日=null");
    assert_eq!(earliest("latest").await, "\"2026-04-03\" n=1 缺日=1");
    assert_eq!(earliest("each").await, "\"2026-03-10\" n=2 缺日=1");
}

#[tokio::test]
async fn what_cannot_be_computed_is_refused() {
    let rig = five();
    for (args, said) in [
        (json!({ "op": "mean" }), "field"),
        (json!({ "op": "mean", "field": "sex" }), "不是数值字段"),
        (
            json!({ "op": "median", "field": "icf_date" }),
            "不是数值字段",
        ),
        (
            json!({ "op": "max", "field": "aeterm" }),
            "不是数值或日期字段",
        ),
        (
            json!({ "op": "mean", "field": "age", "group_by": "aeser" }),
            "event.field",
        ),
        (json!({ "op": "count", "event": "第1周" }), "event"),
        (
            json!({ "op": "count", "field": "age", "event": "第9周" }),
            "第9周",
        ),
        (json!({ "op": "avg", "field": "age" }), "avg"),
    ] {
        let refused = rig.refused("aggregate", args.clone()).await;
        assert!(refused.contains(said), "{args}: {refused}");
    }
    let nobody = rig
        .ok(
            "aggregate",
            json!({ "op": "sum", "field": "age", "filter": { ">": [{ "var": "age" }, 200] } }),
        )
        .await;
    assert_eq!(
        nobody.value["value"],
        Value::Null,
        "a sum of nothing is not 0"
    );
}

/// What may stand in a number field.
#[derive(Debug, Clone)]
enum Cell {
    Number(i32),
    Blank,
    Coded,
    Garbage,
}

impl Cell {
    fn text(&self) -> String {
        match self {
            Self::Number(x) => format!("{}.{}", x / 10, (x % 10).abs()),
            Self::Blank => String::new(),
            Self::Coded => "NI".to_owned(),
            Self::Garbage => "<5".to_owned(),
        }
    }

    fn number(&self) -> Option<f64> {
        match self {
            Self::Number(_) => self.text().parse().ok(),
            _ => None,
        }
    }
}

fn cell() -> impl Strategy<Value = Cell> {
    prop_oneof![
        6 => (0..2_500i32).prop_map(Cell::Number),
        1 => Just(Cell::Blank),
        1 => Just(Cell::Coded),
        1 => Just(Cell::Garbage),
    ]
}

/// By plain loops.
fn expected(op: &str, values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    match op {
        "count" => Some(n as f64),
        _ if n == 0 => None,
        "sum" => Some(values.iter().sum()),
        "mean" => Some(values.iter().sum::<f64>() / n as f64),
        "min" => sorted.first().copied(),
        "max" => sorted.last().copied(),
        _ if n % 2 == 1 => Some(sorted[n / 2]),
        _ => Some((sorted[n / 2 - 1] + sorted[n / 2]) / 2.0),
    }
}

fn close(told: &Value, expected: Option<f64>) -> bool {
    match (told.as_f64(), expected) {
        (Some(told), Some(expected)) => (told - expected).abs() <= 1e-4,
        (None, None) => told.is_null(),
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_figure_is_what_a_plain_loop_finds(
        subjects in prop::collection::vec((prop::option::of(1..3u8), cell(), prop::option::of(cell())), 0..30),
        op in prop::sample::select(vec!["count", "sum", "mean", "min", "max", "median"]),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut visits: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        let mut men: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        let mut undecided = 0;
        let made = subjects.iter().enumerate().map(|(n, (sex, first, second))| {
            let sex_text = sex.map(|sex| sex.to_string()).unwrap_or_default();
            undecided += usize::from(sex.is_none());
            let subject = Subject::new(&format!("P{n}"), &[("sex", &sex_text), ("age", "40")])
                .visit("w1_arm_1", &[("sbp", &first.text()), ("vs_date", "2026-01-01")]);
            let mut note = |event, cell: &Cell| {
                if let Some(x) = cell.number() {
                    visits.entry(event).or_default().push(x);
                    if *sex == Some(1) {
                        men.entry(event).or_default().push(x);
                    }
                }
            };
            note("w1_arm_1", first);
            match second {
                None => subject,
                Some(second) => {
                    note("w2_arm_1", second);
                    subject.visit("w2_arm_1", &[("sbp", &second.text()), ("vs_date", "2026-01-08")])
                }
            }
        }).collect();
        let rig = runtime.block_on(async { study(made) });
        for (filter, wanted, undecided) in [
            (json!(null), &visits, 0),
            (json!({ "==": [{ "var": "sex" }, "1"] }), &men, undecided),
        ] {
            let told = runtime.block_on(rig.ok("aggregate", json!({ "op": op, "field": "sbp", "filter": filter })));
            prop_assert_eq!(&told.value["not_evaluable"], &json!(undecided));
            for (event, values) in wanted {
                let groups = told.value["groups"].as_array().unwrap();
                let row = groups.iter().find(|row| row["event"] == *event).unwrap();
                prop_assert_eq!(&row["n"], &json!(values.len()));
                prop_assert!(close(&row["value"], expected(op, values)), "{} {:?}", row, values);
            }
            let one = json!({ "op": op, "field": "sbp", "filter": filter, "event": "w1_arm_1" });
            let told = runtime.block_on(rig.ok("aggregate", one));
            let values = wanted.get("w1_arm_1").cloned().unwrap_or_default();
            let matched = told.value["subjects"] != 0;
            let wanted = expected(op, &values).filter(|_| matched || op == "count");
            prop_assert!(close(&told.value["value"], wanted), "{} {:?}", told.value, values);
        }
    }
}
