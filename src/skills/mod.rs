//! Skill files: from text to a checked [`Skill`].
//!
//! Both written shapes load unchanged: V2.4 (`logic` on the node, `review_required`, `end_with_error`)
//! and V2.6 (a `rules` list, `end_*`). A skill is bare, or wrapped as
//! `{"skillType", "name", "schedule"?, "config"}`. Loading finds every fault at once; what loads is a
//! sound graph. Whether its rules make sense for a study is for `engines::sop` to say.
//!
//! Defaults: `on_error` → `end_review_required`; `on_not_evaluable` → `on_fail` (of a soft node:
//! `end_review_required`); `tools` → `read_clinical_data`; `message` of a rule → the rule in words.

mod check;
mod draft;
pub mod fault;
pub mod final_state;
mod lexis;
pub mod markdown;
pub mod model;
pub mod node_type;
mod read;
mod rules;
pub mod schedule;
pub mod text;

#[cfg(test)]
mod tests;

use serde_json::Value;

pub use fault::{Fault, FaultKind, Place};
pub use final_state::{FinalState, Standing};
pub use model::{Body, Node, Report, Routes, Skill, Sop, TOOLS, Target, Work};

use read::{Content, Envelope, Reader};
use schedule::Timing;
use text::Document;

/// The JSON Schema of a skill file, for editors.
pub const JSON_SCHEMA: &str = include_str!("../../skills/skill.schema.json");

/// Loads the bytes of a skill file. `given_type` names a bare skill (the file's stem, or `--type`); a
/// wrapped one names itself.
///
/// # Errors
/// Every fault, in the order of the file.
pub fn load(bytes: &[u8], given_type: &str) -> Result<Skill, Vec<Fault>> {
    let document = text::parse(bytes)?;
    load_document(&document, given_type)
}

/// The same, with the place of every path, for faults that are found later.
///
/// # Errors
/// As [`load`].
pub fn load_document(document: &Document, given_type: &str) -> Result<Skill, Vec<Fault>> {
    let mut reader = Reader::new(document);
    let skill = reader
        .file(&document.value, given_type)
        .and_then(|envelope| build(&mut reader, envelope));
    sorted(skill, reader.faults)
}

/// Loads a skill out of the columns it is stored in.
///
/// # Errors
/// Every fault; without places, because there is no text.
pub fn from_config(
    skill_type: &str,
    name: &str,
    schedule: Option<&str>,
    config: &Value,
) -> Result<Skill, Vec<Fault>> {
    let document = Document::from_value(Value::Null);
    let mut reader = Reader::new(&document);
    let envelope = Envelope {
        skill_type: skill_type.to_owned(),
        name: Some(name.to_owned()),
        timing: Timing {
            schedule: schedule.map(ToOwned::to_owned),
            ..Timing::default()
        },
        config,
        path: "",
        is_file: false,
    };
    let skill = build(&mut reader, envelope);
    sorted(skill, reader.faults)
}

fn sorted(skill: Option<Skill>, mut faults: Vec<Fault>) -> Result<Skill, Vec<Fault>> {
    faults.sort_by(|a, b| (a.place, &a.path, a.kind).cmp(&(b.place, &b.path, b.kind)));
    match skill {
        Some(skill) if faults.is_empty() => Ok(skill),
        _ if faults.is_empty() => Err(vec![Fault::new(
            FaultKind::BadValue,
            "",
            "技能不完整 the skill is incomplete",
        )]),
        _ => Err(faults),
    }
}

fn build(reader: &mut Reader<'_>, envelope: Envelope<'_>) -> Option<Skill> {
    check_type(reader, &envelope.skill_type);
    let path = envelope.path;
    let config = reader.config(envelope.config, path)?;
    let (schedule, catch_up) = schedule::merge(reader, &envelope, &config);
    let name = envelope
        .name
        .or(config.name)
        .unwrap_or_else(|| envelope.skill_type.clone());
    let body = match config.content {
        Content::Report(report) => Some(Body::Report(report)),
        Content::Sop(draft) => {
            for fault in check::check(&draft) {
                reader.fault(fault);
            }
            draft.finish(&name).map(Body::Sop)
        }
    };
    Some(Skill {
        skill_type: envelope.skill_type,
        name,
        schedule,
        catch_up,
        config: envelope.config.clone(),
        config_path: path.to_owned(),
        body: body?,
    })
}

/// The type stands in commands, addresses and tables.
fn check_type(reader: &mut Reader<'_>, skill_type: &str) {
    let is_fine = !skill_type.is_empty()
        && skill_type.chars().count() <= 64
        && skill_type
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'));
    if !is_fine {
        let what = format!("`{skill_type}` 只能含字母、数字、`_`、`-`、`.`，最多 64 个字符");
        let fault = Fault::new(FaultKind::BadValue, "skillType", what);
        reader.fault(fault.hint("裸技能的类型取自文件名 a bare skill is named by its file"));
    }
}
