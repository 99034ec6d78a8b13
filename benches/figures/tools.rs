//! What a tool call costs on 10,000 records once the snapshot is kept, and what the snapshot costs.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use iit_manager::adapters::edc::RedcapFiles;
use iit_manager::store::{projects::Project, reader};
use iit_manager::tools::{Registry, Scope, Snapshots, registry::Caller};
use iit_manager::types::clock::Clock;
use iit_manager::types::project::ProjectFile;
use serde_json::json;

use crate::Bench;
use crate::report::{Figure, Target};
use crate::samples::Samples;
use crate::study;

const PROJECT: &str = r#"
id = "tools"
name = "tools"
[edc]
kind = "redcap_files"
dir = "study"
[fields]
enrollment_date = "screening_date4"
"#;
const CALLS: usize = 30;

pub async fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let count = bench.amount(10_000, 1_000);
    let folder = bench.place.folder().join("tools");
    study::write(&folder, &study::subjects(count))?;
    let edc = RedcapFiles::new(folder);
    let clock = Clock::system();
    let snapshots = Snapshots::default();
    let begin = Instant::now();
    snapshots.current("tools", &edc, &clock).await?;
    let read_in = begin.elapsed();
    let file = ProjectFile::parse(PROJECT)?;
    let project = Project {
        aliases: file.aliases.clone(),
        file,
    };
    // None of these tools asks the database.
    let nowhere = sqlx::PgPool::connect_lazy("postgres://nobody@127.0.0.1:1/nothing")?;
    let reader = reader::pool(&nowhere);
    let registry = Registry::standard(None);
    let female = json!({ "and": [
        { "==": [{ "var": "screening_code7" }, "1"] }, { ">": [{ "var": "labs_num0" }, 0] },
    ] });
    let calls = [
        ("read_clinical_data", json!({ "record_id": "" })),
        (
            "search_records",
            json!({ "filter": female, "sort": "recent", "fields": ["labs_num1"] }),
        ),
        (
            "aggregate",
            json!({ "op": "mean", "field": "labs_num0", "filter": female }),
        ),
        (
            "aggregate",
            json!({ "op": "median", "field": "labs_num0", "group_by": "screening_code7" }),
        ),
    ];
    let mut figures = Vec::new();
    for (tool, mut args) in calls {
        let mut times = Vec::with_capacity(CALLS);
        for call in 0..CALLS {
            let begin = Instant::now();
            let data = snapshots.current("tools", &edc, &clock).await?;
            let scope = Scope {
                project: &project,
                data: &data,
                record: None,
                today: clock.now().date_naive(),
                reader: &reader,
            };
            if tool == "read_clinical_data" {
                let record = data.records.get(call * 7).context("a record")?;
                args["record_id"] = json!(record.id);
            }
            let observation = registry
                .call(Caller::React, None, &scope, tool, &args.to_string())
                .await?;
            times.push(begin.elapsed());
            if tool != "read_clinical_data" {
                let seen = ["matched", "n"].map(|key| observation.value[key].as_u64());
                ensure!(
                    seen.into_iter().flatten().any(|n| n > 100),
                    "{tool} found next to nothing: {}",
                    observation.value
                );
            }
        }
        let times = Samples::new(times);
        let what = match args.get("op").and_then(|op| op.as_str()) {
            Some(op) => format!("{tool} {op}"),
            None => tool.to_owned(),
        };
        figures.push(
            Figure::new(
                format!("{what}, {count} records, p95"),
                Target::Below(50.0),
                times.ms(95),
                "ms",
            )
            .detail(times.spread())
            .note(format!(
                "{CALLS} calls, each with the look whether the data changed; reading the study once took {:.0} ms",
                read_in.as_secs_f64() * 1e3
            )),
        );
    }
    Ok(figures)
}
