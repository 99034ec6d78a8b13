//! The ladder, enforced: who may import whom, and what may be named where.

use std::path::{Path, PathBuf};

use regex::Regex;

/// Lowest first. A module imports only from rungs strictly below its own.
const LADDER: [&[&str]; 9] = [
    &["types"],
    &["store", "adapters", "queue", "skills"],
    &["memory"],
    &["engines"],
    &["tools"],
    &["jobs"],
    &["ops"],
    &["entry"],
    &["boot"],
];

#[test]
fn every_source_file_keeps_to_the_ladder() {
    let files = source_files();
    assert!(files.len() > 20, "the walk finds the sources: {files:?}");
    let faults: Vec<String> = files
        .iter()
        .flat_map(|path| faults(path, &std::fs::read_to_string(root().join(path)).unwrap()))
        .collect();
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn every_top_level_module_has_a_rung() {
    let lib = std::fs::read_to_string(root().join("src/lib.rs")).unwrap();
    let modules = Regex::new(r"(?m)^(?:pub )?mod (\w+);").unwrap();
    for module in modules.captures_iter(&lib) {
        assert!(rung(&module[1]).is_some(), "{} has no rung", &module[1]);
    }
}

#[test]
fn no_file_points_outside_of_the_project() {
    let outside = [concat!("..", "/shared"), concat!("/wo", "rk/")];
    let mut faults = Vec::new();
    walk(&root(), &mut |path| {
        let Ok(text) = std::fs::read_to_string(path) else {
            return;
        };
        faults.extend(
            text.lines()
                .enumerate()
                .filter(|(_, line)| outside.iter().any(|o| line.contains(o)))
                .map(|(n, _)| format!("{}:{}", path.display(), n + 1)),
        );
    });
    assert!(faults.is_empty(), "{faults:?}");
}

#[test]
fn a_planted_import_upward_or_sideways_is_found() {
    for (path, source) in [
        ("src/types/ids.rs", "use crate::store::db;"),
        ("src/store/db.rs", "use crate::queue::enqueue;"),
        ("src/queue/claim.rs", "use crate::jobs::Kind;"),
        ("src/queue/claim.rs", "fn f() { crate::jobs::register(); }"),
        (
            "src/queue/claim.rs",
            "use crate::{types::ids, jobs::{self, intent}};",
        ),
        ("src/queue/claim.rs", "use super::super::jobs;"),
        (
            "src/queue/deep/x.rs",
            "use super::super::super::entry::api;",
        ),
        ("src/queue/mod.rs", "use super::adapters::wecom;"),
        ("jobs/intent.rs", "use crate::entry::webhook;"),
        ("src/engines/sop/mod.rs", "use crate :: boot :: config;"),
    ] {
        assert_eq!(faults(path, source).len(), 1, "{path}: {source}");
    }
}

#[test]
fn imports_downward_and_within_a_module_are_fine() {
    for (path, source) in [
        ("src/store/db.rs", "use crate::types::ids::RunId;"),
        (
            "src/store/db.rs",
            "use crate::store::runs; use super::runs;",
        ),
        ("src/boot/mod.rs", "use crate::{entry, jobs, types};"),
        ("src/engines/sop/mod.rs", "use crate::engines::rules;"),
        ("jobs/intent.rs", "use crate::engines::router;"),
        ("src/types/ids.rs", "// not crate::store\n/* crate::boot */"),
        (
            "src/types/ids.rs",
            r##"let s = "crate::store"; let t = r#"crate::"jobs""#;"##,
        ),
        ("src/types/ids.rs", "let q = '\"'; fn f<'a>(x: &'a str) {}"),
        ("src/types/ids.rs", "pub(crate) struct X;"),
    ] {
        assert_eq!(faults(path, source), Vec::<String>::new(), "{source}");
    }
}

#[test]
fn a_planted_import_after_a_tricky_literal_is_found() {
    for literal in [
        r#""\"//""#,
        r##"r#"" // "#"##,
        "'\"'",
        "'\\''",
        "\"/*\"",
        "b'\"'",
    ] {
        let source = format!("const X: u8 = {literal}; use crate::boot;");
        assert_eq!(faults("src/types/ids.rs", &source).len(), 1, "{source}");
    }
}

#[test]
fn io_in_a_pure_engine_is_found() {
    for library in ["sqlx", "reqwest", "tokio"] {
        let source = format!("use {library}::x;");
        for engine in ["rules", "sop"] {
            let path = format!("src/engines/{engine}/x.rs");
            assert_eq!(faults(&path, &source).len(), 1, "{path}: {source}");
        }
        assert!(faults("jobs/intent.rs", &source).is_empty());
    }
}

#[test]
fn sql_outside_of_store_and_queue_is_found() {
    for source in [
        "sqlx::query!(\"SELECT 1\")",
        "query_as!(Row, \"SELECT 1\")",
        "query_scalar!(\"SELECT 1\")",
        "sqlx::query(\"SELECT 1\")",
        "sqlx::raw_sql(\"SELECT 1\")",
        "AssertSqlSafe(text)",
    ] {
        assert_eq!(faults("jobs/intent.rs", source).len(), 1, "{source}");
        assert_eq!(faults("src/store/runs.rs", source), Vec::<String>::new());
        assert_eq!(faults("src/queue/claim.rs", source), Vec::<String>::new());
    }
}

#[test]
fn a_clock_outside_of_the_clock_is_found() {
    for source in ["Utc::now()", "chrono::Local::now()", ".map(Utc::now)"] {
        assert_eq!(faults("jobs/intent.rs", source).len(), 1, "{source}");
        assert!(faults("src/types/clock.rs", source).is_empty());
    }
}

/// What `path` (relative to the project) does against the rules, one line each.
fn faults(path: &str, source: &str) -> Vec<String> {
    let code = without_comments_and_literals(source);
    let mut faults = Vec::new();
    let module = module_path(path);
    if let Some((own, own_rung)) = module.first().and_then(|m| Some((m, rung(m)?))) {
        for name in named_modules(&code, module.len()) {
            if name != *own && rung(&name).is_some_and(|r| r >= own_rung) {
                faults.push(format!("{path}: {own} may not import {name}"));
            }
        }
    }
    let mut forbid = |allowed: bool, pattern: &str, why: &str| {
        if !allowed && let Some(found) = Regex::new(pattern).unwrap().find(&code) {
            faults.push(format!("{path}: {}: {why}", found.as_str()));
        }
    };
    let under = |dir: &[&str]| {
        module
            .iter()
            .map(String::as_str)
            .take(dir.len())
            .eq(dir.iter().copied())
    };
    forbid(
        !under(&["engines", "rules"]) && !under(&["engines", "sop"]),
        r"\b(sqlx|reqwest|tokio)\b",
        "the rule and SOP engines are pure",
    );
    forbid(
        under(&["store"]) || under(&["queue"]),
        r"\bquery(_\w+)?!|\bsqlx::query(_\w+)?\b|\braw_sql\b|\bQueryBuilder\b|\bAssertSqlSafe\b",
        "SQL lives in store/ and queue/",
    );
    forbid(
        under(&["types", "clock"]),
        r"\b(Utc|Local)::now\b",
        "only types/clock.rs reads the clock",
    );
    faults
}

/// The top-level modules that `code` names, by `crate::…` or by climbing out with `super::…`.
fn named_modules(code: &str, depth: usize) -> Vec<String> {
    let mut names = Vec::new();
    let from_root = Regex::new(r"\bcrate\s*::\s*").unwrap();
    let climbing = Regex::new(r"\b((?:super\s*::\s*)+)").unwrap();
    let mut starts: Vec<usize> = from_root.find_iter(code).map(|m| m.end()).collect();
    starts.extend(
        climbing
            .find_iter(code)
            .filter(|m| m.as_str().matches("super").count() >= depth)
            .map(|m| m.end()),
    );
    for start in starts {
        names.extend(first_segments(&code[start..]));
    }
    names.retain(|name| rung(name).is_some());
    names
}

/// `a::b` → a; `{a::b, c::{d, e}}` → a, c.
fn first_segments(path: &str) -> Vec<String> {
    let word = |text: &str| -> String {
        text.trim_start()
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect()
    };
    if !path.starts_with('{') {
        return vec![word(path)];
    }
    let mut names = Vec::new();
    let mut open = 0_usize;
    for (at, c) in path.char_indices() {
        match c {
            '{' => open += 1,
            '}' => open -= 1,
            _ => {}
        }
        if open == 0 {
            break;
        }
        if open == 1 && matches!(c, '{' | ',') {
            names.push(word(&path[at + 1..]));
        }
    }
    names
}

/// `src/store/db.rs` → store, db; `jobs/intent.rs` → jobs, intent; `src/lib.rs` → nothing.
fn module_path(path: &str) -> Vec<String> {
    let path = path.strip_prefix("src/").unwrap_or(path);
    let path = path.strip_suffix(".rs").unwrap_or(path);
    let mut parts: Vec<String> = path.split('/').map(str::to_owned).collect();
    if parts.last().is_some_and(|last| last == "mod") {
        parts.pop();
    }
    parts.retain(|part| part != "lib" && part != "main");
    parts
}

fn rung(module: &str) -> Option<usize> {
    LADDER.iter().position(|rung| rung.contains(&module))
}

/// The code alone: what stands in comments, strings and characters names nothing.
fn without_comments_and_literals(source: &str) -> String {
    let skipped = Regex::new(concat!(
        r#"(?s)//[^\n]*"#,                         // line comment
        r#"|/\*.*?\*/"#,                           // block comment
        r##"|\br#"(?:.*?)"#"##,                    // raw string with a hash
        r#"|\br"[^"]*""#,                          // raw string
        r#"|"(?:\\.|[^"\\])*""#,                   // string
        r#"|'(?:\\(?:u\{[^}]*\}|x..|.)|[^'\\])'"#, // character, not a lifetime
    ))
    .unwrap();
    skipped.replace_all(source, " ").into_owned()
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn source_files() -> Vec<String> {
    let mut files = Vec::new();
    for dir in ["src", "jobs"] {
        walk(&root().join(dir), &mut |path| {
            if path.extension().is_some_and(|e| e == "rs") {
                let relative = path.strip_prefix(root()).unwrap();
                files.push(relative.to_str().unwrap().to_owned());
            }
        });
    }
    files
}

/// Every file of the project below `dir`, build output and git's own aside.
fn walk(dir: &Path, visit: &mut impl FnMut(&Path)) {
    // A folder closed to us, such as somebody's data, is no source.
    for entry in std::fs::read_dir(dir).into_iter().flatten() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap_or_default();
        if name == "target" || name == ".git" || path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            walk(&path, visit);
        } else {
            visit(&path);
        }
    }
}
