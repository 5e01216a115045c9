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

const CHAINED: &str = "sandbox: full\nagents: [{ name: coder, model: coders, grants: [file] }]\n\
                       collaboration: { strategy: sequential }\n";

fn aliases(chain: &str) -> String {
    format!(
        "[aliases]\nsonnet = {{ cli = \"claude\", model = \"sonnet\" }}\n\
         coder = {{ cli = \"codex\", model = \"gpt-5\" }}\ncoders = {chain}\n"
    )
}

#[test]
fn an_alias_names_a_coding_agent_with_its_model_and_a_chain_goes_on_from_one_that_fails() {
    let bench = with(Bench::with_team(CHAINED), "codex", CODEX);
    let bench = with(bench, "claude", "exit 1");
    bench.write("folkmoot.toml", &aliases(r#"["sonnet", "coder"]"#));
    let result = bench.call(["run", "team.yaml", "Fix it", "--json"]).must_be(0).json();
    assert_eq!(result["final"], "It is fixed.", "{result}");
    let shown = bench.call(["show", "last", "--json"]).must_be(0).json();
    let models = [&shown["calls"][0]["model"], &shown["calls"][1]["model"]];
    assert_eq!(models, ["claude/sonnet", "codex/gpt-5"]);
    assert_eq!(shown["calls"][0]["fault"]["kind"], "harness");
}

#[test]
fn a_program_that_is_not_installed_refuses_a_run_in_which_it_comes_first_and_is_left_out_later() {
    let missing = "claude/sonnet is not installed, or not in PATH";
    let bench = with(Bench::with_team(CHAINED), "codex", CODEX);
    bench.write("folkmoot.toml", &aliases(r#"["sonnet", "coder"]"#));
    let error = bench.call(["run", "team.yaml", "Fix it", "--json"]).must_be(2).json();
    assert_eq!(error["error"]["code"], "not_installed");
    assert_eq!(error["error"]["message"], format!("coder: {missing}"));
    assert!(bench.runs().is_empty());
    let checked = bench.call(["check", "team.yaml", "--json"]).must_be(0).json();
    assert_eq!(checked["warnings"][0]["code"], "not_installed", "{checked}");

    bench.write("folkmoot.toml", &aliases(r#"["coder", "sonnet"]"#));
    let result = bench.call(["run", "team.yaml", "Fix it", "--json"]).must_be(0).json();
    let warning = result["warnings"][0]["message"].as_str().expect("a text");
    assert!(warning.contains(missing), "{warning}");
    let models = bench.call(["models"]).must_be(0).stdout;
    assert!(models.contains("codex/gpt-5") && models.contains(missing), "{models}");
}

#[test]
fn what_a_call_used_that_was_called_off_is_estimated() {
    let team = "sandbox: full\nagents: [{ name: coder, cli: codex }]\n\
                collaboration: { strategy: sequential, timeout: 0.3 }\n";
    let bench = with(Bench::with_team(team), "codex", "exec sleep 600");
    let result = bench.call(["run", "team.yaml", "Fix it", "--json"]).must_be(1).json();
    let usage = &result["meta"]["usage"]["agents"]["coder"];
    assert!(usage["prompt_tokens"].as_u64().is_some_and(|tokens| tokens > 0), "{result}");
}

#[test]
fn doctor_tells_which_coding_agents_are_there_with_version_and_login() {
    let script = "echo 'codex-cli 0.46.0'; cat";
    let bench = with(Bench::new(), "codex", script);
    let bench = with(bench, "claude", "sleep 600");
    let bench = with(bench, "codex-acp", "read -r line; echo \"codex-acp 0.16.2$line\"");
    fs::create_dir(bench.path(".codex")).expect("it can be made");
    bench.write(".codex/auth.json", "{}");
    let page = bench.call(["doctor"]).must_be(0).stdout;
    assert!(page.contains("✓ agents    codex 0.46.0, login in ~/.codex/auth.json, at "), "{page}");
    assert!(page.contains("claude does not tell its version, no login found, at "), "{page}");
    assert!(page.contains("✓ agents    codex-acp 0.16.2, login in ~/.codex/auth.json"), "{page}");
    assert!(!page.contains("claude-code-acp"), "{page}");
}

/// An agent that speaks the Agent Client Protocol: it asks leave to edit a file, edits it if it may, and
/// says what it was told.
const ACP: &str = r#"
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
hear() { read -r line && id=$(printf %s "$line" | sed -E 's/.*"id":("[^"]*"|[0-9]+).*/\1/'); }
tell() { printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":%s}}\n' "$1"; }
hear; answer '{"protocolVersion":1,"agentInfo":{"name":"fixer","version":"1.2"}}'
hear; answer '{"sessionId":"s"}'
hear; prompt=$id
tell '{"sessionUpdate":"tool_call","toolCallId":"t1","title":"编辑 result.txt","kind":"edit"}'
echo '{"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"t1"},"options":[{"optionId":"forever","name":"Always","kind":"allow_always"},{"optionId":"yes","name":"Yes","kind":"allow_once"},{"optionId":"no","name":"No","kind":"reject_once"}]}}'
read -r line
case $line in
    *'"yes"'*) echo fixed > result.txt; said=已修复 ;;
    *) said=未获许可 ;;
esac
tell "{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"$said\"}}"
id=$prompt; answer '{"stopReason":"end_turn","usage":{"totalTokens":109,"inputTokens":100,"outputTokens":9}}'
cat > /dev/null"#;

#[test]
fn an_agent_that_asks_leave_is_answered_from_its_grants_and_that_is_on_record() {
    for (grants, said, is_allowed) in
        [("[file]", "已修复", true), ("[file.read]", "未获许可", false)]
    {
        let team = format!(
            "sandbox: full\nagents: [{{ name: coder, acp: {{ command: [fixer, acp] }}, grants: {grants} }}]\n\
             collaboration: {{ strategy: sequential }}\n"
        );
        let bench = with(Bench::with_team(&team), "fixer", ACP);
        let result = bench.call(["run", "team.yaml", "修复", "--json"]).must_be(0).json();
        assert_eq!(result["final"], said, "{result}");
        let usage = &result["meta"]["usage"]["agents"]["coder"];
        assert_eq!(
            (&usage["prompt_tokens"], &usage["completion_tokens"]),
            (&100.into(), &9.into())
        );
        assert_eq!(bench.path("result.txt").exists(), is_allowed);
        let shown = bench.call(["show", "last", "--json"]).must_be(0).json();
        let call = &shown["calls"][0];
        assert_eq!(
            (&call["model"], &call["session"]["program"]),
            (&"fixer".into(), &"fixer 1.2".into())
        );
        let decision = &call["session"]["decisions"][0];
        assert_eq!(
            (&decision["what"], &decision["tool"], &decision["allowed"]),
            (&"编辑 result.txt".into(), &"file.write".into(), &is_allowed.into())
        );
        let key = call["key"].as_str().expect("it has one");
        let page = bench.call(["show", "last", "--call", key]).must_be(0).stdout;
        let told = if is_allowed { "allowed" } else { "denied" };
        assert!(page.contains(&format!("  {told}: 编辑 result.txt (file.write)\n")), "{page}");
        bench.call(["replay", "last"]).must_be(0);
    }
}

#[test]
fn an_alias_names_an_agent_by_its_command() {
    let team = "sandbox: full\nagents: [{ name: coder, model: fixer, grants: [file] }]\n\
                collaboration: { strategy: sequential }\n";
    let bench = with(Bench::with_team(team), "fixer", ACP);
    bench.write("folkmoot.toml", "[aliases]\nfixer = { acp = [\"fixer\", \"acp\"] }\n");
    let result = bench.call(["run", "team.yaml", "Fix it", "--json"]).must_be(0).json();
    assert_eq!(result["final"], "已修复", "{result}");
    let models = bench.call(["models"]).must_be(0).stdout;
    assert!(models.contains("fixer"), "{models}");
    let agents = bench.call(["agents", "team.yaml"]).must_be(0).stdout;
    assert!(agents.contains("fixer"), "{agents}");
}

#[test]
fn an_agent_that_takes_too_long_is_ended_with_all_that_it_has_started() {
    let team = "sandbox: full\nagents: [{ name: coder, acp: { command: [sleeper] }, grants: [file] }]\n\
                collaboration: { strategy: sequential }\n";
    let sleeps = "touch begun; sleep 617 & exec sleep 617";
    let bench = with(Bench::with_team(team), "sleeper", sleeps);
    let begun = std::time::Instant::now();
    let call = ["run", "team.yaml", "x", "--timeout", "0.5", "--json"];
    let result = bench.call(call).must_be(1).json();
    assert_eq!(result["status"], "failed", "{result}");
    assert!(bench.path("begun").exists() && begun.elapsed().as_secs() < 30);
    assert_eq!(left_in(&bench), 0);
}

#[test]
fn an_agent_whose_run_is_cancelled_or_interrupted_is_told_so_and_gone_when_that_ends() {
    let waits = "touch begun; hear; printf %s \"$line\" > told; sleep 618 & exec sleep 618";
    let acts = ACP.split_once("hear; prompt=$id").expect("it is asked").0;
    let team = "sandbox: full\nagents: [{ name: coder, acp: { command: [waiter] }, grants: [file] }]\n\
                collaboration: { strategy: sequential }\n";
    for (is_cancelled, exit) in [(true, 1), (false, 130)] {
        let script = format!("{acts}hear; {waits}");
        let bench = with(Bench::with_team(team), "waiter", &script);
        let run = bench.start(["run", "team.yaml", "x", "--json"]);
        let begun = std::time::Instant::now();
        while !bench.path("begun").exists() {
            assert!(begun.elapsed().as_secs() < 60, "it begins");
            std::thread::yield_now();
        }
        if is_cancelled {
            bench.call(["cancel", "last"]).must_be(0);
        } else {
            run.signal(rustix::process::Signal::INT);
        }
        run.finish().must_be(exit);
        let told = fs::read_to_string(bench.path("told")).expect("it was told");
        assert!(told.contains("session/cancel"), "{told}");
        assert_eq!(left_in(&bench), 0);
    }
}

/// How many programs work in the bench's folder.
fn left_in(bench: &Bench) -> usize {
    let here = bench.path(".").canonicalize().expect("it is there");
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_here =
        |it: &fs::DirEntry| fs::read_link(it.path().join("cwd")).is_ok_and(|cwd| cwd == here);
    processes.filter(is_here).count()
}

#[test]
fn an_agent_for_acp_that_is_not_installed_is_told_of_like_one_for_cli() {
    let team = "agents: [{ name: coder, acp: { command: [no-such-agent, acp] } }]\n\
                collaboration: { strategy: sequential }\n";
    let bench = with(Bench::with_team(team), "other", "exit 0");
    let error = bench.call(["run", "team.yaml", "Fix it", "--json"]).must_be(2).json();
    assert_eq!(error["error"]["code"], "not_installed", "{error}");
    bench.write("folkmoot.toml", "[aliases]\ncoder = { acp = [\"no-such-agent\", \"acp\"] }\n");
    let page = bench.call(["doctor"]).must_be(0).stdout;
    assert!(page.contains("alias     coder: no-such-agent is not installed"), "{page}");
}
