#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed expectation is the test's verdict"
)]
#![allow(
    clippy::print_stdout,
    reason = "the figures are for whoever runs the test with --nocapture"
)]
use std::path::Path;

use super::*;

fn bundled(name: &str) -> (score::Score, usize) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name);
    let lines = labelled::read(Some(&path)).unwrap();
    let mut score = score::Score::default();
    for line in &lines {
        score.look(line);
        score.count(line, line.expect.as_ref().unwrap(), &score::answer(line));
    }
    (score, lines.len())
}

#[test]
fn the_keyword_rules_keep_their_figure_on_the_bundled_messages() {
    let (score, messages) = bundled("intents.jsonl");
    println!("{}", score.summary(messages));
    assert!(messages >= 300);
    assert!(score.accuracy() > 0.70, "{}", score.summary(messages));
    assert!(
        score.field_accuracy("record_id") > 0.90,
        "{}",
        score.summary(messages)
    );
}

#[test]
fn the_keyword_rules_keep_their_figure_on_messages_they_were_not_tuned_on() {
    let (score, messages) = bundled("intents_holdout.jsonl");
    println!("{}", score.summary(messages));
    assert!(score.accuracy() > 0.70, "{}", score.summary(messages));
}
