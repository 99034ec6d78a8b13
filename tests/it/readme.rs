//! The README in its two languages: the same commands, the same structure, no link into nowhere.

use std::path::Path;

use regex::Regex;

const ENGLISH: &str = include_str!("../../README.md");
const CHINESE: &str = include_str!("../../README.zh-CN.md");

/// Lines outside and inside of code blocks, the latter without comments, which are translated.
fn parts(readme: &str) -> (Vec<&str>, Vec<String>) {
    let (mut prose, mut code, mut inside) = (Vec::new(), Vec::new(), false);
    for line in readme.lines() {
        if line.starts_with("```") {
            inside = !inside;
            code.push(line.to_owned());
        } else if inside {
            let command = line.split(" #").next().unwrap();
            code.push(command.trim_end().to_owned());
        } else {
            prose.push(line);
        }
    }
    assert!(!inside, "a code block is not closed");
    (prose, code)
}

/// Every match of `pattern`'s first group outside of code blocks, in order.
fn found(readme: &str, pattern: &str) -> Vec<String> {
    let pattern = Regex::new(pattern).unwrap();
    let (prose, _) = parts(readme);
    pattern
        .captures_iter(&prose.join("\n"))
        .map(|found| found[1].to_owned())
        .collect()
}

fn links(readme: &str) -> Vec<String> {
    found(readme, r"\]\(([^)]+)\)")
}

#[test]
fn both_languages_have_the_same_commands() {
    let (_, english) = parts(ENGLISH);
    let (_, chinese) = parts(CHINESE);
    assert_eq!(chinese, english);
    assert!(
        english
            .iter()
            .any(|line| line == "cargo run --release -- demo")
    );
}

#[test]
fn both_languages_have_the_same_structure() {
    for (what, pattern) in [
        ("headings", r"(?m)^(#+) "),
        ("rows of tables", r"(?m)^(\|)"),
        ("steps", r"(?m)^(\d+\.) "),
    ] {
        let english = found(ENGLISH, pattern);
        assert!(!english.is_empty(), "{what}");
        assert_eq!(found(CHINESE, pattern), english, "{what}");
    }
}

#[test]
fn both_languages_name_the_same_variables_commands_and_files_in_the_text() {
    let sorted = |readme: &str| {
        let mut names = found(readme, r"`([^`\n]+)`");
        names.retain(|name| name.is_ascii() && !name.contains('<'));
        names.sort_unstable();
        names.dedup();
        names
    };
    assert_eq!(sorted(CHINESE), sorted(ENGLISH));
}

#[test]
fn both_languages_point_to_the_same_places_and_to_each_other() {
    let elsewhere = |readme: &str| {
        let mut links = links(readme);
        links.retain(|link| !link.starts_with("README"));
        links.sort_unstable();
        links
    };
    assert_eq!(elsewhere(CHINESE), elsewhere(ENGLISH));
    assert!(links(ENGLISH).contains(&"README.zh-CN.md".to_owned()));
    assert!(links(CHINESE).contains(&"README.md".to_owned()));
}

#[test]
fn every_file_the_readmes_point_to_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for link in [links(ENGLISH), links(CHINESE)].concat() {
        assert!(
            link.starts_with("https://") || root.join(&link).exists(),
            "{link}"
        );
    }
}
