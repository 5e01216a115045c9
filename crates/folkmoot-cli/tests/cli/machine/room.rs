//! No room on the disk.

use std::process::Command;

use folkmoot_stub::{Reply, Stub};

use super::{is_whole, refused};
use crate::{
    bench::{Bench, Called},
    held::asked,
};

const FOUR: &str = "
name: four
agents:
  - { name: first, model: openai/stub }
  - { name: second, model: openai/stub }
collaboration: { strategy: sequential, order: [first, second, first, second] }
";

/// A team whose every reply is long, and its models.
fn long_winded() -> (Bench, Stub) {
    let stub = Stub::start([Reply::text(&"长篇大论。".repeat(10_000))]);
    (Bench::with_models(FOUR, &stub), stub)
}

/// `folkmoot` under a shell's limit on the size of files, in units of 512 or 1024 bytes.
fn limited(bench: &Bench, units: u32, on_excess: &str, arguments: &[&str]) -> Command {
    let mut command = bench.command("sh");
    let script = format!("trap {on_excess} XFSZ; ulimit -f {units}; exec \"$@\"");
    command.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_folkmoot")]).args(arguments);
    command
}

#[test]
fn a_run_that_finds_no_room_stops_and_goes_on_when_there_is_some() {
    let (bench, stub) = long_winded();
    let mut run = limited(&bench, 500, "''", &["run", "team.yaml", "task"]);
    refused(Called::of(&mut run), 1, &["stops at record", "cannot be written", "folkmoot resume "]);
    let asked_then = asked(&stub);
    assert!((2..=4).contains(&asked_then.len()), "{asked_then:?}");
    // Reading needs no room.
    let answered = answered(&bench);
    assert_eq!(answered, asked_then.len() - 1, "all but the last, whose answer had no room");

    bench.call(["resume", "last"]).must_be(0);
    assert_eq!(asked(&stub).len(), 4 + 1, "only what was open is asked again");
    is_whole(&bench);
}

fn answered(bench: &Bench) -> usize {
    let calls = bench.last()["calls"].clone();
    let calls = calls.as_array().expect("calls are a list").iter();
    calls.filter(|call| call["state"] == "answered").count()
}

#[test]
fn a_run_that_the_system_kills_for_the_size_of_its_file_goes_on_without_that_limit() {
    let (bench, stub) = long_winded();
    let mut run = limited(&bench, 500, "-", &["run", "team.yaml", "task"]);
    assert_eq!(Called::of(&mut run).exit, -1, "a signal ended it");
    bench.call(["resume", "last"]).must_be(0);
    assert_eq!(asked(&stub).len(), 4 + 1);
    is_whole(&bench);
}

#[test]
fn a_run_for_which_there_is_no_room_from_the_start_asks_nobody() {
    for units in [4, 70] {
        let (bench, stub) = long_winded();
        let mut run = limited(&bench, units, "''", &["run", "team.yaml", "task"]);
        refused(Called::of(&mut run), 2, &["cannot be written", "--db FILE"]);
        assert_eq!(stub.seen().connections, 0, "{units}");
        assert_eq!(bench.runs(), Vec::<serde_json::Value>::new());
        bench.call(["run", "team.yaml", "task"]).must_be(0);
    }
}

/// Where a user may mount a small file system of their own; the limits above stand in for it elsewhere.
#[test]
fn a_full_disk_is_called_so_and_a_larger_one_lets_the_run_go_on() {
    let (bench, stub) = long_winded();
    std::fs::create_dir(bench.path("disk")).expect("the folder can be written");
    let script = r#"
        mount -t tmpfs -o size=360k none disk || exit 77
        "$1" run team.yaml task; echo "exit $?"
        "$1" runs
        mount -o remount,size=16m disk
        "$1" resume last >/dev/null && "$1" verify last && "$1" replay last; echo "exit $?"
    "#;
    let mut shell = bench.command("unshare");
    shell.args(["-Urm", "sh", "-c", script, "sh", env!("CARGO_BIN_EXE_folkmoot")]);
    shell.env("FOLKMOOT_DB", bench.path("disk/runs.db"));
    let Ok(output) = shell.output() else { return };
    if output.status.code() != Some(0) {
        return;
    }
    let text = |bytes| String::from_utf8(bytes).expect("it is text");
    let (told, shown) = (text(output.stderr), text(output.stdout));
    assert!(told.contains("the disk is full"), "{told}");
    assert!(told.contains("folkmoot resume "), "{told}");
    let exits: Vec<&str> = shown.lines().filter(|line| line.starts_with("exit ")).collect();
    assert_eq!(exits, ["exit 1", "exit 0"], "{shown}{told}");
    assert!(shown.contains("interrupted"), "{shown}");
    assert_eq!(asked(&stub).len(), 4 + 1);
}
