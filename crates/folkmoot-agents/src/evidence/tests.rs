use std::fs;

use folkmoot_core::{key::Key, team::Sandbox, time::Duration};
use serde_json::json;

use super::*;

struct Place {
    folder: tempfile::TempDir,
    sandbox: Sandbox,
}

fn full() -> Place {
    Place { folder: tempfile::tempdir().expect("a folder"), sandbox: Sandbox::Full }
}

impl Place {
    async fn look(&self, gate: Gate) -> Outcome {
        let folder = self.folder.path().to_str().expect("a path").into();
        let request = GateRequest {
            run: "r".into(),
            key: Key::parse("a/1/gate-1"),
            attempt: 1,
            gate,
            scripted: None,
            reply: None,
            workspace: Some(Workspace { folder, sandbox: self.sandbox }),
        };
        let ours = ["PATH", "OPENAI_API_KEY"].map(|name| {
            (name.to_owned(), std::env::var(name).unwrap_or_else(|_| "secret".to_owned()))
        });
        Inspector::new(ours).look(request).await.outcome
    }

    async fn run(&self, command: &str, most: Duration) -> Value {
        let gate = Gate::Command { command: command.into(), timeout: most };
        let outcome = self.look(gate).await.expect("it is looked at");
        outcome.json.clone().expect("it is structured")
    }

    async fn file(&self, path: &str) -> Value {
        let outcome = self.look(Gate::File { path: path.into() }).await.expect("it is looked at");
        outcome.json.clone().expect("it is structured")
    }
}

const SOON: Duration = Duration::from_secs(20);

#[cfg(unix)]
#[tokio::test]
async fn a_command_passes_if_it_ends_with_0_and_both_of_its_outputs_are_kept() {
    let told = full().run("pwd >/dev/null; echo out; echo err >&2", SOON).await;
    assert_eq!((&told["passed"], &told["exit_code"]), (&json!(true), &json!(0)));
    let output = told["output"].as_str().expect("a text");
    assert!(output.contains("out\n") && output.contains("err\n"), "{output}");
    let told = full().run("echo so; exit 7", SOON).await;
    assert_eq!(told, json!({ "passed": false, "exit_code": 7, "output": "so\n" }));
}

#[cfg(unix)]
#[tokio::test]
async fn a_command_runs_in_the_workspace_without_our_keys_and_nobody_answers_it() {
    let place = full();
    fs::write(place.folder.path().join("here"), "x").expect("it can be written");
    let told = place.run("cat here; read line; echo \"[$line$OPENAI_API_KEY]\"", SOON).await;
    assert_eq!(told["output"], "x[]\n");
}

#[cfg(unix)]
#[tokio::test]
async fn a_command_that_takes_too_long_ends_with_all_that_it_has_started() {
    let place = full();
    let command = "(sleep 30; echo late > late) & echo begun; sleep 30";
    let told = place.run(command, Duration::from_millis(300)).await;
    assert_eq!(
        told,
        json!({ "passed": false, "detail": "it was not done within 300ms", "output": "begun\n" })
    );
    let left = place.run("ps -eo args | grep -c '[s]leep 30; echo late'", SOON).await;
    assert_eq!(left["output"], "0\n");
}

#[cfg(unix)]
#[tokio::test]
async fn what_a_command_leaves_behind_neither_holds_it_up_nor_lives_on() {
    let began = std::time::Instant::now();
    let told = full().run("sleep 60 & echo done", SOON).await;
    assert_eq!((&told["passed"], &told["output"]), (&json!(true), &json!("done\n")));
    assert!(began.elapsed() < std::time::Duration::from_secs(10));
}

#[cfg(unix)]
#[tokio::test]
async fn the_end_of_a_long_output_is_kept_in_whole_characters() {
    let told = full().run("yes 道道道 | head -n 20000; echo end", SOON).await;
    let output = told["output"].as_str().expect("a text");
    assert!(output.len() <= OUTPUT && output.len() > OUTPUT - 4, "{}", output.len());
    assert!(output.ends_with("道\nend\n") && !output.contains('\u{FFFD}'));
}

#[tokio::test]
async fn a_command_writes_only_where_the_sandbox_lets_it_and_is_refused_where_nothing_can_confine_it()
 {
    for (sandbox, may_write) in
        [(Sandbox::ReadOnly, false), (Sandbox::Write, true), (Sandbox::Full, true)]
    {
        let place = Place { sandbox, ..full() };
        let gate = Gate::Command { command: "echo so > written".into(), timeout: SOON };
        let looked = place.look(gate).await;
        let has_written = place.file("written").await["passed"] == true;
        if sandbox < Sandbox::Full && process::unenforceable().is_some() {
            let fault = looked.expect_err("it is refused");
            assert!(fault.to_string().starts_with("sandbox_unavailable"), "{fault}");
            assert!(!has_written, "{sandbox:?}");
        } else {
            assert_eq!(has_written, may_write, "{sandbox:?} {looked:?}");
        }
    }
}

#[tokio::test]
async fn a_file_must_be_there_in_the_workspace_and_not_be_empty() {
    let place = Place { sandbox: Sandbox::ReadOnly, ..full() };
    let folder = place.folder.path();
    fs::create_dir(folder.join("sub")).expect("a folder");
    fs::write(folder.join("sub/full.md"), "text").expect("a file");
    fs::write(folder.join("empty.md"), "").expect("a file");
    assert_eq!(place.file("sub/full.md").await, json!({ "passed": true }));
    for (path, why) in [
        ("none.md", "there is no such file"),
        ("empty.md", "it is empty"),
        ("sub", "it is no file"),
        ("..", "outside_workspace: it leads out of the workspace"),
    ] {
        assert_eq!(place.file(path).await, json!({ "passed": false, "detail": why }), "{path}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_out_of_the_workspace_is_no_file_of_it() {
    let (place, other) = (full(), full());
    fs::write(other.folder.path().join("secret"), "text").expect("a file");
    std::os::unix::fs::symlink(
        other.folder.path().join("secret"),
        place.folder.path().join("link"),
    )
    .expect("a link");
    let told = place.file("link").await;
    assert_eq!(told["detail"], "outside_workspace: it leads out of the workspace");
}

fn schema(schema: Value, reply: &Answer) -> Value {
    let gate = Gate::Schema { name: "s".into(), schema };
    let outcome = known(&gate, None, Some(reply)).expect("it is known").expect("it is judged");
    outcome.json.clone().expect("it is structured")
}

#[test]
fn the_json_of_a_reply_or_of_its_last_block_must_satisfy_a_schema() {
    let shape = json!({ "type": "object", "required": ["n"], "properties": { "n": { "type": "integer" } } });
    let passes = |text: &str| schema(shape.clone(), &Answer::text(text))["passed"] == true;
    assert!(passes("{\"n\": 1}") && passes("So:\n```json\n{\"n\": 1}\n```\n```sh\nls\n```"));
    assert!(!passes("```\n{\"n\": 1}\n```\n```\n{\"n\": \"x\"}\n```"));
    assert!(schema(shape.clone(), &Answer::json(json!({ "n": 3 })))["passed"] == true);
    let told = schema(shape.clone(), &Answer::json(json!({ "n": "x" })));
    assert_eq!(told["detail"], "at /n: \"x\" is not of type \"integer\"");
    assert_eq!(schema(shape, &Answer::text("n is 1"))["detail"], "the reply holds no JSON");
}

#[test]
fn a_schema_that_is_none_is_a_fault_and_reaches_for_nothing() {
    for broken in [json!({ "type": 5 }), json!({ "$ref": "http://127.0.0.1:9/x.json" })] {
        let gate = Gate::Schema { name: "s".into(), schema: broken };
        let outcome = known(&gate, None, Some(&Answer::json(json!({})))).expect("it is known");
        assert!(outcome.is_err(), "{outcome:?}");
    }
}
