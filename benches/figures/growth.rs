//! Whether a step grows slower as the tables fill: durable steps beside 20,000 finished runs and beside
//! ten times as many.

use anyhow::Result;

use crate::Bench;
use crate::chain::{self, STEPS};
use crate::place::{self, Base};
use crate::report::{Figure, Target};
use crate::samples::{median, rate};

const RUNS: usize = 3;
/// Of a preloaded run.
const OLD_STEPS: i32 = 5;

pub async fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let (few, runs) = (bench.amount(20_000, 1_000), bench.amount(500, 50));
    let base = bench.place.database("growth").await?;
    place::demo(&base, &[]).await?;
    preload(&base, few).await?;
    let beside_few = steps_per_s(&base, runs).await?;
    preload(&base, 9 * few).await?;
    let beside_many = steps_per_s(&base, runs).await?;
    let megabytes = base
        .count("SELECT sum(pg_total_relation_size(relid))::int8 / 1000000 FROM pg_stat_user_tables")
        .await?;
    base.drop().await?;
    Ok(vec![
        Figure::new(
            "time of a step with 10 × the runs in the tables",
            Target::Below(1.2),
            beside_few / beside_many,
            "×",
        )
        .detail(format!(
            "{beside_few:.0} steps/s beside {few} runs, {beside_many:.0} beside {}",
            10 * few
        ))
        .note(format!(
            "medians of {RUNS} times {runs} runs × {STEPS} steps in one database, first beside {few} finished runs with \
             {OLD_STEPS} step and {OLD_STEPS} job rows each, then beside ten times as many ({megabytes} MB); none moved \
             to an archive, VACUUM ANALYZE after each load, autovacuum on"
        )),
    ])
}

async fn steps_per_s(base: &Base, runs: usize) -> Result<f64> {
    let mut rates = Vec::new();
    for _ in 0..RUNS {
        let seconds = chain::finish(base, runs).await?;
        rates.push(rate(runs * usize::try_from(STEPS)?, seconds));
    }
    Ok(median(rates))
}

/// Finished runs of the last months with what belongs to them, written by the database itself.
async fn preload(base: &Base, runs: i32) -> Result<()> {
    let mut conn = base.database.pool.acquire().await?;
    sqlx::query("CREATE TEMP TABLE old (id uuid, at timestamptz)")
        .execute(&mut *conn)
        .await?;
    sqlx::query(
        "INSERT INTO old SELECT gen_random_uuid(), now() - random() * interval '90 days' FROM generate_series(1, $1)",
    )
    .bind(runs)
    .execute(&mut *conn)
    .await?;
    for rows in [
        "INSERT INTO iit_task_run (id, project_id, kind, skill_type, skill_version, record, status, step_no, walk,
                                   final_state, standing, created_at, updated_at, finished_at)
         SELECT id, 'demo', 'sop', 'eligibility', 1, 'S' || id, 'done', $1, '{\"node\": \"n4\", \"visits\": {\"n0\": 1}}',
                'end_success', 'clean', at, at, at FROM old",
        "INSERT INTO iit_task_step (run_id, no, node, outcome, attempt, job_id, started_at, committed_at)
         SELECT id, no, 'n' || no, 'pass', 1, no, at, at FROM old, generate_series(0, $1 - 1) AS s(no)",
        "INSERT INTO iit_jobs (queue, kind, payload, state, attempt, job_key, created_at, run_at, started_at, finished_at)
         SELECT 'bench', 'bench', jsonb_build_object('run', id, 'step', no), 'done', 1, id || '/' || no, at, at, at, at
         FROM old, generate_series(0, $1 - 1) AS s(no)",
    ] {
        sqlx::query(rows)
            .bind(OLD_STEPS)
            .execute(&mut *conn)
            .await?;
    }
    sqlx::query("DROP TABLE old").execute(&mut *conn).await?;
    for table in [
        "VACUUM ANALYZE iit_task_run",
        "VACUUM ANALYZE iit_task_step",
        "VACUUM ANALYZE iit_jobs",
    ] {
        sqlx::query(table).execute(&mut *conn).await?;
    }
    Ok(())
}
