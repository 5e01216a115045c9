//! Cards in a real repository: from `git init` to a merged branch, offline (orchestrate.md §§5 to 7).

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::bench::{Bench, Called, Process};

/// Writes a file, and then, asked again, another line.
pub(crate) const CAST: &str = "
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

/// A repository in which cards are worked on.
pub(crate) struct Desk {
    pub(crate) bench: Bench,
}

impl Desk {
    /// A repository with one commit, and a template `t` whose team writes `made.txt`.
    pub(crate) fn new(template: &str) -> Desk {
        let desk = Desk { bench: Bench::new().with("USER", "ann") };
        fs::create_dir(desk.bench.path("repo")).expect("it can be made");
        desk.cast("made.txt", "LGTM");
        let team = desk.bench.path("cast.yaml");
        // No model is named anywhere: the team is all there is.
        desk.config(&format!("[templates.t]\nteam = '{}'\n{template}\n", team.display()));
        fs::write(desk.repo().join("seed.txt"), "seed\n").expect("it can be written");
        desk.git(&["init", "-q", "-b", "main"]);
        desk.commit("first");
        desk
    }

    pub(crate) fn config(&self, text: &str) {
        fs::write(self.repo().join("folkmoot.toml"), text).expect("it can be written");
    }

    fn cast(&self, file: &str, verdict: &str) {
        let verdict = json!(verdict).to_string();
        self.bench.write("cast.yaml", &CAST.replace("NAME", file).replace("VERDICT", &verdict));
    }

    pub(crate) fn repo(&self) -> std::path::PathBuf {
        self.bench.path("repo")
    }

    fn commit(&self, message: &str) {
        self.git(&["add", "-A"]);
        let who = ["-c", "user.name=ann", "-c", "user.email=ann@localhost"];
        self.git(&[&who[..], &["commit", "-q", "-m", message]].concat());
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        let mut git = self.bench.command("git");
        git.current_dir(self.repo()).args(arguments);
        let called = Called::of(&mut git).must_be(0);
        called.stdout.trim().to_owned()
    }

    pub(crate) fn call(&self, arguments: &[&str]) -> Called {
        let mut command = self.bench.folkmoot(arguments.iter().copied());
        Called::of(command.current_dir(self.repo()))
    }

    pub(crate) fn asked(&self, arguments: &[&str], exit: i32) -> Value {
        let all = [&["orchestrate"], arguments, &["--json"]].concat();
        self.call(&all).must_be(exit).json()
    }

    /// Makes cards of these issues.
    pub(crate) fn cards(&self, issues: &Value, more: &[&str]) {
        let issues = issues.to_string();
        self.asked(&[&["phase-plan", "--issues-json", &issues], more].concat(), 0);
        self.asked(&["phase-materialize", "--collaboration-template", "t"], 0);
    }

    pub(crate) fn head(&self, card: &str) -> String {
        let card = self.asked(&["status", card], 0);
        card["branch"]["head"].as_str().unwrap_or_default().to_owned()
    }

    pub(crate) fn approve(&self, card: &str) -> Value {
        let head = self.head(card);
        self.asked(&["review", card, "--verdict", "approved", "--commit", &head], 0)
    }

    /// Approves, releases and merges a card.
    pub(crate) fn merge(&self, card: &str, exit: i32) -> Value {
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
    let told = desk.call(&["orchestrate", "status", "T001"]).must_be(0).stdout;
    let review = format!("\n  review: approved at {} by ann\n", &head[..12]);
    assert!(told.starts_with("T001 · REVIEWING, approved · "), "{told}");
    assert!(told.contains(&review), "{told}");
    assert!(told.contains("\n  gate passed: test -f made.txt\n"), "{told}");
    let called = desk.call(&["orchestrate", "merge", "T001", "--json"]).must_be(3);
    assert!(!called.stderr.contains("warning"), "a question needs no model: {}", called.stderr);
    let asked = called.json();
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
    let failing = "agents: [{ name: implementer, script: { replies: [{ error: boom }] } }, { name: reviewer, script: { replies: [LGTM] } }, { name: reviser, script: { replies: [No.] } }]\ncollaboration: { pattern: review }\n";
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
    let assign = ["assign", "T001", "--role", "implementer", "--agent", "demo"];
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

#[test]
fn each_card_has_a_branch_and_a_checkout_of_its_own() {
    let desk = Desk::new("");
    desk.cards(&json!([{ "id": "1", "files": ["a"] }, { "id": "2", "files": ["b"] }]), &[]);
    for card in ["T001", "T002"] {
        desk.asked(&["execute", card], 0);
    }
    let trees = desk.git(&["worktree", "list"]);
    assert_eq!(trees.lines().count(), 3, "the user's and one for each card: {trees}");
    assert_eq!(desk.git(&["branch", "--list", "folkmoot/*"]).lines().count(), 2);
}

#[test]
fn an_execute_that_is_told_not_to_wait_leaves_its_run_to_the_next() {
    let desk = Desk::new("");
    desk.cards(&json!([{ "id": "1" }]), &[]);
    for wait in ["-1", "3601", "soon"] {
        let refused = desk.asked(&["execute", "T001", "--wait-s", wait], 2);
        assert_eq!(refused["error"]["code"], "invalid_wait_s");
    }
    let slow =
        CAST.replace("NAME", "made.txt").replace("[VERDICT]", "[{ reply: LGTM, delay_ms: 500 }]");
    desk.bench.write("cast.yaml", &slow);
    let left = desk.asked(&["execute", "T001", "--wait-s", "0"], 130);
    assert_eq!(left["card"]["state"], "IMPLEMENTING");
    let done = desk.asked(&["execute", "T001"], 0);
    assert_eq!((&done["run_id"], &done["card"]["attempts"]), (&left["run_id"], &json!(1)));
}

/// Writes a file, as a coding agent does; the reviewer is content.
#[cfg(unix)]
const CODEX: &str = r#"#!/bin/sh
case "$(cat)" in
  *"how the task is to be done"*|*"reply with a plan"*) text="First the one, then the other." ;;
  *) text="LGTM"; echo made > made.txt ;;
esac
echo "{\"type\":\"item.completed\",\"item\":{\"type\":\"agent_message\",\"text\":\"$text\"}}"
echo '{"type":"turn.completed","usage":{"input_tokens":9,"output_tokens":9}}'
"#;

#[cfg(unix)]
#[test]
fn the_roles_of_a_template_may_write_and_a_complex_issue_is_planned_first() {
    let desk = Desk::new("");
    let programs = desk.bench.path("bin");
    executable(&programs.join("codex"), CODEX);
    let path = format!("{}:/usr/bin:/bin", programs.display());
    let desk = Desk { bench: desk.bench.with("PATH", path) };
    desk.config(
        "[aliases]\ncoder = { cli = 'codex' }\n[templates.t]\nsandbox = 'full'\n\
         roles = { planner = ['coder'], implementer = ['coder'] }\n",
    );
    let plain = json!({ "id": "1", "title": "The colour" });
    let complex = json!({ "id": "2", "title": "Implement the parser, then rewrite the lexer" });
    desk.cards(&json!([plain, complex]), &[]);
    for (card, is_planned) in [("T001", false), ("T002", true)] {
        let done = desk.asked(&["execute", card], 0);
        let branch = done["card"]["branch"]["name"].as_str().unwrap_or_default();
        assert_eq!(desk.git(&["show", &format!("{branch}:made.txt")]), "made");
        let run = done["run_id"].as_str().unwrap_or_default();
        let shown = desk.call(&["show", run, "--json"]).must_be(0).json();
        let calls = shown["calls"].as_array().expect("they are told");
        let first = calls[0]["key"].as_str().unwrap_or_default();
        assert_eq!(first.starts_with("plan/planner"), is_planned, "{card}: {first}");
        let plan = shown["run"].get("plan").and_then(Value::as_str);
        assert_eq!(plan, is_planned.then_some("First the one, then the other."));
    }
}

/// What the runs of all cards have started.
fn started(desk: &Desk) -> u64 {
    let status = desk.asked(&["status"], 0);
    let cards = status["cards"].as_array().into_iter().flatten();
    let runs = cards.flat_map(|card| card["runs"].as_array().into_iter().flatten());
    let calls = |run: &Value| {
        let run = run.as_str().unwrap_or_default();
        let shown = desk.call(&["show", run, "--json"]).must_be(0).json();
        let calls = shown["calls"].as_array().into_iter().flatten();
        calls.filter(|call| call["state"] != "refused").count() as u64
    };
    runs.map(calls).sum()
}

#[test]
fn the_limits_of_a_phase_hold_for_all_its_runs_together() {
    let desk = Desk::new("limits = { calls = 9 }");
    desk.cards(&json!([{ "id": "1" }, { "id": "2" }]), &[]);
    // Four calls each: an even share of what is left is five at first.
    desk.asked(&["execute", "T001"], 0);
    desk.asked(&["execute", "T002"], 0);
    assert_eq!(started(&desk), 8);
    let head = desk.head("T002");
    let again = ["review", "T002", "--verdict", "changes_requested", "--commit", &head];
    desk.asked(&again, 0);
    let short = desk.asked(&["execute", "T002"], 1);
    assert_eq!(short["card"]["state"], "IMPLEMENTING", "its run had one call left");
    assert_eq!(started(&desk), 9);
    let refused = desk.asked(&["execute", "T002"], 2);
    assert_eq!(refused["error"]["code"], "phase_exhausted");
    let run = short["run_id"].as_str().unwrap_or_default();
    let forked = desk.call(&["fork", run, "--json"]).must_be(2).json();
    assert_eq!(forked["error"]["code"], "phase_exhausted");
    assert_eq!(started(&desk), 9);
}

#[test]
fn two_runs_at_once_do_not_pass_the_limits_of_their_phase() {
    let desk = Desk::new("limits = { calls = 7 }");
    desk.cards(&json!([{ "id": "1" }, { "id": "2" }]), &[]);
    let start = |card| {
        let mut execute = desk.bench.folkmoot(["orchestrate", "execute", card]);
        Process::start(execute.current_dir(desk.repo()))
    };
    let both = [start("T001"), start("T002")];
    for process in both {
        process.finish();
    }
    let status = desk.asked(&["status"], 0);
    let attempts = |at: usize| status["cards"][at]["attempts"].as_u64();
    assert_eq!((attempts(0), attempts(1)), (Some(1), Some(1)), "neither takes it all: {status}");
    assert!(started(&desk) <= 7);
}

#[test]
fn a_fork_from_a_call_of_a_card_rolls_it_back_and_its_branch_follows() {
    let desk = Desk::new("");
    desk.cards(&json!([{ "id": "1" }]), &[]);
    let done = desk.asked(&["execute", "T001"], 0);
    desk.approve("T001");
    let (run, head) = (done["run_id"].as_str().unwrap_or_default(), desk.head("T001"));
    let other = r#"agents.implementer.script={"replies":[{"tool_calls":[{"name":"file.write","arguments":{"path":"other.txt","content":"x"}}]},"Done."]}"#;
    let fork = ["fork", run, "--at", "stage-1/implementer/model-1", "--set", other];
    let forked = desk.call(&fork).must_be(0);
    assert!(forked.stderr.contains("REVIEWING"), "{}", forked.stderr);
    let card = desk.asked(&["status", "T001"], 0);
    assert_eq!((&card["state"], &card["review"]), (&json!("REVIEWING"), &Value::Null));
    assert_eq!(card["runs"].as_array().map(Vec::len), Some(2), "later turns stay listed");
    let events = card["events"].as_array().into_iter().flatten();
    let names: Vec<&str> = events.filter_map(|it| it["event"].as_str()).collect();
    assert_eq!(names, ["made", "begun", "executed", "judged", "rolled_back", "executed"]);
    let branch = card["branch"]["name"].as_str().unwrap_or_default();
    let files = desk.git(&["ls-tree", "--name-only", branch]);
    assert!(files.contains("other.txt") && !files.contains("made.txt"), "{files}");
    let new = card["branch"]["head"].as_str().unwrap_or_default();
    assert_eq!(desk.git(&["rev-parse", branch]), new);
    desk.git(&["merge-base", "--is-ancestor", &head, new]);
    desk.merge("T001", 0);
    assert_eq!(desk.git(&["show", "main:other.txt"]), "x");
    let last = card["runs"][1].as_str().unwrap_or_default();
    let refused = desk.call(&["fork", last, "--json"]).must_be(2).json();
    assert_eq!(refused["error"]["code"], "terminal", "what is in is undone by a new card");
}

/// The first block of a language in a page that holds `part`.
fn block<'a>(page: &'a str, language: &str, part: &str) -> &'a str {
    let begin = format!("```{language}\n");
    let mut blocks = page.split(&begin).skip(1).filter_map(|rest| rest.split("```").next());
    blocks.find(|block| block.contains(part)).expect("the page has it")
}

#[test]
fn the_page_on_orchestrate_works_as_it_stands() {
    let desk = Desk::new("");
    let page = include_str!("../../../../docs/orchestrate.md");
    let files = [
        ("issues.json", block(page, "json", "Parse durations")),
        ("team.yaml", block(page, "yaml", "durations.txt")),
        ("folkmoot.toml", block(page, "toml", "[templates.trial]")),
    ];
    for (name, text) in files {
        fs::write(desk.repo().join(name), text).expect("it can be written");
    }
    let program = Path::new(env!("CARGO_BIN_EXE_folkmoot")).parent().expect("it is in a folder");
    let mut merges = 0;
    for line in block(page, "sh", "phase-plan").lines() {
        let status = desk.asked(&["status"], 0);
        let card = status["cards"].as_array().and_then(|cards| cards.last()).cloned();
        let card = card.unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let line = line.replace("HEAD-OF-T001", &text(&card["branch"]["head"]));
        let line = line.replace("RUN", &text(&card["waiting_on"]["run"]));
        let asks = line.contains("orchestrate merge") && merges == 0;
        merges += u32::from(line.contains("orchestrate merge"));
        let mut shell = desk.bench.command("sh");
        shell.current_dir(desk.repo()).args(["-c", &line]);
        shell.env("PATH", format!("{}:/usr/bin:/bin", program.display()));
        Called::of(&mut shell).must_be(if asks { 3 } else { 0 });
    }
    assert_eq!(merges, 2);
    assert_eq!(desk.asked(&["status", "T001"], 0)["state"], "INTEGRATED");
    assert_eq!(desk.git(&["show", "main:durations.txt"]), "90s 5m 2h");
}
