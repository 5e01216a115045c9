//! A record as a file, and everything that takes it in place of a run.

use std::fs;

use expect_test::expect;

use crate::{
    bench::{Bench, Called},
    snapshot::check,
};

const TEAM: &str = "
name: 评审组
agents:
  - { name: a, script: { replies: [A] } }
  - { name: b, script: { replies: [{ error: boom }, B] } }
collaboration: { strategy: sequential }
";

/// A folder with one run that is exported to `run.jsonl`, and its id.
fn exported() -> (Bench, String) {
    let bench = Bench::with_team(TEAM);
    bench.call(["run", "team.yaml", "要不要发布？"]).must_be(1);
    bench.call(["export", "last", "-o", "run.jsonl"]).must_be(0);
    let id = bench.runs()[0]["run_id"].as_str().expect("a text").to_owned();
    (bench, id)
}

/// Another machine: the file is all that it has.
fn elsewhere(bench: &Bench) -> Bench {
    let other = Bench::new();
    fs::copy(bench.path("run.jsonl"), other.path("run.jsonl")).expect("files can be copied");
    other
}

#[test]
fn a_file_tells_the_same_as_the_run_on_a_machine_without_a_database() {
    let (bench, id) = exported();
    let other = elsewhere(&bench);
    for arguments in [
        &["verify"][..],
        &["verify", "--json"],
        &["replay"],
        &["replay", "--json"],
        &["show"],
        &["show", "--json", "--events"],
        &["show", "--call", "step-1/a"],
        &["report"],
    ] {
        let of = |run| [&arguments[..1], &[run], &arguments[1..]].concat();
        let (here, there) =
            (bench.call(of(&id)).must_be(0), other.call(of("run.jsonl")).must_be(0));
        assert_eq!((here.stdout, here.stderr), (there.stdout, there.stderr), "{arguments:?}");
    }
    assert!(!other.path("runs.db").exists(), "nothing was kept");
}

#[test]
fn standard_output_is_the_file_byte_for_byte() {
    let (bench, id) = exported();
    let file = fs::read_to_string(bench.path("run.jsonl")).expect("it is there");
    for arguments in [&["export", &id][..], &["export", &id, "--json"]] {
        assert_eq!(bench.call(arguments.iter().copied()).must_be(0).stdout, file);
    }
    assert!(file.contains("要不要发布？"), "text is kept as it is");
}

#[test]
fn a_fork_and_a_retry_go_on_from_a_file_in_the_database_of_this_machine() {
    let (bench, id) = exported();
    let other = elsewhere(&bench);
    assert_eq!(other.call(["retry", "run.jsonl"]).must_be(0).stdout, "B\n");
    assert_eq!(other.last()["run"]["origin"]["run_id"], *id);
    other.call(["fork", "./run.jsonl", "--answer", "step-1/a=X"]).must_be(1);
    assert_eq!(other.runs().len(), 2);
    other.call(["verify", "last"]).must_be(0);
}

#[test]
fn nothing_is_written_over_unless_it_is_wanted() {
    let (bench, _) = exported();
    bench.write("run.jsonl", "mine");
    check(
        &bench,
        bench.call(["export", "last", "-o", "run.jsonl"]),
        expect![[r#"
            exit 2
            ! error: run.jsonl exists already
            ! help: name another file, or write over it with --force
        "#]],
    );
    assert_eq!(fs::read_to_string(bench.path("run.jsonl")).expect("it is there"), "mine");
    check(
        &bench,
        bench.call(["export", "last", "-o", "run.jsonl", "--force"]),
        expect![[r#"
            exit 0
            ! run r00000000001: 6 records exported to run.jsonl
        "#]],
    );
    check(
        &bench,
        bench.call(["export", "last", "--out", "again.jsonl", "--json"]),
        expect![[r#"
            exit 0
            > {"run_id":"r00000000001","file":"again.jsonl","records":6,"hash":"HASH","ended":true}
        "#]],
    );
    bench.call(["export", "last", "-o", "nowhere/run.jsonl"]).must_be(1);
    bench.call(["export", "last", "--force"]).must_be(2);
    let files = fs::read_dir(bench.path("")).expect("it can be read");
    let names = files.map(|file| file.expect("it can be read").file_name());
    let left: Vec<_> = names.filter(|name| name.to_string_lossy().starts_with(".tmp")).collect();
    assert_eq!(left, [""; 0], "nothing unfinished stays behind");
}

#[test]
fn a_key_of_this_machine_does_not_leave_it_unless_that_is_wanted() {
    let bench =
        Bench::with_team("agents: [{ name: a, script: { replies: [it is sk-0123456789] } }]")
            .with("OPENAI_API_KEY", "sk-0123456789");
    bench.call(["run", "team.yaml", "task"]).must_be(0);
    for to in [&[][..], &["-o", "run.jsonl"]] {
        check(
            &bench,
            bench.call(["export", "last"].iter().chain(to).copied()),
            expect![[r#"
                exit 2
                ! error: run r00000000001: record 1 holds a secret of this machine
                ! help: --with-secrets exports it as it is, for whoever may know the secret
            "#]],
        );
        assert!(!bench.path("run.jsonl").exists());
    }
    let file = bench.call(["export", "last", "--with-secrets"]).must_be(0).stdout;
    assert!(file.contains("sk-0123456789"), "a record that was masked would not be the record");
    bench.write("run.jsonl", &file);
    bench.call(["verify", "run.jsonl"]).must_be(0);
    assert!(!bench.call(["show", "run.jsonl"]).must_be(0).stdout.contains("sk-0123456789"));
}

#[test]
fn a_changed_file_is_refused_with_its_line_whatever_is_asked() {
    let (bench, _) = exported();
    let file = fs::read_to_string(bench.path("run.jsonl")).expect("it is there");
    bench.write("run.jsonl", &file.replace(r#""text":"A""#, r#""text":"B""#));
    check(
        &bench,
        bench.call(["verify", "run.jsonl"]),
        expect![[r#"
            exit 8
            ! error: run.jsonl:2: record 1 was changed after it was written
        "#]],
    );
    for command in ["show", "report", "replay", "fork", "retry", "verify"] {
        let called = bench.call([command, "run.jsonl", "--json"]).must_be(8).json();
        assert_eq!(called["error"]["code"], "broken_record", "{command}");
    }
    bench.write("run.jsonl", &file.replace('\n', "\r\n"));
    let told = bench.call(["verify", "run.jsonl"]).must_be(8).stderr;
    assert!(told.contains("run.jsonl:1: the line ends in CR LF"), "{told}");
    assert_eq!(bench.runs().len(), 1);
}

#[test]
fn a_file_is_told_from_a_run_by_its_name() {
    let (bench, id) = exported();
    for name in ["./run.jsonl", "last", &id, "backup"] {
        bench.call(["export", &id, "-o", name]).must_be(if name == "./run.jsonl" { 2 } else { 0 });
    }
    bench.call(["run", "team.yaml", "another"]).must_be(1);
    let prompt =
        |run: &str| bench.call(["show", run, "--json"]).must_be(0).json()["run"]["prompt"].clone();
    assert_eq!(prompt("last"), "another", "a run comes before a file of its name");
    assert_eq!(
        (prompt("./last"), prompt("backup")),
        ("要不要发布？".into(), "要不要发布？".into())
    );
    check(
        &bench,
        bench.call(["show", "nothing.jsonl"]),
        expect![[r#"
            exit 2
            ! error: cannot read nothing.jsonl: No such file or directory (os error 2)
        "#]],
    );
    for command in ["resume", "cancel", "watch", "export"] {
        let refused = bench.call([command, "run.jsonl", "--json"]).must_be(2).json();
        assert_eq!(refused["error"]["code"], "not_a_run", "{command}");
    }
    bench.write("notes", "a text\n");
    let told = bench.call(["verify", "./notes"]).must_be(8).stderr;
    assert!(told.contains("this is not an exported run"), "{told}");
}

#[cfg(unix)]
#[test]
fn a_file_may_have_a_name_that_is_no_text() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

    let (bench, _) = exported();
    let name = |text: &[u8]| OsStr::from_bytes(text).to_owned();
    let (run, team) = (name(b"run-\xff.jsonl"), name(b"team-\xff.yaml"));
    let (odd, exported) = (name(b"odd-\xff"), name(b"out-\xff.jsonl"));
    fs::copy(bench.path("run.jsonl"), bench.path(&run)).expect("files can be copied");
    fs::copy(bench.path("run.jsonl"), bench.path(&odd)).expect("files can be copied");
    fs::copy(bench.path("team.yaml"), bench.path(&team)).expect("files can be copied");
    let call = |arguments: &[&OsStr]| Called::of(bench.folkmoot([]).args(arguments));
    for command in ["verify", "replay", "show", "report"] {
        for file in [&run, &odd] {
            call(&[command.as_ref(), file]).must_be(0);
        }
    }
    call(&["run".as_ref(), &team, "task".as_ref()]).must_be(1);
    call(&["plan".as_ref(), &team, "task".as_ref()]).must_be(0);
    let out = ["export", "last", "--json", "-o"].map(OsStr::new);
    call(&[&out[..], &[&exported]].concat()).must_be(0);
    let told = call(&["run".as_ref(), "--demo".as_ref(), &odd]).must_be(2).stderr;
    assert!(told.contains("the task is not UTF-8"), "{told}");
}

#[cfg(unix)]
#[test]
fn a_pipe_with_a_name_is_refused_as_it_may_wait_for_ever_and_an_open_one_is_read() {
    let (bench, _) = exported();
    let made = bench.command("mkfifo").arg("run.fifo").status().expect("it is there");
    assert!(made.success());
    check(
        &bench,
        bench.call(["verify", "./run.fifo"]),
        expect![[r#"
            exit 2
            ! error: cannot read ./run.fifo: it is a pipe or a device; copy it to a file first
        "#]],
    );
    bench.call(["verify", "/dev/zero"]).must_be(2);
    let mut shell = bench.command("sh");
    shell.args(["-c", "cat run.jsonl | \"$1\" verify /dev/stdin", "sh"]);
    Called::of(shell.arg(env!("CARGO_BIN_EXE_folkmoot"))).must_be(0);
}
