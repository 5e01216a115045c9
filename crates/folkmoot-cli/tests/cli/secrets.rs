//! What is secret by the name of its variable stands in no output and in no record, whoever repeats it
//! (rules.md 14.6).

use serde_json::{Value, json};

use crate::bench::Bench;

const TOKEN: &str = "tok-0123456789-secret-abcdef";

/// One agent in a team of its own.
fn team(agent: &Value) -> String {
    json!({
        "sandbox": "full",
        "agents": [agent],
        "collaboration": { "strategy": "sequential" },
        "limits": { "time": "60s" },
    })
    .to_string()
}

fn shell(command: &str) -> Value {
    let call = json!({ "name": "shell", "arguments": { "command": command } });
    let replies = json!([{ "tool_calls": [call] }, "end"]);
    json!({ "name": "a", "grants": ["shell"], "script": { "replies": replies } })
}

fn program(command: &str) -> Value {
    json!({ "name": "a", "cli": { "command": ["/bin/sh", "-c", command] } })
}

/// A coding agent that says this and ends.
fn coding_agent(command: &str) -> Value {
    json!({ "name": "a", "acp": { "command": ["/bin/sh", "-c", command] } })
}

fn with(mut agent: Value, variables: &Value) -> Value {
    for (name, value) in variables.as_object().expect("it is a map") {
        agent[name] = value.clone();
    }
    agent
}

/// Runs a team, and gives all that is told and kept then, also where the variable is not set.
fn told(agent: &Value, variable: &'static str) -> String {
    let bench = Bench::with_team(&team(agent)).with(variable, TOKEN);
    let mut told = bench.call(["run", "team.yaml", "go", "--output", "stream-json"]).shown();
    told += &bench.call(["run", "team.yaml", "go"]).shown();
    let elsewhere = bench.copy().with(variable, "");
    for asked in [
        &["show", "last", "--json", "--events"][..],
        &["show", "last"],
        &["report", "last"],
        &["export", "last"],
        &["replay", "last"],
    ] {
        told += &elsewhere.call(asked.iter().copied()).must_be(0).shown();
    }
    told + &String::from_utf8_lossy(&bench.stored())
}

#[test]
fn what_an_agent_repeats_of_its_variables_is_told_and_kept_nowhere() {
    let allowed = json!({ "env_allow": ["MY_API_KEY"] });
    let renamed = json!({ "env": { "SEEN": "${MY_API_KEY}" } });
    let inherited = json!({ "inherit_env": true });
    let words = "echo it is $MY_API_KEY$SEEN";
    let last_words = "echo it is $MY_API_KEY$SEEN >&2; exit 3";
    for agent in [shell(words), program(words), program(last_words), coding_agent(last_words)] {
        for variables in [&allowed, &renamed, &inherited] {
            let agent = with(agent.clone(), variables);
            let told = told(&agent, "MY_API_KEY");
            assert!(!told.contains(TOKEN), "{agent}: {told}");
            assert!(told.contains("it is ***"), "{agent}: {told}");
        }
    }
}

#[test]
fn a_key_of_a_provider_that_a_program_repeats_is_told_and_kept_nowhere() {
    let agent = program("echo bad key $OPENAI_API_KEY >&2; exit 3");
    let agent = with(agent, &json!({ "env_allow": ["OPENAI_API_KEY"] }));
    let told = told(&agent, "OPENAI_API_KEY");
    assert!(!told.contains(TOKEN) && told.contains("bad key ***"), "{told}");
}

#[test]
fn a_value_in_the_team_file_is_secret_by_its_name() {
    let set = json!({ "env": { "FOO_TOKEN": TOKEN } });
    let told = told(&with(program("echo it is $FOO_TOKEN"), &set), "OTHER");
    assert!(!told.contains(TOKEN) && told.contains("it is ***"), "{told}");
}

#[test]
fn a_plain_word_or_a_path_is_no_secret_whatever_its_name() {
    let bench = Bench::with_team(&team(&shell("echo enabled in /usr/bin")))
        .with("SOME_AUTH", "enabled")
        .with("CACHE_KEY", "/usr/bin");
    bench.call(["run", "team.yaml", "go"]).must_be(0);
    let shown = bench.call(["show", "last", "--json"]).must_be(0).stdout;
    assert!(shown.contains("enabled in /usr/bin") && !shown.contains("***"), "{shown}");
}
