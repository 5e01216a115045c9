//! Agents use the built-in tools in a workspace (agents.md §§5, 6).

use std::fs;

use folkmoot_stub::{Completion, Reply, Stub};
use serde_json::json;

use crate::{
    bench::Bench,
    led::{PROTOCOLS, offered, wants},
};

const SCRIPTED: &str = "
sandbox: write
workdir: work
agents:
  - name: coder
    grants: [file, search]
    script:
      replies:
        - tool_calls:
            - { name: search, arguments: { pattern: TODO } }
            - { name: file.read, arguments: { path: notes.txt } }
        - tool_calls:
            - { name: file.write, arguments: { path: notes.txt, old: TODO, new: done } }
            - { name: shell, arguments: { command: rm notes.txt } }
            - { name: file.read, arguments: { path: ../team.yaml } }
        - The note is done.
collaboration: { strategy: sequential }
";

fn with_notes(bench: Bench) -> Bench {
    fs::create_dir(bench.path("work")).expect("it can be made");
    fs::write(bench.path("work/notes.txt"), "TODO: water the plants\n").expect("it can be written");
    bench
}

#[test]
fn a_script_works_with_files_and_what_is_not_granted_is_not_done() {
    let bench = with_notes(Bench::with_team(SCRIPTED));
    let called = bench.call(["run", "team.yaml", "Do what is left", "--json"]);
    let result = called.must_be(0).json();
    assert_eq!(result["final"], "The note is done.");
    let text = fs::read_to_string(bench.path("work/notes.txt")).expect("it is still there");
    assert_eq!(text, "done: water the plants\n");
    let shown = bench.call(["show", "last", "--json"]).must_be(0).json();
    let calls = shown["calls"].as_array().expect("there are some");
    let told = |name: &str| {
        let call =
            calls.iter().find(|call| call["key"].as_str().is_some_and(|it| it.ends_with(name)));
        let call = call.unwrap_or_else(|| panic!("{name} was called: {shown}"));
        call["reply"].as_str().or(call["fault"]["text"].as_str()).unwrap_or_default().to_owned()
    };
    assert_eq!(told("tool-1"), "notes.txt:1: TODO: water the plants\n");
    assert_eq!(told("tool-2"), "     1\tTODO: water the plants\n");
    assert_eq!(told("tool-3"), "wrote notes.txt: 1 replaced, -1 +1 lines");
    assert_eq!(told("tool-4"), "denied: shell");
    assert!(told("tool-5").starts_with("outside_workspace: "), "{}", told("tool-5"));
    bench.call(["replay", "last"]).must_be(0);
}

#[test]
fn what_an_agent_had_read_is_told_with_its_author_and_its_source() {
    let team = "
sandbox: write
workdir: work
agents:
  - name: 读者
    grants: [file]
    script:
      replies:
        - tool_calls: [{ name: file.read, arguments: { path: notes.txt } }]
        - The plants need water.
  - name: critic
    script: { replies: [fine] }
collaboration: { strategy: sequential }
";
    let bench = with_notes(Bench::with_team(team));
    bench.call(["run", "team.yaml", "Read the notes"]).must_be(0);
    let calls = bench.call(["show", "last", "--json"]).must_be(0).json();
    let keys = calls["calls"].as_array().expect("there are some").iter();
    let keys: Vec<&str> = keys.filter_map(|call| call["key"].as_str()).collect();
    let [first, tool, second, critic] = keys[..] else { panic!("four calls: {keys:?}") };
    let why = |key: &str| {
        let shown = bench.call(["show", "last", "--why", key, "--json"]).must_be(0).json();
        let reads = shown["why"]["reads"].as_array().expect("it is a list").iter();
        let reads: Vec<String> = reads
            .map(|read| {
                let told = ["part", "author", "from", "source", "since"];
                let told = told.iter().map(|field| read[field].as_str().unwrap_or("-"));
                told.collect::<Vec<_>>().join(" ")
            })
            .collect();
        (reads, shown["why"]["behind"].clone())
    };
    let (reads, behind) = why(second);
    assert_eq!(
        reads,
        [
            format!("prompt team file - - {first}"),
            format!("task user - - {first}"),
            format!("instruction folkmoot - - {first}"),
            format!("own 读者 {first} - {second}"),
            format!("result file.read {tool} notes.txt {second}"),
        ]
    );
    assert_eq!(behind, json!([first, tool]));
    let (reads, behind) = why(tool);
    assert_eq!(reads, [format!("wish 读者 {first} - {tool}")]);
    assert_eq!(behind, json!([first]));
    let (reads, behind) = why(critic);
    assert!(reads.contains(&format!("reply 读者 {second} - {critic}")), "{reads:?}");
    assert_eq!(behind, json!([first, tool, second]));
    let page = bench.call(["show", "last", "--why", critic]).must_be(0).stdout;
    assert!(page.contains("reply        读者"), "{page}");
    bench.call(["show", "last", "--why", "nothing"]).must_be(2);
}

#[test]
fn a_model_is_offered_what_is_granted_and_uses_it_whatever_its_protocol() {
    for (provider, [address, key], wire) in PROTOCOLS {
        let stub = Stub::start([
            wants(wire, "file_read", json!({ "path": "notes.txt" })),
            wants(wire, "file_write", json!({ "path": "notes.txt", "content": "done\n" })),
            Reply::stream(&Completion::text(["The note is done."]).over(wire)),
        ]);
        let team = format!(
            "sandbox: write\nworkdir: work\nagents: [{{ name: coder, model: {provider}/m, grants: [file.read, file.write] }}]\n\
             collaboration: {{ strategy: sequential }}\n"
        );
        let bench = Bench::with_team(&team).with(address, stub.base_url()).with(key, "sk-1");
        let bench = with_notes(bench);
        let called = bench.call(["run", "team.yaml", "Do what is left", "--json"]);
        assert_eq!(called.must_be(0).json()["final"], "The note is done.", "{provider}");
        let requests = stub.seen().requests;
        for request in &requests {
            assert_eq!(
                offered(wire, request),
                ["file_read", "file_list", "file_write"],
                "{provider}"
            );
        }
        assert!(requests[1].body.to_string().contains("water the plants"), "{provider}");
        let text = fs::read_to_string(bench.path("work/notes.txt")).expect("it is there");
        assert_eq!(text, "done\n", "{provider}");
    }
}

#[test]
fn a_read_only_team_is_neither_offered_nor_allowed_to_write() {
    let stub = Stub::start([
        wants(PROTOCOLS[0].2, "file_write", json!({ "path": "notes.txt", "content": "x" })),
        Reply::text("I could not."),
    ]);
    let team = "workdir: work\nagents: [{ name: coder, model: openai/m, grants: [file] }]\n\
                collaboration: { strategy: sequential }\n";
    let bench = with_notes(Bench::with_models(team, &stub));
    bench.call(["run", "team.yaml", "Do what is left"]).must_be(0);
    let requests = stub.seen().requests;
    assert_eq!(offered(PROTOCOLS[0].2, &requests[0]), ["file_read", "file_list"]);
    let told = requests[1].body.to_string();
    assert!(told.contains("denied: file_write"), "{told}");
}
