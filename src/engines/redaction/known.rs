//! Values the study knows, found wherever they stand and however they are spaced or widened.
//!
//! A value that is no word of its own, such as `1`, `是` or `ZS`, is looked for only in its field's place
//! ([`Places`]): anywhere else it says nothing about anybody, and hiding it would blind the model.

use std::collections::HashMap;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use regex::Regex;

use super::{
    birth,
    fields::Identifying,
    folded::{Folded, is_piece_of_number, stands_alone},
    kind::{Kind, Span},
};

/// Digits of a number from which it may be written in groups.
const GROUPED: usize = 9;
/// Digits of a number from which it is looked for outside of its field.
const TELLING_DIGITS: usize = 5;
/// Latin letters and digits from which a word is.
const TELLING_LETTERS: usize = 4;

/// Words that stand in identifying fields and identify nobody, and words every request is made of.
const NO_VALUES: [&str; 66] = [
    "不详",
    "未知",
    "拒绝",
    "不适用",
    "没有",
    "保密",
    "同上",
    "同前",
    "本人",
    "未提供",
    "未填",
    "缺失",
    "未做",
    "不明",
    "患者",
    "受试者",
    "父亲",
    "母亲",
    "配偶",
    "家属",
    "男性",
    "女性",
    "数据",
    "姓名",
    "电话",
    "地址",
    "测试",
    "已故",
    "unknown",
    "none",
    "null",
    "male",
    "female",
    "test",
    "yes",
    "missing",
    "notdone",
    "n/a",
    "user",
    "system",
    "assistant",
    "tool",
    "tools",
    "function",
    "string",
    "object",
    "array",
    "number",
    "integer",
    "boolean",
    "text",
    "json",
    "true",
    "false",
    "role",
    "type",
    "content",
    "model",
    "messages",
    "name",
    "phone",
    "email",
    "address",
    "record",
    "field",
    "data",
];

/// Many values at once.
#[derive(Debug)]
pub struct Known {
    searcher: Option<AhoCorasick>,
    patterns: Vec<(Kind, Shape)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// Chinese, or a mix: where it stands it counts.
    Text,
    /// Letters and digits: counts where no others touch it.
    Word,
    /// Digits: counts where it is a number of its own.
    Number,
    /// A long number, which people write in groups.
    Grouped,
}

impl Known {
    /// Looks for these values.
    ///
    /// # Errors
    /// They are too many to be looked for.
    pub fn new<'a>(
        values: impl IntoIterator<Item = (Kind, &'a str)>,
    ) -> Result<Self, aho_corasick::BuildError> {
        let mut wanted: HashMap<String, (Kind, Shape)> = HashMap::new();
        for (kind, value) in values {
            for form in forms(kind, value) {
                let folded = Folded::dense(form.trim()).text;
                let Some(shape) = shape(&folded) else {
                    continue;
                };
                let key = match shape {
                    Shape::Grouped => folded.chars().filter(|c| *c != '-').collect(),
                    _ => folded,
                };
                wanted.entry(key).or_insert((kind, shape));
            }
        }
        if wanted.is_empty() {
            return Ok(Self {
                searcher: None,
                patterns: Vec::new(),
            });
        }
        let (texts, patterns): (Vec<String>, Vec<(Kind, Shape)>) = wanted.into_iter().unzip();
        // One pattern's match that does not count must not hide a shorter one's that does.
        let searcher = AhoCorasick::builder()
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .match_kind(MatchKind::Standard)
            .build(&texts)?;
        Ok(Self {
            searcher: Some(searcher),
            patterns,
        })
    }

    /// All of them in `text`.
    pub fn find(&self, text: &str, found: &mut Vec<Span>) {
        let Some(searcher) = &self.searcher else {
            return;
        };
        let dense = Folded::dense(text);
        self.search(
            searcher,
            text,
            &dense,
            |shape| shape != Shape::Grouped,
            found,
        );
        // Grouped numbers once more without what groups them.
        if self
            .patterns
            .iter()
            .any(|(_, shape)| *shape == Shape::Grouped)
        {
            let ungrouped = Folded::ungrouped(text);
            self.search(
                searcher,
                text,
                &ungrouped,
                |shape| shape == Shape::Grouped,
                found,
            );
        }
    }

    fn search(
        &self,
        searcher: &AhoCorasick,
        text: &str,
        folded: &Folded,
        wanted: impl Fn(Shape) -> bool,
        found: &mut Vec<Span>,
    ) {
        for m in searcher.find_overlapping_iter(&folded.text) {
            let Some(&(kind, shape)) = self.patterns.get(m.pattern().as_usize()) else {
                continue;
            };
            if !wanted(shape) {
                continue;
            }
            let Some(at) = folded.original(m.start(), m.end()) else {
                continue;
            };
            let alone = || stands_alone(text, at.start, at.end);
            let counts = match shape {
                Shape::Text => true,
                Shape::Word | Shape::Grouped => alone(),
                // Blanks inside make it another number.
                Shape::Number => {
                    at.len() == width(text, &at)
                        && alone()
                        && !is_piece_of_number(text, at.start, at.end)
                }
            };
            if counts {
                found.push((at, kind));
            }
        }
    }
}

/// The bytes of a piece without its blanks.
fn width(text: &str, at: &std::ops::Range<usize>) -> usize {
    let piece = text.get(at.clone()).unwrap_or_default();
    piece.len()
        - piece
            .chars()
            .filter(|c| c.is_whitespace())
            .map(char::len_utf8)
            .sum::<usize>()
}

/// A value, as the export writes it and as people do.
fn forms(kind: Kind, value: &str) -> Vec<String> {
    let mut forms = birth::forms(value);
    if !forms.is_empty() && kind != Kind::Birth {
        // Of a day that is no birthday the bare digits could be anything.
        forms.retain(|form| form.contains(|c: char| !c.is_ascii_digit()));
    }
    let escaped = serde_json::to_string(value).unwrap_or_default();
    let escaped = escaped.trim_matches('"').to_owned();
    if escaped != value {
        forms.push(escaped);
    }
    forms.push(value.to_owned());
    forms
}

/// How a folded value is looked for; `None`: it says too little.
fn shape(folded: &str) -> Option<Shape> {
    if NO_VALUES.contains(&folded) || Kind::of_label(folded).is_some() {
        return None;
    }
    let letters = folded.chars().filter(|c| c.is_alphanumeric()).count();
    let digits = folded.chars().filter(char::is_ascii_digit).count();
    if !folded.is_ascii() {
        return (letters >= 2).then_some(Shape::Text);
    }
    let is_number = folded
        .chars()
        .all(|c| c.is_ascii_digit() || "-+().".contains(c));
    match is_number {
        // A decimal is a measurement.
        true if folded.contains('.') && digits < TELLING_DIGITS + 3 => None,
        true if digits >= GROUPED && folded.chars().all(|c| c.is_ascii_digit() || c == '-') => {
            Some(Shape::Grouped)
        }
        true => (digits >= TELLING_DIGITS).then_some(Shape::Number),
        false => (letters >= TELLING_LETTERS).then_some(Shape::Word),
    }
}

/// Whether a value, once found, is worth looking for everywhere else.
#[must_use]
pub fn is_telling(value: &str) -> bool {
    shape(&Folded::dense(value.trim()).text).is_some()
}

/// The places of identifying fields in text: `"field": …` and `label：…`. What stands there is hidden,
/// whatever it looks like.
#[derive(Debug)]
pub struct Places {
    as_json: Vec<(Regex, Kind)>,
    as_text: Vec<(Regex, Kind)>,
    labels: Vec<String>,
}

impl Places {
    /// Of these fields.
    ///
    /// # Errors
    /// There are too many.
    pub fn new(fields: &[Identifying]) -> Result<Self, regex::Error> {
        let mut as_json = Vec::new();
        let mut as_text = Vec::new();
        for kind in Kind::ALL {
            let of_kind = || fields.iter().filter(move |field| field.kind == kind);
            let names: Vec<String> = of_kind().map(|field| regex::escape(&field.name)).collect();
            if !names.is_empty() {
                let source = format!(
                    r#"(?i)\\?"(?:{})(?:___[a-z0-9_]+)?\\?"\s*:\s*(?:\\?"((?:[^"\\]|\\[^"])*)\\?"|(-?[0-9][0-9.eE+\-]*|true|false))"#,
                    names.join("|")
                );
                as_json.push((Regex::new(&source)?, kind));
            }
            let labels: Vec<String> = of_kind()
                .flat_map(|field| [field.label.as_str(), field.name.as_str()])
                .filter(|label| label.chars().count() >= 2)
                .map(regex::escape)
                .collect();
            if !labels.is_empty() {
                let source = format!(
                    r#"(?i)(?:{})\s*[:=]\s*([^\s,，。;；、"'\\{{}}\[\]()<>〔〕]{{1,80}})"#,
                    labels.join("|")
                );
                as_text.push((Regex::new(&source)?, kind));
            }
        }
        let labels = fields.iter().map(|field| field.label.clone()).collect();
        Ok(Self {
            as_json,
            as_text,
            labels,
        })
    }

    /// What stands in such places of `text`.
    pub fn find(&self, text: &str, plain: &Folded, found: &mut Vec<Span>) {
        for (pattern, kind) in &self.as_json {
            for groups in pattern.captures_iter(text) {
                let value = groups.get(1).or_else(|| groups.get(2));
                // A field that is named and not shown stands there with its label.
                let says = |text: &str| !text.is_empty() && !self.is_label(text);
                found.extend(
                    value
                        .filter(|v| says(v.as_str()))
                        .map(|v| (v.range(), *kind)),
                );
            }
        }
        for (pattern, kind) in &self.as_text {
            for value in pattern
                .captures_iter(&plain.text)
                .filter_map(|groups| groups.get(1))
            {
                let at = plain.original(value.start(), value.end());
                found.extend(at.map(|at| (at, *kind)));
            }
        }
    }

    fn is_label(&self, text: &str) -> bool {
        let text = text.trim().trim_end_matches([':', '：']).trim_end();
        self.labels.iter().any(|label| label == text)
    }
}
