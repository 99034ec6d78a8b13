//! `iit demo` as a script runs it.

use std::{fs, path::Path};

use super::{Shell, refused_in_one_sentence, said};

#[tokio::test]
async fn the_demo_outlives_its_reader_and_says_when_the_project_moves() {
    let shell = Shell::new().await;
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = shell
        .command(&["demo", "--once"])
        .current_dir(here)
        .stdout(writer)
        .output()
        .unwrap();
    assert_eq!(said(&output), "exit 0\n");
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let output = shell.command(&["demo"]).stdout(full).output().unwrap();
    refused_in_one_sentence(&output, 3, &["输出写不出去"]);
    // In another folder the sample study is another copy.
    let text = shell.succeeds(&["demo", "--once"]);
    let moved = text.lines().find(|line| line.starts_with("注意")).unwrap();
    assert!(
        moved.contains(here.join("demo/study").to_str().unwrap()),
        "{moved}"
    );
    let copy = shell.path().join("data/demo/study");
    assert!(moved.contains(copy.to_str().unwrap()), "{moved}");
}
