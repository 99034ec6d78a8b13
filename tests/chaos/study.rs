//! The study of a run: one member and one record a message, a skill of soft nodes in a row, and what the
//! model will say to each, decided by the seed before anything starts.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Map, Value, json};

pub const PROJECT: &str = "chaos";
pub const SKILL: &str = "history_check";
/// Of all answers, so many say that something is wrong.
const FAILING: f64 = 0.15;

/// What the model says to a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Pass,
    Fail,
}

/// The study, by record number from 0.
pub struct Study {
    verdicts: Vec<Vec<Verdict>>,
    steps: usize,
}

impl Study {
    pub fn of(seed: u64, records: usize, steps: usize) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let mut verdict = || {
            if random.random_bool(FAILING) {
                Verdict::Fail
            } else {
                Verdict::Pass
            }
        };
        let verdicts = (0..records)
            .map(|_| (0..steps).map(|_| verdict()).collect())
            .collect();
        Self { verdicts, steps }
    }

    pub fn records(&self) -> usize {
        self.verdicts.len()
    }

    pub fn steps(&self) -> usize {
        self.steps
    }

    /// What the model says about a record at a step, both from 0.
    pub fn verdict(&self, record: usize, step: usize) -> Option<Verdict> {
        self.verdicts.get(record)?.get(step).copied()
    }

    /// Writes the folder as a team would hand it in.
    pub fn write(&self, folder: &Path) -> Result<()> {
        let export = folder.join("study");
        fs::create_dir_all(&export).context("making the study's folder")?;
        fs::write(export.join("metadata.csv"), METADATA)?;
        let mut data = "record_id,age,history,baseline_complete\n".to_owned();
        let mut project = format!(
            "id = \"{PROJECT}\"\nname = \"混沌研究\"\n\n[edc]\nkind = \"redcap_files\"\ndir = \"study\"\n\n[fields]\nrecord_id = \"record_id\"\n"
        );
        for record in 0..self.records() {
            let (id, history) = (record_id(record), history_of(record));
            writeln!(data, "{id},{},{history},2", 20 + record % 50)?;
            write!(
                project,
                "\n[[members]]\nwecom_user = \"{}\"\nname = \"研究护士\"\nrole = \"crc\"\n",
                member(record)
            )?;
        }
        fs::write(export.join("records.csv"), data)?;
        fs::write(folder.join("project.toml"), project)?;
        fs::write(
            folder.join(format!("{SKILL}.json")),
            self.skill().to_string(),
        )?;
        Ok(())
    }

    /// Soft nodes in a row; what one finds does not keep the next from being asked.
    fn skill(&self) -> Value {
        let nodes: Map<String, Value> = (0..self.steps)
            .map(|step| {
                let next = if step + 1 < self.steps {
                    node(step + 1)
                } else {
                    "end_success".to_owned()
                };
                let soft = json!({
                    "type": "soft_instruction",
                    "instruction": instruction(step),
                    "on_pass": next,
                    "on_fail": next,
                    "on_error": "end_review_required",
                    "on_not_evaluable": "end_review_required",
                });
                (node(step), soft)
            })
            .collect();
        json!({ "name": "病史核查", "start_node": node(0), "nodes": nodes })
    }
}

pub fn node(step: usize) -> String {
    format!("check_{}", step + 1)
}

pub fn record_id(record: usize) -> String {
    format!("R{:04}", record + 1)
}

pub fn member(record: usize) -> String {
    format!("nurse{:04}", record + 1)
}

/// What stands in the record's field `history`.
pub fn history_of(record: usize) -> String {
    format!("既往高血压{}年 规律服药", 1 + record % 30)
}

fn instruction(step: usize) -> String {
    format!("第{}步：核对既往史中的第{}项", step + 1, step + 1)
}

/// The record and the step (from 0) that a text is about.
pub fn about(text: &str) -> Option<(usize, usize)> {
    let number = |rest: &str| -> Option<usize> {
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    };
    let step = text
        .match_indices('第')
        .find_map(|(at, found)| {
            let rest = text.get(at + found.len()..)?;
            let step = number(rest)?;
            rest.trim_start_matches(|c: char| c.is_ascii_digit())
                .starts_with("步：")
                .then_some(step)
        })?
        .checked_sub(1)?;
    let record = text
        .match_indices('R')
        .find_map(|(at, _)| {
            let rest = text.get(at + 1..)?;
            let digits = rest.chars().take_while(char::is_ascii_digit).count();
            (digits >= 4).then(|| number(rest))?
        })?
        .checked_sub(1)?;
    Some((record, step))
}

const METADATA: &str = "field_name,form_name,section_header,field_type,field_label,select_choices_or_calculations,field_note,text_validation_type_or_show_slider_number,text_validation_min,text_validation_max,identifier,branching_logic,required_field,custom_alignment,question_number,matrix_group_name,matrix_ranking,field_annotation
record_id,baseline,,text,编号,,,,,,,,,,,,,
age,baseline,,text,年龄,,,integer,,,,,,,,,,
history,baseline,,notes,既往史,,,,,,,,,,,,,
";
