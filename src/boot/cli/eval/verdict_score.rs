//! How often the judge is right. A wrong pass comes first: nobody looks at what passed.

use std::{collections::BTreeMap, fmt::Write as _};

use comfy_table::{Table, presets::UTF8_BORDERS_ONLY};
use serde::{Deserialize, Serialize};

use super::verdicts::{Case, Judged, plain};
use crate::{adapters::llm::config::Price, types::text::ellipsis};

/// What a case is and what it is taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Verdict {
    /// It holds.
    Pass,
    /// It is broken.
    Fail,
    /// A person has to decide.
    Unable,
}

impl Verdict {
    fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Unable => "unable",
        }
    }
}

const ALL: [Verdict; 3] = [Verdict::Pass, Verdict::Fail, Verdict::Unable];

/// Right, of how many.
type Share = (usize, usize);

/// Counts over a set.
#[derive(Debug, Default, Serialize)]
pub(super) struct Score {
    model: String,
    cases: usize,
    labelled: usize,
    /// Labelled `fail` or `unable`, judged `pass`.
    wrong_pass: usize,
    /// Labelled `pass`, judged `fail`.
    false_alarm: usize,
    right: usize,
    /// By label, by verdict.
    confusion: BTreeMap<Verdict, BTreeMap<Verdict, usize>>,
    /// By what makes a case hard.
    by_kind: BTreeMap<String, Share>,
    /// Verdicts that rest on quotes, of which all stood in the data.
    evidence_valid: Share,
    /// First answers that could not be used, and were put right when told so.
    corrected: Share,
    calls: u64,
    prompt_tokens: i64,
    completion_tokens: i64,
    cost_cny: f64,
    #[serde(skip)]
    misses: Vec<String>,
}

impl Score {
    pub(super) fn new(model: &str) -> Self {
        Self {
            model: model.to_owned(),
            ..Self::default()
        }
    }

    /// Takes in one case.
    pub(super) fn count(&mut self, case: &Case, judged: &Judged) {
        self.cases += 1;
        self.calls += u64::from(judged.tries);
        self.prompt_tokens += judged.tokens.0;
        self.completion_tokens += judged.tokens.1;
        if judged.verdict != Verdict::Unable || judged.invented {
            self.evidence_valid.1 += 1;
            self.evidence_valid.0 += usize::from(!judged.invented);
        }
        if judged.tries > 1 {
            self.corrected.1 += 1;
            self.corrected.0 += usize::from(!judged.given_up);
        }
        let Some(label) = case.expect else { return };
        let got = judged.verdict;
        let right = label == got;
        let wrong_pass = got == Verdict::Pass && !right;
        self.labelled += 1;
        self.right += usize::from(right);
        self.wrong_pass += usize::from(wrong_pass);
        self.false_alarm += usize::from(label == Verdict::Pass && got == Verdict::Fail);
        *self
            .confusion
            .entry(label)
            .or_default()
            .entry(got)
            .or_default() += 1;
        let kind = self.by_kind.entry(case.about.clone()).or_default();
        kind.0 += usize::from(right);
        kind.1 += 1;
        if !right {
            let mark = if wrong_pass { "!!" } else { "  " };
            self.misses.push(format!(
                "{mark} {}  {}  {} → {}",
                plain(&case.id),
                ellipsis(&case.instruction, 30),
                label.as_str(),
                got.as_str()
            ));
        }
    }

    /// Puts a price to the tokens.
    pub(super) fn price(&mut self, price: &Price) {
        #[expect(clippy::cast_precision_loss, reason = "prices are far below 2^52")]
        let yuan = price.of(self.prompt_tokens, self.completion_tokens) as f64 / 1e6;
        self.cost_cny = yuan;
    }

    /// For programs.
    pub(super) fn figures(&self) -> serde_json::Value {
        let mut figures = serde_json::to_value(self).unwrap_or_default();
        figures["accuracy"] = serde_json::json!(ratio((self.right, self.labelled)));
        figures
    }

    /// For people: figures, the confusion table, the misses.
    pub(super) fn summary(&self) -> String {
        let mut text = String::new();
        // Writing to a String can't fail.
        let _ = writeln!(
            text,
            "模型 model: {} · 用例 cases: {}，其中有标注 labelled: {} · 提问 calls: {} · tokens: {} + {} · 费用 cost: {:.4} 元",
            self.model,
            self.cases,
            self.labelled,
            self.calls,
            self.prompt_tokens,
            self.completion_tokens,
            self.cost_cny
        );
        let mut figures = Table::new();
        figures.load_style(UTF8_BORDERS_ONLY);
        if self.labelled > 0 {
            figures.add_row([
                "错误放行 wrong pass".to_owned(),
                self.wrong_pass.to_string(),
                "最严重的错误 the worst fault".to_owned(),
            ]);
            figures.add_row([
                "误报 false alarm".to_owned(),
                self.false_alarm.to_string(),
                String::new(),
            ]);
            figures.add_row(share("准确率 accuracy", (self.right, self.labelled)));
        }
        figures.add_row(share("引文真实 evidence valid", self.evidence_valid));
        figures.add_row(share("更正成功 corrected", self.corrected));
        for (kind, counts) in &self.by_kind {
            figures.add_row(share(kind, *counts));
        }
        let _ = writeln!(text, "{figures}");
        if self.labelled > 0 {
            let _ = writeln!(text, "标注 ↓ 判定 →\n{}", self.confusion_table());
        }
        if !self.misses.is_empty() {
            let _ = writeln!(
                text,
                "不一致 misses（!! 为错误放行）:\n{}",
                self.misses.join("\n")
            );
        }
        text
    }

    fn confusion_table(&self) -> Table {
        let mut table = Table::new();
        table.load_style(UTF8_BORDERS_ONLY);
        table.set_header(std::iter::once("").chain(ALL.iter().map(|v| v.as_str())));
        for label in ALL {
            let row = self.confusion.get(&label);
            let counts = ALL.iter().map(|got| {
                row.and_then(|row| row.get(got))
                    .map_or_else(|| "·".to_owned(), usize::to_string)
            });
            table.add_row(std::iter::once(label.as_str().to_owned()).chain(counts));
        }
        table
    }
}

fn share(name: &str, (right, of): Share) -> [String; 3] {
    let percent = match of {
        0 => "—".to_owned(),
        _ => format!("{:.1} %", 100.0 * ratio((right, of))),
    };
    [name.to_owned(), percent, format!("{right}/{of}")]
}

fn ratio((right, of): Share) -> f64 {
    if of == 0 {
        return 0.0;
    }
    right as f64 / of as f64
}
