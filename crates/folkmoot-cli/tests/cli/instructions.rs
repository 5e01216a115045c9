//! What a workspace asks of who works in it (agents.md §11), in a real folder.

use std::{fs, path::Path};

use serde_json::Value;

use crate::bench::Bench;

const TEAM: &str = "
workdir: work
agents:
  - { name: coder, prompt: You code., grants: [file.read], script: { replies: [done] } }
  - { name: judge, prompt: You judge., script: { replies: [fine] } }
collaboration: { strategy: sequential }
";

/// A workspace in which this is asked.
fn asking(text: &str) -> Bench {
    let bench = Bench::with_team(TEAM);
    bench.write_all(&[("work/AGENTS.md", text)]);
    bench
}

/// What the newest run tells its agents, by the record.
fn prompts(bench: &Bench) -> Vec<String> {
    let shown = bench.last();
    let first = &shown["events"][0]["spec"]["team"]["agents"];
    let agents = first.as_array().unwrap_or_else(|| panic!("a run begins with its spec: {shown}"));
    agents.iter().map(|it| it["prompt"].as_str().unwrap_or_default().to_owned()).collect()
}

fn warnings(result: &Value) -> String {
    result["warnings"].to_string()
}

#[test]
fn it_is_told_to_who_uses_tools_and_the_run_keeps_what_it_said_when_it_began() {
    let bench = asking("\u{feff}跑测试。\r\n");
    // What stands around the workspace is none of it.
    bench.write("AGENTS.md", "Of the folder around.");
    bench.call(["run", "team.yaml", "Fix it", "--json"]).must_be(0);
    let asks = "What this workspace asks of who works in it (AGENTS.md):\n跑测试。";
    let told = [format!("You code.\n\n{asks}"), "You judge.".to_owned()];
    assert_eq!(prompts(&bench), told);
    let file = bench.path("work/AGENTS.md");
    assert_eq!(fs::read_to_string(&file).expect("it is there"), "\u{feff}跑测试。\r\n");

    bench.write("work/AGENTS.md", "Something else.");
    bench.call(["replay", "last"]).must_be(0);
    bench.call(["verify", "last"]).must_be(0);
    bench.call(["retry", "last", "--from", "step-1/coder"]).must_be(0);
    assert_eq!(prompts(&bench), told, "another attempt is of the same run");
    fs::remove_file(file).expect("it can be removed");
    bench.call(["run", "team.yaml", "Fix it"]).must_be(0);
    assert_eq!(prompts(&bench), ["You code.", "You judge."]);
}

#[test]
fn a_run_that_goes_on_is_told_what_it_was_told_before() {
    let stays = TEAM.replace("replies: [done]", "replies: [{ reply: done, delay_ms: 600000 }]");
    let bench = asking("Run the tests.");
    bench.write("team.yaml", &stays);
    let mut run = bench.start(["run", "team.yaml", "Fix it", "--output", "stream-json"]);
    run.must_write("\"asked\"");
    run.kill();
    bench.write("work/AGENTS.md", "Something else.");
    bench.call(["cancel", "last"]).must_be(0);
    assert!(prompts(&bench)[0].ends_with("Run the tests."), "{:?}", prompts(&bench));
    bench.call(["replay", "last"]).must_be(0);
}

#[test]
fn so_much_of_it_is_told_and_what_is_too_large_is_warned_of() {
    let bench = asking(&format!("{}{}", "x".repeat(40_000), "the end"));
    bench.call(["run", "team.yaml", "Fix it"]).must_be(0);
    let told = prompts(&bench)[0].chars().count();
    assert!((32_000..33_200).contains(&told), "{told}");

    let bench = asking(&"x".repeat((1 << 20) + 1));
    let result = bench.call(["run", "team.yaml", "Fix it", "--json"]).must_be(0).json();
    assert!(warnings(&result).contains("larger than 1 MiB"), "{result}");
    assert_eq!(prompts(&bench)[0], "You code.");
}

#[cfg(unix)]
#[test]
fn a_link_that_leads_out_of_the_workspace_is_not_followed() {
    let bench = asking("Run the tests.");
    let link = |to: &Path| {
        let file = bench.path("work/AGENTS.md");
        fs::remove_file(&file).expect("it is there");
        std::os::unix::fs::symlink(to, file).expect("it can be made");
    };
    bench.write("secret", "the key");
    link(&bench.path("secret"));
    let result = bench.call(["run", "team.yaml", "Fix it", "--json"]).must_be(0).json();
    assert!(warnings(&result).contains("leads out of the workspace"), "{result}");
    assert_eq!(prompts(&bench)[0], "You code.");

    bench.write("work/CLAUDE.md", "Run the tests.");
    link(Path::new("CLAUDE.md"));
    bench.call(["run", "team.yaml", "Fix it"]).must_be(0);
    assert!(prompts(&bench)[0].ends_with("Run the tests."));
}

#[test]
fn a_team_that_is_a_member_is_told_what_the_workspace_of_the_run_asks_whatever_its_file_says() {
    let outer = "
workdir: work
agents: [{ name: inner, team: inner.yaml, grants: [file.read] }]
collaboration: { strategy: sequential }
";
    let bench = asking("Run the tests.");
    bench.write("team.yaml", outer);
    bench.write("inner.yaml", &TEAM.replace("workdir: work", "workdir: other"));
    bench.write_all(&[("other/AGENTS.md", "Something else.")]);
    let checked = bench.call(["check", "team.yaml", "--json"]).must_be(0).json();
    let warning = &checked["warnings"][0];
    assert_eq!((&warning["code"], &warning["line"]), (&"ignored_parameter".into(), &2.into()));
    assert_eq!(warning["file"], "inner.yaml", "{checked}");
    bench.call(["run", "team.yaml", "Fix it"]).must_be(0);
    let shown = bench.last()["events"][0]["spec"].to_string();
    assert!(shown.contains("Run the tests.") && !shown.contains("Something else."), "{shown}");
}

#[test]
fn a_workspace_that_is_not_there_is_refused_before_anything_is_asked() {
    let bench = asking("Run the tests.");
    let roles = ["implementer", "reviewer", "reviser"];
    let cast = roles.map(|role| format!("  - {{ name: {role}, script: {{ replies: [LGTM] }} }}\n"));
    bench.write("cast.yaml", &format!("agents:\n{}", cast.concat()));
    bench.write("file", "");
    let run: &[&str] = &["run", "team.yaml", "Fix it"];
    let collaborate: &[&str] = &["collaborate", "review", "Fix it", "--team", "cast.yaml"];
    for line in [run, collaborate] {
        let at = |folder| line.iter().copied().chain(["--workdir", folder, "--json"]);
        for folder in ["gone", "file"] {
            let refused = bench.call(at(folder)).must_be(2).json();
            assert_eq!(refused["error"]["code"], "invalid_workdir", "{refused}");
        }
        assert!(bench.runs().is_empty());
        bench.call(at("work")).must_be(0);
        fs::remove_file(bench.path("runs.db")).expect("it is there");
    }
}

#[test]
fn it_is_told_if_programs_of_agents_may_change_where_runs_are_kept() {
    for (sandbox, grants, is_told) in
        [("full", "[shell]", true), ("full", "[file]", false), ("read-only", "[shell]", false)]
    {
        let agent = format!("{{ name: a, script: {{ replies: [done] }}, grants: {grants} }}");
        let bench = Bench::with_team(&format!(
            "sandbox: {sandbox}\nagents: [{agent}]\ncollaboration: {{ strategy: sequential }}\n"
        ));
        let checked = bench.call(["check", "team.yaml", "--json"]).must_be(0).json();
        let result = bench.call(["run", "team.yaml", "Go", "--json"]).must_be(0).json();
        for told in [&checked, &result] {
            assert_eq!(told["warnings"].to_string().contains("exposed_store"), is_told, "{told}");
        }
    }
}
