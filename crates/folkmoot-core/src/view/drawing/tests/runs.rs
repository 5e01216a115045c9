use expect_test::{Expect, expect};

use super::{super::*, spec};
use crate::testing::play;

/// Compares the picture of a finished rehearsal.
#[expect(clippy::needless_pass_by_value, reason = "reads better in the tests")]
fn check(file: &str, expected: Expect) {
    let sim = play(spec(file));
    expected.assert_eq(&of_run("r1", &sim.spec, &sim.run, false).write(Format::Mermaid));
}

#[test]
fn a_review_loop_shows_each_round_the_edge_that_was_taken_and_why() {
    check(
        "
name: T
agents:
  - { name: Coder, script: { replies: [V1, { delay_ms: 1200, reply: V2 }] } }
  - { name: Reviewer, script: { replies: ['NEXT: coder', '{\"next\": \"parent\"}'] } }
collaboration: { topology: review-loop, agents: [coder, reviewer] }
",
        expect![[r#"
            ---
            title: "T: graph, run r1"
            ---
            flowchart TD
              n0(["parent<br/>the task"])
              n1["1 · Coder<br/>round 1, at 0ms"]
              n2{{"2 · Reviewer<br/>round 1, at 0ms"}}
              n3["3 · Coder<br/>round 2, at 1.2s"]
              n4{{"4 · Reviewer<br/>round 2, at 1.2s"}}
              n5(["done: completed"])
              n0 --> n1
              n1 --> n2
              n2 -->|"loop<br/>named in its line NEXT"| n3
              n3 --> n4
              n4 -->|"exit<br/>named in its field next"| n5
              notes["task: TASK<br/>done: completed, after 1.2s"]:::note
              classDef note fill:none,stroke:none,text-align:left
        "#]],
    );
}

#[test]
fn a_cap_and_a_condition_are_told_where_they_ended_the_run() {
    let team = |more: &str| {
        format!(
            "
name: T
agents:
  - {{ name: coder, script: {{ replies: [V] }} }}
  - {{ name: reviewer, script: {{ replies: [hm] }} }}
collaboration: {{ topology: review-loop, agents: [coder, reviewer], max_iterations: 1{more} }}
"
        )
    };
    check(
        &team(""),
        expect![[r#"
        ---
        title: "T: graph, run r1"
        ---
        flowchart TD
          n0(["parent<br/>the task"])
          n1["1 · coder<br/>round 1, at 0ms"]
          n2{{"2 · reviewer<br/>round 1, at 0ms"}}
          n3(["bound reached: max iterations"])
          n0 --> n1
          n1 --> n2
          n2 -->|"at the cap of 1 round"| n3
          notes["task: TASK<br/>bound reached: max iterations, after 0ms"]:::note
          classDef note fill:none,stroke:none,text-align:left
    "#]],
    );
    check(
        &team(", termination: { any_of: [{ result_matches: { agent: coder, contains: V } }] }"),
        expect![[r#"
            ---
            title: "T: graph, run r1"
            ---
            flowchart TD
              n0(["parent<br/>the task"])
              n1["1 · coder<br/>round 1, at 0ms"]
              n2(["done: result match"])
              n0 --> n1
              n1 -->|"coder: it contains #34;V#34;"| n2
              notes["task: TASK<br/>done: result match, after 0ms"]:::note
              classDef note fill:none,stroke:none,text-align:left
        "#]],
    );
}

#[test]
fn failures_retries_spare_hands_and_skipped_joins_are_seen() {
    check(
        "
name: T
agents:
  - { name: a, script: { replies: [{ error: boom }, A] } }
  - { name: b, script: { replies: [{ error: 'no \"way\" <out>' }] } }
  - { name: c, script: { replies: [C] } }
  - { name: d, script: { replies: [{ error: gone }] } }
  - { name: e, script: { replies: [E] } }
collaboration:
  flow: [parent -> a, parent -> b, parent -> d, { from: b, to: c, when: { failed: true } }, b -> e, a -> e, c -> e, d -> e, e -> parent]
  nodes: { a: { on_failure: { retry: 1, then: stop } } }
",
        expect![[r#"
            ---
            title: "T: graph, run r1"
            ---
            flowchart TD
              n0(["parent<br/>the task"])
              n1["1 · b<br/>round 1, at 0ms<br/>failed: no #34;way#34; #60;out#62;"]
              n2["2 · d<br/>round 1, at 0ms<br/>failed: gone"]
              n3["3 · a<br/>round 1, at 0ms<br/>failed: boom"]
              n4["4 · c<br/>round 1, at 0ms"]
              n5["5 · a<br/>round 1, attempt 2, at 0ms"]
              n6(["failed: error"])
              n7["e<br/>not run: d failed"]
              n0 --> n3
              n0 --> n1
              n0 --> n2
              n1 -.->|"if it failed"| n4
              n2 -.->|"its branch ended"| n6
              n3 -->|"again"| n5
              n4 --> n7
              n5 --> n7
              notes["task: TASK<br/>failed: error, after 0ms"]:::note
              classDef note fill:none,stroke:none,text-align:left
              class n1,n2,n3 failed
              classDef failed stroke:#cf222e,stroke-width:2px
              class n7 absent
              classDef absent stroke-dasharray:4
        "#]],
    );
}

#[test]
fn who_starts_with_the_first_leaves_the_rest_behind() {
    check(
        "
name: T
agents:
  - { name: a, script: { replies: [A] } }
  - { name: b, script: { replies: [{ delay_ms: 500, reply: B }] } }
  - { name: c, script: { replies: [C] } }
collaboration:
  flow: [parent -> a, parent -> b, a -> c, b -> c, c -> parent]
  nodes: { c: { join: any } }
",
        expect![[r#"
            ---
            title: "T: graph, run r1"
            ---
            flowchart TD
              n0(["parent<br/>the task"])
              n1["1 · a<br/>round 1, at 0ms"]
              n2["2 · c<br/>round 1, at 0ms"]
              n3(["done: completed"])
              n4["b<br/>called off"]
              n0 --> n1
              n0 --> n4
              n1 --> n2
              n2 --> n3
              notes["task: TASK<br/>done: completed, after 0ms"]:::note
              classDef note fill:none,stroke:none,text-align:left
              class n4 absent
              classDef absent stroke-dasharray:4
        "#]],
    );
}

#[test]
fn stages_and_the_closing_words_of_a_lead_stand_in_their_order() {
    check(
        "
name: Lead
prompt: You lead.
script: { replies: [All done.] }
agents:
  - { name: a, script: { replies: [A] } }
  - { name: b, script: { replies: [B] } }
collaboration: { stages: [{ name: one, topology: pipeline, agents: [a] }, { name: two, topology: pipeline, agents: [b, a] }] }
",
        expect![[r#"
            ---
            title: "Lead: graph, run r1"
            ---
            flowchart TD
              n0(["parent<br/>the task"])
              n1("stage one")
              n2["1 · a<br/>round 1, at 0ms"]
              n3("stage two")
              n4["2 · b<br/>round 1, at 0ms"]
              n5["3 · a<br/>round 1, at 0ms"]
              n6(["done: completed"])
              n7["parent<br/>words the answer"]
              n0 --> n1
              n1 --> n2
              n2 --> n3
              n7 --> n6
              n3 --> n4
              n4 --> n5
              n5 --> n7
              notes["task: TASK<br/>done: completed, after 0ms"]:::note
              classDef note fill:none,stroke:none,text-align:left
        "#]],
    );
}

#[test]
fn a_lead_that_routes_is_named_as_the_one_who_chose() {
    check(
        "
name: Lead
prompt: You lead.
script:
  replies:
    - { tool_calls: [{ name: dispatch, arguments: { agent: a, prompt: go } }] }
    - { tool_calls: [{ name: dispatch, arguments: { agent: b, prompt: go } }] }
    - { tool_calls: [{ name: dispatch, arguments: { agent: a, prompt: again } }] }
    - { tool_calls: [{ name: finish, arguments: { answer: enough } }] }
agents:
  - { name: a, script: { replies: [A] } }
  - { name: b, script: { replies: ['NEXT: parent'] } }
collaboration: { topology: review-loop, agents: [a, b], routing: lead }
",
        expect![[r#"
            ---
            title: "Lead: graph, run r1"
            ---
            flowchart TD
              n0(["parent<br/>the task"])
              n1["1 · a<br/>round 1, at 0ms"]
              n2{{"2 · b<br/>round 1, at 0ms"}}
              n3["3 · a<br/>round 2, at 0ms"]
              n4(["done: completed"])
              n5["b<br/>not run: left by the lead"]
              n0 --> n1
              n1 --> n2
              n2 -->|"loop<br/>the lead chose it"| n3
              n3 --> n5
              n3 -.->|"then"| n4
              notes["task: TASK<br/>done: completed, after 0ms"]:::note
              classDef note fill:none,stroke:none,text-align:left
              class n5 absent
              classDef absent stroke-dasharray:4
        "#]],
    );
}

#[test]
fn a_run_without_a_graph_shows_who_had_heard_whom() {
    let team = |collaboration: &str| {
        format!(
            "
name: T
agents:
  - {{ name: a, script: {{ replies: [A1, A2, A3] }} }}
  - {{ name: b, script: {{ replies: [B1, {{ error: boom }}] }} }}
  - {{ name: c, script: {{ replies: ['{{\"tasks\": [{{\"id\": \"t1\", \"description\": \"x\", \"agent\": \"a\"}}, {{\"id\": \"t2\", \"description\": \"y\", \"agent\": \"b\", \"depends_on\": [\"t1\"]}}]}}', REPORT] }} }}
collaboration: {collaboration}
"
        )
    };
    for (collaboration, expected) in [
        (
            "{ strategy: debate, rounds: 2, agents: [a, b], judge: c }",
            expect![[r#"
            ---
            title: "T: debate, run r1"
            ---
            flowchart TD
              n0(["the task"])
              n1["1 · a<br/>round-1, at 0ms"]
              n2["2 · b<br/>round-1, at 0ms"]
              n3["3 · a<br/>round-2, at 0ms"]
              n4["4 · b<br/>round-2, at 0ms<br/>failed: boom"]
              n5["5 · c<br/>judge, at 0ms"]
              n6("what they said")
              n7(["done: judged"])
              n0 --> n1
              n0 --> n2
              n1 --> n6
              n2 --> n6
              n6 --> n3
              n6 --> n4
              n3 --> n5
              n5 --> n7
              notes["task: TASK<br/>done: judged, after 0ms"]:::note
              classDef note fill:none,stroke:none,text-align:left
              class n4 failed
              classDef failed stroke:#cf222e,stroke-width:2px
        "#]],
        ),
        (
            "{ strategy: sequential, order: [a, b, a] }",
            expect![[r#"
            ---
            title: "T: sequential, run r1"
            ---
            flowchart TD
              n0(["the task"])
              n1["1 · a<br/>step-1, at 0ms"]
              n2["2 · b<br/>step-2, at 0ms"]
              n3["3 · a<br/>step-3, at 0ms"]
              n4(["done: answered"])
              n0 --> n1
              n1 --> n2
              n2 --> n3
              n3 --> n4
              notes["task: TASK<br/>done: answered, after 0ms"]:::note
              classDef note fill:none,stroke:none,text-align:left
        "#]],
        ),
        (
            "{ strategy: supervisor, supervisor: c, replan: false }",
            expect![[r#"
            ---
            title: "T: supervisor, run r1"
            ---
            flowchart TD
              n0(["the task"])
              n1["1 · c<br/>plan, at 0ms"]
              n2["2 · a<br/>work#47;t1, at 0ms"]
              n3["3 · b<br/>work#47;t2, at 0ms"]
              n4["4 · c<br/>report, at 0ms"]
              n5(["done: reported"])
              n0 --> n1
              n1 -.->|"then"| n2
              n2 --> n3
              n1 --> n4
              n3 --> n4
              n4 --> n5
              notes["task: TASK<br/>done: reported, after 0ms"]:::note
              classDef note fill:none,stroke:none,text-align:left
        "#]],
        ),
    ] {
        check(&team(collaboration), expected);
    }
}

#[test]
fn free_dispatch_shows_who_was_called_after_what() {
    check(
        "
name: Lead
prompt: You lead.
script:
  replies:
    - { tool_calls: [{ name: dispatch, arguments: { agent: a, prompt: go } }, { name: dispatch, arguments: { agent: b, prompt: go } }] }
    - { tool_calls: [{ name: finish, arguments: { answer: enough } }] }
agents:
  - { name: a, script: { replies: [A] } }
  - { name: b, script: { replies: [B] } }
",
        expect![[r#"
            ---
            title: "Lead: dispatch, run r1"
            ---
            flowchart TD
              n0(["the task"])
              n1["1 · parent<br/>lead#47;model-1, at 0ms"]
              n2["2 · a<br/>a#47;1, at 0ms"]
              n3["3 · b<br/>b#47;1, at 0ms"]
              n4["4 · parent<br/>lead#47;model-2, at 0ms"]
              n5(["done: completed"])
              n0 --> n1
              n1 -.->|"then"| n2
              n1 -.->|"then"| n3
              n1 --> n4
              n2 --> n4
              n3 --> n4
              n4 --> n5
              notes["task: TASK<br/>done: completed, after 0ms"]:::note
              classDef note fill:none,stroke:none,text-align:left
        "#]],
    );
}
