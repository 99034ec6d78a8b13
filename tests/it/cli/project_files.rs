//! Project files that do not fit their study.

use std::fs;

use super::{Shell, refused_in_one_sentence, said, study};

#[tokio::test]
async fn a_project_file_that_does_not_fit_its_study_is_refused() {
    let shell = Shell::new().await;
    let study = study();
    let good = fs::read_to_string(study.project_file()).unwrap();
    let file = study.project_file();
    let apply = |text: &str| {
        study.write_whole_project(text);
        shell.run(&["project", "apply", file.to_str().unwrap()])
    };
    for (old, new, parts) in [
        (
            "consent_date =",
            "consent_dat =",
            ["fields.consent_dat", "`consent_date`"],
        ),
        (
            "\"岁数\" = \"age\"",
            "\"岁数\" = \"agee\"",
            ["aliases.\"岁数\"", "`age`"],
        ),
        (
            "= \"visit3_date\"",
            "= \"history\"",
            ["date_field", "不是日期字段"],
        ),
        (
            "anchor_field = \"enroll_date\"",
            "anchor_field = \"age\"",
            ["anchor_field", "不是日期字段"],
        ),
        (
            "anchor_field = \"enroll_date\"",
            "anchor_field = \"enrol_date\"",
            ["anchor_field", "`enroll_date`"],
        ),
        (
            "[groups]",
            "[report]\nweekly = \"0 9 * *\"\n[groups]",
            ["report.weekly", "5 段"],
        ),
        (
            "[groups]",
            "[report]\nchronicle = \"0 2 30 2 *\"\n[groups]",
            ["report.chronicle", "永远不会"],
        ),
        (
            "[groups]",
            "[report]\nrecipients = [\"ZhangSanFeng\"]\n[groups]",
            ["report.recipients", "既不是成员"],
        ),
        ("[groups]", "[groups", ["project.toml:3", "unclosed table"]),
    ] {
        let text = good.replace(old, new);
        assert_ne!(text, good, "{old}");
        refused_in_one_sentence(&apply(&text), 2, &parts);
    }
    assert_eq!(
        shell.succeeds(&["project", "list", "--format", "json"]),
        "[]\n"
    );
    let windows = format!("\u{feff}{}", good.replace('\n', "\r\n"));
    let odd = windows.replace("[\"ZhangSan\"]", "[\"ZhangSan\", \"WangWu\"]");
    let odd = odd.replace(
        "[groups]",
        "[report]\r\ndeviation_skills = [\"visit_window\"]\r\n[groups]",
    );
    let output = apply(&odd);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("groups.admin_group 中的 `WangWu`"), "{said}");
    assert!(
        said.contains("`visit_window` 还不是项目启用的技能"),
        "{said}"
    );
}
