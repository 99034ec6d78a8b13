//! Hard rules: 400 of them over one record, and over 10,000 on one core.

use std::hint::black_box;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use iit_manager::adapters::edc::{Edc, RedcapFiles};
use iit_manager::engines::rules::{Outcome, RuleSet, Study};
use iit_manager::types::clock::Clock;
use iit_manager::types::rule::RuleSpec;
use serde_json::Value;

use crate::Bench;
use crate::report::{Figure, Target};
use crate::samples::{Samples, median};
use crate::study::{self, Check};

const RULES: usize = 400;
const PASSES: usize = 3;
/// Records jsonlogic-rs is given: it takes half a minute for a thousand.
const REFERENCE_RECORDS: usize = 50;

pub async fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let count = bench.amount(10_000, 1_000);
    let folder = bench.place.folder().join("rules");
    let subjects = study::subjects(count);
    let checks = study::checks(RULES);
    study::write(&folder, &subjects)?;
    let source = RedcapFiles::new(folder);
    let ids = source.record_ids().await?;
    let extract = source.records(&ids).await?;
    let (aliases, roles) = Default::default();
    let names = Study {
        dictionary: Some(&extract.dictionary),
        aliases: &aliases,
        roles: &roles,
        visits: &[],
    };
    let specs: Vec<RuleSpec> = study::rules(&checks, Check::logic)
        .into_iter()
        .map(serde_json::from_value)
        .collect::<Result<_, _>>()?;
    let today = Clock::system().now().date_naive();

    let begin = Instant::now();
    let set = RuleSet::compile(&specs, &names)
        .map_err(|faults| anyhow::anyhow!("{:?}", faults.first()))?;
    let compiled_in = begin.elapsed();

    let mut singles = Vec::with_capacity(count);
    let mut passes = Vec::new();
    let mut seen = (0, 0);
    for _ in 0..PASSES {
        seen = (0, 0);
        singles.clear();
        let begin = Instant::now();
        for record in &extract.records {
            let begin = Instant::now();
            let results = set.evaluate(record, today);
            singles.push(begin.elapsed());
            for result in &results {
                match result.outcome {
                    Outcome::Fail => seen.0 += 1,
                    Outcome::NotEvaluable { .. } => seen.1 += 1,
                    _ => {}
                }
            }
        }
        passes.push(begin.elapsed().as_secs_f64());
    }
    let expected = study::expected(&checks, &subjects);
    ensure!(
        seen == expected,
        "fail and not evaluable are {seen:?}, not {expected:?}"
    );
    let singles = Samples::new(singles);
    let seconds = median(passes);
    #[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    let rate = |records: usize, seconds: f64| (RULES * records) as f64 / seconds;
    let reference_s = reference(&checks, &subjects)?;
    let reference = rate(REFERENCE_RECORDS, reference_s);
    Ok(vec![
        Figure::new("hard rules, 400 × 1 record", Target::Below(1.0), singles.ms(50), "ms")
            .detail(singles.spread())
            .note(format!(
                "each of {count} records timed alone; compiling the 400 rules once took {:.1} ms",
                compiled_in.as_secs_f64() * 1e3
            )),
        Figure::new(
            format!("hard rules, 400 × {count} records"),
            Target::Below(4.0),
            seconds,
            "s",
        )
        .detail(format!("{:.2} M rules/s on one thread", rate(count, seconds) / 1e6))
        .note(format!(
            "median of {PASSES} passes; {} failed and {} not evaluable, as counted independently",
            seen.0, seen.1
        )),
        Figure::new("  the same through jsonlogic-rs", Target::None, reference / 1e6, "M rules/s")
            .detail(format!("ours is {:.0} ×", rate(count, seconds) / reference))
            .note(format!(
                "{REFERENCE_RECORDS} records, standard operators only, two-valued: a blank passes an upper limit there"
            )),
    ])
}

/// Seconds of jsonlogic-rs for the same rules.
fn reference(checks: &[Check], subjects: &[study::Subject]) -> Result<f64> {
    let rules: Vec<Value> = checks.iter().map(Check::standard_logic).collect();
    let data: Vec<Value> = subjects
        .iter()
        .take(REFERENCE_RECORDS)
        .map(study::Subject::json)
        .collect();
    let begin = Instant::now();
    for record in &data {
        for rule in &rules {
            black_box(jsonlogic_rs::apply(rule, record).context("jsonlogic-rs refused a rule")?);
        }
    }
    Ok(begin.elapsed().as_secs_f64())
}
