//! Skills of a study and every version they ever had.

use serde::Serialize;
use serde_json::{Value, json};
use sqlx::PgConnection;

use super::{audit, schedules};
use crate::types::catch_up::CatchUp;

/// A skill at one version. `config` is the SOP as written (comments gone).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StoredSkill {
    /// `eligibility`, `visit_window`, …
    pub skill_type: String,
    /// What people call it.
    pub name: String,
    /// Version, counted from 1.
    pub version: i32,
    /// The SOP.
    pub config: Value,
}

/// What a batch pins: the types and versions of its skills.
#[must_use]
pub fn pins(skills: &[StoredSkill]) -> Vec<(String, i32)> {
    skills
        .iter()
        .map(|skill| (skill.skill_type.clone(), skill.version))
        .collect()
}

/// A skill to be stored.
#[derive(Debug, Clone)]
pub struct NewSkill<'a> {
    /// `eligibility`, `visit_window`, …
    pub skill_type: &'a str,
    /// What people call it.
    pub name: &'a str,
    /// Five-field cron.
    pub schedule: Option<&'a str>,
    /// What becomes of times nobody was there for.
    pub catch_up: CatchUp,
    /// The configuration as written (comments gone).
    pub config: &'a Value,
}

/// Creates or updates a skill; a changed configuration becomes a new version. Its schedule follows.
/// Returns the version.
///
/// # Errors
/// The database failed.
pub async fn apply(
    conn: &mut PgConnection,
    project: &str,
    skill: &NewSkill<'_>,
    actor: &str,
) -> Result<i32, sqlx::Error> {
    let NewSkill {
        skill_type,
        name,
        schedule,
        catch_up,
        config,
    } = *skill;
    let before = sqlx::query!(
        r#"SELECT version, config FROM iit_skills WHERE project_id = $1 AND skill_type = $2 FOR UPDATE"#,
        project,
        skill_type
    )
    .fetch_optional(&mut *conn)
    .await?;
    let version = sqlx::query_scalar!(
        r#"INSERT INTO iit_skills (project_id, skill_type, name, schedule, config)
           VALUES ($1, $2, $3, $4, $5)
           ON CONFLICT (project_id, skill_type) DO UPDATE
           SET name = excluded.name, schedule = excluded.schedule, config = excluded.config, is_active = true
           RETURNING version"#,
        project,
        skill_type,
        name,
        schedule,
        config,
    )
    .fetch_one(&mut *conn)
    .await?;
    let now = schedules::now(&mut *conn).await?;
    schedules::follow(&mut *conn, project, skill_type, Some(catch_up), now).await?;
    if before.as_ref().is_none_or(|old| old.version != version) {
        audit::record(
            conn,
            audit::Entry {
                project: Some(project),
                actor,
                action: if before.is_some() {
                    "skill.changed"
                } else {
                    "skill.created"
                },
                entity: "skill",
                entity_id: skill_type,
                old: before.map(|old| json!({"version": old.version, "config": old.config})),
                new: Some(json!({"version": version, "config": config})),
                reason: None,
            },
        )
        .await?;
    }
    Ok(version)
}

/// Active skills of a study that have an SOP, one type only when given.
///
/// # Errors
/// The database failed.
pub async fn active(
    conn: &mut PgConnection,
    project: &str,
    skill_type: Option<&str>,
) -> Result<Vec<StoredSkill>, sqlx::Error> {
    sqlx::query_as!(
        StoredSkill,
        r#"SELECT skill_type, name, version, config FROM iit_skills
           WHERE project_id = $1 AND is_active AND config ? 'nodes'
             AND ($2::text IS NULL OR skill_type = $2)
           ORDER BY skill_type"#,
        project,
        skill_type,
    )
    .fetch_all(conn)
    .await
}

/// A skill as it was at `version`.
///
/// # Errors
/// The database failed.
pub async fn version(
    conn: &mut PgConnection,
    project: &str,
    skill_type: &str,
    version: i32,
) -> Result<Option<StoredSkill>, sqlx::Error> {
    sqlx::query_as!(
        StoredSkill,
        r#"SELECT skill_type, name, version, config FROM iit_skill_versions
           WHERE project_id = $1 AND skill_type = $2 AND version = $3"#,
        project,
        skill_type,
        version,
    )
    .fetch_optional(conn)
    .await
}

/// Skills at the versions a batch was started with, in its order.
///
/// # Errors
/// The database failed.
pub async fn at_versions(
    conn: &mut PgConnection,
    project: &str,
    versions: &[(String, i32)],
) -> Result<Vec<StoredSkill>, sqlx::Error> {
    let types: Vec<String> = versions.iter().map(|(skill, _)| skill.clone()).collect();
    let numbers: Vec<i32> = versions.iter().map(|(_, version)| *version).collect();
    sqlx::query_as!(
        StoredSkill,
        r#"SELECT v.skill_type, v.name, v.version, v.config
           FROM UNNEST($2::text[], $3::int4[]) WITH ORDINALITY AS t(skill_type, version, at)
           JOIN iit_skill_versions v ON v.project_id = $1 AND v.skill_type = t.skill_type AND v.version = t.version
           ORDER BY t.at"#,
        project,
        &types,
        &numbers,
    )
    .fetch_all(conn)
    .await
}
