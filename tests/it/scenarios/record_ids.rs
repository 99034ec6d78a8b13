//! Ids as studies write them: whoever is picked from a list is the one who is checked.

use serde_json::json;

use crate::support::app::TestApp;
use crate::support::study::{StudyFolder, Subject};

/// Ids of one study, an id somebody types that is none of them, and who is then offered.
const STUDIES: &[(&[&str], &str, &[&str])] = &[
    (&["12", "0012", "112"], "质控 ID=012", &["12", "0012"]),
    (&["1", "2", "0001"], "质控 ID=001", &["1", "0001"]),
    (
        &["S-001", "S-0001", "T-001"],
        "质控 ID=001",
        &["S-001", "S-0001", "T-001"],
    ),
    (
        &["2026-001", "2027-001"],
        "质控 ID=1",
        &["2026-001", "2027-001"],
    ),
    (
        &["CN01/007", "CN02/007"],
        "质控 ID=007",
        &["CN01/007", "CN02/007"],
    ),
    (&["甲7", "乙7"], "质控 ID=007", &["甲7", "乙7"]),
    (&["V3", "V03"], "质控 ID=003", &["V3", "V03"]),
    (&["A 7", "B 7"], "质控 ID=007", &["A 7", "B 7"]),
    (&["QC-7", "全项目-7"], "质控 ID=007", &["QC-7", "全项目-7"]),
];

#[tokio::test]
async fn the_one_picked_by_number_is_the_one_checked() {
    let app = TestApp::start().await;
    for (no, (ids, typed, offered)) in STUDIES.iter().enumerate() {
        let project = format!("study-{no}");
        let subjects = ids.iter().map(|id| Subject::fit(id));
        app.apply(&StudyFolder::with_eligibility(&project, subjects))
            .await;
        for (at, wanted) in offered.iter().enumerate() {
            let user = format!("user-{at}");
            let question = app.chat(&project, &user, typed).await;
            let chips = question["replies"][0]["chips"].as_array().unwrap().clone();
            let labels: Vec<&str> = chips.iter().map(|c| c["label"].as_str().unwrap()).collect();
            assert_eq!(labels, *offered, "{typed} among {ids:?}");
            assert_eq!(question["runs"], json!([]));
            let answer = app.chat(&project, &user, &(at + 1).to_string()).await;
            let text = answer["replies"][0]["text"].as_str().unwrap();
            let head = format!("受试者 {wanted}\n");
            assert!(text.contains(&head), "{wanted} among {ids:?}: {text}");
            assert_eq!(answer["runs"].as_array().unwrap().len(), 1);
        }
    }
    app.stop().await;
}

#[tokio::test]
async fn ids_that_differ_in_width_and_case_are_the_same_person_only_when_there_is_one() {
    let subjects = ["p001", "P002", "P003", "p003"].map(Subject::fit);
    let app = TestApp::with(&StudyFolder::with_eligibility("lung", subjects)).await;
    for (text, wanted) in [
        ("质控 ID=P001", "受试者 p001"),
        ("质控 ｐ００２", "受试者 P002"),
        ("质控 ID=P003", "受试者 P003"),
    ] {
        let reply = app.ask("ZhangSan", text).await;
        assert!(reply.contains(wanted), "{text}: {reply}");
    }
    app.stop().await;
}
