//! Cards in a real repository: from `git init` to a merged branch, offline (orchestrate.md §§5 to 7).

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::bench::{Bench, Called, Process};

/// Writes a file, and then, asked again, another line.
const CAST: &str = "
agents:
  - name: implementer
    grants: [file]
    script:
      replies:
        - tool_calls:
            - { name: file.write, arguments: { path: NAME, content: \"made\\n\" } }
        - The file is written.
  - name: reviewer
    script: { replies: [VERDICT] }
  - name: reviser
    script: { replies: [No.] }
collaboration: { pattern: review, max_rounds: 3 }
";

struct Desk {
    bench: Bench,
}

impl Desk {
    /// A repository with one commit, and a template `t` whose team writes `made.txt`.
    fn new(template: &str) -> Desk {
        let desk = Desk { bench: Bench::new().with("USER", "ann") };
        fs::create_dir(desk.bench.path("repo")).expect("it can be made");
        desk.cast("made.txt", "LGTM");
        let team = desk.bench.path("cast.yaml");
        let config = format!(
            "[aliases]\ncodex = 'demo'\n[templates.t]\nteam = '{}'\n{template}\n",
            team.display()
        );
        fs::write(desk.repo().join("folkmoot.toml"), config).expect("it can be written");
        fs::write(desk.repo().join("seed.txt"), "seed\n").expect("it can be written");
        desk.git(&["init", "-q", "-b", "main"]);
        desk.commit("first");
        desk
    }

    fn cast(&self, file: &str, verdict: &str) {
        let verdict = json!(verdict).to_string();
        self.bench.write("cast.yaml", &CAST.replace("NAME", file).replace("VERDICT", &verdict));
    }

    fn repo(&self) -> std::path::PathBuf {
        self.bench.path("repo")
    }

    fn commit(&self, message: &str) {
        self.git(&["add", "-A"]);
        let who = ["-c", "user.name=ann", "-c", "user.email=ann@localhost"];
        self.git(&[&who[..], &["commit", "-q", "-m", message]].concat());
    }

    fn git(&self, arguments: &[&str]) -> String {
        let mut git = self.bench.command("git");
        git.current_dir(self.repo()).args(arguments);
        let called = Called::of(&mut git).must_be(0);
        called.stdout.trim().to_owned()
    }

    fn call(&self, arguments: &[&str]) -> Called {
        let mut command = self.bench.folkmoot(arguments.iter().copied());
        Called::of(command.current_dir(self.repo()))
    }

    fn asked(&self, arguments: &[&str], exit: i32) -> Value {
        let all = [&["orchestrate"], arguments, &["--json"]].concat();
        self.call(&all).must_be(exit).json()
    }

    /// Makes cards of these issues.
    fn cards(&self, issues: &Value, more: &[&str]) {
        let issues = issues.to_string();
        self.asked(&[&["phase-plan", "--issues-json", &issues], more].concat(), 0);
        self.asked(&["phase-materialize", "--collaboration-template", "t"], 0);
    }

    fn head(&self, card: &str) -> String {
        let card = self.asked(&["status", card], 0);
        card["branch"]["head"].as_str().unwrap_or_default().to_owned()
    }

    fn approve(&self, card: &str) -> Value {
        let head = self.head(card);
        self.asked(&["review", card, "--verdict", "approved", "--commit", &head], 0)
    }

    /// Approves, releases and merges a card.
    fn merge(&self, card: &str, exit: i32) -> Value {
        self.approve(card);
        let asked = self.asked(&["merge", card], 3);
        let run = asked["run_id"].as_str().unwrap_or_default();
        self.call(&["answer", run, "approve"]).must_be(0);
        self.asked(&["merge", card], exit)
    }
}

#[test]
fn a_card_goes_from_an_issue_to_a_merged_branch() {
    let desk = Desk::new("gates = ['test -f made.txt']");
    let issue = json!([{ "id": "1", "title": "Make the file", "files": ["made.txt"] }]);
    desk.cards(&issue, &[]);
    let before = desk.git(&["rev-parse", "main"]);
    let done = desk.asked(&["execute", "T001"], 0);
    let card = &done["card"];
    assert_eq!((&card["state"], &card["attempts"]), (&json!("REVIEWING"), &json!(1)));
    assert_eq!(card["gates"], json!({ "test -f made.txt": "passed" }));
    assert_eq!(
        (&card["branch"]["state"], &card["branch"]["base"]),
        (&json!("under_review"), &json!(before))
    );
    assert!(!desk.repo().join("made.txt").exists(), "the user's checkout is not touched");
    assert_eq!(desk.git(&["status", "--porcelain"]), "");
    let branch = card["branch"]["name"].as_str().unwrap_or_default();
    assert_eq!(desk.git(&["show", &format!("{branch}:made.txt")]), "made");
    let subject = desk.git(&["log", "-1", "--format=%s", branch]);
    assert_eq!(subject, "T001: Make the file");

    assert_eq!(desk.asked(&["merge", "T001"], 2)["error"]["code"], "not_approved");
    let head = desk.head("T001");
    let own = ["review", "T001", "--verdict", "approved", "--commit", &head, "--as", "implementer"];
    assert_eq!(desk.asked(&own, 2)["error"]["code"], "own_work");
    assert_eq!(desk.approve("T001")["branch"]["state"], "approved");
    let asked = desk.asked(&["merge", "T001"], 3);
    let question = asked["question"].as_str().unwrap_or_default();
    assert!(question.contains(&head), "a release names the commit: {question}");
    assert_eq!(desk.asked(&["merge", "T001"], 3)["run_id"], asked["run_id"], "it is asked once");
    let run = asked["run_id"].as_str().unwrap_or_default();
    desk.call(&["answer", run, "approve"]).must_be(0);
    let merged = desk.asked(&["merge", "T001"], 0);
    assert_eq!(
        (&merged["state"], &merged["branch"]["state"]),
        (&json!("INTEGRATED"), &json!("merged"))
    );
    assert_eq!(desk.git(&["show", "main:made.txt"]), "made");
    assert_eq!(desk.git(&["rev-parse", "main^1"]), before);
    assert_eq!(desk.git(&["rev-parse", "main^2"]), head);
    assert_eq!(desk.git(&["worktree", "list"]).lines().count(), 1, "its checkout is gone");
    assert!(!desk.repo().join("made.txt").exists(), "nobody wrote into the user's checkout");
    for action in [&["review", "T001"][..], &["merge", "T001"], &["execute", "T001"]] {
        assert_eq!(desk.asked(action, 2)["error"]["code"], "terminal");
    }
    let run = done["run_id"].as_str().unwrap_or_default();
    desk.call(&["replay", run]).must_be(0);
    let events = merged["events"].as_array().expect("they are told");
    assert!(events.windows(2).all(|two| two[0]["after"] == two[1]["before"]), "{merged}");
}

#[test]
fn a_release_that_is_denied_or_of_an_older_commit_merges_nothing() {
    let desk = Desk::new("");
    desk.cards(&json!([{ "id": "1" }]), &[]);
    desk.asked(&["execute", "T001"], 0);
    desk.approve("T001");
    let run = desk.asked(&["merge", "T001"], 3)["run_id"].as_str().unwrap_or_default().to_owned();
    desk.call(&["answer", &run, "deny"]).must_be(0);
    let before = desk.git(&["rev-parse", "main"]);
    assert_eq!(desk.asked(&["merge", "T001"], 1)["state"], "REVIEWING");
    let again = desk.asked(&["merge", "T001"], 3);
    assert_ne!(again["run_id"], json!(run), "what was denied is denied; a new request asks anew");
    let run = again["run_id"].as_str().unwrap_or_default();
    desk.call(&["answer", run, "approve"]).must_be(0);
    let branch = again["card"]["branch"]["name"].as_str().unwrap_or_default();
    let later = desk.git(&[
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b",
        "commit-tree",
        "-p",
        branch,
        "-m",
        "later",
        &format!("{branch}^{{tree}}"),
    ]);
    desk.git(&["update-ref", &format!("refs/heads/{branch}"), &later]);
    assert_eq!(desk.asked(&["merge", "T001"], 2)["error"]["code"], "stale_commit");
    let card = desk.asked(&["status", "T001"], 0);
    assert_eq!((&card["branch"]["state"], &card["review"]), (&json!("under_review"), &Value::Null));
    assert_eq!(desk.git(&["rev-parse", "main"]), before);
}

#[test]
fn a_conflict_or_a_red_gate_moves_nothing_and_asks_for_changes() {
    for (gate, is_conflict) in [("", true), ("gates = ['test ! -f clash.txt']", false)] {
        let desk = Desk::new(gate);
        desk.cards(&json!([{ "id": "1" }]), &[]);
        desk.asked(&["execute", "T001"], 0);
        let name = if is_conflict { "made.txt" } else { "clash.txt" };
        fs::write(desk.repo().join(name), "other\n").expect("it can be written");
        desk.commit("meanwhile");
        let before = desk.git(&["rev-parse", "main"]);
        let card = desk.merge("T001", 1);
        assert_eq!(card["state"], "CHANGES_REQUESTED");
        assert_eq!(card["findings"].as_array().map(Vec::len), Some(1), "{card}");
        assert_eq!(desk.git(&["rev-parse", "main"]), before);
        assert_eq!(desk.git(&["status", "--porcelain"]), "");
    }
}

#[test]
fn a_red_gate_or_a_review_that_does_not_converge_asks_for_changes() {
    for (template, verdict, told) in [
        ("gates = ['echo not so; false']", "LGTM", "not so"),
        ("", "[BLOCKING] It is wrong.", "did not converge"),
    ] {
        let desk = Desk::new(template);
        desk.cast("made.txt", verdict);
        desk.cards(&json!([{ "id": "1" }]), &[]);
        let done = desk.asked(&["execute", "T001"], 1);
        assert_eq!(done["card"]["state"], "CHANGES_REQUESTED");
        let finding = done["card"]["findings"][0].as_str().unwrap_or_default();
        assert!(finding.contains(told), "{finding}");
    }
}

#[test]
fn a_card_whose_runs_fail_is_tried_three_times() {
    let desk = Desk::new("");
    let failing = "agents: [{ name: implementer, script: { replies: [{ error: boom }] } }, { name: reviewer, script: { replies: [LGTM] } }]\ncollaboration: { pattern: review }\n";
    desk.bench.write("cast.yaml", failing);
    desk.cards(&json!([{ "id": "1" }]), &[]);
    let done = desk.asked(&["execute", "T001"], 1);
    let card = &done["card"];
    assert_eq!((&card["state"], &card["attempts"]), (&json!("FAILED"), &json!(3)));
    assert_eq!(card["runs"].as_array().map(Vec::len), Some(3));
}

#[test]
fn a_card_waits_for_the_one_before_it_and_begins_from_what_that_brought_in() {
    let desk = Desk::new("");
    desk.cards(&json!([{ "id": "1" }, { "id": "2" }]), &["--topology", "pipeline"]);
    assert_eq!(desk.asked(&["execute", "T002"], 2)["error"]["code"], "blocked_by_dependency");
    let status = desk.asked(&["status"], 0);
    assert_eq!(status["blocked"], json!([{ "task_id": "T002", "by": ["T001"] }]));
    desk.asked(&["execute", "T001"], 0);
    desk.merge("T001", 0);
    assert_eq!(desk.asked(&["status", "T002"], 0)["state"], "PLANNED");
    desk.cast("second.txt", "LGTM");
    let phase = status["cards"][0]["phase_id"].as_str().unwrap_or_default();
    desk.call(&["board", "post", phase, "risk", "Mind the gap."]).must_be(0);
    let done = desk.asked(&["execute", "T002"], 0);
    assert_eq!(done["card"]["branch"]["base"], json!(desk.git(&["rev-parse", "main"])));
    let run = done["run_id"].as_str().unwrap_or_default();
    let shown = desk.call(&["show", run, "--json"]).must_be(0).json();
    let prompt = shown["run"]["prompt"].as_str().unwrap_or_default();
    for told in ["> The file is written.", "> risk: Mind the gap."] {
        assert!(prompt.contains(told), "{prompt}");
    }
}

#[test]
fn a_card_that_asks_a_person_goes_on_with_the_answer() {
    let desk = Desk::new("");
    let asking = CAST
        .replace("NAME", "made.txt")
        .replace("[VERDICT]", "['NEEDS_INPUT: which colour?', LGTM]");
    desk.bench.write("cast.yaml", &asking);
    desk.cards(&json!([{ "id": "1" }]), &[]);
    let done = desk.asked(&["execute", "T001"], 3);
    assert_eq!(
        (&done["card"]["state"], &done["card"]["waiting_on"]["reason"]),
        (&json!("IMPLEMENTING"), &json!("input"))
    );
    let assign = ["assign", "T001", "--role", "implementer", "--agent", "codex"];
    assert_eq!(desk.asked(&assign, 2)["error"]["code"], "busy");
    let run = done["run_id"].as_str().unwrap_or_default();
    desk.call(&["answer", run, "Blue."]).must_be(0);
    let done = desk.asked(&["execute", "T001"], 0);
    assert_eq!((&done["card"]["state"], &done["run_id"]), (&json!("REVIEWING"), &json!(run)));
}

#[test]
fn nothing_that_a_repository_configures_runs() {
    let desk = Desk::new("release = 'waived'");
    let witness = desk.bench.path("witness");
    let touch = format!("touch {}", witness.display());
    for hook in [
        "pre-commit",
        "post-commit",
        "post-checkout",
        "pre-merge-commit",
        "post-merge",
        "reference-transaction",
        "commit-msg",
        "prepare-commit-msg",
    ] {
        let path = desk.repo().join(".git/hooks").join(hook);
        executable(&path, &format!("#!/bin/sh\n{touch}\n"));
    }
    fs::write(desk.repo().join(".gitattributes"), "* filter=evil merge=evil\n")
        .expect("it can be written");
    desk.git(&["-c", "core.hooksPath=/dev/null", "add", ".gitattributes"]);
    desk.git(&[
        "-c",
        "core.hooksPath=/dev/null",
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b",
        "commit",
        "-q",
        "-m",
        "attributes",
    ]);
    for key in [
        "filter.evil.clean",
        "filter.evil.smudge",
        "filter.evil.process",
        "merge.evil.driver",
        "core.fsmonitor",
    ] {
        desk.git(&["config", key, &format!("{touch}; cat")]);
    }
    desk.git(&["config", "filter.evil.required", "true"]);
    desk.cards(&json!([{ "id": "1" }]), &[]);
    desk.asked(&["execute", "T001"], 0);
    desk.approve("T001");
    let merged = desk.asked(&["merge", "T001"], 0);
    assert_eq!(merged["state"], "INTEGRATED");
    let released = merged["events"]
        .as_array()
        .and_then(|events| events.iter().find(|it| it["event"] == "released"));
    assert!(released.is_some(), "a waiver is recorded: {merged}");
    assert!(!witness.exists(), "something of the repository ran");
}

#[cfg(unix)]
fn executable(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    fs::create_dir_all(path.parent().expect("it has one")).expect("it can be made");
    fs::write(path, text).expect("it can be written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("they can be set");
}

#[test]
fn what_is_written_needs_a_repository() {
    let desk = Desk::new("");
    fs::remove_dir_all(desk.repo().join(".git")).expect("it can be removed");
    desk.cards(&json!([{ "id": "1" }, { "id": "2", "write": false }]), &[]);
    assert_eq!(desk.asked(&["execute", "T001"], 2)["error"]["code"], "not_a_repository");
    let card = desk.asked(&["status", "T001"], 0);
    assert_eq!((&card["state"], &card["attempts"]), (&json!("PLANNED"), &json!(0)));
}

#[test]
fn a_merge_made_elsewhere_is_noted_once_the_target_contains_it() {
    let desk = Desk::new("");
    desk.cards(&json!([{ "id": "1" }]), &[]);
    desk.asked(&["execute", "T001"], 0);
    desk.approve("T001");
    let record = ["merge", "T001", "--mode", "record"];
    assert_eq!(desk.asked(&record, 2)["error"]["code"], "not_merged");
    desk.git(&["merge", "-q", "--ff-only", &desk.head("T001")]);
    assert_eq!(desk.asked(&record, 0)["state"], "INTEGRATED");
}

#[test]
fn reviewers_who_disagree_put_it_to_a_person_and_a_card_that_is_cancelled_is_gone() {
    let desk = Desk::new("");
    desk.cards(&json!([{ "id": "1" }]), &[]);
    desk.asked(&["execute", "T001"], 0);
    let head = desk.head("T001");
    let judge = |who: &str, verdict: &str, exit| {
        let verdict = ["review", "T001", "--verdict", verdict, "--commit", &head, "--as", who];
        desk.asked(&verdict, exit)
    };
    judge("bob", "approved", 0);
    let card = judge("eve", "changes_requested", 0);
    assert_eq!(
        (&card["state"], &card["waiting_on"]["reason"]),
        (&json!("REVIEWING"), &json!("conflict"))
    );
    let run = card["waiting_on"]["run"].as_str().expect("a run asks");
    assert_eq!(desk.asked(&["merge", "T001"], 2)["error"]["code"], "not_approved");
    desk.call(&["answer", run, "approved"]).must_be(0);
    let asked = desk.asked(&["merge", "T001"], 3);
    assert_eq!(asked["card"]["review"]["verdict"], "approved");
    let cancelled = desk.call(&["cancel", "--task", "T001", "--json"]).must_be(0).json();
    assert_eq!(
        (&cancelled["state"], &cancelled["branch"]["state"]),
        (&json!("CANCELLED"), &json!("abandoned"))
    );
    let run = asked["run_id"].as_str().unwrap_or_default();
    assert_eq!(desk.call(&["show", run, "--json"]).must_be(0).json()["run"]["status"], "cancelled");
    assert_eq!(desk.asked(&["merge", "T001"], 2)["error"]["code"], "terminal");
}

#[test]
fn an_execute_that_is_killed_goes_on_with_its_run_when_it_is_called_again() {
    let desk = Desk::new("");
    let slow =
        CAST.replace("NAME", "made.txt").replace("[VERDICT]", "[{ reply: LGTM, delay_ms: 2000 }]");
    desk.bench.write("cast.yaml", &slow);
    desk.cards(&json!([{ "id": "1" }]), &[]);
    let mut execute = desk.bench.folkmoot(["orchestrate", "execute", "T001"]);
    let mut process = Process::start(execute.current_dir(desk.repo()));
    process.must_tell("The file is written");
    process.kill();
    let card = desk.asked(&["status", "T001"], 0);
    assert_eq!((&card["state"], &card["attempts"]), (&json!("IMPLEMENTING"), &json!(1)));
    let done = desk.asked(&["execute", "T001"], 0);
    assert_eq!(
        (&done["card"]["state"], &done["card"]["attempts"]),
        (&json!("REVIEWING"), &json!(1))
    );
    assert_eq!(done["run_id"], card["runs"][0]);
}

#[test]
fn a_merge_that_died_after_it_moved_the_target_is_finished_by_the_next() {
    let desk = Desk::new("release = 'waived'");
    desk.cards(&json!([{ "id": "1" }]), &[]);
    desk.asked(&["execute", "T001"], 0);
    desk.approve("T001");
    desk.git(&["merge", "-q", "--ff-only", &desk.head("T001")]);
    let moved = desk.git(&["rev-parse", "main"]);
    assert_eq!(desk.asked(&["merge", "T001"], 0)["state"], "INTEGRATED");
    assert_eq!(desk.git(&["rev-parse", "main"]), moved);
}

#[test]
fn a_checkout_whose_git_file_was_forged_is_still_that_of_the_repository() {
    let desk = Desk::new("");
    let forging = CAST.replace("NAME", ".git").replace("VERDICT", "LGTM");
    let forging = forging.replace("made\\n", "gitdir: /nowhere\\n").replace(
        "        - The file is written.",
        "        - tool_calls: [{ name: file.write, arguments: { path: made.txt, content: x } }]\n        - Done.",
    );
    desk.bench.write("cast.yaml", &forging);
    desk.cards(&json!([{ "id": "1" }]), &[]);
    let done = desk.asked(&["execute", "T001"], 0);
    let branch = done["card"]["branch"]["name"].as_str().unwrap_or_default();
    assert_eq!(desk.git(&["show", &format!("{branch}:made.txt")]), "x");
}
