//! `graph`: teams and runs as pictures.

use std::fs;

use expect_test::expect;

use crate::{bench::Bench, snapshot::check};

const LOOP: &str = "
name: 评审组
agents:
  - { name: Coder, script: { replies: [V1, V2] } }
  - { name: Reviewer, script: { replies: ['NEXT: coder', 'NEXT: parent'] } }
collaboration: { topology: review-loop, agents: [coder, reviewer] }
";

#[test]
fn a_team_is_drawn_without_asking_anybody() {
    let bench = Bench::with_team(LOOP);
    check(
        &bench,
        bench.call(["graph", "team.yaml"]),
        expect![[r#"
        exit 0
        > ---
        > title: "评审组: graph"
        > ---
        > flowchart TD
        >   n0(["parent<br/>the task"])
        >   n1["Coder"]
        >   n2{{"Reviewer<br/>chooses where the work goes"}}
        >   n3(["parent<br/>the answer"])
        >   n0 --> n1
        >   n1 --> n2
        >   n2 -->|"loop<br/>by default<br/>at most 3 rounds"| n1
        >   n2 -->|"exit"| n3
        ! hint[default_cap]: Cycle detected in graph but max_iterations is not set, defaulting to 3
        !  --> team.yaml:6:28
        !   |
        ! 6 | collaboration: { topology: review-loop, agents: [coder, reviewer] }
        !   |                            ^^^^^^^^^^^
        ! 
        ! 1 hint
    "#]],
    );
    assert!(bench.runs().is_empty());
}

#[test]
fn a_run_is_drawn_with_the_edge_that_each_step_took_and_why() {
    let bench = Bench::with_team(LOOP);
    bench.call(["run", "team.yaml", "写一个解析器"]).must_be(0);
    check(
        &bench,
        bench.call(["graph", "last"]),
        expect![[r#"
        exit 0
        > ---
        > title: "评审组: graph, run r00000000001"
        > ---
        > flowchart TD
        >   n0(["parent<br/>the task"])
        >   n1["1 · Coder<br/>round 1, at 0ms"]
        >   n2{{"2 · Reviewer<br/>round 1, at 0ms"}}
        >   n3["3 · Coder<br/>round 2, at 0ms"]
        >   n4{{"4 · Reviewer<br/>round 2, at 0ms"}}
        >   n5(["done: completed"])
        >   n0 --> n1
        >   n1 --> n2
        >   n2 -->|"loop<br/>named in its line NEXT"| n3
        >   n3 --> n4
        >   n4 -->|"exit<br/>named in its line NEXT"| n5
        >   notes["task: 写一个解析器<br/>done: completed, after 0ms"]:::note
        >   classDef note fill:none,stroke:none,text-align:left
    "#]],
    );
    bench.call(["export", "last", "-o", "kept"]).must_be(0);
    let of = |what: &str| bench.call(["graph", what, "--format", "dot"]).must_be(0).stdout;
    assert_eq!(of("last"), of("kept"), "an exported file is told by what it holds");
    fs::copy(bench.path("kept"), bench.path("run.jsonl")).expect("files can be copied");
    assert_eq!(of("last"), of("./run.jsonl"));
    assert!(of("last").starts_with("digraph folkmoot {\n"), "{}", of("last"));
}

#[test]
fn the_name_of_the_file_says_what_it_holds_and_nothing_is_written_over() {
    let bench = Bench::with_team(LOOP);
    let read = |name: &str| fs::read_to_string(bench.path(name)).expect("it was written");
    for (name, beginning) in [
        ("team.svg", "<svg xmlns=\"http://www.w3.org/2000/svg\""),
        ("team.gv", "digraph"),
        ("team.mmd", "---\ntitle: "),
        ("team.txt", "---\ntitle: "),
    ] {
        bench.call(["graph", "team.yaml", "-o", name]).must_be(0);
        assert!(read(name).starts_with(beginning), "{name}: {}", read(name));
    }
    bench.call(["graph", "team.yaml", "-o", "odd.svg", "--format", "dot"]).must_be(0);
    assert!(read("odd.svg").starts_with("digraph"), "what is asked for wins");
    bench.write("team.svg", "mine");
    let refused = bench.call(["graph", "team.yaml", "-o", "team.svg", "--json"]).must_be(2).json();
    assert_eq!(refused["error"]["code"], "file_exists");
    assert_eq!(read("team.svg"), "mine");
    check(
        &bench,
        bench.call(["graph", "team.yaml", "-o", "team.svg", "--force"]),
        expect![[r#"
        exit 0
        ! hint[default_cap]: Cycle detected in graph but max_iterations is not set, defaulting to 3
        !  --> team.yaml:6:28
        !   |
        ! 6 | collaboration: { topology: review-loop, agents: [coder, reviewer] }
        !   |                            ^^^^^^^^^^^
        ! 
        ! 1 hint
        ! drawn in team.svg
    "#]],
    );
    assert!(read("team.svg").ends_with("</svg>\n"));
}

#[test]
fn programs_get_the_drawing_or_where_it_is_as_json() {
    let bench = Bench::with_team(LOOP);
    let drawn = bench.call(["graph", "team.yaml", "--format", "svg", "--json"]).must_be(0).json();
    assert_eq!((&drawn["team"], &drawn["format"]), (&"评审组".into(), &"svg".into()));
    assert!(drawn["drawing"].as_str().is_some_and(|it| it.starts_with("<svg ")), "{drawn}");
    let told = bench.call(["graph", "team.yaml", "-o", "t.dot", "--json"]).must_be(0).json();
    assert_eq!(told.to_string(), r#"{"team":"评审组","format":"dot","file":"t.dot"}"#);
}

#[test]
fn what_cannot_be_drawn_says_why() {
    let bench = Bench::with_team(
        "agents: [{ name: a, script: {} }]\ncollaboration: { topology: ring, agents: [a] }",
    );
    check(
        &bench,
        bench.call(["graph", "team.yaml"]),
        expect![[r#"
        exit 2
        ! error[bad_config]: unknown topology: "ring"
        !  --> team.yaml:2:28
        !   |
        ! 2 | collaboration: { topology: ring, agents: [a] }
        !   |                            ^^^^
        ! 
        ! 1 error
    "#]],
    );
    check(
        &bench,
        bench.call(["graph", "nothing"]),
        expect![[r#"
        exit 2
        ! error: there is no run nothing
        ! help: `folkmoot runs` lists them
    "#]],
    );
    check(
        &bench,
        bench.call(["graph", "nothing.yaml"]),
        expect![[r#"
        exit 2
        ! error: cannot read the team file nothing.yaml: No such file or directory (os error 2)
    "#]],
    );
    bench.write("broken.jsonl", "x\n");
    bench.call(["graph", "broken.jsonl"]).must_be(8);
}

#[test]
fn a_key_of_this_machine_is_in_no_picture() {
    let bench = Bench::with_team("name: it is sk-0123456789\nagents: [{ name: a, script: { replies: [x] } }]\ncollaboration: { topology: star, agents: [a] }")
        .with("OPENAI_API_KEY", "sk-0123456789");
    bench.call(["graph", "team.yaml", "-o", "team.svg"]).must_be(0);
    let file = fs::read_to_string(bench.path("team.svg")).expect("it was written");
    assert!(file.contains("it is ***") && !file.contains("sk-0123456789"), "{file}");
    assert!(!bench.call(["graph", "team.yaml"]).must_be(0).stdout.contains("sk-0123456789"));
}

#[test]
fn every_example_and_two_hundred_agents_can_be_drawn() {
    let bench = Bench::new();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    for file in fs::read_dir(folder).expect("it is there") {
        let file = file.expect("it is there").path();
        if file.extension().is_none_or(|it| it != "yaml") {
            continue;
        }
        let file = file.to_str().expect("it is text");
        let svg = bench.call(["graph", file, "--format", "svg"]).must_be(0).stdout;
        assert!(svg.ends_with("</svg>\n"), "{file}");
    }
    let names: Vec<String> = (1..=200).map(|n| format!("a{n}")).collect();
    let agent = |name: &String| format!("  - {{ name: {name}, script: {{}} }}\n");
    let exit = |name: &String| format!("    - {name} -> parent\n");
    let back = |row: &[String]| format!("    - {} -> {}\n", row[6], row[0]);
    let agents: String = names.iter().map(agent).collect();
    let exits: String = names.iter().map(exit).collect();
    let back: String = names.windows(7).map(back).collect();
    let names = names.join(", ");
    bench.write("team.yaml", &format!("agents:\n{agents}collaboration:\n  topology: pipeline\n  agents: [{names}]\n  flow:\n{exits}{back}"));
    let drawn = bench.call(["graph", "team.yaml", "--format", "svg"]).must_be(0).stdout;
    assert_eq!(drawn.matches("marker-end").count(), 201 + 199 + 194);
    let told = bench.call(["graph", "team.yaml"]).must_be(0).stderr;
    assert!(told.contains("Mermaid draws 500 links"), "{told}");
}

#[test]
fn a_file_whose_name_promises_something_else_is_not_written() {
    let bench = Bench::with_team("agents: [{ name: a, demo: true }]\n");
    let refused = bench.call(["graph", "team.yaml", "-o", "out.pdf"]).must_be(2).stderr;
    assert!(refused.contains("a file that ends in .pdf cannot be drawn"), "{refused}");
    assert!(refused.contains("--format"), "{refused}");
    assert!(!bench.path("out.pdf").exists());
    bench.call(["graph", "team.yaml", "-o", "out.pdf", "--format", "dot"]).must_be(0);
    bench.call(["graph", "team.yaml", "-o", "picture"]).must_be(0);
}
