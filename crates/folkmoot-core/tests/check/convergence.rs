//! Findings and what edges require, as team files say them (convergence.md).

use expect_test::expect;
use folkmoot_core::{
    gate::{Gate, Requirement, Workspace},
    programs::graph::{Graph, Requires},
    spec::{Collaboration, Spec},
    team::Sandbox,
    time::Duration,
    verdict::Severity,
};

use crate::Case;

/// A team of three with this collaboration.
fn team(collaboration: &str) -> String {
    format!(
        "agents: [{{ name: a, demo: true }}, {{ name: b, demo: true }}, {{ name: c, demo: true }}]\n\
         collaboration: {collaboration}\n"
    )
}

fn graph(spec: &Spec) -> &Graph {
    match &spec.collaboration {
        Collaboration::Graph(graph) => graph,
        other => panic!("not a graph: {other:?}"),
    }
}

const LOOP: &str = "topology: review-loop, agents: [a, b], max_iterations: 3";

fn materiality(findings: &str) -> Option<Severity> {
    let team = team(&format!("{{ {LOOP}, flow: [b -> c, c -> parent], findings: {findings} }}"));
    graph(&Case::new(&team).spec()).findings
}

#[test]
fn findings_are_off_unless_asked_for_and_minor_ones_are_material_by_default() {
    assert_eq!(materiality("null"), None);
    assert_eq!(materiality("false"), None);
    assert_eq!(materiality("true"), Some(Severity::Minor));
    assert_eq!(materiality("{}"), Some(Severity::Minor));
    assert_eq!(materiality("{ materiality: critical }"), Some(Severity::Critical));
}

#[test]
fn wrong_findings_are_told() {
    for (findings, expected) in [
        (
            "yes please",
            expect![[r#"
            2:86 collaboration.findings error[bad_value] findings must be true, false or a map; got "yes please"
        "#]],
        ),
        (
            "{ materiality: severe }",
            expect![[r#"
            2:101 collaboration.findings.materiality error[bad_value] materiality must be blocking, critical, major, minor or nit; got "severe"
        "#]],
        ),
        (
            "{ material: nit }",
            expect![[r#"
            2:88 collaboration.findings.material error[unknown_key] unknown key "material" | help: did you mean "materiality"?
        "#]],
        ),
    ] {
        let team = team(&format!("{{ {LOOP}, findings: {findings} }}"));
        Case::new(&team).tells(&expected);
    }
    Case::new(&team("{ topology: star, agents: [a, b, c], findings: true }"))
        .tells(&expect![[r#"
            2:53 collaboration.findings error[bad_config] findings needs a loop: nobody reviews anything again | help: take topology: review-loop, or add an edge that leads back
        "#]]);
    Case::new(&team(
        "{ stages: [{ name: s, topology: star, agents: [a, b, c] }], findings: true }",
    ))
    .tells(&expect![[r#"
        2:76 collaboration.findings error[bad_config] findings cannot stand beside stages
    "#]]);
}

#[test]
fn what_an_edge_requires_is_part_of_the_run_and_so_is_the_text_of_a_schema() {
    let edge = "{ from: c, to: parent, requires: [{ command: make, timeout: 5 }, { command: t }, \
                { file: a/b.md, script: [fail, pass] }, { schema: out.schema.json }], tries: 0 }";
    let file = format!(
        "{}sandbox: full\nworkdir: sub\n",
        team(&format!("{{ flow: [parent -> a, a -> b, b -> c, {edge}] }}"))
    );
    let spec = Case::new(&file).spec();
    let plain = |gate| Requirement { gate, script: Vec::new() };
    let command = |command: &str, seconds| Gate::Command {
        command: command.into(),
        timeout: Duration::from_secs(seconds),
    };
    let all = vec![
        plain(command("make", 5)),
        plain(command("t", 120)),
        Requirement { gate: Gate::File { path: "a/b.md".into() }, script: vec![false, true] },
        plain(Gate::Schema {
            name: "out.schema.json".into(),
            schema: serde_json::json!({ "type": "object" }),
        }),
    ];
    assert_eq!(graph(&spec).edges[3].requires, Some(Requires { all, tries: 0 }));
    let folder = "sub".into();
    assert_eq!(spec.workspace, Some(Workspace { folder, sandbox: Sandbox::Full }));
    assert!(spec.recipe.is_some_and(|recipe| recipe.files.contains_key("out.schema.json")));
}

#[test]
fn a_run_that_looks_at_no_workspace_names_none() {
    let edge = "{ from: a, to: parent, requires: [{ command: make, script: [pass] }, { schema: out.schema.json }] }";
    let team = team(&format!(
        "{{ flow: [parent -> a, {edge}, parent -> b, b -> parent, parent -> c, c -> parent] }}"
    ));
    assert_eq!(Case::new(&team).spec().workspace, None);
}

#[test]
fn wrong_requirements_are_told_all_at_once() {
    let requires = |what: &str| format!("{{ from: c, to: parent, requires: {what} }}");
    let flow = |edge: &str| team(&format!("{{ flow: [parent -> a, a -> b, b -> c, {edge}] }}"));
    for (what, expected) in [
        (
            "[]",
            expect![[r#"
            2:87 collaboration.flow[3].requires error[bad_value] requires must not be empty
        "#]],
        ),
        (
            "[{ command: make, file: x }, {}]",
            expect![[r#"
            2:88 collaboration.flow[3].requires[0] error[bad_value] a requirement names exactly one of command, file, schema; found command, file
            2:116 collaboration.flow[3].requires[1] error[bad_value] a requirement names exactly one of command, file, schema; found none
        "#]],
        ),
        (
            "[{ command: ' ' }, { command: make, timeout: none }, { file: x, timeout: 3 }]",
            expect![[r#"
                2:99 collaboration.flow[3].requires[0].command error[bad_value] command must not be empty
                2:132 collaboration.flow[3].requires[1].timeout error[bad_value] timeout of a command must have an end; got none
                2:151 collaboration.flow[3].requires[2].timeout error[bad_value] timeout stands only beside command
            "#]],
        ),
        (
            "[{ file: ../x }, { file: /etc/passwd }, { file: 'C:\\x' }]",
            expect![[r#"
            2:96 collaboration.flow[3].requires[0].file error[bad_value] file must be a path inside the workspace; got "../x"
            2:112 collaboration.flow[3].requires[1].file error[bad_value] file must be a path inside the workspace; got "/etc/passwd"
            2:135 collaboration.flow[3].requires[2].file error[bad_value] file must be a path inside the workspace; got "C:\x"
        "#]],
        ),
        (
            "[{ schema: none.json }, { schema: broken.json }, { schema: list.json }]",
            expect![[r#"
                2:98 collaboration.flow[3].requires[0].schema error[bad_file] "none.json" cannot be read: no such file
                2:121 collaboration.flow[3].requires[1].schema error[bad_file] "broken.json" is no JSON Schema: EOF while parsing an object at line 1 column 1
                2:146 collaboration.flow[3].requires[2].schema error[bad_file] "list.json" is no JSON Schema: it is no object
            "#]],
        ),
        (
            "[{ command: make, script: [] }, { command: make, script: [ok] }]",
            expect![[r#"
            2:113 collaboration.flow[3].requires[0].script error[bad_value] script must have 1 to 1000 outcomes; it has 0
            2:145 collaboration.flow[3].requires[1].script[0] error[bad_value] script[0] must be pass or fail; got "ok"
        "#]],
        ),
        (
            "make",
            expect![[r#"
            2:87 collaboration.flow[3].requires error[bad_value] requires must be a list of requirements; got "make"
        "#]],
        ),
    ] {
        Case::new(&flow(&requires(what))).tells(&expected);
    }
    Case::new(&flow("{ from: c, to: parent, tries: 2 }")).tells(&expect![[r#"
        2:77 collaboration.flow[3].tries error[bad_edge] tries has no meaning without requires
    "#]]);
    Case::new(&flow("{ from: c, to: parent, requires: [{ command: make }], tries: 11 }"))
        .tells(&expect![[r#"
            2:115 collaboration.flow[3].tries error[bad_value] tries must be a whole number from 0 to 10; got 11
        "#]]);
}

#[test]
fn only_choices_and_exits_may_require_anything() {
    let edge = |from: &str, to: &str, more: &str| {
        format!("{{ from: {from}, to: {to}, requires: [{{ command: make }}]{more} }}")
    };
    for (edges, expected) in [
        (
            format!("{}, a -> b, b -> c, c -> parent", edge("parent", "a", "")),
            expect![[r#"
            2:48 collaboration.flow[0].requires error[bad_edge] Edge from "parent" cannot have requires
        "#]],
        ),
        (
            format!("parent -> a, {}, b -> c, c -> parent", edge("a", "b", "")),
            expect![[r#"
            2:24 collaboration.flow error[bad_edge] Edge "a" -> "b" cannot have requires: it is neither chosen nor an exit
        "#]],
        ),
        (
            format!(
                "parent -> a, a -> b, b -> c, c -> parent, {}",
                edge("b", "a", ", when: { failed: true }")
            ),
            expect![[r#"
                2:24 collaboration.flow error[bad_edge] Edge "b" -> "a" cannot have requires: it is taken by what fails
            "#]],
        ),
        (
            format!("parent -> a, a -> b, {}, c -> parent, b -> a", edge("b", "c", "")),
            expect![[r#""#]],
        ),
    ] {
        Case::new(&team(&format!("{{ flow: [{edges}], max_iterations: 2 }}"))).tells(&expected);
    }
    let led = format!(
        "prompt: lead\nscript: {{ replies: [done] }}\n{}",
        team(&format!(
            "{{ routing: lead, flow: [parent -> a, a -> b, b -> c, {}] }}",
            edge("c", "parent", "")
        ))
    );
    Case::new(&led).tells(&expect![[r#"
        4:39 collaboration.flow error[bad_edge] Edge "c" -> "parent" cannot have requires: the lead chooses, under routing: lead
    "#]]);
}

#[test]
fn bounds_count_what_is_looked_at_and_asked_again() {
    let turns_and_calls = |collaboration: &str| {
        let checked = Case::new(&team(collaboration)).check();
        let bounds = checked.bounds.expect("it is bounded");
        (bounds.turns.max, bounds.total.calls.max, bounds.total.started.max)
    };
    // A review loop of 3 rounds has 6 turns, and its reviewer may be asked again for its choice.
    let plain = format!("{{ {LOOP}, flow: [b -> c, c -> parent] }}");
    let (turns, calls, _) = turns_and_calls(&plain);
    let (with, more, _) =
        turns_and_calls(&plain.replace("max_iterations", "findings: true, max_iterations"));
    assert_eq!((with, more), (turns, calls + 3));
    let edge = "{ from: a, to: parent, requires: [{ command: m }, { file: f }, { command: n }] }";
    let alone = format!(
        "{{ flow: [parent -> a, {edge}, parent -> b, b -> parent, parent -> c, c -> parent] }}"
    );
    // Three agents run once; two tries, each with three looks, and the first three.
    assert_eq!(turns_and_calls(&alone), (3, 3 + 2 + 9, Some(3 + 2 + 9)));
}

#[test]
fn a_schema_that_nothing_could_be_held_against_is_found_when_the_file_is_read() {
    let file = "agents: [{ name: a, demo: true }]\n\
                collaboration: { flow: [parent -> a, { from: a, to: parent, requires: [{ schema: odd.json }] }] }\n";
    let told = Case::new(file).told();
    assert!(told.contains("error[bad_file] \"odd.json\" is no JSON Schema: "), "{told}");
}
