//! `check_ethics_compliance`: consent before enrolment, a guardian's consent for minors and for vulnerable
//! subjects. Where the study has not told which field says so, nothing is checked, and that is said.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    fields::{Names, plain},
    filter, lenient,
    scope::Scope,
    show,
    tool::{Effect, Observation, Tool, ToolError},
};
use crate::{
    engines::{
        react::thread::Ruled,
        rules::{Outcome, Query, Reading, RuleSet},
    },
    types::{dictionary::Field, record::Record, rule::RuleSpec},
};

/// Checks one subject.
#[derive(Debug, Clone, Copy)]
pub struct CheckEthicsCompliance;

/// Whom, for what.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// 受试者编号
    #[serde(deserialize_with = "lenient::text")]
    record_id: String,
    /// 检查哪一项；省略则全部检查
    #[serde(default)]
    check_type: Option<Check>,
}

/// One check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    /// Nobody is enrolled before consent.
    InformedConsent,
    /// Who is not of age has a guardian's consent.
    AgeRequirement,
    /// Who belongs to a vulnerable population has a guardian's consent.
    VulnerablePopulation,
}

/// What a check came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Came {
    Pass,
    Fail,
    NotEvaluable,
}

impl Tool for CheckEthicsCompliance {
    type Args = Args;
    const NAME: &'static str = "check_ethics_compliance";
    const DESCRIPTION: &'static str = "检查一名受试者的伦理合规：知情同意是否早于入组、未成年人是否有监护人同意、弱势群体是否有监护人同意。资料不足时说明无法判定。";
    const EFFECT: Effect = Effect::Read;

    async fn run(&self, scope: &Scope<'_>, args: Args) -> Result<Observation, ToolError> {
        let record = scope.find_record(&args.record_id)?;
        let names = Names::of(scope);
        let checks = match args.check_type {
            Some(check) => vec![check],
            None => vec![
                Check::InformedConsent,
                Check::AgeRequirement,
                Check::VulnerablePopulation,
            ],
        };
        let mut told = Vec::new();
        let mut found = Vec::new();
        for check in checks {
            let (came, text) = match check {
                Check::InformedConsent => by_rule(
                    "informed_consent",
                    &[
                        ("consent_date", "知情同意日期"),
                        ("enrollment_date", "入组日期"),
                    ],
                    "知情同意日期不晚于入组日期",
                    record,
                    scope,
                    &names,
                ),
                Check::AgeRequirement => by_rule(
                    "age_requirement",
                    &[("age", "年龄")],
                    "已满 18 岁，或有法定监护人知情同意",
                    record,
                    scope,
                    &names,
                ),
                Check::VulnerablePopulation => vulnerable(record, scope, &names)?,
            };
            told.push(json!({ "check": check, "result": came, "text": text }));
            found.push((came, text));
        }
        let (worst, text) = ruling(&found);
        let mut observation = Observation::of(json!({
            "record_id": record.id,
            "checks": Value::Array(told),
        }))
        .ruled(worst, text);
        observation.records.push(record.id.clone());
        if found.iter().any(|(came, _)| *came == Came::NotEvaluable) {
            observation = observation.note("无法判定不等于合规；请如实告知提问者");
        }
        Ok(observation)
    }
}

/// All checks as one: one violation is one; else one open question; only what is decided everywhere is fine.
fn ruling(found: &[(Came, String)]) -> (Ruled, String) {
    let said = |wanted: Came| {
        let texts: Vec<&str> = found
            .iter()
            .filter(|(came, _)| *came == wanted)
            .map(|(_, text)| text.as_str())
            .collect();
        (!texts.is_empty()).then(|| texts.join("；"))
    };
    if let Some(text) = said(Came::Fail) {
        return (Ruled::Fail, text);
    }
    if let Some(text) = said(Came::NotEvaluable) {
        return (Ruled::Unable, text);
    }
    (Ruled::Pass, said(Came::Pass).unwrap_or_default())
}

/// A check that is a named function of the rules.
fn by_rule(
    function: &str,
    roles: &[(&str, &str)],
    holds: &str,
    record: &Record,
    scope: &Scope<'_>,
    names: &Names<'_>,
) -> (Came, String) {
    for (role, what) in roles {
        if scope.project.file.field_for(role).is_none() {
            return (
                Came::NotEvaluable,
                format!("无法判定：项目没有配置{what}字段（{role}）"),
            );
        }
    }
    let spec = RuleSpec {
        id: Some(function.to_owned()),
        field: String::new(),
        logic: json!({ "function_name": function }),
        message: None,
        severity: None,
    };
    let set = match RuleSet::compile(&[spec], &names.study()) {
        Ok(set) => set,
        Err(faults) => {
            let why = faults.first().map(|f| f.what.clone()).unwrap_or_default();
            return (
                Came::NotEvaluable,
                format!("无法判定：项目的字段配置有误：{why}"),
            );
        }
    };
    let results = set.evaluate(record, scope.today);
    // One violation is one; else one open question; only what is decided everywhere is fine.
    if let Some(failed) = results
        .iter()
        .find(|result| result.outcome == Outcome::Fail)
    {
        return (Came::Fail, format!("不合规：{}", failed.message));
    }
    match results.iter().find(|result| !result.passed()) {
        Some(open) if open.message.is_empty() => (Came::NotEvaluable, "无法判定".to_owned()),
        Some(open) => (Came::NotEvaluable, format!("无法判定：{}", open.message)),
        None if results.is_empty() => (
            Came::NotEvaluable,
            "无法判定：相关表单还没有数据".to_owned(),
        ),
        None => (Came::Pass, format!("合规：{holds}")),
    }
}

/// Whether the subject belongs to a vulnerable population, and has what that takes.
fn vulnerable(
    record: &Record,
    scope: &Scope<'_>,
    names: &Names<'_>,
) -> Result<(Came, String), ToolError> {
    let file = &scope.project.file;
    let Some(field) = file.field_for("vulnerable_population") else {
        return Ok((
            Came::NotEvaluable,
            "无法判定：项目没有说明哪个字段表示弱势群体（vulnerable_population）".to_owned(),
        ));
    };
    let guardian = file.field_for("guardian_consent_date");
    let mut columns: Vec<&[&str]> = Vec::new();
    let (field, guardian) = ([field], guardian.map(|name| [name]));
    columns.push(&field);
    if let Some(guardian) = &guardian {
        columns.push(guardian);
    }
    let study = names.study();
    let query = Query::compile(None, &columns, &study).map_err(|f| filter::refusal(&f))?;
    let answer = query.ask(record, scope.today);
    let seen = |column: usize| {
        answer
            .columns
            .get(column)
            .into_iter()
            .flatten()
            .filter_map(|place| place.seen.first())
    };
    let definition = names.definition(field[0]);
    let mut belongs = Some(false);
    let mut why = "没有数据".to_owned();
    let mut any = false;
    for one in seen(0) {
        any = true;
        match says(&one.reading, definition) {
            Some(true) => {
                belongs = Some(true);
                why = show::line(one, definition, names.dictionary());
                break;
            }
            Some(false) => {}
            None => {
                belongs = None;
                why = show::line(one, definition, names.dictionary());
            }
        }
    }
    let label = names.shown(field[0]);
    Ok(match belongs.filter(|_| any) {
        None => (Came::NotEvaluable, format!("无法判定：{label} {why}")),
        Some(false) => (Came::Pass, format!("合规：{label} 未标明属于弱势群体")),
        Some(true) if guardian.is_none() => (
            Came::NotEvaluable,
            format!(
                "无法判定：属于弱势群体（{label}：{why}），而项目没有配置监护人知情同意日期字段（guardian_consent_date），需人工核对"
            ),
        ),
        Some(true) => {
            let consented = seen(1).find(|one| matches!(one.reading, Reading::Date { .. }));
            match consented.and_then(|one| one.text.as_deref()) {
                Some(date) => (
                    Came::Pass,
                    format!("合规：属于弱势群体（{label}：{why}），监护人已于 {date} 知情同意"),
                ),
                None if seen(1).any(|one| matches!(one.reading, Reading::Invalid)) => (
                    Came::NotEvaluable,
                    format!("无法判定：属于弱势群体（{label}：{why}），监护人知情同意日期不是日期"),
                ),
                None => (
                    Came::Fail,
                    format!("不合规：属于弱势群体（{label}：{why}），没有监护人知情同意日期"),
                ),
            }
        }
    })
}

/// Whether a value says that the subject is vulnerable. Whatever is not plainly a no is a yes.
fn says(reading: &Reading<'_>, field: Option<&Field>) -> Option<bool> {
    let is_no = |code: &str| {
        let choice = field.and_then(|f| f.choices.iter().find(|choice| choice.code == code));
        match choice {
            None => code == "0",
            Some(choice) => choice
                .label
                .split(|c: char| c.is_whitespace() || matches!(c, '/' | '|' | ',' | '，'))
                .map(plain)
                .any(|word| matches!(word.as_str(), "否" | "无" | "不属于" | "no" | "none")),
        }
    };
    match reading {
        Reading::Code(code) => Some(!is_no(code)),
        Reading::Codes(codes) => Some(codes.iter().any(|code| !is_no(code))),
        Reading::Number(x) => Some(*x != 0.0),
        Reading::Text(text) => Some(!matches!(
            plain(text).as_str(),
            "否" | "无" | "no" | "none" | "0"
        )),
        _ => None,
    }
}
