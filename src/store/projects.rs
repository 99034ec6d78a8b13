//! Studies: their settings, people and aliases.

use std::collections::BTreeMap;

use serde::Serialize;
use sqlx::{PgConnection, types::Json};

use super::{audit, schedules};
use crate::types::project::ProjectFile;

/// A study as the program works with it.
#[derive(Debug, Clone)]
pub struct Project {
    /// The applied project file.
    pub file: ProjectFile,
    /// Names people use → field names: the file's and those added in the table.
    pub aliases: BTreeMap<String, String>,
}

/// One line of `iit project list`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProjectLine {
    /// Short id.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// IANA time zone.
    pub timezone: String,
    /// Active skills.
    pub skills: i64,
    /// People.
    pub members: i64,
}

/// Creates or updates a study from its file. Applying the same file again changes nothing.
///
/// Aliases are added or changed, never taken away: others may stand in the table. Members are exactly
/// the file's.
///
/// # Errors
/// The database failed.
pub async fn apply(
    conn: &mut PgConnection,
    file: &ProjectFile,
    actor: &str,
) -> Result<bool, sqlx::Error> {
    let before = sqlx::query_scalar!(
        r#"SELECT config FROM iit_projects WHERE id = $1 FOR UPDATE"#,
        file.id
    )
    .fetch_optional(&mut *conn)
    .await?;
    let config = serde_json::to_value(file).map_err(|e| sqlx::Error::Encode(Box::new(e)))?;
    if before.as_ref() == Some(&config) {
        return Ok(false);
    }
    sqlx::query!(
        r#"INSERT INTO iit_projects (id, name, timezone, config) VALUES ($1, $2, $3, $4)
           ON CONFLICT (id) DO UPDATE
           SET name = excluded.name, timezone = excluded.timezone, config = excluded.config, updated_at = now()"#,
        file.id,
        file.name,
        file.timezone,
        config,
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(r#"DELETE FROM iit_members WHERE project_id = $1"#, file.id)
        .execute(&mut *conn)
        .await?;
    for member in &file.members {
        let role = serde_json::to_value(member.role)
            .ok()
            .and_then(|v| v.as_str().map(str::to_owned))
            .unwrap_or_default();
        sqlx::query!(
            r#"INSERT INTO iit_members (project_id, wecom_user, name, role) VALUES ($1, $2, $3, $4)
               ON CONFLICT (project_id, lower(wecom_user)) DO UPDATE SET name = excluded.name, role = excluded.role"#,
            file.id,
            member.wecom_user,
            member.name,
            role,
        )
        .execute(&mut *conn)
        .await?;
    }
    for (alias, field) in &file.aliases {
        sqlx::query!(
            r#"INSERT INTO iit_field_mapping (project_id, alias_name, actual_name) VALUES ($1, $2, $3)
               ON CONFLICT (project_id, alias_name) DO UPDATE SET actual_name = excluded.actual_name"#,
            file.id,
            alias,
            field,
        )
        .execute(&mut *conn)
        .await?;
    }
    // In another time zone the schedules are due at other moments.
    let now = schedules::now(&mut *conn).await?;
    schedules::follow_changes(&mut *conn, Some(&file.id), now).await?;
    audit::record(
        conn,
        audit::Entry {
            project: Some(&file.id),
            actor,
            action: if before.is_some() {
                "project.changed"
            } else {
                "project.created"
            },
            entity: "project",
            entity_id: &file.id,
            old: before,
            new: Some(config),
            reason: None,
        },
    )
    .await?;
    Ok(true)
}

/// The study of that id.
///
/// # Errors
/// The database failed, or the stored file is not readable by this version.
pub async fn get(conn: &mut PgConnection, id: &str) -> Result<Option<Project>, sqlx::Error> {
    let Some(row) = sqlx::query!(
        r#"SELECT config AS "config: Json<ProjectFile>" FROM iit_projects WHERE id = $1"#,
        id
    )
    .fetch_optional(&mut *conn)
    .await?
    else {
        return Ok(None);
    };
    let aliases = sqlx::query!(
        r#"SELECT alias_name, actual_name FROM iit_field_mapping WHERE project_id = $1"#,
        id
    )
    .fetch_all(conn)
    .await?
    .into_iter()
    .map(|row| (row.alias_name, row.actual_name))
    .collect();
    Ok(Some(Project {
        file: row.config.0,
        aliases,
    }))
}

/// All studies.
///
/// # Errors
/// The database failed.
pub async fn list(conn: &mut PgConnection) -> Result<Vec<ProjectLine>, sqlx::Error> {
    sqlx::query_as!(
        ProjectLine,
        r#"SELECT p.id, p.name, p.timezone,
                  (SELECT count(*) FROM iit_skills s WHERE s.project_id = p.id AND s.is_active) AS "skills!",
                  (SELECT count(*) FROM iit_members m WHERE m.project_id = p.id) AS "members!"
           FROM iit_projects p ORDER BY p.id"#
    )
    .fetch_all(conn)
    .await
}

/// Ids and names of the studies a WeCom user is a member of.
///
/// # Errors
/// The database failed.
pub async fn of_member(
    conn: &mut PgConnection,
    wecom_user: &str,
) -> Result<Vec<(String, String)>, sqlx::Error> {
    let rows = sqlx::query!(
        r#"SELECT p.id, p.name FROM iit_members m JOIN iit_projects p ON p.id = m.project_id
           WHERE lower(m.wecom_user) = lower($1) ORDER BY p.id"#,
        wecom_user
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(|row| (row.id, row.name)).collect())
}
