//! Skill files as people write them, through the library and through `iit skills`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed expectation is the test's verdict"
)]

use std::{
    path::Path,
    process::{Command, Output},
};

use iit_manager::{
    engines::{rules::Study, sop::CompiledSkill},
    skills::{self, Body, FinalState, Skill, Target, Work},
};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn load(file: &str) -> Skill {
    let path = root().join("tests/data/skills").join(file);
    let bytes = std::fs::read(&path).unwrap();
    let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
    skills::load(&bytes, &stem).expect("loads unchanged")
}

/// Runs `iit` at the package root, so that relative paths in its output are the same everywhere.
fn iit(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_iit"))
        .args(args)
        .current_dir(root())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn the_v24_shape_loads_unchanged_with_its_comments() {
    let skill = load("v24.jsonc");
    assert_eq!(skill.skill_type, "v24");
    assert_eq!(skill.name, "肺癌入排质控流程");
    let sop = skill.sop().unwrap();
    assert_eq!(sop.start_node, "check_age");
    let age = &sop.nodes["check_age"];
    let Work::HardRule { rules } = &age.work else {
        unreachable!("check_age is a hard rule")
    };
    assert_eq!(rules.len(), 1);
    assert_eq!(rules[0].field, "age");
    assert_eq!(age.routes.on_pass, Target::Node("check_history".to_owned()));
    assert_eq!(age.routes.on_fail, Target::End(FinalState::WithError));
    let meds = &sop.nodes["check_meds"];
    assert_eq!(meds.routes.on_fail, Target::End(FinalState::ReviewRequired));
    let Work::SoftInstruction { instruction, tools } = &meds.work else {
        unreachable!("check_meds is a soft instruction")
    };
    assert_eq!(instruction, "检查合并用药，排除靶向药。");
    assert_eq!(tools, &["read_clinical_data"]);
}

#[test]
fn the_v24_shape_pasted_out_of_markdown_is_the_same_skill() {
    let pasted = load("v24_markdown.txt");
    let plain = load("v24.jsonc");
    assert_eq!(pasted.body, plain.body);
    assert_eq!(pasted.config, plain.config);
}

#[test]
fn the_v26_shape_loads_unchanged() {
    let skill = load("v26.json");
    let sop = skill.sop().unwrap();
    let Work::HardRule { rules } = &sop.nodes["baseline_check"].work else {
        unreachable!("baseline_check is a hard rule")
    };
    let messages: Vec<_> = rules
        .iter()
        .map(|rule| rule.message.as_deref().unwrap())
        .collect();
    assert_eq!(messages, ["年龄<18岁", "年龄>75岁", "ECOG>2"]);
    assert_eq!(
        sop.nodes["baseline_check"].routes.on_fail,
        Target::End(FinalState::WithViolation)
    );
    let compiled = CompiledSkill::compile(&skill, &Study::default()).unwrap();
    assert_eq!(compiled.rule_count(), 3);
}

#[test]
fn a_weekly_report_loads_as_a_report_and_not_as_a_sop() {
    let skill = load("weekly_report.json");
    assert_eq!(skill.skill_type, "weekly_report");
    assert_eq!(skill.schedule.as_deref(), Some("0 9 * * 1"));
    let Body::Report(report) = &skill.body else {
        unreachable!("it has no nodes")
    };
    assert_eq!(report.recipients, ["admin_group"]);
    assert_eq!(
        report.sections,
        [
            "enrollment",
            "data_quality",
            "ae_summary",
            "upcoming_visits"
        ]
    );
    assert!(CompiledSkill::compile(&skill, &Study::default()).is_err());
}

#[test]
fn good_files_and_folders_end_with_zero_and_their_number() {
    for (path, count) in [
        ("tests/data/skills", 3),
        ("tests/data/skills/v24_markdown.txt", 1),
        ("skills", 4),
    ] {
        let output = iit(&["skills", "check", path]);
        assert_eq!(text(&output.stderr), "", "{path}");
        assert_eq!(output.status.code(), Some(0), "{path}");
        assert_eq!(
            text(&output.stdout),
            format!("{count} 个技能，没有错误 · {count} skills, no fault\n")
        );
    }
}

#[test]
fn every_fault_of_a_folder_is_listed_and_ends_with_one() {
    let output = iit(&["skills", "check", "tests/data/faulty_skills"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stdout), "");
    insta::assert_snapshot!("faulty_skills", text(&output.stderr));
}

#[test]
fn wrong_use_ends_with_two_and_one_sentence() {
    let empty = tempfile::tempdir().unwrap();
    let empty = empty.path().to_str().unwrap();
    let cases: [&[&str]; 3] = [
        &["skills", "check", "tests/data/no_such_skills"],
        &["skills", "check", empty],
        &[
            "skills",
            "check",
            "skills",
            "--project",
            "tests/data/no_such.toml",
        ],
    ];
    for args in cases {
        let output = iit(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert_eq!(text(&output.stdout), "");
        let stderr = text(&output.stderr);
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        assert!(stderr.starts_with("iit: "), "{stderr}");
    }
    assert_eq!(iit(&["skills", "check"]).status.code(), Some(2));
}

#[test]
fn a_file_that_is_no_text_is_a_fault_of_that_file() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("latin1.json"), b"{ \"name\": \"\xe9\" }").unwrap();
    let output = iit(&["skills", "check", folder.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr).contains("latin1.json: 文件无法读取 unreadable: 第 1 行起不是 UTF-8")
    );
}

#[test]
fn visits_are_taken_on_trust_until_a_project_file_says_which_there_are() {
    let folder = tempfile::tempdir().unwrap();
    let skill = folder.path().join("visit_window.json");
    std::fs::write(
        &skill,
        r#"{ "start_node": "v", "nodes": { "v": {
            "type": "hard_rule",
            "rules": [{ "id": "VW-3", "field": "v3_date", "logic": { "function_name": "visit_window", "args": { "visit": "V3" } } }],
            "on_pass": "end_success", "on_fail": "end_with_violation" } } }"#,
    )
    .unwrap();
    let project = |visit: &str| {
        let path = folder.path().join(format!("{visit}.toml"));
        let text = format!(
            "id = \"p\"\nname = \"p\"\n[edc]\nkind = \"redcap_files\"\ndir = \"data\"\n[[visits]]\nid = \"{visit}\"\n\
             date_field = \"v3_date\"\nanchor_field = \"enroll_date\"\nday = 28\n"
        );
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let skill = skill.to_str().unwrap();

    let trusted = iit(&["skills", "check", skill]);
    assert_eq!(trusted.status.code(), Some(0));
    assert!(text(&trusted.stdout).contains("visits not checked"));

    let known = iit(&["skills", "check", skill, "--project", &project("V3")]);
    assert_eq!(known.status.code(), Some(0), "{}", text(&known.stderr));
    assert!(!text(&known.stdout).contains("visits not checked"));

    let unknown = iit(&["skills", "check", skill, "--project", &project("V4")]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(text(&unknown.stderr).contains("rules[0].logic.args.visit"));
}
