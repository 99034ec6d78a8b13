//! Whether each figure of an answer stands in what the tools gave or the question said. A figure the model
//! made, or worked out by itself, is none that anybody may act on.

use std::collections::HashSet;

use chrono::{Datelike, NaiveDate};

use super::{
    figures::{self, Figures, Moment, Number},
    thread::{self, Said},
};

/// What figures may rest on.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    figures: Figures,
    digits: HashSet<String>,
    names: HashSet<String>,
    records: HashSet<String>,
}

impl Evidence {
    /// What a thread holds: its question and what its calls gave. What was said before it is no evidence.
    #[must_use]
    pub fn of(said: &[Said], today: NaiveDate) -> Self {
        let mut evidence = Self::default();
        evidence.figures.moments.push(Moment {
            written: today.to_string(),
            year: u32::try_from(today.year()).ok(),
            month: Some(today.month()),
            day: Some(today.day()),
            time: None,
            number: None,
        });
        if let Some(question) = thread::question(said) {
            evidence.add(&question.text);
            evidence.add_records(&question.records);
        }
        for given in thread::results(said).filter(|given| given.ok) {
            evidence.add(&given.content);
            evidence.add(&given.sources.join("\n"));
            evidence.add_records(&given.records);
            // How many rows a result lists is what people count in it.
            evidence.add(&given.record_count.to_string());
        }
        evidence
    }

    fn add(&mut self, text: &str) {
        let mut read = figures::of(text);
        // 12,345 in JSON are two numbers.
        let lists = read.numbers.iter().filter(|n| n.written.contains(','));
        let parts: Vec<Number> = lists
            .flat_map(|list| list.written.split(','))
            .flat_map(|part| figures::of(part).numbers)
            .collect();
        read.numbers.extend(parts);
        self.digits
            .extend(read.numbers.iter().map(|number| number.digits.clone()));
        self.names.extend(read.names.iter().cloned());
        self.figures.numbers.extend(read.numbers);
        self.figures.moments.extend(read.moments);
    }

    fn add_records(&mut self, records: &[String]) {
        for record in records {
            self.records.insert(record.to_ascii_uppercase());
            self.add(record);
        }
    }

    /// The figures of `answer` that rest on nothing, as they are written, each once.
    #[must_use]
    pub fn unverified(&self, answer: &str) -> Vec<String> {
        let read = figures::of_answer(answer);
        let listed = self.listed(&read);
        let shapes: HashSet<String> = self.records.iter().map(|record| shape(record)).collect();
        let numbers = read
            .numbers
            .iter()
            .filter(|number| !self.holds(number) && !is_count(number, listed))
            .map(|number| number.written.clone());
        let moments = read
            .moments
            .iter()
            .filter(|moment| !self.knows(moment))
            .map(|moment| moment.written.clone());
        // A subject nobody spoke of.
        let names = read
            .names
            .iter()
            .filter(|name| {
                !self.names.contains(*name)
                    && !self.records.contains(*name)
                    && shapes.contains(&shape(name))
            })
            .cloned();
        let mut seen = HashSet::new();
        numbers
            .chain(moments)
            .chain(names)
            .filter(|written| seen.insert(written.clone()))
            .collect()
    }

    /// How many known subjects the answer lists: how many there are of them is plain to see.
    fn listed(&self, read: &Figures) -> usize {
        let listed: HashSet<&String> = read
            .names
            .iter()
            .filter(|name| self.records.contains(*name))
            .collect();
        listed.len()
    }

    fn holds(&self, number: &Number) -> bool {
        if self.digits.contains(&number.digits) {
            return true;
        }
        self.figures.numbers.iter().any(|known| {
            rounds_to(known.value, known.decimals, number)
                || (number.percent && rounds_to(known.value * 100.0, known.decimals - 2, number))
                || (known.percent
                    && !number.percent
                    && rounds_to(known.value / 100.0, known.decimals + 2, number))
        })
    }

    fn knows(&self, moment: &Moment) -> bool {
        fn agree<T: PartialEq>(wanted: Option<T>, known: Option<T>) -> bool {
            wanted.is_none() || wanted == known
        }
        let known = self.figures.moments.iter().any(|known| {
            agree(moment.year, known.year)
                && agree(moment.month, known.month)
                && agree(moment.day, known.day)
                && agree(moment.time, known.time)
        });
        known || moment.number.as_ref().is_some_and(|n| self.holds(n))
    }
}

/// Whether `number` is `known` with fewer decimals. To a whole number only where it says so (`约`): a mean of
/// 35.6 is not 36.
fn rounds_to(known: f64, decimals: i32, number: &Number) -> bool {
    let difference = (known - number.value).abs();
    if difference <= 1e-9 * known.abs().max(1.0) {
        return true;
    }
    let coarser = number.decimals < decimals && (number.decimals > 0 || number.about);
    coarser && difference <= 0.5 * 10_f64.powi(-number.decimals) * (1.0 + 1e-9)
}

fn is_count(number: &Number, listed: usize) -> bool {
    listed > 0 && !number.percent && number.digits == listed.to_string()
}

/// What ids of one study have in common: its letters and dashes, and how many digits stand where.
fn shape(id: &str) -> String {
    id.chars()
        .map(|c| if c.is_ascii_digit() { '9' } else { c })
        .collect()
}
