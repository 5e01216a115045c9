//! MCP servers in team files and in `.mcp.json`: agents.md §§5, 6, rules.md 13.5.

use expect_test::expect;
use folkmoot_core::{check::Via, spec::TeamSource};

use crate::Case;

const TEAM: &str = "agents: [{ name: a, script: {}, grants: [mcp.files, mcp.web.search] }]\n";

fn with<'a>(file: &'a str, servers: &'a str) -> Case<'a> {
    Case { servers: Some(servers), ..Case::new(file) }
}

#[test]
fn servers_come_from_the_team_file_and_from_the_workspace_and_the_file_wins() {
    let file = format!(
        "{TEAM}mcp_servers:\n  files: {{ command: ours, args: [\"${{HOST}}\", \"$$5\"] }}\n"
    );
    let json = r#"{ "mcpServers": {
        "files": { "command": "theirs" },
        "web": { "type": "http", "url": "https://example.com/mcp", "headers": { "Authorization": "Bearer ${HOST}" }, "disabled": false },
        "other": { "command": "x", "env": { "A": "${NONE}" } }
    } }"#;
    let case = with(&file, json);
    let spec = case.spec();
    let servers: Vec<&str> = spec.team.agents[0].servers.iter().map(|it| &**it).collect();
    assert_eq!(servers, ["files", "web"]);
    let place = case.check().workplace;
    let Via::Command { command, .. } = &place.servers["files"].via else { panic!("a command") };
    assert_eq!(
        command.iter().map(|it| &**it).collect::<Vec<_>>(),
        ["ours", "a: b # ${HOME}", "$5"]
    );
    let Via::Http { headers, .. } = &place.servers["web"].via else { panic!("an address") };
    assert_eq!(&*headers["Authorization"], "Bearer a: b # ${HOME}");
    assert!(!place.servers.contains_key("other"), "its variable is not set, and nobody needs it");
    let stored = serde_json::to_string(&spec).expect("plain data") + &format!("{place:?}");
    assert!(!stored.contains("a: b") && !stored.contains("Bearer"), "{stored}");
}

#[test]
fn all_that_is_wrong_with_servers_is_told_at_once_and_where() {
    let file = "
agents:
  - { name: a, script: {}, grants: [mcp.file, mcp.files.read, mcp.wbe.get, mcp., mcp.a b, mcp.bad] }
mcp_servers:
  files: { command: x, args: [\"${NONE}\", \"${a-b}\"], env: { 1A: x, B: \"${NONE}\" } }
  web: { url: ftp://x, headers: { \"a b\": c } }
  old: { type: sse, url: http://x }
  both: { command: x, url: http://x }
  neither: {}
  \"a b\": { command: x }
  later: { command: x, timeout: 5, call_timeout: 0 }
";
    with(file, r#"{ "mcpServers": { "bad": { "command": "${UNSET}", "args": "x" } } }"#)
        .tells(&expect![[r#"
            3:37 agents[0].grants[0] error[unknown_tool] unknown tool "mcp.file" | help: did you mean "mcp.files"?
            3:63 agents[0].grants[2] error[unknown_tool] unknown tool "mcp.wbe.get" | help: did you mean "mcp.web.get"?
            3:76 agents[0].grants[3] error[unknown_tool] unknown tool "mcp." | help: known: *, file, file.read, file.list, file.write, search, shell, fetch, mail, mail.send, mail.inbox, mail.read, mail.ack, mail.nack, board, board.show, board.post, board.get, board.set, shell.run
            3:82 agents[0].grants[4] error[unknown_tool] unknown tool "mcp.a b" | help: known: *, file, file.read, file.list, file.write, search, shell, fetch, mail, mail.send, mail.inbox, mail.read, mail.ack, mail.nack, board, board.show, board.post, board.get, board.set, shell.run
            5:31 mcp_servers.files.args[0] error[unset_variable] the environment variable NONE is not set | help: set it, or give a default: ${NONE:-…}
            5:42 mcp_servers.files.args[1] error[bad_placeholder] "${a-b" names no environment variable | help: write ${NAME}, or $$ for a dollar sign
            5:60 mcp_servers.files.env.1A error[bad_value] "1A" cannot name a variable
            5:70 mcp_servers.files.env.B error[unset_variable] the environment variable NONE is not set | help: set it, or give a default: ${NONE:-…}
            6:15 mcp_servers.web.url error[bad_value] the url of MCP server web must begin with http:// or https://
            6:35 mcp_servers.web.headers.a b error[bad_value] "a b" cannot name a header
            7:16 mcp_servers.old.type error[unsupported_transport] MCP server old: the transport sse is not supported | help: servers of today speak type: http, often at an address that ends in /mcp
            8:23 mcp_servers.both.url error[bad_value] MCP server both has a command, to which url says nothing
            9:3 mcp_servers.neither error[missing_key] MCP server neither has no command | help: give a command, or a url
            10:3 mcp_servers.a b error[bad_server_name] "a b" cannot name an MCP server | help: letters, digits, - and _, at most 64, a letter or digit first
            11:24 mcp_servers.later.timeout error[unknown_key] unknown key "timeout" | help: "timeout" belongs in collaboration
            11:50 mcp_servers.later.call_timeout error[bad_value] call_timeout must be greater than 0; got 0
            - command error[unset_variable] .mcp.json:1:39: the environment variable UNSET is not set | help: set it, or give a default: ${UNSET:-…}
            - args error[bad_value] .mcp.json:1:59: args must be a list of texts; got "x"
        "#]]);
}

#[test]
fn a_broken_file_of_the_workspace_is_told_where_an_agent_needs_it() {
    with(TEAM, "{ \"mcpServers\": { \"files\": { \"command\": }").tells(&expect![[r#"
        1:42 agents[0].grants[0] error[unknown_tool] unknown tool "mcp.files" | help: no MCP server is set up; name it under mcp_servers, or in .mcp.json
        1:53 agents[0].grants[1] error[unknown_tool] unknown tool "mcp.web.search" | help: no MCP server is set up; name it under mcp_servers, or in .mcp.json
        - - error[bad_yaml] .mcp.json:1:17: this is not YAML: unclosed bracket '{'
    "#]]);
    with("agents: [{ name: a, demo: true }]\n", "{ \"mcpServers\": ").tells(&expect![[""]]);
    with(TEAM, "[]").tells(&expect![[r#"
        1:42 agents[0].grants[0] error[unknown_tool] unknown tool "mcp.files" | help: no MCP server is set up; name it under mcp_servers, or in .mcp.json
        1:53 agents[0].grants[1] error[unknown_tool] unknown tool "mcp.web.search" | help: no MCP server is set up; name it under mcp_servers, or in .mcp.json
        - - error[bad_value] .mcp.json must be a map with the key mcpServers
    "#]]);
}

#[test]
fn whoever_uses_tools_of_its_own_is_started_no_servers_for() {
    let file = "
agents:
  - { name: a, script: {}, grants: [\"*\"] }
  - { name: b, cli: claude, grants: [\"*\"] }
  - { name: c, demo: true, grants: [mcp.s] }
  - { name: d, script: {}, grants: [mcp.s.t] }
  - { name: e, script: {}, grants: [file.read] }
mcp_servers: { s: { command: x }, t: { command: y } }
";
    let spec = Case::new(file).spec();
    let servers: Vec<Vec<&str>> = spec
        .team
        .agents
        .iter()
        .map(|agent| agent.servers.iter().map(|it| &**it).collect())
        .collect();
    assert_eq!(servers, [vec!["s", "t"], vec![], vec![], vec!["s"], vec![]]);
}

#[test]
fn a_file_that_holds_values_is_not_kept_with_a_run_and_one_that_tells_where_to_find_them_is() {
    for (servers, is_kept) in [
        ("s: { command: x }", true),
        ("s: { command: x, env: { A: \"${HOST}\" } }", true),
        ("s: { url: http://x, headers: { A: \"Bearer ${HOST}\" } }", true),
        ("s: { command: x, env: { A: abc } }", false),
        ("s: { url: http://x, headers: { A: abc } }", false),
    ] {
        let file = format!(
            "agents: [{{ name: a, script: {{}}, grants: [mcp.s] }}]\nmcp_servers: {{ {servers} }}\n"
        );
        let recipe = Case::new(&file).spec().recipe.expect("there is one");
        let is_withheld = matches!(recipe.team, TeamSource::Withheld(_));
        assert_eq!(!is_withheld, is_kept, "{servers}");
    }
}

#[test]
fn roles_reach_the_servers_that_their_grants_name() {
    let file = "
agents: [{ name: explorer, script: {}, grants: [search, mcp.s] }]
model: fast
collaboration: { program: roles }
mcp_servers: { s: { command: x } }
";
    let spec = Case::new(file).spec();
    let of = |name: &str| spec.team.agent(&name.into()).servers.len();
    assert_eq!(["explorer", "planner", "coder", "general"].map(of), [1, 0, 0, 1]);
}

#[test]
fn no_server_of_a_workspace_gets_the_key_of_a_model() {
    for (via, key) in [
        (r#""url": "https://x/mcp", "headers": { "X": "${OPENAI_API_KEY}" }"#, "OPENAI_API_KEY"),
        (r#""url": "https://x/${OPENAI_API_KEY}""#, "OPENAI_API_KEY"),
        (r#""command": "x", "env": { "A": "a${MY_KEY:-b}" }"#, "MY_KEY"),
        (r#""command": "x", "args": ["${MY_KEY}"]"#, "MY_KEY"),
    ] {
        let json = format!("{{ \"mcpServers\": {{\n \"e\": {{ {via} }} }} }}");
        let checked = with("agents: [{ name: a, script: {}, grants: ['*'] }]", &json).check();
        assert!(checked.spec.is_none() && checked.workplace.servers.is_empty());
        let told: Vec<_> = checked.diagnostics.iter().map(|it| (it.code, &*it.message)).collect();
        let message = format!(
            ".mcp.json:2:2: MCP server e asks for {key}, the key of a model: no workspace gets it"
        );
        assert_eq!(told, [("withheld_key", &*message)]);
    }
}
