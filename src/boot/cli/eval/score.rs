//! The router's answer to a labelled message, and how often it is right.

use std::{collections::BTreeMap, fmt::Write as _};

use comfy_table::{Table, presets::UTF8_BORDERS_ONLY};
use serde::Serialize;
use serde_json::json;

use super::labelled::{Expect, Line, Remembered};
use crate::engines::router::{self, Conversation, Intent, IntentKind, Memory};

/// What the router makes of one message.
#[derive(Debug, Serialize)]
pub(super) struct Answer {
    pub id: serde_json::Value,
    /// In order of the message, repeats collapsed.
    pub types: Vec<IntentKind>,
    pub record_id: Option<String>,
    pub visit: Option<String>,
    pub form: Option<String>,
    pub needs_clarification: bool,
    pub write: bool,
    /// Of the least certain intent.
    pub confidence: f64,
}

/// What a router knows beside a line's text.
pub(super) struct Known<'a> {
    line: &'a Line,
    recalled: Option<String>,
}

impl<'a> Known<'a> {
    pub(super) fn of(line: &'a Line) -> Self {
        let bare = Conversation {
            history: &line.history,
            ..Conversation::default()
        };
        let recalled = match line.remembered {
            Remembered::FromHistory => router::keyword::last_patient(&bare),
            _ => None,
        };
        Self { line, recalled }
    }

    pub(super) fn conversation(&self) -> Conversation<'_> {
        let (last_patient, fresh) = match &self.line.remembered {
            Remembered::Patient { id, fresh } => (Some(id.as_str()), *fresh),
            Remembered::FromHistory => (self.recalled.as_deref(), true),
            Remembered::Nobody => (None, false),
        };
        Conversation {
            history: &self.line.history,
            memory: Memory {
                last_patient,
                last_patient_at: None,
                fresh,
            },
            pending: None,
        }
    }
}

/// Routes one line by keyword.
pub(super) fn answer(line: &Line) -> Answer {
    let known = Known::of(line);
    let routing = router::keyword::route(&line.text, &known.conversation());
    Answer::of(line, &routing.intents)
}

impl Answer {
    /// The answer these intents amount to.
    pub(super) fn of(line: &Line, intents: &[Intent]) -> Self {
        let mut types: Vec<IntentKind> = Vec::new();
        for intent in intents {
            if !types.contains(&intent.kind) {
                types.push(intent.kind);
            }
        }
        let first = |get: fn(&router::Entities) -> Option<&String>| {
            intents.iter().find_map(|i| get(&i.entities)).cloned()
        };
        let confidence = intents.iter().map(|i| i.confidence).fold(1.0, f64::min);
        Self {
            id: line.id.clone(),
            types,
            record_id: first(|e| e.record_ids.first()),
            visit: first(|e| e.visit.as_ref()),
            form: first(|e| e.form.as_ref()),
            needs_clarification: intents.iter().any(|i| i.clarification.is_some()),
            write: intents.iter().any(|i| i.wishes_write),
            confidence: (confidence * 100.0).round() / 100.0,
        }
    }
}

/// Counts over a labelled set.
#[derive(Debug, Default)]
pub(super) struct Score {
    labelled: usize,
    right: usize,
    /// By field of the answer: right, compared.
    fields: BTreeMap<String, (usize, usize)>,
    /// By label, by answer.
    confusion: BTreeMap<IntentKind, BTreeMap<IntentKind, usize>>,
    out_of_scope: (usize, usize),
    asked_back: usize,
    /// Of all messages: those read without a model.
    certain: usize,
    misses: Vec<String>,
}

impl Score {
    /// Notes whether a message is read in one way only, without a model.
    pub(super) fn look(&mut self, line: &Line) {
        let known = Known::of(line);
        let certain = router::certain::read(&line.text, &known.conversation());
        self.certain += usize::from(certain.is_some());
    }

    /// Compares an answer with its label.
    pub(super) fn count(&mut self, line: &Line, expect: &Expect, answer: &Answer) {
        let mut wanted: Vec<IntentKind> = Vec::new();
        for kind in &expect.types {
            if !wanted.contains(kind) {
                wanted.push(*kind);
            }
        }
        self.labelled += 1;
        self.asked_back += usize::from(answer.needs_clarification);
        let right = wanted == answer.types;
        self.right += usize::from(right);
        if !right {
            self.misses.push(format!(
                "{}  {}  {} → {}",
                plain(&line.id),
                crate::types::text::ellipsis(&line.text.replace('\n', " "), 40),
                names(&wanted),
                names(&answer.types)
            ));
        }
        if wanted.contains(&IntentKind::OutOfScope) {
            self.out_of_scope.1 += 1;
            self.out_of_scope.0 += usize::from(answer.types.contains(&IntentKind::OutOfScope));
        }
        // In a message of several intents each label is set against the answer in its place.
        for (at, kind) in wanted.iter().enumerate() {
            if let Some(got) = answer.types.get(at).or_else(|| answer.types.last()) {
                *self
                    .confusion
                    .entry(*kind)
                    .or_default()
                    .entry(*got)
                    .or_default() += 1;
            }
        }
        let Ok(serde_json::Value::Object(got)) = serde_json::to_value(answer) else {
            return;
        };
        for (field, value) in &expect.fields {
            let Some(mine) = got.get(field) else { continue };
            let (right, compared) = self.fields.entry(field.clone()).or_default();
            *compared += 1;
            *right += usize::from(mine == value);
        }
    }

    /// Share of labelled messages whose intents are exactly right.
    #[cfg(test)]
    pub(super) fn accuracy(&self) -> f64 {
        ratio(self.right, self.labelled)
    }

    /// Share right of one field of the answer.
    #[cfg(test)]
    pub(super) fn field_accuracy(&self, field: &str) -> f64 {
        let (right, compared) = self.fields.get(field).copied().unwrap_or_default();
        ratio(right, compared)
    }

    /// For programs: the same figures.
    pub(super) fn json(&self, messages: usize) -> serde_json::Value {
        let fields: BTreeMap<&String, f64> = self
            .fields
            .iter()
            .map(|(name, (right, of))| (name, ratio(*right, *of)))
            .collect();
        let classes: BTreeMap<&str, serde_json::Value> = self
            .confusion
            .keys()
            .map(|kind| {
                let (right, labelled, answered) = self.class(*kind);
                let figures = json!({
                    "labelled": labelled,
                    "recall": ratio(right, labelled),
                    "precision": ratio(right, answered),
                });
                (kind.as_str(), figures)
            })
            .collect();
        let (recalled, off) = self.out_of_scope;
        json!({
            "messages": messages,
            "labelled": self.labelled,
            "accuracy": ratio(self.right, self.labelled),
            "out_of_scope_recall": ratio(recalled, off),
            "abstain_rate": ratio(self.asked_back, self.labelled),
            "without_model": ratio(self.certain, messages),
            "fields": fields,
            "classes": classes,
            "confusion": self.confusion,
            "misses": self.misses,
        })
    }

    /// Of one class: right, labelled so, answered so.
    fn class(&self, kind: IntentKind) -> (usize, usize, usize) {
        let row = self.confusion.get(&kind);
        let labelled = row.map_or(0, |row| row.values().sum());
        let right = row.and_then(|row| row.get(&kind)).copied().unwrap_or(0);
        let answered = self
            .confusion
            .values()
            .filter_map(|row| row.get(&kind))
            .sum();
        (right, labelled, answered)
    }

    /// For people: figures, the confusion table, the misses.
    pub(super) fn summary(&self, messages: usize) -> String {
        let mut text = String::new();
        // Writing to a String can't fail.
        let _ = writeln!(
            text,
            "消息 messages: {messages}，其中有标注 labelled: {}",
            self.labelled
        );
        if self.labelled == 0 {
            return text;
        }
        let mut figures = Table::new();
        figures.load_style(UTF8_BORDERS_ONLY);
        let mut figure = |name: &str, (right, of): (usize, usize)| {
            let percent = match of {
                0 => "—".to_owned(),
                _ => format!("{:.1} %", 100.0 * ratio(right, of)),
            };
            figures.add_row([name.to_owned(), percent, format!("{right}/{of}")]);
        };
        figure("意图准确率 intent accuracy", (self.right, self.labelled));
        figure("超范围召回 out-of-scope recall", self.out_of_scope);
        figure("反问比例 asked back", (self.asked_back, self.labelled));
        figure("无须模型 read without a model", (self.certain, messages));
        for (field, counts) in &self.fields {
            figure(field, *counts);
        }
        for kind in self.confusion.keys() {
            let (right, labelled, answered) = self.class(*kind);
            figure(&format!("{kind} 召回 recall"), (right, labelled));
            figure(&format!("{kind} 精确 precision"), (right, answered));
        }
        let _ = writeln!(text, "{figures}");
        let _ = writeln!(text, "标注 ↓ 识别 →\n{}", self.confusion_table());
        if !self.misses.is_empty() {
            let _ = writeln!(text, "不一致 misses:\n{}", self.misses.join("\n"));
        }
        text
    }

    fn confusion_table(&self) -> Table {
        let mut seen: Vec<IntentKind> = self
            .confusion
            .iter()
            .flat_map(|(label, got)| std::iter::once(label).chain(got.keys()))
            .copied()
            .collect();
        seen.sort_unstable();
        seen.dedup();
        let mut table = Table::new();
        table.load_style(UTF8_BORDERS_ONLY);
        table.set_header(std::iter::once("").chain(seen.iter().map(|kind| kind.as_str())));
        for label in &seen {
            let Some(row) = self.confusion.get(label) else {
                continue;
            };
            let counts = seen.iter().map(|got| {
                row.get(got)
                    .map_or_else(|| "·".to_owned(), usize::to_string)
            });
            table.add_row(std::iter::once(label.as_str().to_owned()).chain(counts));
        }
        table
    }
}

fn names(kinds: &[IntentKind]) -> String {
    let names: Vec<&str> = kinds.iter().map(|kind| kind.as_str()).collect();
    names.join("+")
}

fn plain(id: &serde_json::Value) -> String {
    id.as_str().map_or_else(|| id.to_string(), str::to_owned)
}

fn ratio(right: usize, of: usize) -> f64 {
    if of == 0 {
        return 0.0;
    }
    right as f64 / of as f64
}
