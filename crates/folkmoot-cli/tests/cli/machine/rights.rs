//! No right to write.

use std::{
    fs::{self, Permissions},
    os::unix::{
        fs::{PermissionsExt, chown},
        process::CommandExt,
    },
    path::Path,
    process::Command,
};

use folkmoot_stub::{Door, Reply, Stub};

use super::refused;
use crate::{
    bench::{Bench, Called, Process, until},
    held::{PAIR, asked},
};

/// A user without rights; root may do everything whatever a file says.
const NOBODY: u32 = 65_534;

/// A folder of a user whose rights can be taken.
struct Subject {
    bench: Bench,
}

impl Subject {
    fn of(bench: Bench) -> Subject {
        if rustix::process::geteuid().is_root() {
            let binary = bench.path("folkmoot");
            fs::copy(env!("CARGO_BIN_EXE_folkmoot"), binary).expect("there is room");
            for path in ["", "team.yaml", "folkmoot"].map(|name| bench.path(name)) {
                chown(path, Some(NOBODY), Some(NOBODY)).expect("root gives away what it likes");
            }
        }
        Subject { bench }
    }

    fn folkmoot(&self, arguments: &[&str]) -> Command {
        if !rustix::process::geteuid().is_root() {
            return self.bench.folkmoot(arguments.iter().copied());
        }
        let binary = self.bench.path("folkmoot");
        let mut command = self.bench.command(binary.to_str().expect("it is a plain path"));
        command.args(arguments).uid(NOBODY).gid(NOBODY);
        command
    }

    fn call(&self, arguments: &[&str]) -> Called {
        Called::of(&mut self.folkmoot(arguments))
    }
}

fn set(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("the file is there");
}

/// A database with a run in it that is done, and a run that was killed.
fn killed() -> (Subject, Stub, Door) {
    let door = Door::closed();
    let stub = Stub::start([Reply::text("one"), Reply::text("two").behind(&door)]);
    let subject = Subject::of(Bench::with_models(PAIR, &stub));
    let run = Process::start(&mut subject.folkmoot(&["run", "team.yaml", "task"]));
    until(&stub, |seen| seen.requests.len() == 2);
    run.kill();
    until(&stub, |seen| seen.hung_up == 1);
    (subject, stub, door)
}

#[test]
fn a_file_or_folder_that_may_not_be_written_is_told_and_nothing_is_asked_or_lost() {
    // The files that the killed process left behind, and the folder they are in.
    let closed: [&[(&str, u32)]; 3] = [
        &[("runs.db", 0o444)],
        &[("runs.db", 0o444), ("runs.db-wal", 0o444), ("runs.db-shm", 0o444)],
        &[("", 0o555), ("runs.db", 0o444), ("runs.db-wal", 0o444), ("runs.db-shm", 0o444)],
    ];
    for files in closed {
        let (subject, stub, door) = killed();
        for (name, mode) in files {
            set(&subject.bench.path(*name), *mode);
        }
        for command in [&["run", "team.yaml", "task"][..], &["resume", "last"], &["cancel", "last"]]
        {
            refused(subject.call(command), 2, &["runs.db: ", "read-only", "--db FILE"]);
        }
        assert_eq!(stub.seen().requests.len(), 2, "{files:?}");
        // What may only be read can be read.
        let listed = subject.call(&["runs", "--json"]).must_be(0).json();
        assert_eq!(listed[0]["status"], "interrupted");

        for (name, mode) in files {
            set(&subject.bench.path(*name), mode | 0o200);
        }
        door.open();
        let resumed = subject.call(&["resume", "last", "--json"]).must_be(0).json();
        assert_eq!(resumed["final"], "two");
        assert_eq!(asked(&stub), ["first", "second", "second"]);
        subject.call(&["verify", "last"]).must_be(0);
    }
}

/// Where a user may mount a folder once more, for reading only.
#[test]
fn a_database_on_a_disk_that_may_only_be_read_is_read() {
    let bench = Bench::new();
    fs::create_dir(bench.path("di?k #1%")).expect("the folder can be written");
    let script = r#"
        "$1" run --demo task >/dev/null || exit 78
        mount --bind "$2" "$2" && mount -o remount,bind,ro "$2" || exit 77
        for command in runs "show last" "report last" "verify last" "replay last" "watch last"; do
            "$1" $command >/dev/null && echo "$command"
        done
        "$1" doctor | grep read-only
        "$1" run --demo task; echo "exit $?"
        "$1" resume last; echo "exit $?"
    "#;
    let mut shell = bench.command("unshare");
    shell.args(["-Urm", "sh", "-c", script, "sh", env!("CARGO_BIN_EXE_folkmoot"), "di?k #1%"]);
    shell.env("FOLKMOOT_DB", bench.path("di?k #1%/runs.db"));
    let Ok(output) = shell.output() else { return };
    if matches!(output.status.code(), Some(1 | 77)) {
        return;
    }
    let text = |bytes| String::from_utf8(bytes).expect("it is text");
    let (told, shown) = (text(output.stderr), text(output.stdout));
    let shown: Vec<&str> = shown.lines().collect();
    let read = ["runs", "show last", "report last", "verify last", "replay last", "watch last"];
    assert_eq!(shown[..6], read, "{told}");
    assert!(shown[6].contains("state"), "{shown:?}");
    assert_eq!(shown[7..], ["exit 2", "exit 2"], "{told}");
    assert!(told.contains("read-only") && told.contains("--db FILE"), "{told}");
}

#[test]
fn a_folder_that_is_closed_behind_a_run_does_it_no_harm() {
    let door = Door::closed();
    let stub = Stub::start([Reply::text("one"), Reply::text("two").behind(&door)]);
    let subject = Subject::of(Bench::with_models(PAIR, &stub));
    let run = Process::start(&mut subject.folkmoot(&["run", "team.yaml", "task"]));
    until(&stub, |seen| seen.requests.len() == 2);
    let paths = ["", "runs.db", "runs.db-wal", "runs.db-shm"].map(|it| subject.bench.path(it));
    for path in &paths {
        set(path, 0o555);
    }
    door.open();
    run.finish().must_be(0);
    for path in &paths {
        set(path, 0o755);
    }
    let shown = subject.call(&["show", "last", "--json"]).must_be(0).json();
    assert_eq!(shown["run"]["final"], "two");
    subject.call(&["verify", "last"]).must_be(0);
}

#[test]
fn a_state_folder_that_cannot_be_made_is_told_with_a_way_out() {
    let stub = Stub::start([Reply::text("one")]);
    let subject = Subject::of(Bench::with_models(PAIR, &stub));
    set(&subject.bench.path(""), 0o555);
    let mut command = subject.folkmoot(&["run", "team.yaml", "task"]);
    command.env_remove("FOLKMOOT_DB");
    refused(
        Called::of(&mut command),
        2,
        &["folkmoot.db: Permission denied", "--db FILE", "FOLKMOOT_DB"],
    );
    assert_eq!(stub.seen().connections, 0);
    set(&subject.bench.path(""), 0o755);
    subject.call(&["run", "team.yaml", "task"]).must_be(0);
}
