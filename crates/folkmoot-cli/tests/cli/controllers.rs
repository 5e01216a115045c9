//! Programs that are processes of the team's own (extensions.md §4).

#![cfg(unix)]

use std::{fs, path::Path};

use folkmoot_stub::{Door, Reply, Stub};
use serde_json::{Value, json};

use crate::bench::{Bench, until};

/// Two agents that one controller asks, one after the other.
const PAIR: &str = "
name: pair
agents:
  - { name: first, model: openai/stub }
  - { name: second, model: openai/stub }
collaboration: { program: { command: [sh, ./controller.sh] } }
";

/// Asks the first, then the second with what the first said, and answers what that said.
const ONE_AFTER_THE_OTHER: &str = r#"
all=
while IFS= read -r line; do
    all=$all$line
    case $all in
    *'"two":{"text"'*) echo '{"final":"it is done"}' ;;
    *'"one":{"text"'*) echo '{"want":[{"key":"two","agent":"second","prompt":[{"text":"GO ON"},{"quote":"one"}]}]}' ;;
    *) echo '{"want":[{"key":"one","agent":"first","prompt":[{"text":"BEGIN"}]}]}' ;;
    esac
done
"#;

/// A team whose controller is this script; nothing where the system confines no program, which must
/// then be refused before any call.
fn controlled(bench: Bench, script: &str) -> Option<Bench> {
    bench.write("controller.sh", script);
    let called = bench.call(["run", "team.yaml", "task", "--json"]);
    let is_refused = called.exit == 2;
    if is_refused {
        assert_eq!(called.json()["error"]["code"], "sandbox_unavailable", "{}", called.shown());
        assert!(bench.runs().is_empty());
    }
    (!is_refused).then_some(bench)
}

fn scripted(script: &str) -> Option<Bench> {
    let team = PAIR.replace("model: openai/stub", "script: { replies: [said] }");
    controlled(Bench::with_team(&team), script)
}

/// What came of the newest run.
fn result(bench: &Bench) -> Value {
    bench.last()["run"].clone()
}

#[test]
fn a_controller_says_who_does_what_and_a_replay_needs_none() {
    let Some(bench) = scripted(ONE_AFTER_THE_OTHER) else { return };
    let result = result(&bench);
    assert_eq!((&result["final"], &result["reason"]), (&json!("it is done"), &json!("completed")));
    assert_eq!(result["strategy"], "controller");
    assert_eq!(result["meta"]["usage"]["calls"], 5, "three exchanges and two turns");
    assert_eq!(result["rounds"][1]["responses"], json!({ "one": "said" }));
    assert_eq!(result["rounds"][1]["wants"], json!(["two"]));
    fs::remove_file(bench.path("controller.sh")).expect("it can be removed");
    bench.call(["replay", "last"]).must_be(0);
    bench.call(["verify", "last"]).must_be(0);
    let calls = &bench.last()["calls"];
    assert_eq!(calls[0]["key"], "controller/1");
    assert_eq!(calls[0]["agent"], "sh ./controller.sh");
    assert_eq!(calls[2]["request"]["arguments"]["new"], json!(["one"]));
    let told = bench.call(["show", "last"]).must_be(0).stdout;
    assert!(told.contains("sh ./controller.sh"), "{told}");
    bench.call(["report", "last"]).must_be(0);
    let drawn = bench.call(["graph", "last"]).must_be(0).stdout;
    assert!(drawn.contains("controller"), "{drawn}");
}

#[test]
fn it_runs_beside_its_team_file_wherever_the_run_is_started() {
    let Some(bench) = scripted(ONE_AFTER_THE_OTHER) else { return };
    fs::create_dir(bench.path("elsewhere")).expect("a folder can be made");
    let mut command = bench.folkmoot(["run", "../team.yaml", "task", "--json"]);
    let run = crate::bench::Called::of(command.current_dir(bench.path("elsewhere")));
    assert_eq!(run.must_be(0).json()["final"], "it is done");
}

/// A run that was killed while its second turn was under way.
fn killed() -> Option<(Bench, Stub, Door)> {
    scripted(ONE_AFTER_THE_OTHER)?;
    let door = Door::closed();
    let stub = Stub::start([Reply::text("one"), Reply::text("two").behind(&door)]);
    let bench = Bench::with_models(PAIR, &stub);
    bench.write("controller.sh", ONE_AFTER_THE_OTHER);
    let run = bench.start(["run", "team.yaml", "task"]);
    until(&stub, |seen| seen.requests.len() == 2);
    run.kill();
    until(&stub, |seen| seen.hung_up == 1);
    door.open();
    Some((bench, stub, door))
}

#[test]
fn after_a_kill_it_is_started_anew_is_told_everything_and_nothing_is_asked_again() {
    let Some((bench, stub, _door)) = killed() else { return };
    let resumed = bench.call(["resume", "last", "--json"]).must_be(0).json();
    assert_eq!(resumed["final"], "it is done");
    let asked: Vec<bool> =
        stub.seen().requests.iter().map(|it| it.body.to_string().contains("GO ON")).collect();
    assert_eq!(asked, [false, true, true], "the first answer is kept");
    bench.call(["replay", "last"]).must_be(0);
}

#[test]
fn a_second_start_that_wants_something_else_under_a_known_key_ends_the_run_and_names_it() {
    let Some((bench, stub, _door)) = killed() else { return };
    let other = r#"read -r line; echo '{"want":[{"key":"one","agent":"first","prompt":[{"text":"OTHER"}]}]}'"#;
    bench.write("controller.sh", other);
    let resumed = bench.call(["resume", "last", "--json"]).must_be(1).json();
    assert_eq!(resumed["reason"], "error");
    let error = resumed["errors"][0]["error"].as_str().expect("a text");
    assert!(error.contains("key \"one\" is wanted otherwise than before"), "{error}");
    assert_eq!(resumed["errors"][0]["agent"], "sh ./controller.sh");
    assert_eq!(stub.seen().requests.len(), 3, "what was under way is asked once more, and no more");
    bench.call(["replay", "last"]).must_be(0);
}

#[test]
fn a_controller_that_fails_ends_the_run_with_exit_code_1_and_its_own_words() {
    for (script, why) in [
        (
            "echo oh no >&2; exit 7",
            "it ended with code 7 and gave no answer; its error output: oh no",
        ),
        ("read -r line; echo hello", "its answer cannot be read: "),
        ("read -r line; echo '{\"error\":\"nobody can\"}'", "nobody can"),
        (
            "read -r line; echo '{\"want\":[{\"key\":\"k\",\"agent\":\"third\",\"prompt\":[{\"text\":\"x\"}]}]}'",
            "key \"k\" is wanted of \"third\", who is no agent; agents: first, second",
        ),
        ("echo x > written; echo x > $PWD/controller.sh; echo done", "its answer cannot be read"),
    ] {
        let Some(bench) = scripted(script) else { return };
        let result = result(&bench);
        assert_eq!((&result["status"], &result["reason"]), (&json!("failed"), &json!("error")));
        let error = result["errors"][0]["error"].as_str().expect("a text");
        assert!(error.starts_with(why), "{error}");
        assert_eq!(result["errors"][0]["key"], "controller/1");
        assert!(!bench.path("written").exists());
        assert_eq!(fs::read_to_string(bench.path("controller.sh")).expect("it is there"), script);
    }
}

#[test]
fn a_retry_starts_a_mended_one_and_keeps_what_was_answered() {
    let broken = ONE_AFTER_THE_OTHER.replace("{\"final\"", "{\"finally\"");
    let Some(bench) = scripted(&broken) else { return };
    assert_eq!(result(&bench)["status"], "failed");
    bench.write("controller.sh", ONE_AFTER_THE_OTHER);
    let retried = bench.call(["retry", "last", "--json"]).must_be(0).json();
    assert_eq!(retried["final"], "it is done");
    assert_eq!(retried["meta"]["usage"]["calls"], 1, "the last exchange is all that was missing");
}

#[test]
fn a_plan_says_that_nothing_but_limits_bounds_it_and_a_rehearsal_starts_nothing() {
    let team = PAIR.replace("model: openai/stub", "demo: true");
    let bench = Bench::with_team(&team);
    bench.write("controller.sh", "echo x > started");
    let plan = bench.call(["plan", "team.yaml", "task", "--json"]).must_be(0).json();
    let told = plan.to_string();
    assert!(told.contains("nothing but the limits of the run bounds it"), "{told}");
    let text = bench.call(["plan", "team.yaml", "task"]).must_be(0).stdout;
    assert!(text.contains("1024") || text.contains("1,024"), "{text}");
    let rehearsed = bench.call(["simulate", "team.yaml", "task", "--json"]).must_be(1).json();
    assert_eq!(rehearsed["errors"][0]["error"], "a rehearsal starts no controller");
    assert!(!bench.path("started").exists());
}

#[test]
fn the_example_runs_as_it_says() {
    if scripted(ONE_AFTER_THE_OTHER).is_none() {
        return;
    }
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let bench = Bench::new();
    for file in ["controller.yaml", "controller.sh"] {
        fs::copy(examples.join(file), bench.path(file)).expect("it can be copied");
    }
    let run = ["run", "controller.yaml", "Name our \"new\" coffee \\ tea", "--json"];
    let result = bench.call(run).must_be(0).json();
    assert_eq!(result["final"], "Early Star");
    assert_eq!(bench.last()["calls"][3]["state"], "withdrawn");
    bench.call(["replay", "last"]).must_be(0);
}
