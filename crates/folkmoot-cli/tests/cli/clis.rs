//! Coding agents on the command line are members of teams (agents.md §2). Scripts stand in for them; they
//! print what the real ones do.

use std::{fs, os::unix::fs::PermissionsExt};

use crate::bench::Bench;

/// A machine on which `program` is installed.
fn with(bench: Bench, program: &str, script: &str) -> Bench {
    let folder = bench.path("bin");
    fs::create_dir_all(&folder).expect("it can be made");
    let path = folder.join(program);
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("it can be written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("it can be set");
    let path = format!("{}:/usr/bin:/bin", folder.display());
    bench.with("PATH", path)
}

const CODEX: &str = r#"cat > /dev/null
echo fixed > result.txt
echo '{"type":"item.completed","item":{"type":"agent_message","text":"It is fixed."}}'
echo '{"type":"turn.completed","usage":{"input_tokens":100,"cached_input_tokens":60,"output_tokens":9}}'"#;

const TEAM: &str = "
sandbox: full
agents:
  - { name: coder, cli: codex, grants: [file, shell] }
  - { name: reviewer, script: { replies: [LGTM] } }
collaboration: { strategy: sequential }
";

#[test]
fn a_coding_agent_works_in_the_workspace_and_its_usage_is_booked() {
    let bench = with(Bench::with_team(TEAM), "codex", CODEX);
    let result = bench.call(["run", "team.yaml", "Fix it", "--json"]).must_be(0).json();
    assert_eq!(result["rounds"][0]["response"], "It is fixed.", "{result}");
    let usage = &result["meta"]["usage"]["agents"]["coder"];
    assert_eq!((&usage["prompt_tokens"], &usage["completion_tokens"]), (&100.into(), &9.into()));
    let text = fs::read_to_string(bench.path("result.txt")).expect("it was written");
    assert_eq!(text, "fixed\n");
    let shown = bench.call(["show", "last", "--json"]).must_be(0).json();
    assert_eq!(shown["calls"][0]["model"], "codex");
    bench.call(["replay", "last"]).must_be(0);
}

#[test]
fn an_alias_names_a_coding_agent_with_its_model_and_a_chain_goes_on_from_one_that_is_missing() {
    let team = "sandbox: full\nagents: [{ name: coder, model: coders, grants: [file] }]\n\
                collaboration: { strategy: sequential }\n";
    let bench = with(Bench::with_team(team), "codex", CODEX);
    bench.write(
        "folkmoot.toml",
        "[aliases]\nsonnet = { cli = \"claude\", model = \"sonnet\" }\n\
         coder = { cli = \"codex\", model = \"gpt-5\" }\ncoders = [\"sonnet\", \"coder\"]\n",
    );
    let result = bench.call(["run", "team.yaml", "Fix it", "--json"]).must_be(0).json();
    assert_eq!(result["final"], "It is fixed.", "{result}");
    let shown = bench.call(["show", "last", "--json"]).must_be(0).json();
    let models = [&shown["calls"][0]["model"], &shown["calls"][1]["model"]];
    assert_eq!(models, ["claude/sonnet", "codex/gpt-5"]);
    let why = shown["calls"][0]["fault"]["text"].as_str().unwrap_or_default();
    assert_eq!(why, "claude/sonnet is not installed, or not in PATH");
}

#[test]
fn doctor_tells_which_coding_agents_are_there() {
    let bench = with(Bench::new(), "codex", CODEX);
    let page = bench.call(["doctor"]).must_be(0).stdout;
    assert!(page.contains("✓ agents    codex\n"), "{page}");
}
