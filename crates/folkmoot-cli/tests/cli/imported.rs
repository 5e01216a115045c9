//! Agent files of other programs (agents.md §11).

use serde_json::{Value, json};

use crate::bench::Bench;

const TEAM: &str = "
name: imported
agents:
  - { file: .claude/agents/reviewer.md, demo: true }
collaboration: { strategy: sequential }
";

fn checked(team: &str, files: &[(&str, &str)]) -> Value {
    let bench = Bench::with_team(team);
    bench.write_all(files);
    let report = bench.call(["check", "team.yaml", "--json"]);
    report.json()
}

fn codes(found: &Value) -> Vec<&str> {
    let found = found.as_array().expect("it is a list");
    found.iter().map(|it| it["code"].as_str().expect("it has a code")).collect()
}

fn reviewer(front: &str) -> Value {
    let text = format!("---\n{front}---\nReview it.\n");
    checked(TEAM, &[(".claude/agents/reviewer.md", &text)])
}

#[test]
fn an_agent_file_becomes_an_agent_and_what_stands_beside_it_wins() {
    let front = "name: reviewer\ndescription: Reviews\ntools: Read, Glob, Grep, Bash, WebFetch, Edit\ndisallowedTools: [Bash]\nmaxTurns: 7\nmodel: inherit\n";
    let report = reviewer(front);
    let agent = &report["agents"][0];
    assert_eq!(report["valid"], true, "{report}");
    assert_eq!(agent["name"], "reviewer");
    assert_eq!(agent["description"], "Reviews");
    assert_eq!(agent["max_steps"], 7);
    assert_eq!(agent["grants"], json!(["file.read", "file.list", "search", "fetch", "file.write"]));
    assert_eq!(agent["model"], "demo");
    let beside = TEAM.replace("demo: true", "demo: true, name: Rita, grants: [search]");
    let text = format!("---\n{front}---\nReview it.\n");
    let report = checked(&beside, &[(".claude/agents/reviewer.md", &text)]);
    assert_eq!(report["agents"][0]["name"], "Rita");
    assert_eq!(report["agents"][0]["grants"], json!(["search"]));
}

#[test]
fn a_prompt_is_kept_byte_for_byte_behind_the_second_mark() {
    let bench = Bench::with_team(TEAM);
    let body = "\r\n# Rules\r\n---\r\nname: no  \r\n";
    let text = format!("\u{feff}---\r\nname: r\r\ntools: Read\r\n---\r\n{body}");
    bench.write_all(&[(".claude/agents/reviewer.md", &text)]);
    bench.call(["run", "team.yaml", "task", "--json"]).must_be(0);
    let system = bench.last()["calls"][0]["request"]["messages"][0]["content"].clone();
    let system = system.as_str().expect("it has a system message");
    assert!(system.starts_with(body.trim_end()), "{system:?}");
}

#[test]
fn what_is_not_known_here_is_a_warning_and_grants_nothing() {
    let report = reviewer(
        "name: r\ntools: Read, Bash(git:*), Tsk, mcp__files__read\ncolour: red\nmodel: opus-9\nmcpServers: [files]\n",
    );
    assert_eq!(report["valid"], true, "{report}");
    assert_eq!(report["agents"][0]["grants"], json!(["file.read"]));
    let mut warned = codes(&report["warnings"]);
    warned.sort_unstable();
    assert_eq!(
        warned,
        [
            "unknown_field",
            "unknown_model",
            "unknown_server",
            "unknown_tool",
            "unknown_tool",
            "unknown_tool"
        ]
    );
    assert_eq!(report["warnings"][0]["file"], ".claude/agents/reviewer.md");
}

#[test]
fn a_file_without_tools_may_use_all_and_one_that_forbids_some_all_but_those() {
    let report = reviewer("name: r\n");
    assert_eq!(report["agents"][0]["grants"], json!(["*"]));
    assert_eq!(codes(&report["warnings"]), ["all_tools"]);
    let report = reviewer("name: r\ndisallowedTools: Bash, Write\n");
    let grants = report["agents"][0]["grants"].to_string();
    assert!(!grants.contains("shell") && !grants.contains("write") && !grants.contains('*'));
    assert!(grants.contains("file.read") && grants.contains("search"), "{grants}");
}

#[test]
fn broken_front_matter_is_an_error_where_it_stands() {
    let report = reviewer("name: r\ntools: [Read\n");
    assert_eq!(report["valid"], false);
    let error = &report["errors"][0];
    assert_eq!(error["file"], ".claude/agents/reviewer.md");
    assert!(error["line"].as_u64().is_some_and(|line| (3..=4).contains(&line)), "{error}");
}

#[test]
fn a_folder_is_imported_and_files_of_the_project_win_over_the_user_s() {
    let team =
        "agents_from: .claude/agents\nmodel: demo/demo\ncollaboration: { strategy: sequential }\n";
    let file = |name: &str| format!("---\nname: {name}\ntools: Read\n---\nDo.\n");
    let bench = Bench::new();
    bench.write_all(&[
        (".claude/agents/a.md", &file("user-a")),
        (".claude/agents/b.md", &file("user-b")),
        ("project/.claude/agents/a.md", &file("project-a")),
        ("project/team.yaml", team),
    ]);
    let report = bench.call(["check", "project/team.yaml", "--json"]).json();
    let agents = report["agents"].as_array().expect("a list").iter();
    let names: Vec<&Value> = agents.map(|agent| &agent["name"]).collect();
    assert_eq!(names, ["project-a", "user-b"], "{report}");
}

#[test]
fn an_agent_file_of_codex_is_imported_likewise() {
    let team = TEAM.replace(".claude/agents/reviewer.md", ".codex/agents/r.toml");
    let text = "name = \"reviewer\"\ndescription = \"Reviews\"\ndeveloper_instructions = \"\"\"\nReview.\n\"\"\"\nsandbox_mode = \"read-only\"\nmodel_reasoning_effort = \"high\"\n";
    let report = checked(&team, &[(".codex/agents/r.toml", text)]);
    assert_eq!(report["valid"], true, "{report}");
    assert_eq!(report["agents"][0]["name"], "reviewer");
    assert_eq!(report["agents"][0]["grants"], json!(["file.read", "search"]));
    assert_eq!(codes(&report["warnings"]), ["unknown_field"]);
    let report = checked(&team, &[(".codex/agents/r.toml", "name = \n")]);
    assert_eq!(report["errors"][0]["file"], ".codex/agents/r.toml");
    assert_eq!(report["errors"][0]["line"], 1);
}

#[test]
fn a_file_that_narrows_its_agent_in_a_wrong_way_is_an_error_and_never_grants_all() {
    for (text, code) in [
        ("---\nname: r\ntools: Read\nAct.\n", "bad_front_matter"),
        ("\n---\nname: r\ntools: Read\n---\nAct.\n", "bad_front_matter"),
        ("---\nname: r\nTools: Read\n---\nAct.\n", "unknown_field"),
        ("---\nname: r\ntool: Read\n---\nAct.\n", "unknown_field"),
        ("---\nname: r\nallowed-tools: Read\n---\nAct.\n", "unknown_field"),
        ("---\nname: r\ndisallowed_tools: Bash\n---\nAct.\n", "unknown_field"),
        ("---\nname: r\nmax_turns: 3\n---\nAct.\n", "unknown_field"),
        ("---\nname: r\ntools:\n---\nAct.\n", "bad_value"),
        ("---\nname: r\ndisallowedTools:\n---\nAct.\n", "bad_value"),
        ("---\nname: r\ndisallowedTools: bash\n---\nAct.\n", "unknown_tool"),
    ] {
        let report = checked(TEAM, &[(".claude/agents/reviewer.md", text)]);
        assert_eq!(codes(&report["errors"]), [code], "{text}: {report}");
        assert_eq!(report["errors"][0]["file"], ".claude/agents/reviewer.md");
        assert!(report["errors"][0]["help"].is_string(), "{report}");
    }
    let report = reviewer("name: r\nhooks: {}\ntools: Read\ndisallowedTools: [Task, WebSearch]\n");
    assert_eq!(report["valid"], true, "{report}");
    let team = TEAM.replace(".claude/agents/reviewer.md", ".codex/agents/r.toml");
    for text in ["name = \"r\"\nsandbox-mode = \"read-only\"\n", "name = \"r\"\nsandbox_mode = 3\n"]
    {
        let report = checked(&team, &[(".codex/agents/r.toml", text)]);
        assert_eq!(report["valid"], false, "{text}");
    }
}

#[cfg(unix)]
#[test]
fn a_link_in_a_folder_of_agents_that_leads_out_is_refused_and_one_that_is_named_is_followed() {
    use std::os::unix::fs::symlink;

    let team =
        "agents_from: .claude/agents\nmodel: demo/demo\ncollaboration: { strategy: sequential }\n";
    let bench = Bench::new();
    bench.write_all(&[
        ("outside.md", "---\nname: o\ntools: Read\n---\nDo.\n"),
        ("project/shared/a.md", "---\nname: a\ntools: Read\n---\nDo.\n"),
        ("project/.claude/agents/b.md", "---\nname: b\ntools: Read\n---\nDo.\n"),
        ("project/team.yaml", team),
    ]);
    let link =
        |to: &str, at: &str| symlink(bench.path(to), bench.path(at)).expect("it can be made");
    link("project/shared/a.md", "project/.claude/agents/a.md");
    bench.call(["check", "project/team.yaml"]).must_be(0);
    link("outside.md", "project/.claude/agents/c.md");
    let report = bench.call(["check", "project/team.yaml", "--json"]).must_be(2).json();
    let error = &report["errors"][0];
    assert_eq!((&error["code"], &error["line"]), (&json!("bad_file"), &json!(1)), "{report}");
    let message = error["message"].as_str().unwrap_or_default();
    assert!(message.contains("c.md is a link that leads out of the workspace"), "{message}");
    let named = "agents: [{ file: .claude/agents/c.md, demo: true }]\ncollaboration: { strategy: sequential }\n";
    bench.write("project/team.yaml", named);
    bench.call(["check", "project/team.yaml"]).must_be(0);
}
