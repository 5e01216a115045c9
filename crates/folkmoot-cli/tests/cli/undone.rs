//! Another attempt at a run begins from the files that the first one began from (agents.md §10).

use std::{fs, path::Path, process::Command};

use serde_json::{Value, json};

use crate::bench::{Bench, Called};

/// Someone who changes files with tools, then someone who fails at first.
const TEAM: &str = "
sandbox: write
workdir: work
agents:
  - name: coder
    grants: [file]
    script:
      replies:
        - tool_calls:
            - { name: file.write, arguments: { path: notes.txt, content: written } }
            - { name: file.write, arguments: { path: made/new.txt, content: new } }
        - Written.
  - { name: critic, script: { replies: [{ error: boom }, Good.] } }
collaboration: { strategy: sequential }
";

fn bench(team: &str) -> Bench {
    let bench = Bench::with_team(team);
    fs::create_dir(bench.path("work")).expect("it can be made");
    bench.write("work/notes.txt", "as it was");
    bench
}

fn recorded() -> Bench {
    let bench = bench(TEAM);
    bench.call(["run", "team.yaml", "Do it"]).must_be(1);
    assert_eq!(files(&bench), "made/new.txt=new notes.txt=written");
    bench
}

/// The files of the workspace and what is in them.
fn files(bench: &Bench) -> String {
    let mut found = Vec::new();
    below(&bench.path("work"), "", &mut found);
    found.sort();
    found.join(" ")
}

fn below(folder: &Path, at: &str, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("it can be read").flatten() {
        let name = format!("{at}{}", entry.file_name().display());
        if name == ".git" {
            continue;
        }
        match fs::read_to_string(entry.path()) {
            Ok(text) => found.push(format!("{name}={text}")),
            Err(_) => below(&entry.path(), &format!("{name}/"), found),
        }
    }
}

fn events(bench: &Bench, kind: &str) -> Vec<Value> {
    let events = bench.last()["events"].as_array().expect("a list").clone();
    events.into_iter().filter(|event| event["event"] == kind).collect()
}

#[test]
fn the_files_are_saved_before_each_call_that_may_change_them() {
    let bench = recorded();
    let saved = events(&bench, "saved");
    let keys: Vec<&str> = saved.iter().filter_map(|event| event["key"].as_str()).collect();
    let expected = [
        "step-1/coder/model-1",
        "step-1/coder/tool-1",
        "step-1/coder/tool-2",
        "step-1/coder/model-2",
    ];
    assert_eq!(keys, expected, "those of the critic change nothing");
    assert_eq!(saved[0]["tree"], saved[2]["tree"]);
    assert_ne!(saved[0]["tree"], saved[3]["tree"]);
    bench.call(["replay", "last"]).must_be(0);
    bench.call(["verify", "last"]).must_be(0);
}

#[test]
fn what_is_kept_keeps_its_files() {
    let bench = recorded();
    let told = bench.call(["retry", "last"]).must_be(0).stderr;
    assert!(!told.contains("the files"), "{told}");
    assert_eq!(files(&bench), "made/new.txt=new notes.txt=written");
}

#[test]
fn what_is_asked_again_begins_from_the_files_that_it_began_from() {
    for again in [
        &["retry", "last", "--from", "step-1/coder"][..],
        &["fork", "last", "--at", "step-1/coder/model-1"],
    ] {
        let bench = recorded();
        let told = bench.call(again.iter().copied());
        let line = "the files are again what they were before step-1/coder/model-1\n";
        assert!(told.stderr.contains(line), "{}", told.shown());
        let before = &events(&bench, "saved")[0]["tree"];
        assert_ne!(before, &Value::Null);
    }
    let bench = bench(&TEAM.replace("- Written.", "- { error: boom }"));
    bench.call(["run", "team.yaml", "Do it"]).must_be(1);
    let again = ["retry", "last", "--from", "step-1/coder/tool-2"];
    bench.call(again);
    // The other call of its reply was made beside it, and is kept.
    assert_eq!(files(&bench), "made/new.txt=new notes.txt=written");
}

/// Undoes what the coder did, who has nothing to do the second time.
fn retried(bench: &Bench, more: &[&str]) -> Called {
    bench.call(["retry", "last", "--from", "step-1/coder"].iter().chain(more).copied())
}

#[test]
fn what_people_changed_since_is_not_lost() {
    let bench = recorded();
    bench.write("work/mine.txt", "mine");
    let refused = retried(&bench, &["--json"]).must_be(2);
    assert_eq!(refused.json()["error"]["code"], "workspace_changed");
    let message = refused.json()["error"]["message"].clone();
    let message = message.as_str().expect("a text");
    assert!(message.ends_with("they have changed since: mine.txt"), "{message}");
    assert_eq!(files(&bench), "made/new.txt=new mine.txt=mine notes.txt=written");
    assert_eq!(bench.runs().len(), 1);

    let kept = retried(&bench, &["--keep-files"]).must_be(0).stderr;
    assert!(!kept.contains("the files"), "{kept}");
    assert_eq!(files(&bench), "made/new.txt=new mine.txt=mine notes.txt=written");
}

#[test]
fn what_people_changed_since_is_kept_aside_if_it_is_to_be_undone() {
    let bench = recorded();
    bench.write("work/mine.txt", "mine");
    let told = retried(&bench, &["--discard-changes"]).must_be(0).stderr;
    assert_eq!(files(&bench), "notes.txt=as it was");
    let back = told.lines().find_map(|line| line.strip_prefix("what they were is kept: "));
    let back = back.unwrap_or_else(|| panic!("{told}"));
    let words: Vec<&str> = back.split(' ').collect();
    let mut git = Command::new(words[0]);
    let status = git.args(&words[1..]).current_dir(bench.path("work")).status();
    assert!(status.expect("git is there").success(), "{back}");
    assert_eq!(files(&bench), "made/new.txt=new mine.txt=mine notes.txt=written");
}

#[test]
fn a_repository_and_what_it_ignores_are_left_alone() {
    let bench = bench(TEAM);
    let git = |arguments: &[&str]| {
        let mut command = bench.command("git");
        let identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
        let output =
            command.args(identity).args(arguments).current_dir(bench.path("work")).output();
        String::from_utf8(output.expect("git is there").stdout).expect("UTF-8")
    };
    bench.write("work/.gitignore", "*.key\n");
    bench.write("work/secret.key", "key");
    git(&["init", "-q"]);
    git(&["add", "notes.txt"]);
    let state =
        || [git(&["status", "--porcelain"]), git(&["for-each-ref"]), git(&["stash", "list"])];
    let before = (state(), fs::read(bench.path("work/.git/index")).expect("there is one"));
    bench.call(["run", "team.yaml", "Do it"]).must_be(1);
    bench.write("work/secret.key", "newer");
    retried(&bench, &[]).must_be(0);
    assert_eq!(files(&bench), ".gitignore=*.key\n notes.txt=as it was secret.key=newer");
    // To look at the state may refresh the index.
    let index = fs::read(bench.path("work/.git/index")).expect("there is one");
    assert_eq!((state(), index), before);
}

#[test]
fn where_there_is_no_git_a_run_goes_on_and_tells_that_nothing_was_saved() {
    let bench = bench(TEAM).with("PATH", "/nowhere");
    let result = bench.call(["run", "team.yaml", "Do it", "--json"]).must_be(1).json();
    let message = "the files were not saved before step-1/coder/model-1, and cannot be put back: git \
                   is not installed, or not in PATH";
    assert_eq!(result["warnings"], json!([{ "code": "not_saved", "message": message }]));
    let told = retried(&bench, &[]).must_be(0).stderr;
    assert!(told.contains("the files are left as they are, not as before"), "{told}");
    assert_eq!(files(&bench), "made/new.txt=new notes.txt=written");
    let page = bench.call(["doctor"]).must_be(0).stdout;
    assert!(page.contains("no files are saved before agents change them"), "{page}");
}

#[test]
fn a_replay_and_a_rehearsal_save_nothing_and_touch_nothing() {
    let bench = recorded();
    bench.write("work/notes.txt", "mine");
    bench.call(["replay", "last"]).must_be(0);
    bench.call(["simulate", "team.yaml", "Do it"]);
    assert_eq!(events(&bench, "saved").len(), 0, "of the rehearsal");
    assert_eq!(files(&bench), "made/new.txt=new notes.txt=mine");
}

#[test]
fn agents_cannot_write_to_what_is_kept() {
    let bench = bench(
        &TEAM
            .replace("workdir: work", "workdir: .")
            .replace("path: made/new.txt", "path: runs.db-files/new.txt"),
    );
    bench.call(["run", "team.yaml", "Do it"]).must_be(1);
    let shown = bench.last();
    let told = shown["calls"][2]["fault"]["text"].as_str().expect("it fails");
    assert!(told.starts_with("denied: "), "{told}");
}
