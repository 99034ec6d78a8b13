#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed expectation is the test's verdict"
)]
use super::*;
use crate::engines::router::message::Message;

fn ids(text: &str) -> Vec<String> {
    mentions(Message::new(text).plain())
        .into_iter()
        .flat_map(|m| m.ids)
        .collect()
}

fn trouble(text: &str) -> Option<Trouble> {
    mentions(Message::new(text).plain())
        .into_iter()
        .find_map(|m| m.trouble)
}

#[test]
fn every_pattern_compiles() {
    compile_all();
    shape::compile_all();
}

#[test]
fn every_shape_people_write_is_an_id() {
    for (text, expected) in [
        ("质控 ID=001", "001"),
        ("质控id：001", "001"),
        ("质控ＩＤ＝００１", "001"),
        ("id 001 怎么样", "001"),
        ("ID001 质控", "001"),
        ("record_id=7", "7"),
        ("质控编号：Ｐ００１", "P001"),
        ("P001", "P001"),
        ("检查p-001", "P-001"),
        ("受试者 12 质控", "12"),
        ("12号质控一下", "12"),
        ("12号病人", "12"),
        ("患者P001的年龄", "P001"),
        ("患者号12", "12"),
        ("编号 0012", "0012"),
        ("筛选号是 S1003", "S1003"),
        ("01-701-1015", "01-701-1015"),
        ("01－701－1015", "01-701-1015"),
        ("01–701–1015 的AE", "01-701-1015"),
        ("S01-002", "S01-002"),
        ("sub-01-003", "SUB-01-003"),
        ("331-1 的数据", "331-1"),
        ("质控331-1", "331-1"),
        ("01-002入组了吗", "01-002"),
        ("质控001", "001"),
        ("质控1015", "1015"),
        ("质控 12 吧", "12"),
        ("质控一下12", "12"),
        ("qc001", "001"),
        ("qcP001", "P001"),
        ("check p-001.", "P-001"),
        ("1015的年龄", "1015"),
        ("病人P1怎么样", "P1"),
        ("#12 质控", "12"),
        ("C01-001", "C01-001"),
        ("质控SHR_0012", "SHR_0012"),
    ] {
        assert_eq!(ids(text), [expected], "{text}");
    }
}

#[test]
fn numbers_that_are_no_ids_never_become_ids() {
    for text in [
        "2026-11-30",
        "2026/11/30 入组的",
        "2026.11.30",
        "30-11-2026",
        "20261130之后入组的",
        "11-30的访视",
        "11月12号",
        "12号之前补完",
        "本月15号",
        "18岁",
        "18-75岁",
        "患者18岁以上",
        "患者12例",
        "受试者5名",
        "V3",
        "访视3",
        "第3次访视",
        "第 12 周",
        "C1D1 给药",
        "W12",
        "5天",
        "3-5天",
        "前后3天",
        "13800138000",
        "质控13800138000",
        "电话010-12345678",
        "138-0013-8000",
        "10:30",
        "下午3点",
        "v2.6",
        "0.001",
        "p<0.05",
        "p=0.05",
        "p0.05",
        "COVID-19",
        "IL-6 升高",
        "PD-L1 表达",
        "CD4 计数",
        "CA125 升高",
        "HbA1c",
        "ECOG 1分",
        "ECOG1",
        "CTCAE 5.0",
        "2026-W48的周报",
        "T790M",
        "3级AE",
        "120/80",
        "5mg",
        "62kg",
        "38.5℃",
        "95%",
        "01中心",
        "质控01中心的数据",
        "3号中心",
        "排除标准第5条",
        "Q3 的进展",
        "a001@x.org",
        "data001.csv",
        "http://x.org/p001",
        "血小板100-200的有几个",
        "1+1等于几",
        "110101199003078888",
    ] {
        assert_eq!(ids(text), Vec::<String>::new(), "{text}");
        assert_eq!(trouble(text), None, "{text}");
    }
}

#[test]
fn lists_and_ranges_are_read_in_order() {
    for (text, expected) in [
        ("质控P001、P002和P003", vec!["P001", "P002", "P003"]),
        ("质控001、002和003", vec!["001", "002", "003"]),
        ("ID=1,2,3", vec!["1", "2", "3"]),
        ("P001/P002", vec!["P001", "P002"]),
        ("质控P001 P002 与 P010", vec!["P001", "P002", "P010"]),
        ("质控P001到P003", vec!["P001", "P002", "P003"]),
        ("质控P009-P011", vec!["P009", "P010", "P011"]),
        ("质控P001~003", vec!["P001", "P002", "P003"]),
        ("质控ID=8至10", vec!["8", "9", "10"]),
        (
            "01-701-1015 到 01-701-1017",
            vec!["01-701-1015", "01-701-1016", "01-701-1017"],
        ),
        ("P001到P002、P009", vec!["P001", "P002", "P009"]),
    ] {
        assert_eq!(ids(text), expected, "{text}");
    }
}

#[test]
fn a_range_that_could_mean_two_things_is_asked_about() {
    assert_eq!(
        trouble("质控P001到P900"),
        Some(Trouble::TooMany {
            from: "P001".into(),
            to: "P900".into(),
            count: 900
        })
    );
    assert!(matches!(
        trouble("质控P005到P001"),
        Some(Trouble::NoRange { .. })
    ));
    assert!(matches!(
        trouble("质控P001到S009"),
        Some(Trouble::NoRange { .. })
    ));
    assert!(matches!(
        trouble("质控001-005"),
        Some(Trouble::IdOrRange { .. })
    ));
    assert!(matches!(
        trouble("质控P001-005"),
        Some(Trouble::IdOrRange { .. })
    ));
    assert_eq!(trouble("质控「001-005」"), None);
    assert!(matches!(
        trouble("质控1到18446744073709551615"),
        Some(Trouble::TooMany { .. } | Trouble::NoRange { .. }) | None
    ));
}

#[test]
fn a_range_needs_two_ids() {
    assert_eq!(ids("P001到院了"), ["P001"]);
    assert_eq!(ids("P001到3月复查"), ["P001"]);
}
