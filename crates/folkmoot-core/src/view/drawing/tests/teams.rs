use expect_test::{Expect, expect};

use super::{super::*, spec};
use crate::spec::Spec;

/// Compares the picture of a team of scripted agents.
#[expect(clippy::needless_pass_by_value, reason = "reads better in the tests")]
fn check(names: &[&str], collaboration: &str, expected: Expect) {
    expected.assert_eq(&of_team(&spec(&team(names, collaboration))).write(Format::Mermaid));
}

/// A team of scripted agents.
fn team(names: &[&str], collaboration: &str) -> String {
    let agent = |name: &&str| format!("  - {{ name: \"{name}\", script: {{ replies: [x] }} }}\n");
    let agents: String = names.iter().map(agent).collect();
    format!("name: T\nagents:\n{agents}collaboration: {collaboration}\n")
}

#[test]
fn a_pipeline_is_a_chain() {
    check(
        &["Drafter", "审稿人"],
        "{ topology: pipeline, agents: [Drafter, 审稿人] }",
        expect![[r#"
            ---
            title: "T: graph"
            ---
            flowchart TD
              n0(["parent<br/>the task"])
              n1["Drafter"]
              n2["审稿人"]
              n3(["parent<br/>the answer"])
              n0 --> n1
              n1 --> n2
              n2 --> n3
        "#]],
    );
}

#[test]
fn a_review_loop_tells_who_chooses_what_goes_without_saying_and_how_often() {
    check(
        &["coder", "reviewer"],
        "{ topology: review-loop, agents: [coder, reviewer], max_iterations: 4, termination: { any_of: [{ stuck: { repeats: 2 } }, { result_matches: { agent: reviewer, verdict: approve } }] } }",
        expect![[r#"
            ---
            title: "T: graph"
            ---
            flowchart TD
              n0(["parent<br/>the task"])
              n1["coder"]
              n2{{"reviewer<br/>chooses where the work goes"}}
              n3(["parent<br/>the answer"])
              n0 --> n1
              n1 --> n2
              n2 -->|"loop<br/>by default<br/>at most 4 rounds"| n1
              n2 -->|"exit"| n3
              notes["ends as soon as somebody said the same 2 times<br/>ends as soon as reviewer: it approves"]:::note
              classDef note fill:none,stroke:none,text-align:left
        "#]],
    );
}

#[test]
fn a_loop_of_one_leads_to_itself() {
    check(
        &["writer"],
        "{ topology: review-loop, agents: [writer], max_iterations: 1 }",
        expect![[r#"
            ---
            title: "T: graph"
            ---
            flowchart TD
              n0(["parent<br/>the task"])
              n1{{"writer<br/>chooses where the work goes"}}
              n2(["parent<br/>the answer"])
              n0 --> n1
              n1 -->|"loop<br/>by default<br/>at most 1 round"| n1
              n1 -->|"exit"| n2
        "#]],
    );
}

#[test]
fn a_star_goes_out_and_comes_back() {
    check(
        &["a", "b", "c"],
        "{ topology: star, agents: [a, b, c] }",
        expect![[r#"
        ---
        title: "T: graph"
        ---
        flowchart TD
          n0(["parent<br/>the task"])
          n1["a"]
          n2["b"]
          n3["c"]
          n4(["parent<br/>the answer"])
          n0 --> n1
          n1 --> n4
          n0 --> n2
          n2 --> n4
          n0 --> n3
          n3 --> n4
    "#]],
    );
}

#[test]
fn joins_guards_spare_hands_and_exits_say_what_they_are() {
    check(
        &["a", "b", "c", "spare", "alone", "idle"],
        "
  flow:
    - parent -> a
    - parent -> b
    - 'a -> c: findings'
    - b -> c
    - { from: b, to: spare, when: { failed: true } }
    - spare -> c
    - { from: c, to: parent, label: good, when: { verdict: approve, score_gte: 7.5 } }
    - { from: c, to: a, when: { contains: 'more' }, default: true }
    - { from: c, to: spare, exit: true, when: { regex: '^x$' } }
    - alone -> a
  nodes: { c: { join: { quorum: 2 }, on_failure: { retry: 2, then: skip } }, a: { join: any } }
  result: a
  on_failure: skip
",
        expect![[r#"
            ---
            title: "T: graph"
            ---
            flowchart TD
              n0(["parent<br/>the task"])
              n1["a<br/>starts with the first that comes"]
              n2["b"]
              n3{{"c<br/>starts with 2 inputs<br/>chooses where the work goes<br/>if it fails: 2 more tries, then it is passed over"}}
              n4["spare"]
              n5["alone<br/>no work comes here"]
              n6(["parent<br/>the answer"])
              n7["idle<br/>no edge names it"]
              n0 --> n1
              n0 --> n2
              n1 -->|"findings"| n3
              n2 --> n3
              n2 -.->|"if it failed"| n4
              n4 --> n3
              n3 -->|"good<br/>if it approves and score ≥ 7.5"| n6
              n3 -->|"if it contains #34;more#34;<br/>by default<br/>at most 3 rounds"| n1
              n3 -->|"if it matches #47;#94;x#36;#47;<br/>ends here#59; spare is not run"| n6
              n5 --> n1
              notes["the answer is the last reply of a<br/>if a step fails: it is passed over"]:::note
              classDef note fill:none,stroke:none,text-align:left
              class n5,n7 absent
              classDef absent stroke-dasharray:4
        "#]],
    );
}

#[test]
fn stages_follow_one_another() {
    check(
        &["a", "b", "coder", "reviewer"],
        "{ stages: [{ name: research, topology: star, agents: [a, b], on_bound: continue }, { name: build, topology: review-loop, agents: [coder, reviewer] }] }",
        expect![[r#"
            ---
            title: "T: graph"
            ---
            flowchart TD
              n0(["parent<br/>the task"])
              n1("stage research")
              n2["a"]
              n3["b"]
              n4("stage build<br/>shown the works of the stage before")
              n5["coder"]
              n6{{"reviewer<br/>chooses where the work goes"}}
              n7(["parent<br/>the answer"])
              n0 --> n1
              n1 --> n2
              n2 --> n4
              n1 --> n3
              n3 --> n4
              n4 --> n5
              n5 --> n6
              n6 -->|"loop<br/>by default<br/>at most 3 rounds"| n5
              n6 -->|"exit"| n7
              notes["research: the next stage follows even if this one ends at a bound"]:::note
              classDef note fill:none,stroke:none,text-align:left
        "#]],
    );
}

#[test]
fn a_lead_stands_where_work_begins_and_ends_and_may_route() {
    let led = |collaboration: &str| {
        team(&["a", "b"], collaboration)
            .replace("name: T", "name: The Lead\nprompt: You lead.\nscript: { replies: [done] }")
    };
    let draw = |file: &str| of_team(&spec(file)).write(Format::Mermaid);
    expect![[r#"
        ---
        title: "The Lead: graph"
        ---
        flowchart TD
          n0(["parent<br/>the task"])
          n1["a"]
          n2["b"]
          n3(["parent<br/>words the answer"])
          n0 --> n1
          n1 --> n2
          n2 --> n3
          notes["parent says who is next among those that are due"]:::note
          classDef note fill:none,stroke:none,text-align:left
    "#]]
    .assert_eq(&draw(&led("{ topology: pipeline, agents: [a, b], routing: lead }")));
    let free = led("{}").replace("collaboration: {}\n", "");
    expect![[r#"
        ---
        title: "The Lead: dispatch"
        ---
        flowchart TD
          n0(["the task"])
          n1{{"parent<br/>hands out the work as it sees fit"}}
          n2["a"]
          n3["b"]
          n4(["the answer"])
          n0 --> n1
          n1 --> n2
          n2 --> n1
          n1 --> n3
          n3 --> n1
          n1 -->|"finish"| n4
    "#]]
    .assert_eq(&draw(&free));
}

#[test]
fn every_strategy_has_a_picture_of_who_hears_whom() {
    for (collaboration, expected) in [
        (
            "{ strategy: broadcast, rounds: 2 }",
            expect![[r#"
            ---
            title: "T: broadcast"
            ---
            flowchart TD
              n0(["the task"])
              n1("everybody at once<br/>nobody sees what others say now")
              n2["a"]
              n3["b"]
              n4("what everybody said")
              n5(["the answer<br/>what all said last"])
              n0 --> n1
              n1 --> n2
              n1 --> n3
              n2 --> n4
              n3 --> n4
              n4 -->|"2 rounds in all"| n1
              n4 --> n5
        "#]],
        ),
        (
            "{ strategy: sequential, order: [a, b, a] }",
            expect![[r#"
            ---
            title: "T: sequential"
            ---
            flowchart TD
              n0(["the task"])
              n1["a"]
              n2["b"]
              n3["a"]
              n4(["the answer"])
              n1 --> n2
              n2 --> n3
              n0 --> n1
              n3 --> n4
              notes["each sees all that was said before"]:::note
              classDef note fill:none,stroke:none,text-align:left
        "#]],
        ),
        (
            "{ strategy: debate, rounds: 3, judge: b }",
            expect![[r#"
            ---
            title: "T: debate"
            ---
            flowchart TD
              n0(["the task"])
              n1("everybody at once<br/>nobody sees what others say now")
              n2["a"]
              n3["b"]
              n4("what everybody said")
              n5["b<br/>concludes"]
              n6(["the answer"])
              n0 --> n1
              n1 --> n2
              n1 --> n3
              n2 --> n4
              n3 --> n4
              n4 -->|"3 rounds in all"| n1
              n4 -->|"the last round"| n5
              n5 --> n6
        "#]],
        ),
        (
            "{ strategy: supervisor, supervisor: a }",
            expect![[r#"
            ---
            title: "T: supervisor"
            ---
            flowchart TD
              n0(["the task"])
              n1{{"a<br/>plans the tasks"}}
              n2["b<br/>does its tasks"]
              n3["a<br/>reports"]
              n4(["the answer"])
              n0 --> n1
              n1 --> n2
              n2 --> n3
              n3 --> n4
              notes["a task starts as soon as all it depends on has succeeded"]:::note
              classDef note fill:none,stroke:none,text-align:left
        "#]],
        ),
        (
            "{ strategy: consensus, judge: a }",
            expect![[r#"
            ---
            title: "T: consensus"
            ---
            flowchart TD
              n0(["the task"])
              n1["a<br/>proposes"]
              n2["b<br/>proposes"]
              n3("the proposals")
              n4["a<br/>votes"]
              n5["b<br/>votes"]
              n6{{"the votes"}}
              n7["a<br/>decides"]
              n8(["the answer"])
              n0 --> n1
              n0 --> n2
              n1 --> n3
              n2 --> n3
              n3 --> n4
              n3 --> n5
              n4 --> n6
              n5 --> n6
              n6 -->|"one has more than any other"| n8
              n6 -->|"a tie, or no valid vote"| n7
              n7 --> n8
        "#]],
        ),
        (
            "{ strategy: relay, rounds: 2 }",
            expect![[r#"
            ---
            title: "T: relay"
            ---
            flowchart TD
              n0(["the task"])
              n1["a"]
              n2["b"]
              n3(["the answer"])
              n1 --> n2
              n0 --> n1
              n2 -->|"the draft goes round again<br/>at most 2 rounds"| n1
              n2 --> n3
              notes["ends as soon as a whole round leaves the draft as it was"]:::note
              classDef note fill:none,stroke:none,text-align:left
        "#]],
        ),
    ] {
        check(&["a", "b"], collaboration, expected);
    }
}

#[test]
fn graphviz_and_svg_show_the_same() {
    let drawing = of_team(&spec(&team(
        &["编码 & co", "b"],
        "{ topology: review-loop, agents: [编码 & co, b] }",
    )));
    expect![[r##"
        digraph folkmoot {
          graph [label="T: graph" labelloc=t bgcolor=transparent fontcolor="#767676" fontname="sans-serif"]
          node [fontname="sans-serif" shape=box style="filled,rounded" color="#767676" fillcolor="#e8eef7" fontcolor="#1f2328"]
          edge [fontname="sans-serif" color="#767676" fontcolor="#767676"]
          n0 [label="parent\nthe task" shape=oval style=filled fillcolor="#e6f4ea"]
          n1 [label="编码 &amp; co"]
          n2 [label="b\nchooses where the work goes" shape=hexagon style=filled fillcolor="#fff4d6"]
          n3 [label="parent\nthe answer" shape=oval style=filled fillcolor="#e6f4ea"]
          n0 -> n1
          n1 -> n2
          n2 -> n1 [label="loop\nby default\nat most 3 rounds"]
          n2 -> n3 [label="exit"]
        }
    "##]].assert_eq(&drawing.write(Format::Dot));
    expect![[r##"
        <svg xmlns="http://www.w3.org/2000/svg" width="304" height="448" viewBox="0 0 304 448" role="img" font-family="system-ui, sans-serif" font-size="13" text-anchor="middle">
        <title>T: graph</title>
        <desc>parent, the task → 编码 &amp; co; 编码 &amp; co → b, chooses where the work goes; b, chooses where the work goes → 编码 &amp; co (loop, by default, at most 3 rounds); b, chooses where the work goes → parent, the answer (exit)</desc>
        <marker id="folkmoot-arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="6" markerHeight="6" orient="auto"><path d="M0 0L8 4L0 8z" fill="#767676"/></marker>
        <text x="152" y="33" fill="#767676" font-weight="bold">T: graph</text>
        <g transform="translate(20 58)">
        <path d="M132 48C132 66 132 66 132 84" fill="none" stroke="#767676" stroke-width="1.5" marker-end="url(#folkmoot-arrow)"/>
        <path d="M116 114C116 156 88 156 88 199" fill="none" stroke="#767676" stroke-width="1.5" marker-end="url(#folkmoot-arrow)"/>
        <path d="M176 199C176 177 175 177 175 156C175 135 148 135 148 114" fill="none" stroke="#767676" stroke-width="1.5" marker-end="url(#folkmoot-arrow)"/>
        <path d="M132 247C132 260 132 260 132 274C132 288 132 288 132 302" fill="none" stroke="#767676" stroke-width="1.5" marker-end="url(#folkmoot-arrow)"/>
        <rect x="76" y="0" width="112" height="48" rx="24" fill="#e6f4ea" stroke="#767676"/>
        <text x="132" y="19" fill="#1f2328" font-weight="bold">parent</text>
        <text x="132" y="37" fill="#1f2328" font-size="12">the task</text>
        <rect x="84" y="84" width="96" height="30" rx="6" fill="#e8eef7" stroke="#767676"/>
        <text x="132" y="103" fill="#1f2328" font-weight="bold">编码 &amp; co</text>
        <path d="M0 223L12 199H252L264 223L252 247H12z" fill="#fff4d6" stroke="#767676"/>
        <text x="132" y="218" fill="#1f2328" font-weight="bold">b</text>
        <text x="132" y="236" fill="#1f2328" font-size="12">chooses where the work goes</text>
        <rect x="68" y="302" width="128" height="48" rx="24" fill="#e6f4ea" stroke="#767676"/>
        <text x="132" y="321" fill="#1f2328" font-weight="bold">parent</text>
        <text x="132" y="339" fill="#1f2328" font-size="12">the answer</text>
        <rect x="113" y="132" width="124" height="49" rx="4" fill="#f6f8fa"/>
        <text x="175" y="145" fill="#1f2328" font-size="11">loop</text>
        <text x="175" y="160" fill="#1f2328" font-size="11">by default</text>
        <text x="175" y="175" fill="#1f2328" font-size="11">at most 3 rounds</text>
        <rect x="112" y="265" width="40" height="19" rx="4" fill="#f6f8fa"/>
        <text x="132" y="278" fill="#1f2328" font-size="11">exit</text>
        </g>
        </svg>
    "##]].assert_eq(&drawing.write(Format::Svg));
}

#[test]
fn a_role_team_is_drawn_with_its_rework_and_a_simple_task_with_one_agent() {
    let names = ["explorer", "planner", "coder", "reviewer", "general"];
    let drawn = |parameters: &str, task: &str| {
        let spec = spec(&team(&names, &format!("{{ program: roles, {parameters} }}")));
        of_team(&Spec { task: task.into(), ..spec }).write(Format::Mermaid)
    };
    expect![[r#"
        ---
        title: "T: roles"
        ---
        flowchart TD
          n0(["the task"])
          n1["explorer"]
          n2["planner"]
          n3["coder"]
          n4{{"reviewer<br/>PASS or ISSUES"}}
          n5(["the answer"])
          n1 --> n2
          n0 --> n1
          n2 --> n3
          n3 --> n4
          n4 -->|"ISSUES<br/>once"| n3
          n4 --> n5
          notes["each is told the task and what those before handed on<br/>a simple task is general#39;s alone"]:::note
          classDef note fill:none,stroke:none,text-align:left
    "#]].assert_eq(&drawn("", ""));
    expect![[r#"
        ---
        title: "T: roles"
        ---
        flowchart TD
          n0(["the task"])
          n1["general"]
          n2(["the answer"])
          n0 --> n1
          n1 --> n2
          notes["the task is simple: one agent does it all"]:::note
          classDef note fill:none,stroke:none,text-align:left
    "#]]
    .assert_eq(&drawn("", "look"));
    assert!(drawn("complexity: 9", "look").contains("explorer"));
}
