//! What checks write: findings, and the proposal to close what they no longer find.

use std::collections::HashSet;

use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::types::{
    finding::{Finding, FindingOutcome},
    ids::{PendingActionId, RunId},
};

/// A finding and the run it came from.
#[derive(Debug, Clone)]
pub struct Found<'a> {
    /// The run.
    pub run: RunId,
    /// Its skill.
    pub skill_type: &'a str,
    /// What was found.
    pub finding: &'a Finding,
    /// The run waits for a decision on it.
    pub waits: bool,
}

/// What a run has settled about a record: what was found there earlier and not now is fixed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    /// The run that settled it.
    pub run: RunId,
    /// Record id.
    pub record: String,
    /// How much of it.
    pub scope: Scope,
}

/// How much of a skill a run has settled. Rule keys are only unique within a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// One rule of the skill got its answer.
    Rule {
        /// The skill.
        skill: String,
        /// The rule's key.
        rule: String,
    },
    /// The whole skill ended clean.
    Skill(String),
}

/// Lets no other transaction write findings of these records until this one ends, so that each sees what
/// the other wrote, and none of them waits for another in a circle. Call it once, with all records, before
/// [`record`] and [`propose_close`].
///
/// # Errors
/// The database failed.
pub async fn lock_records(
    conn: &mut PgConnection,
    project: &str,
    records: &[String],
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        r#"SELECT pg_advisory_xact_lock(key) AS "locked: ()"
           FROM (SELECT DISTINCT hashtextextended($1 || ' ' || record, 11) AS key
                 FROM UNNEST($2::text[]) AS t(record) ORDER BY key) AS keys"#,
        project,
        records,
    )
    .fetch_all(conn)
    .await?;
    Ok(())
}

/// Writes findings: new ones open, known ones are updated; closed and close-proposed ones reopen; a
/// dismissed or answered one stays as people left it unless its values changed. A review that a run
/// waits for always opens: that run asks anew. History and audit rows go with every change; a finding
/// that is the same as before leaves no trace.
///
/// Hazard: without [`lock_records`] two that find the same thing first would both say that they opened it.
///
/// # Errors
/// The database failed.
pub async fn record(
    conn: &mut PgConnection,
    project: &str,
    found: &[Found<'_>],
) -> Result<(), sqlx::Error> {
    if found.is_empty() {
        return Ok(());
    }
    // One row a fingerprint, since a statement can't touch a row twice.
    let mut rows: Vec<(String, &Found<'_>)> = found
        .iter()
        .map(|f| (f.finding.fingerprint(project), f))
        .collect();
    let mut seen = HashSet::new();
    rows.retain(|(fingerprint, _)| seen.insert(fingerprint.clone()));

    // Ids rise, so people read new rows in the order in which they were found.
    let ids: Vec<Uuid> = rows.iter().map(|_| PendingActionId::generate().0).collect();
    let fingerprints: Vec<String> = rows.iter().map(|(f, _)| f.clone()).collect();
    let skills: Vec<String> = rows.iter().map(|(_, f)| f.skill_type.to_owned()).collect();
    let rules: Vec<String> = rows.iter().map(|(_, f)| f.finding.rule.clone()).collect();
    let records: Vec<String> = rows.iter().map(|(_, f)| f.finding.record.clone()).collect();
    let events: Vec<Option<String>> = rows.iter().map(|(_, f)| f.finding.event.clone()).collect();
    let instances: Vec<Option<i32>> = rows
        .iter()
        .map(|(_, f)| f.finding.instance.and_then(|n| i32::try_from(n).ok()))
        .collect();
    let fields: Vec<String> = rows.iter().map(|(_, f)| f.finding.field.clone()).collect();
    let outcomes: Vec<String> = rows
        .iter()
        .map(|(_, f)| outcome_str(f.finding.outcome).to_owned())
        .collect();
    let severities: Vec<String> = rows
        .iter()
        .map(|(_, f)| f.finding.severity.as_str().to_owned())
        .collect();
    let messages: Vec<String> = rows
        .iter()
        .map(|(_, f)| f.finding.message.clone())
        .collect();
    let values: Vec<Value> = rows
        .iter()
        .map(|(_, f)| serde_json::to_value(&f.finding.values).unwrap_or_default())
        .collect();
    let runs: Vec<Uuid> = rows.iter().map(|(_, f)| f.run.0).collect();
    let waits: Vec<bool> = rows.iter().map(|(_, f)| f.waits).collect();

    // Decisions lock rows only. Locked by a statement of its own: the next one then sees what it
    // overwrites as it really is.
    sqlx::query!(
        r#"SELECT id FROM iit_pending_actions WHERE fingerprint = ANY($1) ORDER BY fingerprint FOR UPDATE"#,
        &fingerprints
    )
    .fetch_all(&mut *conn)
    .await?;
    sqlx::query!(
        r#"WITH input AS (
               SELECT * FROM UNNEST($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::int4[],
                                    $8::text[], $9::text[], $10::text[], $11::text[], $12::jsonb[], $13::uuid[], $14::bool[])
                    AS t(id, fingerprint, skill_type, rule, record, event, instance, field, outcome, severity,
                         message, values, run_id, waits)),
           before AS (
               SELECT a.id, a.fingerprint, a.status, a.message, a.values, a.severity, a.outcome
               FROM iit_pending_actions a WHERE a.fingerprint = ANY($2)),
           -- A run that waited for a verdict on the same thing has been overtaken by the new one.
           overtaken AS (
               UPDATE iit_task_run r
               SET status = 'cancelled', final_state = 'superseded', finished_at = now(), updated_at = now()
               FROM iit_pending_actions a JOIN input i ON i.fingerprint = a.fingerprint
               WHERE a.fingerprint = ANY($2) AND a.waits_for IS NOT NULL
                 AND r.id = a.waits_for AND r.id <> i.run_id AND r.status = 'waiting'),
           written AS (
               INSERT INTO iit_pending_actions AS a
                      (id, project_id, fingerprint, skill_type, rule, record, event, instance, field, outcome, severity,
                       message, values, run_id, waits_for)
               SELECT id, $15, fingerprint, skill_type, rule, record, event, instance, field, outcome, severity,
                      message, values, run_id, CASE WHEN waits THEN run_id END
               FROM input ORDER BY fingerprint
               ON CONFLICT (fingerprint) DO UPDATE
               SET outcome = excluded.outcome, severity = excluded.severity, message = excluded.message,
                   values = excluded.values, run_id = excluded.run_id, waits_for = excluded.waits_for,
                   skill_type = excluded.skill_type,
                   verdict = CASE
                       WHEN a.status IN ('closed', 'close_proposed') OR a.values IS DISTINCT FROM excluded.values
                            OR excluded.waits_for IS NOT NULL THEN NULL
                       ELSE a.verdict END,
                   status = CASE
                       WHEN a.status IN ('closed', 'close_proposed') THEN 'open'
                       WHEN a.values IS DISTINCT FROM excluded.values THEN 'open'
                       WHEN excluded.waits_for IS NOT NULL THEN 'open'
                       ELSE a.status END,
                   updated_at = CASE
                       WHEN a.status IN ('closed', 'close_proposed') OR a.values IS DISTINCT FROM excluded.values
                            OR a.message <> excluded.message OR a.severity <> excluded.severity
                            OR a.outcome <> excluded.outcome THEN now()
                       ELSE a.updated_at END
               RETURNING id, fingerprint, status, message, values, severity, outcome, run_id),
           changed AS (
               SELECT w.id, w.status, w.message, w.values, w.run_id, b.status AS old_status, b.message AS old_message
               FROM written w LEFT JOIN before b ON b.fingerprint = w.fingerprint
               WHERE b.id IS NULL OR b.status <> w.status OR b.message <> w.message OR b.values IS DISTINCT FROM w.values
                     OR b.severity <> w.severity OR b.outcome <> w.outcome),
           told AS (
               INSERT INTO iit_audit_log (project_id, actor, action, entity, entity_id, old, new, reason)
               SELECT $15, 'system:qc',
                      CASE WHEN old_status IS NULL THEN 'pending_action.opened'
                           WHEN old_status <> status THEN 'pending_action.reopened' ELSE 'pending_action.updated' END,
                      'pending_action', id::text,
                      CASE WHEN old_status IS NOT NULL
                           THEN jsonb_build_object('status', old_status, 'message', old_message) END,
                      jsonb_build_object('status', status, 'message', message), 'qc'
               FROM changed)
           INSERT INTO iit_pending_action_history (action_id, from_status, to_status, message, values, actor, reason, run_id)
           SELECT id, old_status, status, message, values, 'system:qc',
                  CASE WHEN old_status IS NULL THEN '发现' WHEN old_status <> status THEN '再次发现' ELSE '内容变化' END,
                  run_id
           FROM changed"#,
        &ids,
        &fingerprints,
        &skills,
        &rules,
        &records,
        &events as &[Option<String>],
        &instances as &[Option<i32>],
        &fields,
        &outcomes,
        &severities,
        &messages,
        &values,
        &runs,
        &waits,
        project,
    )
    // Planned anew each time: the ledger grows a hundredfold during its first batch.
    .persistent(false)
    .execute(conn)
    .await?;
    Ok(())
}

/// Moves what was found earlier, and not now, to `close_proposed`. `current` holds the fingerprints
/// found now. Returns how many moved.
///
/// # Errors
/// The database failed.
pub async fn propose_close(
    conn: &mut PgConnection,
    project: &str,
    decided: &[Decided],
    current: &[String],
) -> Result<u64, sqlx::Error> {
    if decided.is_empty() {
        return Ok(0);
    }
    let records: Vec<String> = decided.iter().map(|d| d.record.clone()).collect();
    let runs: Vec<Uuid> = decided.iter().map(|d| d.run.0).collect();
    let (rules, skills): (Vec<Option<String>>, Vec<String>) = decided
        .iter()
        .map(|d| match &d.scope {
            Scope::Rule { skill, rule } => (Some(rule.clone()), skill.clone()),
            Scope::Skill(skill) => (None, skill.clone()),
        })
        .unzip();
    let done = sqlx::query!(
        r#"WITH decided AS (
               SELECT * FROM UNNEST($2::text[], $3::text[], $4::text[], $5::uuid[]) AS t(record, rule, skill_type, run_id)),
           -- One look-up a record. Left to the planner, which knows nothing yet of a table that a batch is
           -- just filling, every page would go through all open rows of the study.
           open AS (
               SELECT a.id, a.status, a.skill_type, a.record, a.rule, a.run_id, a.waits_for
               FROM (SELECT DISTINCT record FROM decided) r
               CROSS JOIN LATERAL (
                   SELECT p.id, p.status, p.skill_type, p.record, p.rule, p.run_id, p.waits_for, p.fingerprint
                   FROM iit_pending_actions p
                   WHERE p.project_id = $1 AND p.record = r.record AND p.status IN ('open', 'answered')
                   OFFSET 0) a
               WHERE a.fingerprint <> ALL($6)),
           fixed AS (
               SELECT o.id, o.status, o.waits_for, d.run_id FROM open o
               JOIN decided d ON d.record = o.record AND d.skill_type = o.skill_type AND d.rule = o.rule
               UNION
               -- Found by an earlier step of the same run: not fixed, just not looked at again.
               SELECT o.id, o.status, o.waits_for, d.run_id FROM open o
               JOIN decided d ON d.record = o.record AND d.skill_type = o.skill_type AND d.rule IS NULL
                              AND o.run_id IS DISTINCT FROM d.run_id),
           -- A run that waits for a verdict on what is fixed now has nothing to wait for.
           overtaken AS (
               UPDATE iit_task_run r
               SET status = 'cancelled', final_state = 'superseded', finished_at = now(), updated_at = now()
               WHERE r.id = ANY(ARRAY(SELECT waits_for FROM fixed WHERE waits_for IS NOT NULL))
                 AND r.status = 'waiting'),
           moved AS (
               UPDATE iit_pending_actions a SET status = 'close_proposed', waits_for = NULL, updated_at = now()
               FROM (SELECT DISTINCT ON (id) id, status, run_id FROM fixed ORDER BY id, run_id) AS fixed
               WHERE a.id = fixed.id AND a.id = ANY(ARRAY(SELECT id FROM fixed))
                 AND a.status IN ('open', 'answered')
               RETURNING a.id, fixed.status AS old_status, fixed.run_id, a.message, a.values),
           told AS (
               INSERT INTO iit_audit_log (project_id, actor, action, entity, entity_id, old, new, reason)
               SELECT $1, 'system:qc', 'pending_action.close_proposed', 'pending_action', id::text,
                      jsonb_build_object('status', old_status), jsonb_build_object('status', 'close_proposed'), 'qc'
               FROM moved)
           INSERT INTO iit_pending_action_history (action_id, from_status, to_status, message, values, actor, reason, run_id)
           SELECT id, old_status, 'close_proposed', message, values, 'system:qc', '复查未再发现', run_id FROM moved"#,
        project,
        &records,
        &rules as &[Option<String>],
        &skills,
        &runs,
        current,
    )
    // Planned anew each time, as above.
    .persistent(false)
    .execute(conn)
    .await?;
    Ok(done.rows_affected())
}

fn outcome_str(outcome: FindingOutcome) -> &'static str {
    match outcome {
        FindingOutcome::Fail => "fail",
        FindingOutcome::NotEvaluable => "not_evaluable",
    }
}
