//! Coding agents as programs of these tests play them: rules.md §12.

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf, sync::Arc};

use folkmoot_core::{
    call::{Fault, Outcome, Tokens, Usage},
    check::Environment,
    gate::Workspace,
    team::{Agent, CliOutput, CliProgram, OwnProgram, Target},
};
use folkmoot_runtime::place::Place;
use tempfile::TempDir;

use super::*;
use crate::{
    gate::Gates,
    machine,
    patience::Patience,
    retry::Backoff,
    testing::{message, request},
};

/// A machine on which one coding agent is installed, a script of this test.
struct Machine {
    folder: TempDir,
    sandbox: Sandbox,
    grants: Vec<Arc<str>>,
    retries: u32,
}

impl Machine {
    fn with(program: &str, script: &str) -> Machine {
        let folder = tempfile::tempdir().expect("a folder can be made");
        for name in ["bin", "home", "work"] {
            fs::create_dir(folder.path().join(name)).expect("it can be made");
        }
        let machine =
            Machine { folder, sandbox: Sandbox::Full, grants: vec!["*".into()], retries: 0 };
        let path = machine.path("bin").join(program);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("it can be written");
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("it can be set");
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    async fn ask(&self, program: CliProgram, model: Option<&str>) -> Response {
        let cli = Cli { program, model: model.map(Into::into) };
        let (grants, sandbox) = (self.grants.clone(), self.sandbox);
        let agent = Agent {
            grants,
            sandbox,
            retries: self.retries,
            ..Agent::new("a", Target::Cli(cli.clone()))
        };
        let bin = self.path("bin").to_str().expect("it is a text").to_owned();
        let environment = Environment {
            set: [
                ("PATH".into(), format!("{bin}:/usr/bin:/bin").into()),
                ("HOME".into(), self.path("home").to_str().expect("it is a text").into()),
            ]
            .into(),
            ..Environment::default()
        };
        let folder = self.path("work").to_str().expect("it is a text").into();
        let place = Place { workspace: Workspace { folder, sandbox }, environment };
        let messages = vec![message(Role::System, "Be brief."), message(Role::User, "Well?")];
        let request = Request { place, ..request(agent, messages) };
        let ours = [("OPENAI_API_KEY".to_owned(), "sk-1".to_owned())].into();
        let patience = Patience { first_wait: Duration::from_millis(1), ..Patience::default() };
        let backoff = Backoff::new(&patience, fastrand::Rng::new());
        let (gates, closed) = (Gates::default(), Vec::new());
        let machine =
            machine::Machine { ours: &ours, closed: &closed, gates: &gates, backoff: &backoff };
        perform(&cli, machine, &request, &|_| {}).await
    }

    async fn outcome(&self, program: CliProgram) -> Outcome {
        self.ask(program, None).await.outcome
    }
}

fn own(command: &str, input: CliInput, output: CliOutput) -> CliProgram {
    CliProgram::Own(OwnProgram { command: vec![command.into()], input, output })
}

fn text(outcome: &Outcome) -> &str {
    outcome.as_ref().map_or_else(|fault| panic!("{fault}"), |answer| &answer.text)
}

fn fault(outcome: &Outcome) -> (FailureKind, String) {
    match outcome {
        Err(Fault::Failed { kind, text, .. }) => (*kind, text.to_string()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_prompt_comes_on_standard_input_in_a_file_or_as_an_argument() {
    let reads = Machine::with("agent", "cat; echo; env");
    let told = reads.outcome(own("agent", CliInput::Stdin, CliOutput::Text)).await;
    assert!(text(&told).starts_with("Be brief.\n\nWell?\n"), "{told:?}");
    assert!(!text(&told).contains("sk-1"), "our keys are not theirs: {told:?}");
    let reads = Machine::with("agent", "cat \"$1\"");
    let told = reads.outcome(own("agent", CliInput::File, CliOutput::Text)).await;
    assert_eq!(text(&told), "Be brief.\n\nWell?");
    let reads = Machine::with("agent", "echo \"$1 $2\"");
    let told = reads.outcome(own("agent", CliInput::Arg, CliOutput::Text)).await;
    assert_eq!(text(&told), "-- Be brief.\n\nWell?");
}

#[tokio::test]
async fn a_program_that_reads_nothing_has_not_failed_by_that() {
    let machine = Machine::with("agent", "echo done");
    let told = machine.outcome(own("agent", CliInput::Stdin, CliOutput::Text)).await;
    assert_eq!(text(&told), "done");
}

#[tokio::test]
async fn a_record_outranks_the_exit_code_and_none_is_a_failure() {
    let json = |script| Machine::with("agent", script);
    let ask = |machine: Machine, output| async move {
        machine.outcome(own("agent", CliInput::Stdin, output)).await
    };
    let told = ask(json(r#"echo '{"reply": "yes"}'; exit 3"#), CliOutput::Json).await;
    assert_eq!(text(&told), "yes");
    let told = ask(json(r#"echo '{"verdict": "approve"}'"#), CliOutput::Json).await;
    assert_eq!(told.expect("it is a reply").json, Some(serde_json::json!({"verdict": "approve"})));
    let told = ask(
        json("echo thinking; echo '{\"text\": \"a\"}'; echo '{\"text\": \"b\"}'"),
        CliOutput::Jsonl,
    )
    .await;
    assert_eq!(text(&told), "b");
    let (kind, why) = fault(&ask(json("echo 'all is well'"), CliOutput::Json).await);
    assert_eq!(
        (kind, why.contains("it printed no record")),
        (FailureKind::Protocol, true),
        "{why}"
    );
    let (kind, why) = fault(
        &ask(json(r#"echo '{"error": {"message": "usage limit reached"}}'"#), CliOutput::Json)
            .await,
    );
    assert_eq!(
        (kind, why.starts_with("agent: usage limit reached (agent, exit code 0 after ")),
        (FailureKind::RateLimited, true),
        "{why}"
    );
}

#[tokio::test]
async fn a_fault_names_the_command_its_end_and_what_it_wrote_last() {
    let machine = Machine::with("agent", "echo out; echo 'no such model' >&2; exit 7");
    let (kind, why) = fault(&machine.outcome(own("agent", CliInput::Stdin, CliOutput::Text)).await);
    assert_eq!(kind, FailureKind::Harness);
    assert!(
        why.starts_with("agent: agent, exit code 7 after ") && why.ends_with("no such model"),
        "{why}"
    );
    let (kind, why) =
        fault(&machine.outcome(own("nobody", CliInput::Stdin, CliOutput::Text)).await);
    assert_eq!((kind, &*why), (FailureKind::Spawn, "nobody is not installed, or not in PATH"));
}

#[tokio::test]
async fn usage_that_is_not_reported_is_estimated() {
    let machine = Machine::with("agent", "echo twelve bytes");
    let response = machine.ask(own("agent", CliInput::Stdin, CliOutput::Text), None).await;
    assert!(response.usage.estimated && response.usage.tokens.output == 3, "{response:?}");
}

#[tokio::test]
async fn usage_that_cannot_be_read_is_estimated_and_never_nothing() {
    for told in [r#""input_tokens":1e30,"output_tokens":"7""#, r#""input_tokens":-5"#, ""] {
        let record = format!(r#"{{"reply":"twelve bytes","usage":{{{told}}}}}"#);
        let machine = Machine::with("agent", &format!("echo '{record}'"));
        let response = machine.ask(own("agent", CliInput::Stdin, CliOutput::Json), None).await;
        let Usage { tokens, estimated, .. } = response.usage;
        assert!(estimated && (tokens.input, tokens.output) == (4, 3), "{told}: {response:?}");
    }
    let half = r#"echo '{"reply":"twelve bytes","usage":{"input_tokens":9,"output_tokens":-1}}'"#;
    let machine = Machine::with("agent", half);
    let usage = machine.ask(own("agent", CliInput::Stdin, CliOutput::Json), None).await.usage;
    assert!(usage.estimated && (usage.tokens.input, usage.tokens.output) == (9, 3), "{usage:?}");
    let claude = r#"echo '{"type":"result","result":"Fine.","usage":{"input_tokens":"3","cache_read_input_tokens":5,"output_tokens":2}}'"#;
    let usage = Machine::with("claude", claude).ask(CliProgram::Claude, None).await.usage;
    assert!(usage.estimated && usage.tokens.output == 2, "{usage:?}");
}

#[tokio::test]
async fn an_empty_reply_is_none() {
    let empty = [
        ("true", CliOutput::Text),
        ("echo '  '", CliOutput::Text),
        (r#"echo '{"reply":""}'"#, CliOutput::Json),
        (r#"echo '{"reply":" "}'"#, CliOutput::Jsonl),
    ];
    for (script, output) in empty {
        let machine = Machine::with("agent", script);
        let told = machine.outcome(own("agent", CliInput::Stdin, output)).await;
        let (kind, why) = fault(&told);
        assert_eq!(kind, FailureKind::Incomplete, "{why}");
        assert!(why.contains("its reply is empty"), "{why}");
    }
}

#[tokio::test]
async fn an_event_is_no_reply_and_without_one_the_call_is_incomplete() {
    let ask = |lines: &[&str]| {
        let lines: Vec<String> = lines.iter().map(|line| format!("echo '{line}'")).collect();
        let machine = Machine::with("agent", &lines.join("; "));
        async move { machine.outcome(own("agent", CliInput::Stdin, CliOutput::Jsonl)).await }
    };
    let progress = r#"{"type":"progress","text":"thinking"}"#;
    for reply in [r#"{"reply":"yes"}"#, r#"{"type":"result","text":"yes"}"#, r#""yes""#] {
        let told = ask(&[progress, reply, r#"{"type":"x"}"#, r#"{"n":1}"#, progress]).await;
        assert_eq!(text(&told), "yes", "{reply}");
    }
    let (kind, why) = fault(&ask(&[progress, r#"{"type":"x"}"#]).await);
    assert_eq!(kind, FailureKind::Incomplete);
    assert!(why.contains(r#"printed last: {"type":"progress"#) && why.contains(r#""x"}"#), "{why}");
    let (kind, why) = fault(&ask(&[progress, r#"{"type":"error","message":"429"}"#]).await);
    assert_eq!((kind, why.contains("429")), (FailureKind::RateLimited, true), "{why}");
}

#[tokio::test]
async fn codex_is_started_with_its_sandbox_and_its_events_are_read() {
    let script = r#"printf '%s ' "$@" > ../args
cat > /dev/null
echo '{"type":"thread.started","thread_id":"1"}'
echo '{"type":"item.completed","item":{"type":"reasoning","text":"hm"}}'
echo '{"type":"item.completed","item":{"type":"agent_message","text":"It is done."}}'
echo '{"type":"turn.completed","usage":{"input_tokens":100,"cached_input_tokens":60,"output_tokens":9}}'"#;
    let machine = Machine::with("codex", script);
    let response = machine.ask(CliProgram::Codex, Some("gpt-5")).await;
    assert_eq!(text(&response.outcome), "It is done.");
    let tokens = Tokens { input: 40, cached: 60, output: 9, ..Tokens::default() };
    assert_eq!(response.usage, Usage { tokens, cost: None, estimated: false });
    let args = fs::read_to_string(machine.path("args")).expect("it was started");
    assert_eq!(
        args,
        "exec --json --skip-git-repo-check --sandbox danger-full-access --model gpt-5 - "
    );
    let failed = r#"echo '{"type":"turn.failed","error":{"message":"401 Unauthorized"}}'; exit 1"#;
    let (kind, _) = fault(&Machine::with("codex", failed).outcome(CliProgram::Codex).await);
    assert_eq!(kind, FailureKind::Auth);
}

#[tokio::test]
async fn whoever_ends_before_its_turn_is_over_has_not_replied() {
    let said =
        r#"echo '{"type":"item.completed","item":{"type":"agent_message","text":"I will look."}}'"#;
    for end in ["exit 1", "kill -9 $$", "exit 0"] {
        let machine = Machine::with("codex", &format!("{said}; {end}"));
        let (kind, _) = fault(&machine.outcome(CliProgram::Codex).await);
        assert_eq!(kind, FailureKind::Incomplete, "{end}");
    }
    let said = r#"echo '{"type":"text","part":{"text":"I will look."}}'; kill -9 $$"#;
    let (kind, _) = fault(&Machine::with("opencode", said).outcome(CliProgram::Opencode).await);
    assert_eq!(kind, FailureKind::Incomplete);
    let machine = Machine::with("agent", r#"echo '{"text":"I will look."}'; kill -9 $$"#);
    let (kind, _) = fault(&machine.outcome(own("agent", CliInput::Stdin, CliOutput::Jsonl)).await);
    assert_eq!(kind, FailureKind::Incomplete);
    let limit = r#"echo '{"type":"result","subtype":"error_max_turns","is_error":false}'"#;
    let (_, why) = fault(&Machine::with("claude", limit).outcome(CliProgram::Claude).await);
    assert!(why.contains("error_max_turns"), "{why}");
}

#[test]
fn nobody_is_given_more_than_is_granted() {
    for (program, grants, flag) in [
        (CliProgram::Codex, vec!["file"], "--sandbox read-only"),
        (CliProgram::Codex, vec!["file", "shell"], "--sandbox danger-full-access"),
        (CliProgram::Gemini, vec!["file.read"], "--approval-mode default"),
        (CliProgram::Gemini, vec!["file"], "--approval-mode auto_edit"),
        (CliProgram::Gemini, vec!["*"], "--approval-mode yolo"),
    ] {
        let cli = Cli { program, model: None };
        let granted = grants.iter().map(|grant| (*grant).into()).collect();
        let agent = Agent { grants: granted, ..Agent::new("a", Target::Cli(cli.clone())) };
        let argv = Start::of(&cli, Sandbox::Full, &agent, None).argv.join(" ");
        assert!(argv.contains(flag), "{grants:?}: {argv}");
    }
}

#[tokio::test]
async fn claude_is_told_what_is_granted_and_its_result_is_read() {
    let script = r#"printf '%s ' "$@" > ../args
echo '{"type":"result","subtype":"success","is_error":false,"result":"Fine.","usage":{"input_tokens":3,"cache_read_input_tokens":5,"cache_creation_input_tokens":7,"output_tokens":2}}'"#;
    let mut machine = Machine::with("claude", script);
    machine.grants = ["file.read", "search", "shell"].map(Into::into).to_vec();
    let response = machine.ask(CliProgram::Claude, None).await;
    assert_eq!(text(&response.outcome), "Fine.");
    assert_eq!(response.usage.tokens, Tokens { input: 3, cached: 5, cache_write: 7, output: 2 });
    let args = fs::read_to_string(machine.path("args")).expect("it was started");
    assert_eq!(
        args,
        "-p --output-format json --allowedTools Read,Glob,Grep,Bash --disallowedTools Write,Edit,NotebookEdit,WebFetch "
    );
    let failed = r#"echo '{"type":"result","is_error":true,"result":"Invalid API key"}'; exit 1"#;
    let (kind, _) = fault(&Machine::with("claude", failed).outcome(CliProgram::Claude).await);
    assert_eq!(kind, FailureKind::Auth);
}

#[tokio::test]
async fn gemini_and_opencode_are_read_too() {
    let script = r#"echo 'Loaded credentials.'
echo '{"response": "Ja.", "stats": {"models": {"g": {"tokens": {"prompt": 10, "cached": 4, "candidates": 2, "thoughts": 1}}}}}'"#;
    let response = Machine::with("gemini", script).ask(CliProgram::Gemini, None).await;
    assert_eq!(text(&response.outcome), "Ja.");
    assert_eq!(
        response.usage.tokens,
        Tokens { input: 6, cached: 4, output: 3, ..Tokens::default() }
    );
    let script = r#"echo "$OPENCODE_PERMISSION" > ../permission
echo '{"type":"text","part":{"text":"let me see"}}'
echo '{"type":"step_finish","part":{"tokens":{"input":5,"output":1,"reasoning":0,"cache":{"read":2,"write":0}}}}'
echo '{"type":"tool_use","part":{}}'
echo '{"type":"text","part":{"text":"好的。"}}'
echo '{"type":"step_finish","part":{"tokens":{"input":7,"output":1,"reasoning":1,"cache":{"read":0,"write":3}}}}'"#;
    let mut machine = Machine::with("opencode", script);
    machine.grants = vec!["file".into()];
    let response = machine.ask(CliProgram::Opencode, None).await;
    assert_eq!(text(&response.outcome), "好的。");
    assert_eq!(response.usage.tokens, Tokens { input: 12, cached: 2, cache_write: 3, output: 3 });
    let permission = fs::read_to_string(machine.path("permission")).expect("it was started");
    assert_eq!(permission, "{\"edit\":\"allow\",\"bash\":\"deny\",\"webfetch\":\"deny\"}\n");
}

#[test]
fn codex_is_held_by_our_sandbox_alone_below_full_as_its_own_does_not_work_inside() {
    let cli = Cli { program: CliProgram::Codex, model: None };
    let levels = [
        (Sandbox::ReadOnly, &["*"][..], Sandbox::ReadOnly, "danger-full-access"),
        (Sandbox::Write, &["file", "shell"], Sandbox::Write, "danger-full-access"),
        (Sandbox::Write, &["file"], Sandbox::ReadOnly, "danger-full-access"),
        (Sandbox::Full, &["file"], Sandbox::Full, "read-only"),
        (Sandbox::Full, &["file", "shell"], Sandbox::Full, "danger-full-access"),
    ];
    for (level, grants, ours, its) in levels {
        let grants = grants.iter().map(|grant| (*grant).into()).collect();
        let agent = Agent { grants, ..Agent::new("a", Target::Cli(cli.clone())) };
        let start = Start::of(&cli, level, &agent, None);
        let argv = start.argv.join(" ");
        assert!(start.level == ours && argv.contains(&format!("--sandbox {its}")), "{argv}");
    }
}

#[tokio::test]
async fn gemini_is_told_to_trust_the_workspace() {
    let script = r#"echo "{\"response\": \"$GEMINI_CLI_TRUST_WORKSPACE\"}""#;
    let told = Machine::with("gemini", script).outcome(CliProgram::Gemini).await;
    assert_eq!(text(&told), "true");
}

#[tokio::test]
async fn it_is_asked_again_as_often_as_its_retries_say_and_each_attempt_is_paid_for() {
    let script = |end: &str| format!("cat > /dev/null; echo x >> ../tries; {end}");
    let ask = |end: &str, retries| {
        let machine = Machine { retries, ..Machine::with("agent", &script(end)) };
        async move {
            let response = machine.ask(own("agent", CliInput::Stdin, CliOutput::Json), None).await;
            let tries = fs::read_to_string(machine.path("tries")).expect("it was started");
            (tries.lines().count(), response)
        }
    };
    let third = r#"[ "$(wc -l < ../tries)" -lt 3 ] && exit 1; echo '{"reply": "yes"}'"#;
    let (tries, response) = ask(third, 2).await;
    assert_eq!((tries, text(&response.outcome)), (3, "yes"));
    assert_eq!(response.usage.tokens.input, 12, "three prompts of 16 bytes");
    let (tries, response) = ask("exit 1", 0).await;
    assert_eq!((tries, fault(&response.outcome).0), (1, FailureKind::Harness));
    for (end, kind) in [
        ("echo \"error: unexpected argument '--x'\" >&2; exit 2", FailureKind::Config),
        (r#"echo '{"error": "usage limit reached"}'"#, FailureKind::RateLimited),
        (r#"echo '{"error": "usage limit reached|9999999999"}'"#, FailureKind::RateLimited),
        (r#"echo '{"error": "401 Unauthorized"}'"#, FailureKind::Auth),
    ] {
        let (tries, response) = ask(end, 2).await;
        assert_eq!((tries, fault(&response.outcome).0), (1, kind), "{end}");
    }
}

#[tokio::test]
async fn what_a_failed_call_reports_to_have_used_is_booked() {
    let claude = r#"echo '{"type":"result","is_error":true,"result":"It broke.","usage":{"input_tokens":3,"output_tokens":2}}'; exit 1"#;
    let response = Machine::with("claude", claude).ask(CliProgram::Claude, None).await;
    assert_eq!(response.usage.tokens, Tokens { input: 3, output: 2, ..Tokens::default() });
    assert!(response.outcome.is_err() && !response.usage.estimated);
    let silent = Machine::with("claude", "exit 1").ask(CliProgram::Claude, None).await;
    assert!(silent.usage.estimated && silent.usage.tokens.input == 4, "{silent:?}");
}

#[cfg(target_os = "linux")]
mod confined {
    use std::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn it_writes_where_its_level_and_grants_let_it_and_to_its_own_files() {
        let script = "cat > /dev/null; echo x > new; echo y > \"$HOME/.codex/log\"; echo z > \"$HOME/other\"; exit 0";
        for (sandbox, grants, writes) in [
            (Sandbox::ReadOnly, vec!["*".into()], false),
            (Sandbox::Write, vec!["file.read".into()], false),
            (Sandbox::Write, vec!["file".into()], false),
            (Sandbox::Write, vec!["shell".into()], false),
            (Sandbox::Write, vec!["file".into(), "shell".into()], true),
        ] {
            let machine = Machine { sandbox, grants, ..Machine::with("codex", script) };
            fs::create_dir(machine.path("home/.codex")).expect("it can be made");
            let _ = machine.outcome(CliProgram::Codex).await;
            assert_eq!(machine.path("work/new").exists(), writes, "{sandbox:?}");
            assert!(
                machine.path("home/.codex/log").exists() && !machine.path("home/other").exists()
            );
        }
    }

    #[tokio::test]
    async fn it_reaches_the_network_and_no_socket_in_a_folder() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let port = listener.local_addr().expect("it has one").port();
        // Whoever has bash can connect without further programs.
        if !std::path::Path::new("/bin/bash").exists() {
            return;
        }
        let script =
            format!("exec /bin/bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected'");
        let machine = Machine { sandbox: Sandbox::ReadOnly, ..Machine::with("agent", &script) };
        let told = machine.outcome(own("agent", CliInput::Stdin, CliOutput::Text)).await;
        assert_eq!(text(&told), "connected");
    }
}
