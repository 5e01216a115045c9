//! The teams of `examples/`: sound, offline, and worth reading.

use std::{fs, path::Path};

use serde_json::Value;

use crate::bench::Bench;

/// The examples, each with its text, by name.
pub(crate) fn all() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let files = fs::read_dir(folder).expect("there are examples");
    let files = files.map(|file| file.expect("the folder can be read"));
    let files = files.filter(|file| file.path().extension().is_some_and(|it| it == "yaml"));
    let mut all: Vec<_> = files
        .map(|file| {
            let text = fs::read_to_string(file.path()).expect("examples are text");
            (file.file_name().into_string().expect("their names are, too"), text)
        })
        .collect();
    all.sort();
    all
}

/// The task that the first line of an example suggests, and its command.
fn suggested(text: &str) -> (&str, &str) {
    let line = text.lines().next().unwrap_or_default();
    let command = line.split_once("folkmoot ").expect("the first line says how it is run").1;
    let task = command.split('"').nth(1).expect("it quotes a task");
    (command, task)
}

/// Writes the teams that examples have as members.
fn write_members(bench: &Bench) {
    bench.write_all(&[(
        "members/editors.yaml",
        include_str!("../../../../examples/members/editors.yaml"),
    )]);
}

#[test]
fn every_strategy_has_an_example() {
    let all = all();
    for strategy in ["broadcast", "sequential", "debate", "supervisor", "consensus", "relay"] {
        let named = format!("strategy: {strategy}");
        assert!(all.iter().any(|(_, text)| text.contains(&named)), "{strategy}");
    }
}

#[test]
fn every_example_is_sound_without_a_warning_and_needs_no_network() {
    let bench = Bench::new();
    // Runs are usually kept outside the workspace.
    let kept = tempfile::tempdir().expect("a scratch folder can be made");
    let kept = kept.path().join("runs.db").display().to_string();
    write_members(&bench);
    for (file, text) in all() {
        bench.write(&file, &text);
        let checked = bench.call(["check", &file, "--json", "--db", &kept]).must_be(0).json();
        for findings in ["errors", "warnings", "hints"] {
            assert_eq!(checked[findings], Value::Array(Vec::new()), "{file}");
        }
        let agents = bench.call(["agents", &file]).must_be(0).stdout;
        let offline = ["demo", "script", "team members/"];
        let is_offline = |line: &str| offline.iter().any(|it| line.contains(it));
        assert!(agents.lines().skip(1).all(is_offline), "{file}: {agents}");
    }
}

#[test]
fn every_example_runs_as_its_first_line_says_and_so_does_its_rehearsal() {
    let bench = Bench::new();
    write_members(&bench);
    for (file, text) in all() {
        bench.write(&file, &text);
        let (command, task) = suggested(&text);
        assert!(command.contains(&file), "{file} is run as {command}");
        // A rehearsal starts no process; `controllers` runs it.
        if text.contains("program:") {
            continue;
        }
        let answers = ["run", "simulate"].map(|mode| {
            let result = bench.call([mode, &file, task, "--json"]).must_be(0).json();
            assert_eq!(result["status"], "done", "{file}");
            bench.call(["replay", "last"]).must_be(0);
            result["final"].as_str().expect("it is answered").to_owned()
        });
        assert!(!answers[0].trim().is_empty(), "{file}");
        assert_eq!(answers[0], answers[1], "{file}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_role_team_of_the_example_repairs_a_repository_whose_test_fails() {
    let bench = Bench::new();
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/repair");
    fs::create_dir(bench.path("repair")).expect("it can be made");
    for file in ["sum.sh", "test.sh"] {
        fs::copy(repository.join(file), bench.path("repair").join(file)).expect("it is there");
    }
    bench.write("repair.yaml", include_str!("../../../../examples/repair.yaml"));
    let call =
        ["run", "repair.yaml", "Fix sum.sh, then run its test", "--workdir", "repair", "--json"];
    let called = bench.call(call);
    if called.json()["error"]["code"] == "sandbox_unavailable" {
        return;
    }
    let result = called.must_be(0).json();
    assert_eq!((&result["state"], &result["rework"]), (&"DONE".into(), &1.into()), "{result}");
    let shown = bench.call(["show", "last", "--json"]).must_be(0).json();
    let calls = shown["calls"].as_array().expect("there are some").iter();
    let tests = calls.filter(|call| call["tool"] == "shell").filter_map(|it| it["reply"].as_str());
    assert_eq!(
        tests.map(|it| it.lines().next().unwrap_or_default()).collect::<Vec<_>>(),
        ["exit code 1", "exit code 0"],
        "the first repair is not enough, the second is"
    );
    bench.call(["replay", "last"]).must_be(0);
}
