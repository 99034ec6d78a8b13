//! What a turn of a question takes beside the model's own time: two tools over the sample study, with a model
//! that answers at once.

use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::Bench;
use crate::fake_llm::{Answer, FakeLlm};
use crate::fake_wecom::FakeWecom;
use crate::load;
use crate::place;
use crate::program::{self, Running};
use crate::report::{Figure, Target};
use crate::samples::Samples;
use crate::webhook::{Callback, client, listening};

/// Who writes; both are members of the fake WeCom and of the study.
const SENDERS: [&str; 2] = ["ZhangSan", "LiSi"];
const RATE: f64 = 5.0;
/// Turns of a question that look something up; the answer is one more.
const TURNS: usize = 3;
/// How long, after the last question, for the last answer.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(100);

pub async fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let count = bench.amount(100, 10);
    let base = bench.place.database("question").await?;
    place::demo(&base, &SENDERS).await?;
    let model = FakeLlm::answering(|request| {
        let seen = request.said_by("tool").len() / 2;
        if seen == TURNS {
            return Answer::Says("已查到。".to_owned());
        }
        // Never the same call again: that would be refused.
        Answer::Calls(
            String::new(),
            vec![
                (
                    "search_records".to_owned(),
                    format!(r#"{{"sort":"recent","limit":{}}}"#, seen + 5),
                ),
                (
                    "aggregate".to_owned(),
                    format!(
                        r#"{{"op":"mean","field":"age","filter":{{">":[{{"var":"age"}},{}]}}}}"#,
                        50 + seen
                    ),
                ),
            ],
        )
    })
    .await;
    let wecom = FakeWecom::start().await;
    let mut command = program::iit(&bench.place, &base, &["all"]);
    command.envs(model.variables());
    command.env("IIT_PROGRESS_AFTER_S", "0");
    let (command, address) = listening(command, &wecom).await?;
    let all = Running::start(command).await?;
    let client = client()?;
    load::open_loop(&load::poisson(RATE, count), |n, due| {
        let (wecom, client, address) = (wecom.clone(), client.clone(), address.clone());
        async move {
            let from = SENDERS.get(n % SENDERS.len()).copied().unwrap_or_default();
            // Says what kind of request it is: no model reads it first.
            let text = format!("查数据：最近入组的受试者平均年龄，第 {n} 次");
            Callback::seal(&wecom.config(), &address, n, from, &text)?
                .post(&client)
                .await?;
            Ok(due.elapsed())
        }
    })
    .await?;
    let answered = async {
        loop {
            let open = "SELECT count(*) FROM iit_inbox WHERE status <> 'answered'";
            if base.count(open).await? == 0 {
                return anyhow::Ok(());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    tokio::time::timeout(PATIENCE, answered)
        .await
        .context("the questions were not answered in time")??;
    all.stop().await?;
    let whole = base
        .count(
            "SELECT count(*) FROM iit_task_run WHERE kind = 'react' AND final_state = 'answered'",
        )
        .await?;
    ensure!(
        usize::try_from(whole)? == count,
        "only {whole} of {count} questions were answered"
    );
    let rows: Vec<f64> = sqlx::query_scalar(
        "SELECT EXTRACT(EPOCH FROM next - started_at)::float8 FROM (
             SELECT started_at, lead(started_at) OVER (PARTITION BY payload ->> 'run' ORDER BY started_at) AS next
             FROM iit_jobs WHERE kind = 'react_step') AS turns
         WHERE next IS NOT NULL",
    )
    .fetch_all(&base.database.pool)
    .await?;
    ensure!(
        rows.len() == count * TURNS,
        "{} turns, not {}",
        rows.len(),
        count * TURNS
    );
    base.drop().await?;
    let times = rows
        .into_iter()
        .map(Duration::try_from_secs_f64)
        .collect::<Result<Vec<_>, _>>()
        .context("a turn began before the one before it")?;
    let times = Samples::new(times);
    Ok(vec![
        Figure::new(
            "a question's turn with two tools, model of zero latency",
            Target::Below(20.0),
            times.ms(95),
            "ms p95",
        )
        .detail(times.spread())
        .note(format!(
            "`iit all`, {count} questions at {RATE}/s by two people, {TURNS} turns each: from the turn's job claimed to the \
             next one's: transcript read, request redacted, question journaled, asked over loopback HTTP, answer journaled, \
             two tools over 306 records, everything settled, the next job claimed"
        )),
    ])
}
