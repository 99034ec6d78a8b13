//! Which figures of an answer stand.

use super::super::{
    End, texts,
    thread::{Given, Question, Said},
    verify::Evidence,
};
use super::{failed, given, question, today};

fn unverified(results: &[&str], answer: &str) -> Vec<String> {
    let mut said = vec![Said::Question(Question {
        text: "近三个月入组的女性平均年龄？P001 也算".to_owned(),
        records: vec!["P001".to_owned()],
        ..Question::default()
    })];
    said.extend(results.iter().map(|result| given("1", result)));
    Evidence::of(&said, today()).unverified(answer)
}

const MEAN: &str = r#"{"op":"mean","field":"age","value":35.666666666666664,"n":12,"missing":1}
说明：共 1234 例，其中女性占 0.452；C1D1 访视日 2026-03-02 14:05"#;

#[test]
fn a_figure_of_the_results_stands_however_it_is_written() {
    for answer in [
        "平均 35.67 岁（n=12，缺失 1 例）",
        "平均35.7岁，约 36 岁",
        "１２ 例",
        "十二例",
        "共 1,234 例",
        "45.2% 为女性",
        "三个月内",
        "2026年3月2日 14:05（C1D1）",
        "3月2日",
        "2026 年 3 月",
        "今天是 2026-11-30",
        "1. P001\n2. 其余 12 例",
        "白细胞单位 10^9/L，第 2 次访视，CD4 未查",
        "12.0 例",
        "-12 天",
    ] {
        assert_eq!(
            unverified(&[MEAN], answer),
            Vec::<String>::new(),
            "{answer}"
        );
    }
}

#[test]
fn a_figure_that_stands_nowhere_is_named() {
    for (answer, wanted) in [
        ("35. 另有说明", vec!["35"]),
        ("平均 36 岁", vec!["36"]),
        ("平均 35.6 岁", vec!["35.6"]),
        ("平均 35.67 岁，中位数 34", vec!["34"]),
        ("十三例", vec!["十三例"]),
        ("46% 为女性", vec!["46%"]),
        ("12% 为女性，120 例", vec!["120"]),
        ("2026-03-03", vec!["2026-03-03"]),
        ("4月2日", vec!["4月2日"]),
        ("14:06", vec!["14:06"]),
        ("P001 与 P002", vec!["P002"]),
        ("13，13 与 13", vec!["13"]),
        // Full-width points are read as points.
        ("1．5 例", vec!["1.5"]),
    ] {
        assert_eq!(unverified(&[MEAN], answer), wanted, "{answer}");
    }
}

#[test]
fn what_a_failed_call_says_and_what_was_said_before_prove_nothing() {
    let said = [
        Said::System("今天查 77 次".to_owned()),
        question("多少例？"),
        failed("1"),
        Said::Result(Given {
            id: "2".to_owned(),
            ok: false,
            content: "最多 50 行".to_owned(),
            ..Given::default()
        }),
        Said::Correction("例如 88".to_owned()),
    ];
    let evidence = Evidence::of(&said, today());
    assert_eq!(evidence.unverified("77、50、88 例"), ["77", "50", "88"]);
}

#[test]
fn the_subjects_an_answer_lists_may_be_counted() {
    let said = [
        question("最近入组的病人？"),
        Said::Result(Given {
            id: "1".to_owned(),
            ok: true,
            content: r#"[{"id":"P001"},{"id":"P002"},{"id":"P003"}]"#.to_owned(),
            records: ["P001", "P002", "P003"].map(str::to_owned).to_vec(),
            record_count: 3,
            ..Given::default()
        }),
    ];
    let evidence = Evidence::of(&said, today());
    for fine in [
        "共三例：P001、P002、P003",
        "其中两位女性：P001、P003",
        "共 3 例",
    ] {
        assert_eq!(evidence.unverified(fine), Vec::<String>::new(), "{fine}");
    }
    assert_eq!(
        evidence.unverified("共 4 例：P001、P002、P003、P104"),
        ["4", "P104"],
        "and nobody may be added"
    );
}

#[test]
fn an_answer_names_what_it_rests_on_within_bounds() {
    let taken = chrono::DateTime::parse_from_rfc3339("2026-11-30T02:30:00Z")
        .unwrap()
        .to_utc();
    let many: Vec<String> = (1..=40).map(|n| format!("P{n:03}")).collect();
    let result = |records: &[String], sources: &[&str], data: &str| {
        Said::Result(Given {
            id: "1".to_owned(),
            ok: true,
            content: "{}".to_owned(),
            records: records.to_vec(),
            record_count: records.len(),
            sources: sources.iter().map(|source| (*source).to_owned()).collect(),
            data: Some(data.to_owned()),
            taken_at: Some(taken),
            ..Given::default()
        })
    };
    let zone = chrono_tz::Asia::Shanghai;
    let one = &many[..1];
    let texts = [
        texts::answer("你好", &[], &[question("你好")], zone),
        texts::answer("45 岁", &[], &[result(one, &[], "a")], zone),
        texts::answer(
            "平均 36 岁",
            &["36".to_owned()],
            &[result(&many, &[], "a"), result(one, &[], "b")],
            zone,
        ),
        texts::answer(
            "±3 天",
            &[],
            &[result(
                &[],
                &["《方案》V2.0 §5.2", "《方案》V2.0 §5.2"],
                "a",
            )],
            zone,
        ),
        texts::answer("共 12 例", &[], &[result(&[], &[], "a")], zone),
        texts::change("请确认是否启动？", true),
        End::ToolsFail.text().to_owned(),
    ];
    insta::assert_snapshot!(texts.join("\n---\n"));
}

#[test]
fn neighbours_in_a_list_are_read_as_two_numbers() {
    let said = [question("年龄？"), given("1", r#"{"ages":[45,120,130]}"#)];
    let evidence = Evidence::of(&said, today());
    assert_eq!(evidence.unverified("45、120 和 130"), Vec::<String>::new());
}

#[test]
fn the_question_s_own_subjects_are_known() {
    let said = [Said::Question(Question {
        text: "他多大？".to_owned(),
        records: vec!["01-701-1015".to_owned()],
        ..Question::default()
    })];
    let evidence = Evidence::of(&said, today());
    assert_eq!(
        evidence.unverified("01-701-1015 没有年龄"),
        Vec::<String>::new()
    );
}
