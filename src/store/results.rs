//! What a QC request came to: every run with its findings, or counts when there are many.

use sqlx::{PgConnection, types::Json};

use crate::types::{
    finding::Finding,
    ids::{BatchId, RunId},
};

/// One line of a QC answer: what a run came to.
#[derive(Debug, Clone)]
pub struct RunResult {
    /// The run.
    pub id: RunId,
    /// Over which record.
    pub record: String,
    /// The skill it ran.
    pub skill_type: String,
    /// What people call the skill.
    pub skill_name: String,
    /// `running`, `waiting`, `done`, `failed`, `cancelled`.
    pub status: String,
    /// How it ended.
    pub final_state: Option<String>,
    /// What the end amounts to.
    pub standing: Option<String>,
    /// The record's site.
    pub site: Option<String>,
    /// One sentence, when it failed.
    pub error: Option<String>,
    /// Everything its steps found, in order.
    pub findings: Vec<Finding>,
}

/// What the runs of a batch came to, by record (export order of their ids is kept by the caller).
///
/// # Errors
/// The database failed.
pub async fn runs(conn: &mut PgConnection, batch: BatchId) -> Result<Vec<RunResult>, sqlx::Error> {
    let rows = sqlx::query!(
        r#"SELECT r.id AS "id: RunId", r.record AS "record!", r.skill_type AS "skill_type!", v.name, r.status, r.final_state, r.standing, r.site,
                  r.error,
                  s.findings AS "findings?: Json<Vec<Finding>>"
           FROM iit_task_run r
           JOIN iit_skill_versions v ON v.project_id = r.project_id AND v.skill_type = r.skill_type
                                    AND v.version = r.skill_version
           LEFT JOIN iit_task_step s ON s.run_id = r.id AND jsonb_array_length(s.findings) > 0
           WHERE r.batch_id = $1
           ORDER BY r.record, r.skill_type, r.id, s.no"#,
        batch as BatchId
    )
    .fetch_all(conn)
    .await?;
    let mut results: Vec<RunResult> = Vec::new();
    for row in rows {
        let findings = row.findings.map(|json| json.0).unwrap_or_default();
        match results.last_mut() {
            Some(last) if last.id == row.id => last.findings.extend(findings),
            _ => results.push(RunResult {
                id: row.id,
                record: row.record,
                skill_type: row.skill_type,
                skill_name: row.name,
                status: row.status,
                final_state: row.final_state,
                standing: row.standing,
                site: row.site,
                error: row.error,
                findings,
            }),
        }
    }
    Ok(results)
}

/// Counts of a request with many records.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// (skill's name, `status`, `standing` or empty) and how many runs.
    pub runs: Vec<(String, String, String, i64)>,
    /// Rule and how many findings, most first.
    pub rules: Vec<(String, i64)>,
    /// Site and how many findings, most first.
    pub sites: Vec<(String, i64)>,
}

/// Counts what the runs of a batch came to, without loading a finding.
///
/// # Errors
/// The database failed.
pub async fn tally(conn: &mut PgConnection, batch: BatchId) -> Result<Tally, sqlx::Error> {
    let runs = sqlx::query!(
        r#"SELECT v.name, r.status, COALESCE(r.standing, '') AS "standing!", count(*) AS "n!"
           FROM iit_task_run r
           JOIN iit_skill_versions v ON v.project_id = r.project_id AND v.skill_type = r.skill_type
                                    AND v.version = r.skill_version
           WHERE r.batch_id = $1 GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"#,
        batch as BatchId
    )
    .fetch_all(&mut *conn)
    .await?;
    let rules = sqlx::query!(
        r#"SELECT f ->> 'rule' AS "rule!", count(*) AS "n!"
           FROM iit_task_run r JOIN iit_task_step s ON s.run_id = r.id,
                jsonb_array_elements(s.findings) AS f
           WHERE r.batch_id = $1 GROUP BY 1 ORDER BY 2 DESC, 1"#,
        batch as BatchId
    )
    .fetch_all(&mut *conn)
    .await?;
    let sites = sqlx::query!(
        r#"SELECT site AS "site!", sum(findings)::int8 AS "n!" FROM iit_task_run
           WHERE batch_id = $1 AND site IS NOT NULL AND findings > 0 GROUP BY 1 ORDER BY 2 DESC, 1"#,
        batch as BatchId
    )
    .fetch_all(conn)
    .await?;
    Ok(Tally {
        runs: runs
            .into_iter()
            .map(|row| (row.name, row.status, row.standing, row.n))
            .collect(),
        rules: rules.into_iter().map(|row| (row.rule, row.n)).collect(),
        sites: sites.into_iter().map(|row| (row.site, row.n)).collect(),
    })
}
