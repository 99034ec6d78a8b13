//! Steps of a real agent run, with a model that answers at once: `iit worker` puts each soft rule to the
//! model, with the journal around the call, the transcript, the step, and at the end of the run a notice in
//! the outbox.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use iit_manager::adapters::edc::{Edc, RedcapFiles};
use iit_manager::boot::cli::{batch, project, skills};
use serde_json::{Map, Value, json};

use crate::Bench;
use crate::cost::{Cost, Meter};
use crate::fake_llm::{self, FakeLlm};
use crate::place::Base;
use crate::program::{self, Running};
use crate::queue_side::SLOTS;
use crate::report::{Figure, Target};
use crate::samples::median;

/// Soft rules of a run; the notice is one step more.
const RULES: usize = 8;
const RUNS: usize = 3;

pub async fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let subjects = bench.amount(306, 30);
    let (mut rates, mut cost) = (Vec::new(), None);
    for turn in 0..RUNS {
        let (rate, each) = once(bench, turn, subjects).await?;
        rates.push(rate);
        cost = Some(each);
    }
    let cost = cost.context("no run")?;
    let all: Vec<String> = rates.iter().map(|rate| format!("{rate:.0}")).collect();
    Ok(vec![
        Figure::new(
            "steps of an agent's run, model of zero latency",
            Target::AtLeast(300.0),
            median(rates),
            "steps/s",
        )
        .detail(format!("runs: {}; a step: {}", all.join(", "), cost.text()))
        .note(format!(
            "`iit worker`, {SLOTS} slots: {subjects} subjects of the sample study, {RULES} soft rules and a notice each; a step \
             reads the record, journals the question, asks over loopback HTTP, journals the answer, and commits verdict, \
             transcript, run, step row and next job; from the first committed step to the last"
        )),
    ])
}

async fn once(bench: &Bench, turn: usize, subjects: usize) -> Result<(f64, Cost)> {
    let base = bench.place.database(&format!("agent_{turn}")).await?;
    let records = study(bench, &base, subjects).await?;
    let model = FakeLlm::start(|request| fake_llm::verdict(request, "pass", "age")).await;
    let meter = Meter::begin(&base.url).await?;
    let mut command = program::iit(&bench.place, &base, &["worker"]);
    command.envs(model.variables());
    let worker = Running::start(command).await?;
    let asked = batch::request(&base.database.pool, "agent", None, Some(&records)).await?;
    let done = batch::wait(&base.database.pool, asked).await?;
    worker.stop().await?;
    ensure!(
        done.batch.failed == 0,
        "{} subjects could not be judged",
        done.batch.failed
    );
    let calls = subjects * RULES;
    ensure!(
        model.log().len() == calls,
        "the model was asked {} times for {calls} judgements",
        model.log().len()
    );
    for (wanted, counted) in [
        (
            calls,
            "SELECT count(*) FROM iit_llm_calls WHERE state = 'answered' AND settled",
        ),
        (
            calls + subjects,
            "SELECT count(*) FROM iit_task_step WHERE outcome IN ('pass', 'sent')",
        ),
        (
            subjects,
            "SELECT count(*) FROM iit_task_run WHERE final_state = 'end_success'",
        ),
        (subjects, "SELECT count(*) FROM iit_outbox"),
    ] {
        let rows = base.count(counted).await?;
        ensure!(
            usize::try_from(rows)? == wanted,
            "{rows} rows, not {wanted}: {counted}"
        );
    }
    let rate: f64 = sqlx::query_scalar(
        "SELECT (count(*) / EXTRACT(EPOCH FROM max(committed_at) - min(committed_at)))::float8 FROM iit_task_step",
    )
    .fetch_one(&base.database.pool)
    .await?;
    base.database.pool.close().await;
    let cost = meter.end(calls + subjects).await?;
    base.drop().await?;
    Ok((rate, cost))
}

/// The sample study as a project with this one skill; returns the subjects to judge.
async fn study(bench: &Bench, base: &Base, subjects: usize) -> Result<Vec<String>> {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo");
    let mut file = project::read(&demo.join("project.toml"))?;
    file.id = "agent".to_owned();
    let folder = bench.place.folder().join("agent-skills");
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("agent.json"), serde_json::to_vec(&skill())?)?;
    project::apply(&base.database.pool, &file).await?;
    skills::apply_to(&base.database.pool, &file, None, &folder).await?;
    let ids = RedcapFiles::new(demo.join("study")).record_ids().await?;
    Ok(ids.into_iter().take(subjects).collect())
}

fn skill() -> Value {
    let mut nodes = Map::new();
    for no in 0..RULES {
        let next = if no + 1 == RULES {
            "tell".to_owned()
        } else {
            format!("rule{}", no + 1)
        };
        nodes.insert(
            format!("rule{no}"),
            json!({
                "type": "soft_instruction",
                "instruction": format!("第 {no} 条：受试者的既往史与不良事件中不得有影响安全性评价的情况"),
                "on_pass": next,
                "on_fail": "end_review_required",
            }),
        );
    }
    nodes.insert(
        "tell".to_owned(),
        json!({ "type": "notify", "message": "受试者 {record} 已核查", "on_pass": "end_success" }),
    );
    json!({ "name": "医学核查", "start_node": "rule0", "nodes": nodes })
}
