//! The README: its commands do what they promise.

use std::path::Path;

use crate::bench::{Bench, Called};

const README: &str = include_str!("../../../../README.md");

/// The commands of the block under a heading.
fn commands(heading: &str) -> Vec<&'static str> {
    let section = README.split_once(heading).expect("the README has this part").1;
    let block = section.split("```").nth(1).expect("it has a block of commands");
    block.lines().filter_map(|line| line.strip_prefix("$ ")).collect()
}

#[test]
fn five_minutes_of_the_readme_run_in_order() {
    let bench = Bench::new();
    let commands = commands("## Five minutes");
    assert!(commands[0].starts_with("cargo build"), "{commands:?}");
    assert!(commands.len() > 5, "{commands:?}");
    let binary = Path::new(env!("CARGO_BIN_EXE_folkmoot"));
    let folder = binary.parent().expect("it is in a folder").display();
    let path = std::env::var("PATH").unwrap_or_default();
    for command in &commands[1..] {
        assert!(command.starts_with("folkmoot "), "{command}");
        let mut shell = bench.command("sh");
        shell.args(["-c", command]).env("PATH", format!("{folder}:{path}"));
        let called = Called::of(&mut shell);
        assert_eq!(called.exit, 0, "{command}: {}", called.shown());
    }
}
