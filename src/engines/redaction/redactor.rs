//! All detectors and all known values over one text.

use std::{collections::HashSet, ops::Range, sync::Arc};

use regex::Regex;

use super::{
    address, birth, certificates, contacts,
    fields::identifying,
    folded::Folded,
    hidden::Hidden,
    hospital,
    kind::{self, Kind, LOOKALIKE, PLACEHOLDER, Span},
    known::{Known, Places},
    names,
};
use crate::types::{dictionary::Dictionary, record::Record};

/// Rounds until no text shows anything new; each round hides at least one more value everywhere.
const MOST_ROUNDS: usize = 8;

/// What of a study is personal.
#[derive(Debug, Clone, Copy)]
pub struct Study<'a> {
    /// Its dictionary.
    pub dictionary: &'a Dictionary,
    /// All of its records: whom any text could speak of.
    pub records: &'a [Arc<Record>],
    /// Names of the people who work on it.
    pub people: &'a [String],
    /// Its own patterns; of one with a group the group is the value.
    pub patterns: &'a [String],
}

/// Why a redactor can't be made. Nothing may be sent without one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RedactorFault {
    /// A pattern of the project file.
    #[error(
        "项目文件 [privacy] patterns 的第 {0} 条无法使用，改正后重新应用项目文件 (pattern {0} of [privacy] can't be used)"
    )]
    Pattern(usize),
    /// A pattern of ours, or more values than can be looked for.
    #[error(
        "身份信息过滤器无法建立，未向大模型发送任何内容 (the redactor can't be built; nothing is sent)"
    )]
    Unusable,
}

/// Finds personal data in texts about one study.
#[derive(Debug)]
pub struct Redactor {
    known: Known,
    places: Places,
    patterns: Vec<Regex>,
    /// Codes of the study, however much they look like a number of somebody's.
    record_ids: HashSet<String>,
}

/// Whose words a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// A person's, a record's, a tool's: what looks like a placeholder there is none.
    Anybody,
    /// The model's own: it speaks in placeholders.
    Model,
}

impl Redactor {
    /// A redactor for a study.
    ///
    /// # Errors
    /// [`RedactorFault`]; nothing may be sent then.
    pub fn new(study: &Study<'_>) -> Result<Self, RedactorFault> {
        let ours = [
            &certificates::PATTERNS[..],
            &contacts::PATTERNS,
            &hospital::PATTERNS,
            &address::PATTERNS,
            &birth::PATTERNS,
            &names::PATTERNS,
            &[&PLACEHOLDER, &LOOKALIKE],
        ];
        if ours.concat().iter().any(|pattern| pattern.is_none()) {
            return Err(RedactorFault::Unusable);
        }
        let fields = identifying(study.dictionary);
        let mut values: Vec<(Kind, &str)> = Vec::new();
        for row in study.records.iter().flat_map(|record| &record.rows) {
            for field in fields.iter().filter(|field| !field.coded) {
                let value = row.get(&field.name).map(str::trim);
                values.extend(value.filter(|v| !v.is_empty()).map(|v| (field.kind, v)));
            }
        }
        let people = study.people.iter().map(|name| (Kind::Name, name.trim()));
        values.extend(people);
        let is_flagged = study
            .dictionary
            .record_id_field()
            .is_some_and(|id| id.identifier);
        let ids = study.records.iter().filter(|_| !is_flagged);
        let patterns = study.patterns.iter().enumerate();
        Ok(Self {
            known: Known::new(values).map_err(|_| RedactorFault::Unusable)?,
            places: Places::new(&fields).map_err(|_| RedactorFault::Unusable)?,
            patterns: patterns
                .map(|(at, source)| Regex::new(source).map_err(|_| RedactorFault::Pattern(at + 1)))
                .collect::<Result<_, _>>()?,
            record_ids: ids.map(|record| Folded::dense(&record.id).text).collect(),
        })
    }

    /// `texts` with everything personal hidden: what is found in one is hidden in all.
    ///
    /// # Errors
    /// It does not come to an end; nothing may be sent.
    pub fn redact_all(
        &self,
        texts: &[(Whose, &str)],
        hidden: &mut Hidden,
    ) -> Result<Vec<String>, RedactorFault> {
        for _ in 0..MOST_ROUNDS {
            hidden.look_for_all().map_err(|_| RedactorFault::Unusable)?;
            let before = hidden.len();
            let redacted = texts
                .iter()
                .map(|(whose, text)| self.until_nothing_is_left(*whose, text, hidden))
                .collect();
            if hidden.len() == before {
                return Ok(redacted);
            }
        }
        Err(RedactorFault::Unusable)
    }

    /// One text of a person's, a record's or a tool's, see [`Self::redact_all`].
    ///
    /// # Errors
    /// As there.
    pub fn redact(&self, text: &str, hidden: &mut Hidden) -> Result<String, RedactorFault> {
        let redacted = self.redact_all(&[(Whose::Anybody, text)], hidden)?;
        redacted.into_iter().next().ok_or(RedactorFault::Unusable)
    }

    /// What was hidden is a boundary to what stands beside it: that may be found only now.
    fn until_nothing_is_left(&self, whose: Whose, text: &str, hidden: &mut Hidden) -> String {
        let mut out = self.one_round(whose, text, hidden);
        for _ in 0..MOST_ROUNDS {
            let again = self.one_round(Whose::Model, &out, hidden);
            if again == out {
                break;
            }
            out = again;
        }
        out
    }

    fn one_round(&self, whose: Whose, text: &str, hidden: &mut Hidden) -> String {
        let pattern = match whose {
            Whose::Anybody => LOOKALIKE.as_ref(),
            Whose::Model => PLACEHOLDER.as_ref(),
        };
        let mut out = String::with_capacity(text.len());
        let mut at = 0;
        for m in pattern.into_iter().flat_map(|p| p.find_iter(text)) {
            self.piece(&text[at..m.start()], hidden, &mut out);
            match whose {
                Whose::Anybody => out.push_str(hidden.hide(Kind::Literal, m.as_str())),
                Whose::Model => out.push_str(m.as_str()),
            }
            at = m.end();
        }
        self.piece(&text[at..], hidden, &mut out);
        out
    }

    fn piece(&self, text: &str, hidden: &mut Hidden, out: &mut String) {
        let mut at = 0;
        for (span, kind) in self.spans(text, hidden) {
            out.push_str(text.get(at..span.start).unwrap_or_default());
            let value = text.get(span.clone()).unwrap_or_default();
            out.push_str(hidden.hide(kind, value));
            at = span.end;
        }
        out.push_str(text.get(at..).unwrap_or_default());
    }

    /// What is personal in `text`, in order and apart.
    fn spans(&self, text: &str, hidden: &Hidden) -> Vec<Span> {
        let plain = Folded::plain(text);
        let mut found = self.by_look(text, &plain);
        names::find(&plain, &mut found);
        birth::find(&plain, &mut found);
        address::find(&plain, &mut found);
        hospital::find(&plain, &mut found);
        found.retain(|(at, _)| !self.is_record_id(text, at));
        for pattern in &self.patterns {
            for groups in pattern.captures_iter(text) {
                let value = groups.get(1).or_else(|| groups.get(0));
                found.extend(value.map(|v| (v.range(), Kind::Identifier)));
            }
        }
        self.known.find(text, &mut found);
        self.places.find(text, &plain, &mut found);
        hidden.find(text, &mut found);
        merged(found)
    }

    /// Numbers and addresses that show what they are wherever they stand.
    fn by_look(&self, text: &str, plain: &Folded) -> Vec<Span> {
        let mut found = Vec::new();
        certificates::find(plain, &mut found);
        contacts::find(plain, &mut found);
        found.retain(|(at, _)| !self.is_record_id(text, at));
        found
    }

    fn is_record_id(&self, text: &str, at: &Range<usize>) -> bool {
        let value = text.get(at.clone()).unwrap_or_default();
        self.record_ids.contains(&Folded::dense(value).text)
    }

    /// The kind of the first value of the study's, or of this run's, that stands in `text` in the clear, and
    /// of any number that shows what it is. A second look, at what is about to leave.
    #[must_use]
    pub fn left_in(&self, text: &str, hidden: &Hidden) -> Option<Kind> {
        let text = match PLACEHOLDER.as_ref() {
            Some(pattern) => pattern.replace_all(text, "〔〕"),
            None => return Some(Kind::Literal),
        };
        let mut found = self.by_look(&text, &Folded::plain(&text));
        self.known.find(&text, &mut found);
        hidden.find(&text, &mut found);
        found.first().map(|(_, kind)| *kind)
    }
}

/// Spans that overlap become one, of the kind of the longest: of no value a piece is left.
fn merged(mut found: Vec<Span>) -> Vec<Span> {
    found.retain(|(at, _)| !at.is_empty());
    found.sort_by(|(a, _), (b, _)| a.start.cmp(&b.start).then(b.end.cmp(&a.end)));
    let mut spans: Vec<(Range<usize>, kind::Kind, usize)> = Vec::new();
    for (at, kind) in found {
        match spans.last_mut() {
            Some((last, of, length)) if at.start < last.end => {
                if at.len() > *length {
                    (*of, *length) = (kind, at.len());
                }
                last.end = last.end.max(at.end);
            }
            _ => {
                let length = at.len();
                spans.push((at, kind, length));
            }
        }
    }
    spans.into_iter().map(|(at, kind, _)| (at, kind)).collect()
}
