//! Today is the study's own calendar day, wherever the program runs.

use chrono::{TimeZone, Utc};
use iit_manager::types::clock::Clock;
use serde_json::json;

use crate::support::app::TestApp;
use crate::support::study::{StudyFolder, Subject, one_node, rule};

#[tokio::test]
async fn a_date_in_the_future_is_one_by_the_calendar_of_the_study() {
    // 2 March in Shanghai, still 1 March in New York.
    let clock = Clock::fixed(Utc.with_ymd_and_hms(2026, 3, 1, 17, 0, 0).unwrap());
    let app = TestApp::start_at(clock).await;
    let logic = json!({ "<=": [{ "var": "enroll_date" }, { "today": [] }] });
    let rules = [rule("DT-01", "enroll_date", logic, "入组日期在未来")];
    for (id, zone, wanted) in [
        ("shanghai", "Asia/Shanghai", "未发现问题"),
        ("new-york", "America/New_York", "入组日期在未来"),
    ] {
        let study = StudyFolder::new(id, [Subject::fit("P001").with("enroll_date", "2026-03-02")]);
        let toml = std::fs::read_to_string(study.project_file()).unwrap();
        study.write_whole_project(&toml.replace("Asia/Shanghai", zone));
        study.write_skill("dates", &one_node(&rules));
        app.apply(&study).await;
        let message = app.chat(id, "ZhangSan", "质控 P001").await;
        let text = message["replies"][0]["text"].as_str().unwrap();
        assert!(text.contains(wanted), "{id}: {text}");
    }
    app.stop().await;
}
