//! What a team file may hold, and how mistakes in it are told.

use std::sync::Arc;

use expect_test::expect;
use folkmoot_core::{
    check::{Environment, Source},
    limits::Limits,
    money::Money,
    team::{AgentId, Sandbox, Target},
    time::Duration,
};

use crate::Case;

const TEAM: &str = "\
name: Review Team
description: Reviews code
model: fast
agents:
  - name: Coder
    description: Implements code changes
    prompt: You are a senior developer.
    model: openai/gpt
    capabilities: [rust, tests]
    grants: [file.read, file.write, shell]
    max_steps: 12
    retries: 5
    limits: { tokens: 40000, time: 30m }
    env: { LANG: C, ADDRESS: \"http://${HOST}/$${X}\" }
    env_allow: [PATH]
    inherit_env: true
  - name: Critic
    prompt_file: lead.md
  - name: 研究员
    demo: true
collaboration: { strategy: broadcast }
limits: { tokens: 200000, calls: 60, cost_usd: ~, time: none, concurrency: 64 }
sandbox: write
workdir: work
";

#[test]
fn a_sound_file_becomes_a_spec_with_everything_filled_in() {
    let checked = Case::new(TEAM).check();
    let spec = checked.spec.expect("sound");
    let [coder, critic, researcher] = &spec.team.agents[..] else { panic!("three agents") };
    assert_eq!((&*spec.team.name, &*spec.task), ("Review Team", "the task"));
    assert_eq!((coder.id.as_str(), &*coder.name), ("coder", "Coder"));
    assert_eq!(coder.grants, ["file.read", "file.write", "shell"].map(Arc::from));
    assert_eq!(coder.capabilities, ["rust", "tests"].map(Arc::from));
    assert_eq!((coder.max_steps, coder.retries), (12, 5));
    let time = Some(Duration::from_secs(1800));
    assert_eq!(coder.limits, Limits { tokens: Some(40_000), time, ..Limits::default() });
    let Target::Model(model) = &coder.target else { panic!("a model") };
    assert_eq!((model.to_string().as_str(), model.max_output_tokens), ("openai/gpt", Some(4096)));
    assert_eq!(model.context_window, Some(128_000));
    assert_eq!(model.price.as_ref().map(|price| price.output), Some(4.0));
    assert_eq!((critic.max_steps, critic.retries), (30, 2));
    assert_eq!(critic.prompt.as_deref(), Some("Lead well.\n"));
    assert!(matches!(&critic.target, Target::Model(model) if model.to_string() == "openai/mini"));
    assert_eq!((researcher.id.as_str(), researcher.retries), ("研究员", 0));
    assert_eq!(researcher.target, Target::Demo);
    let limits = Limits { tokens: Some(200_000), calls: Some(60), ..Limits::default() };
    assert_eq!(spec.limits, Limits { concurrency: Some(64), ..limits });
}

#[test]
fn what_the_machine_needs_stays_out_of_the_spec() {
    let checked = Case::new(TEAM).check();
    let workplace = checked.workplace;
    assert_eq!(workplace.sandbox, Sandbox::Write);
    assert_eq!(workplace.workdir.as_deref(), Some("work"));
    let set = [("ADDRESS", "http://a: b # ${HOME}/${X}"), ("LANG", "C")];
    assert_eq!(
        workplace.environments[&AgentId("coder".into())],
        Environment {
            set: set.map(|(name, value)| (name.into(), value.into())).into(),
            allow: vec!["PATH".into()],
            inherit: true,
        }
    );
    let shown = format!("{workplace:?}");
    assert!(shown.contains("ADDRESS") && !shown.contains("http"), "{shown}");
    let log = serde_json::to_string(&checked.spec).expect("plain data");
    assert!(!log.contains("http"), "{log}");
}

#[test]
fn texts_keep_what_was_written() {
    let spec = Case::new(
        "name: 007\nagents:\n- { name: no, description: 1.10, script: {} }\n\
         - { name: on, prompt: ~, script: { replies: [yes, 0x1F] }, model: 4.10 }\n",
    )
    .spec();
    let [no, on] = &spec.team.agents[..] else { panic!("two agents") };
    assert_eq!((&*spec.team.name, &*no.name, &*on.name), ("007", "no", "on"));
    assert_eq!((no.description.as_deref(), &on.prompt), (Some("1.10"), &None));
    let Target::Script(script) = &on.target else { panic!("a script") };
    assert_eq!(script.label.as_deref(), Some("4.10"));
    assert_eq!(
        script.reply(1, "").map(|reply| format!("{:?}", reply.says)).as_deref(),
        Some("Text(\"yes\")")
    );
    assert_eq!(
        script.reply(2, "").map(|reply| format!("{:?}", reply.says)).as_deref(),
        Some("Text(\"0x1F\")")
    );
}

#[test]
fn all_mistakes_come_at_once_with_place_path_and_remedy() {
    Case::new(
        "\
name: [x]
base_url: http://127.0.0.1:9
agents:
  - { name: a, demo: true, modle: fast, termination: {} }
  - name: b
    max_steps: 0
    retries: many
    demo: yes
    grants: [shel, file.delete, mcp.github.search, \"*\"]
  - coder
  - description: nameless
    timeout: 3
    sandbox: full
collaboration: { strategy: debate, ronds: 2, timeout: 0, replan: \"true\", convergence: exactly }
limits: { tokens: -5, calls: 1.5, cost_usd: -0.5, time: \"10\", call: 1, timeout: 5, concurrency: 0 }
sandbox: readonly
",
    )
    .tells(&expect![[r#"
        1:7 name error[bad_value] name must be a text; got a list
        2:1 base_url error[unknown_key] unknown key "base_url" | help: known here: name, description, prompt, prompt_file, model, agents, collaboration, limits, sandbox, workdir, extensions, mcp_servers, mail, agents_from, script, demo, acp, cli, a2a, grants, max_steps, retries, env, env_allow, inherit_env
        4:28 agents[0].modle error[unknown_key] unknown key "modle" | help: did you mean "model"?
        4:41 agents[0].termination error[unknown_key] unknown key "termination" | help: "termination" belongs in collaboration
        6:16 agents[1].max_steps error[bad_value] max_steps must be a whole number from 1 to 1000; got 0
        7:14 agents[1].retries error[bad_value] retries must be a whole number from 0 to 10; got "many"
        8:11 agents[1].demo error[bad_value] demo must be true or false; got "yes"
        9:14 agents[1].grants[0] error[unknown_tool] unknown tool "shel" | help: did you mean "shell"?
        9:20 agents[1].grants[1] error[unknown_tool] unknown tool "file.delete" | help: known: *, file, file.read, file.list, file.write, search, shell, fetch, mail, mail.send, mail.inbox, mail.read, mail.ack, mail.nack, board, board.show, board.post, board.get, board.set, shell.run
        9:33 agents[1].grants[2] error[unknown_tool] unknown tool "mcp.github.search" | help: no MCP server is set up; name it under mcp_servers, or in .mcp.json
        10:5 agents[2] error[bad_value] agents[2] must be a map; got "coder"
        11:5 agents[3] error[missing_key] name is missing
        12:5 agents[3].timeout error[unknown_key] unknown key "timeout" | help: "timeout" belongs in collaboration
        13:5 agents[3].sandbox error[unknown_key] unknown key "sandbox" | help: "sandbox" belongs at the top level
        14:36 collaboration.ronds error[unknown_key] unknown parameter "ronds" | help: did you mean "rounds"?
        14:55 collaboration.timeout error[bad_value] timeout must be greater than 0; got 0
        14:66 collaboration.replan error[bad_value] replan must be true or false; got "true" (a string) | help: write it without quotes
        14:87 collaboration.convergence error[bad_value] convergence must be exact or normalized; got "exactly" | help: did you mean "exact"?
        15:19 limits.tokens error[bad_value] tokens must be a whole number of at least 0; got -5
        15:30 limits.calls error[bad_value] calls must be a whole number of at least 0; got 1.5
        15:45 limits.cost_usd error[bad_value] cost_usd must be a number from 0 to 1000000; got -0.5
        15:57 limits.time error[bad_value] time must be a time up to 365d, such as 30 (seconds), 0.5 or 30m, or none; got "10" (a string) | help: write it without quotes
        15:63 limits.call error[unknown_key] unknown limit "call" | help: did you mean "calls"?
        15:72 limits.timeout error[unknown_key] unknown limit "timeout" | help: did you mean "time"? "timeout" belongs in collaboration
        15:97 limits.concurrency error[bad_value] concurrency must be a whole number from 1 to 1024; got 0
        16:10 sandbox error[bad_value] sandbox must be read-only, write or full; got "readonly" | help: did you mean "read-only"?
    "#]]);
}

#[test]
fn numbers_say_what_they_may_be() {
    for (bad, expected) in [
        ("rounds: 0", "rounds must be a whole number from 1 to 100; got 0"),
        ("rounds: 101", "rounds must be a whole number from 1 to 100; got 101"),
        ("rounds: 2.5", "rounds must be a whole number from 1 to 100; got 2.5"),
        ("rounds: 1.0e+9", "rounds must be a whole number from 1 to 100; got 1.0e+9"),
        ("rounds: '2'", "rounds must be a whole number from 1 to 100; got \"2\" (a string)"),
        ("rounds: two", "rounds must be a whole number from 1 to 100; got \"two\""),
        ("rounds: [2]", "rounds must be a whole number from 1 to 100; got a list"),
        ("rounds: true", "rounds must be a whole number from 1 to 100; got true"),
        ("timeout: -1", "timeout must be greater than 0; got -1"),
        ("timeout: 0", "timeout must be greater than 0; got 0"),
        ("timeout: 0s", "timeout must be greater than 0; got \"0s\""),
        ("timeout: .0000001", "timeout must be greater than 0; got .0000001"),
        ("max_tasks: 1001", "max_tasks must be a whole number from 1 to 1000; got 1001"),
        ("agents: 3", "agents must be a list of names; got 3"),
        ("agents: []", "agents must have 1 to 1000 names; it has 0"),
        ("judge: [a]", "judge must be a text; got a list"),
        ("self_votes: no", "self_votes must be true or false; got \"no\""),
    ] {
        let file = format!("agents: [{{ name: a, demo: true }}]\ncollaboration: {{ {bad} }}\n");
        let checked = Case::new(&file).check();
        let told = checked.diagnostics.iter().find(|told| told.code == "bad_value");
        assert_eq!(told.map(|told| &*told.message), Some(expected));
    }
}

#[test]
fn times_are_seconds_or_have_a_unit_and_none_is_a_word() {
    for (time, seconds) in [
        ("5", Some(5.0)),
        ("0.05", Some(0.05)),
        ("30m", Some(1800.0)),
        ("\"1.5 h\"", Some(5400.0)),
        ("0", Some(0.0)),
        ("none", None),
        ("~", None),
    ] {
        let file = format!("agents: [{{ name: a, demo: true }}]\nlimits: {{ time: {time} }}\n");
        let limit = Case::new(&file).spec().limits.time.map(Duration::as_secs_f64);
        assert_eq!(limit, seconds, "{time}");
    }
    for time in ["-1", "10 minutes", "'10'", "forever", "366d", "1e12", "[]", ".inf", "None"] {
        let file = format!("agents: [{{ name: a, demo: true }}]\nlimits: {{ time: {time} }}\n");
        let checked = Case::new(&file).check();
        let codes: Vec<_> = checked.diagnostics.iter().map(|told| told.code).collect();
        assert_eq!(codes, ["bad_value"], "{time}");
    }
}

#[test]
fn zero_is_a_limit_and_null_is_none() {
    let file = "agents: [{ name: a, demo: true, limits: ~ }]\nlimits: { calls: 0, cost_usd: 0, tokens: null }\n";
    let limits = Case::new(file).spec().limits;
    assert_eq!((limits.calls, limits.cost, limits.tokens), (Some(0), Some(Money(0)), None));
}

#[test]
fn what_is_not_built_yet_is_refused_not_ignored() {
    Case::new(
        "\
agents:
  - { name: a, cli: codex }
mcp_servers: {}
collaboration: { topology: star, agents: [a], max_iteration: 3 }
",
    )
    .tells(&expect![[r#"
        4:47 collaboration.max_iteration error[unknown_key] unknown parameter "max_iteration" | help: did you mean "max_iterations"?
    "#]]);
    let file =
        "agents: [{ name: a, demo: true }]\ncollaboration: { program: roundtable, board: plans }\n";
    let checked = Case::new(file).check();
    let codes: Vec<_> = checked.diagnostics.iter().map(|told| told.code).collect();
    assert_eq!(codes, ["not_supported_yet"]);
}

#[test]
fn a_lead_needs_a_model_and_work_to_hand_out() {
    Case::new("prompt: You lead.\nagents: [{ name: a, demo: true }]\n").tells(&expect![[r#"
        1:1 - error[no_model] agent "parent" has no model | help: give it or the team a model, or set default_model in the config
    "#]]);
    Case::new("prompt_file: lead.md\nagents: [{ name: a, demo: true }]\n").tells(&expect![[r#"
        1:1 - error[no_model] agent "parent" has no model | help: give it or the team a model, or set default_model in the config
    "#]]);
    let led = "prompt: You lead.\nmax_steps: 9\nagents: [{ name: a, demo: true }]\n";
    Case::new(led).flag("--strategy", "broadcast").tells(&expect![[r#"
        1:1 prompt hint[unused_lead] prompt is the lead's, and no strategy has a lead
    "#]]);
    Case::new("prompt: ' '\nagents: [{ name: a, demo: true }]\n").tells(&expect![[r#"
        1:1 prompt hint[unused_lead] prompt is the lead's, and no strategy has a lead
    "#]]);
}

#[test]
fn prompts_come_from_one_place_that_can_be_read() {
    Case::new(
        "agents:\n- { name: a, demo: true, prompt: x, prompt_file: lead.md }\n\
         - { name: b, demo: true, prompt_file: gone.md }\n",
    )
    .tells(&expect![[r#"
        2:37 agents[0].prompt_file error[bad_value] give prompt or prompt_file, not both | 2:26 the other one
        3:39 agents[1].prompt_file error[bad_file] "gone.md" cannot be read: no such file
    "#]]);
}

#[test]
fn variables_are_filled_where_they_may_stand_and_nowhere_else() {
    Case::new(
        "agents:\n- name: w\n  demo: true\n  prompt: costs $5, see ${HOME}, ${open\n  env:\n    \
         A: ${UNSET} and ${a-b}\n    B: ${UNSET:-there}\n    1C: x\n    D: [x]\n",
    )
    .tells(&expect![[r#"
        6:8 agents[0].env.A error[unset_variable] the environment variable UNSET is not set | help: set it, or give a default: ${UNSET:-…}
        6:8 agents[0].env.A error[bad_placeholder] "${a-b" names no environment variable | help: write ${NAME}, or $$ for a dollar sign
        8:5 agents[0].env.1C error[bad_value] "1C" cannot name a variable
        9:8 agents[0].env.D error[bad_value] D must be a text; got a list
    "#]]);
}

#[test]
fn a_file_that_cannot_be_read_whole_is_checked_as_far_as_it_can() {
    Case::new(
        "\
agents:
  - { name: a, modle: fast }
  - name: b
\tmodel: fast
limits: [3]
collaboration: { strategy: 'debate }
workdir: { a: b }
",
    )
    .tells(&expect![[r#"
        2:16 agents[0].modle error[unknown_key] unknown key "modle" | help: did you mean "model"?
        4:1 - error[bad_yaml] a tab cannot stand here: YAML is indented with blanks
        5:9 limits error[bad_value] limits must be a map; got a list
        6:28 - error[bad_yaml] this is not YAML: unclosed quote
        7:10 workdir error[bad_value] workdir must be a text; got a map
    "#]]);
}

#[test]
fn subagents_means_agents() {
    let spec = Case::new("subagents: [{ name: a, demo: true }]\n").spec();
    assert_eq!(spec.team.agents.len(), 1);
    Case::new("agents: [{ name: a, demo: true }]\nsubagents: []\n").tells(&expect![[r#"
        2:1 - error[duplicate_key] agents and subagents mean the same; give one | 1:1 given here first
    "#]]);
}

#[test]
fn what_is_no_map_is_no_team() {
    Case::new("- a\n").tells(&expect![[r#"
        1:1 - error[bad_value] the file must be a map; got a list
    "#]]);
    Case::new("just text\n").tells(&expect![[r#"
        1:1 - error[bad_value] the file must be a map; got "just text"
    "#]]);
    Case::new("agents: { a: { demo: true } }\n").tells(&expect![[r#"
        1:9 agents error[bad_value] agents must be a list of agents; got a map
    "#]]);
    Case::new("").tells(&expect![[r#"
        1:1 - error[no_agents] the team has no agents
    "#]]);
    Case::of(Source::File(b"a\0g\0")).tells(&expect![[r#"
        - - error[not_utf8] the file is UTF-16; save it as UTF-8
    "#]]);
}

#[test]
fn encodings_and_line_ends_make_no_difference() {
    let plain = Case::new(TEAM).spec();
    let variants =
        [TEAM.replace('\n', "\r\n"), format!("\u{feff}{TEAM}"), TEAM.trim_end().to_owned()];
    for file in variants {
        assert_eq!(Case::new(&file).spec(), plain);
    }
    let json =
        "{\"agents\": [\n\t{\"name\": \"a\", \"script\": {\"replies\": []}}\n], \"limits\": null}";
    assert_eq!(Case::new(json).spec().team.agents.len(), 1);
}

#[test]
fn hostile_files_are_told_of_briefly() {
    let unknown: Vec<_> = (0..20_000).map(|n| format!("key{n}: x\n")).collect();
    let checked = Case::new(&unknown.concat()).check();
    assert!(checked.diagnostics.len() <= 200, "{}", checked.diagnostics.len());
    let long = format!("agents: [{{ name: a, demo: true }}]\n? {}\n: 1\n", "k".repeat(100_000));
    let told = Case::new(&long).told();
    assert!(told.len() < 1000, "{} bytes", told.len());
}
