//! What studies have written down: documents with all their versions, and the search over the passages of the
//! current ones. The functions that take text apart live in the database (`iit_protocol_tokens` and those
//! that rest on it), so that what is stored and what is asked are taken apart alike.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::json;
use sqlx::PgConnection;

use super::audit;
use crate::types::protocol::{Found, Media, Passage};

/// A document to be stored.
#[derive(Debug, Clone)]
pub struct NewDocument<'a> {
    /// What people call it; a document of that name is replaced.
    pub name: &'a str,
    /// The version as it calls it itself.
    pub label: Option<&'a str>,
    /// What it was read from.
    pub media: Media,
    /// The file's name, without its folder.
    pub file_name: &'a str,
    /// SHA-256 of the file, in hex.
    pub sha256: &'a str,
    /// The file's size.
    pub bytes: u64,
    /// How many pages it has.
    pub pages: Option<u32>,
    /// What it says, in order.
    pub passages: &'a [Passage],
}

/// What became of a document that was to be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Added {
    /// It is new.
    New,
    /// It is a new version; the one before is kept and no longer searched.
    Replaced,
    /// This very file is the current version already.
    Unchanged,
}

/// One document, at its current version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DocumentLine {
    /// What people call it.
    pub name: String,
    /// The version counted here, from 1.
    pub version: i32,
    /// The version as it calls it itself.
    pub label: Option<String>,
    /// `markdown`, `text`, `pdf`, `docx`
    pub media: String,
    /// The file it came from.
    pub file: String,
    /// Pages, where the format has pages.
    pub pages: Option<i32>,
    /// Passages.
    pub passages: i32,
    /// Who stored it.
    pub added_by: String,
    /// When.
    pub created_at: DateTime<Utc>,
}

/// Stores a document, or a new version of it. The same file under the same name and label changes nothing.
/// Returns what became of it and the version that now stands.
///
/// # Errors
/// The database failed, or there is no such project (a foreign key).
pub async fn add(
    conn: &mut PgConnection,
    project: &str,
    document: &NewDocument<'_>,
    actor: &str,
) -> Result<(Added, i32), sqlx::Error> {
    // Two that store a document at once take turns.
    sqlx::query_scalar!(
        r#"SELECT id FROM iit_projects WHERE id = $1 FOR NO KEY UPDATE"#,
        project
    )
    .fetch_optional(&mut *conn)
    .await?;
    let before = sqlx::query!(
        r#"SELECT version, label, sha256, passages FROM iit_protocol_documents
           WHERE project_id = $1 AND name = $2 AND current"#,
        project,
        document.name,
    )
    .fetch_optional(&mut *conn)
    .await?;
    if let Some(before) = &before
        && before.sha256 == document.sha256
        && before.label.as_deref() == document.label
        && usize::try_from(before.passages) == Ok(document.passages.len())
    {
        return Ok((Added::Unchanged, before.version));
    }
    end(conn, project, document.name).await?;
    let row = sqlx::query!(
        r#"INSERT INTO iit_protocol_documents
               (project_id, name, version, label, media, file_name, sha256, bytes, pages, passages, added_by)
           SELECT $1, $2, COALESCE(max(version), 0) + 1, $3, $4, $5, $6, $7, $8, $9, $10
           FROM iit_protocol_documents WHERE project_id = $1 AND name = $2
           RETURNING id, version"#,
        project,
        document.name,
        document.label,
        document.media.as_str(),
        document.file_name,
        document.sha256,
        i64::try_from(document.bytes).unwrap_or(i64::MAX),
        document.pages.and_then(|pages| i32::try_from(pages).ok()),
        i32::try_from(document.passages.len()).unwrap_or(i32::MAX),
        actor,
    )
    .fetch_one(&mut *conn)
    .await?;
    let numbers: Vec<Option<String>> = document.passages.iter().map(|p| p.number.clone()).collect();
    let sections: Vec<String> = document
        .passages
        .iter()
        .map(|p| p.section.clone())
        .collect();
    let pages: Vec<Option<i32>> = document
        .passages
        .iter()
        .map(|p| p.page.and_then(|page| i32::try_from(page).ok()))
        .collect();
    let texts: Vec<String> = document.passages.iter().map(|p| p.text.clone()).collect();
    sqlx::query!(
        r#"INSERT INTO iit_protocol_passages (project_id, document_id, no, number, section, page, content)
           SELECT $6, $1, said.at, said.number, said.section, said.page, said.content
           FROM UNNEST($2::text[], $3::text[], $4::int4[], $5::text[])
               WITH ORDINALITY AS said(number, section, page, content, at)"#,
        row.id,
        &numbers as &[Option<String>],
        &sections,
        &pages as &[Option<i32>],
        &texts,
        project,
    )
    .execute(&mut *conn)
    .await?;
    let told = |version: i32, label: Option<&str>, sha256: &str| json!({"version": version, "label": label, "sha256": sha256});
    audit::record(
        conn,
        audit::Entry {
            project: Some(project),
            actor,
            action: if before.is_some() {
                "protocol.replaced"
            } else {
                "protocol.added"
            },
            entity: "protocol_document",
            entity_id: document.name,
            old: before
                .as_ref()
                .map(|old| told(old.version, old.label.as_deref(), &old.sha256)),
            new: Some(told(row.version, document.label, document.sha256)),
            reason: None,
        },
    )
    .await?;
    let added = if before.is_some() {
        Added::Replaced
    } else {
        Added::New
    };
    Ok((added, row.version))
}

/// Takes a document out of the search; its versions are kept. Returns whether there was one.
///
/// # Errors
/// The database failed.
pub async fn remove(
    conn: &mut PgConnection,
    project: &str,
    name: &str,
    actor: &str,
) -> Result<bool, sqlx::Error> {
    let Some((version, sha256)) = end(conn, project, name).await? else {
        return Ok(false);
    };
    audit::record(
        conn,
        audit::Entry {
            project: Some(project),
            actor,
            action: "protocol.removed",
            entity: "protocol_document",
            entity_id: name,
            old: Some(json!({"version": version, "sha256": sha256})),
            new: None,
            reason: None,
        },
    )
    .await?;
    Ok(true)
}

async fn end(
    conn: &mut PgConnection,
    project: &str,
    name: &str,
) -> Result<Option<(i32, String)>, sqlx::Error> {
    let row = sqlx::query!(
        r#"UPDATE iit_protocol_documents SET current = false, ended_at = now()
           WHERE project_id = $1 AND name = $2 AND current RETURNING version, sha256"#,
        project,
        name,
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(|row| (row.version, row.sha256)))
}

/// The current documents of a study, by name.
///
/// # Errors
/// The database failed.
pub async fn list(
    conn: &mut PgConnection,
    project: &str,
) -> Result<Vec<DocumentLine>, sqlx::Error> {
    sqlx::query_as!(
        DocumentLine,
        r#"SELECT name, version, label, media, file_name AS file, pages, passages, added_by, created_at
           FROM iit_protocol_documents WHERE project_id = $1 AND current ORDER BY name"#,
        project,
    )
    .fetch_all(conn)
    .await
}

/// What a search came to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Hits {
    /// Passages, best first.
    pub found: Vec<Hit>,
    /// Passages of the study's current documents; 0: nobody stored any.
    pub searched: i64,
}

/// A passage that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// The passage.
    pub passage: Found,
    /// It says the phrase word for word.
    pub phrase: bool,
    /// How much of what was asked for it has, 0 to 1; a rare term counts for more than one that stands
    /// everywhere.
    pub share: f64,
}

/// The passages of the study's current documents that say most of `terms`: first those that say `phrase` word
/// for word, then by how many terms they have, each weighed by how rare it is, and twice when it stands in
/// the headings above. What has less than a third of what the best one has is left out.
///
/// # Errors
/// The database failed.
pub async fn search(
    conn: &mut PgConnection,
    project: &str,
    phrase: &str,
    terms: &[String],
    limit: i64,
) -> Result<Hits, sqlx::Error> {
    let searched = sqlx::query_scalar!(
        r#"SELECT COALESCE(sum(passages), 0)::bigint AS "searched!" FROM iit_protocol_documents
           WHERE project_id = $1 AND current"#,
        project,
    )
    .fetch_one(&mut *conn)
    .await?;
    let rows = sqlx::query!(
        r#"WITH asked AS (
               SELECT at, iit_protocol_phrase(term) AS query FROM UNNEST($3::text[]) WITH ORDINALITY AS t(term, at)
           ), hits AS (
               SELECT asked.at, p.document_id, p.no, ts_filter(p.terms, '{a}') @@ asked.query AS above
               FROM asked
               JOIN iit_protocol_passages p ON p.terms @@ asked.query
               JOIN iit_protocol_documents d ON d.id = p.document_id
               WHERE d.project_id = $1 AND d.current
           ), weights AS (
               SELECT asked.at, ln(1 + ($5::float8 - count(hits.no) + 0.5) / (count(hits.no) + 0.5)) AS weight
               FROM asked LEFT JOIN hits USING (at) GROUP BY asked.at
           ), scored AS (
               SELECT document_id, no, sum(weight * CASE WHEN above THEN 2 ELSE 1 END) AS score, sum(weight) AS has
               FROM hits JOIN weights USING (at) GROUP BY document_id, no
           ), ranked AS (
               SELECT d.name, d.version, d.label, d.id, p.no, p.number, p.section, p.page, p.content, s.score,
                      p.terms @@ iit_protocol_phrase($2) AS phrase,
                      s.has / (SELECT sum(weight) FROM weights) AS share,
                      max(s.score) OVER () AS best
               FROM scored s
               JOIN iit_protocol_passages p USING (document_id, no)
               JOIN iit_protocol_documents d ON d.id = p.document_id
           )
           SELECT name, version, label, number, section, page, content, phrase AS "phrase!", share AS "share!"
           FROM ranked WHERE phrase OR score * 3 >= best
           ORDER BY phrase DESC, score DESC, id, no LIMIT $4"#,
        project,
        phrase,
        terms,
        limit,
        // As many as there can be, so that no weight turns negative.
        searched as f64,
    )
    .fetch_all(conn)
    .await?;
    let found = rows
        .into_iter()
        .map(|row| Hit {
            passage: Found {
                document: row.name,
                version: row.label.or_else(|| {
                    (row.version > 1).then(|| format!("（第 {} 次入库）", row.version))
                }),
                number: row.number,
                section: row.section,
                page: row.page.and_then(|page| u32::try_from(page).ok()),
                text: row.content,
            },
            phrase: row.phrase,
            share: row.share,
        })
        .collect();
    Ok(Hits { found, searched })
}
