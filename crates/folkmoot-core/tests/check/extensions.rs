//! Topologies and conditions of a team's own, and what is wrong with them.

use expect_test::{Expect, expect};
use folkmoot_core::spec::Collaboration;

use crate::Case;

const DIAMOND: &str = "\
agents: [{ name: Plan, demo: true }, { name: left, demo: true }, { name: right, demo: true }, { name: merge, demo: true }]
extensions:
  topologies:
    diamond:
      params: { label: work }
      edges: |
        {% if agents|length < 3 %}{{ fail('a diamond needs three agents') }}{% endif %}
        parent -> {{ agents[0] }}
        {% for a in agents[1:-1] %}{{ agents[0] }} -> {{ a }}: {{ params.label }}
        {{ a }} -> {{ agents[-1] }}
        {% endfor %}{{ agents[-1] }} -> parent
";

/// Compares what is told of each of these files.
fn tell(files: impl IntoIterator<Item = String>, expected: &Expect) {
    let told: Vec<String> = files.into_iter().map(|file| Case::new(&file).told()).collect();
    expected.assert_eq(&told.join("---\n"));
}

fn edges(file: &str) -> Vec<String> {
    let Collaboration::Graph(graph) = Case::new(file).spec().collaboration else {
        panic!("it is a graph")
    };
    graph.edges.iter().map(ToString::to_string).collect()
}

#[test]
fn a_topology_of_ones_own_makes_the_edges_of_the_graph() {
    let file = format!(
        "{DIAMOND}collaboration: {{ topology: diamond, agents: [plan, left, right, merge], label: part, flow: [\"left -> right\"] }}\n"
    );
    assert_eq!(
        edges(&file),
        [
            "parent -> plan",
            "plan -> left",
            "left -> merge",
            "plan -> right",
            "right -> merge",
            "merge -> parent",
            "left -> right"
        ]
    );
}

#[test]
fn a_topology_that_fails_says_so_in_its_own_words() {
    let files = [
        "{ topology: diamond, agents: [plan, left] }",
        "{ topology: diamnd, agents: [plan], lable: x }",
        "{ topology: star, agents: [plan, left, right, merge], label: x }",
        "{ topology: diamond, agents: [plan, left, right, merge], label: 3 }",
        "{ strategy: relay, label: x }",
        "{ flow: [parent -> plan, plan -> parent], label: x }",
    ];
    tell(
        files.map(|it| format!("{DIAMOND}collaboration: {it}\n")),
        &expect![[r#"
        12:28 collaboration.topology error[bad_extension] topology "diamond": a diamond needs three agents
        ---
        12:28 collaboration.topology error[bad_config] unknown topology: "diamnd" | help: did you mean "diamond"?
        12:52 collaboration.lable error[unknown_key] unknown parameter "lable" | help: did you mean "label"?
        ---
        12:70 collaboration.label error[unknown_key] unknown parameter "label" of topology "star"
        ---
        12:73 collaboration.label error[bad_value] label must be a text, as its default is; got 3
        ---
        12:35 collaboration.label error[unknown_key] unknown parameter "label" | help: it belongs beside the topology that knows it
        ---
        12:58 collaboration.label error[unknown_key] unknown parameter "label" | help: it belongs beside the topology that knows it
    "#]],
    );
}

/// A topology of this template for two agents.
fn topology(template: &str) -> String {
    let lines: String = template.lines().flat_map(|line| ["        ", line, "\n"]).collect();
    format!(
        "agents: [{{ name: a, demo: true }}, {{ name: b, demo: true }}]\ncollaboration: {{ topology: own, agents: [a, b] }}\nextensions:\n  topologies:\n    own:\n      edges: |\n{lines}"
    )
}

#[test]
fn an_edge_that_is_none_is_told_with_the_topology_and_the_line() {
    let templates = [
        "parent -> a\na -> zed\nb -> parent",
        "parent -> a\n{{ 'a -> b' }} -> c\nb -> parent",
        "parent -> a\na -> b",
    ];
    tell(
        templates.map(topology),
        &expect![[r#"
        2:28 collaboration.topology error[unknown_agent] topology "own": Edge references unknown agent "zed" in "to" field ("a -> zed")
        ---
        2:28 collaboration.topology error[bad_extension] topology "own": invalid edge in line 2 of what it makes: "a -> b -> c"
        ---
        2:18 collaboration.topology error[no_exit] No exit edge found: graph has no termination path
    "#]],
    );
}

#[test]
fn a_mistake_in_a_template_is_told_where_it_stands() {
    let templates = [
        "parent -> a\n{% for x in agents %}{{ x + }}{% endfor %}",
        "parent -> a\n{{ agnts[0] }} -> parent",
        "parent -> a\n{{ agents[0]|shout }} -> parent",
        "parent -> a\n{{ agents[7] }} -> parent",
        "parent -> a\n{{ params.x }} -> parent",
        "parent -> a\n{{ now() }} -> parent",
    ];
    tell(
        templates.map(topology),
        &expect![[r#"
            7:9 extensions.topologies.own.edges error[bad_extension] topology "own": unexpected end of variable block
            ---
            2:28 collaboration.topology error[bad_extension] topology "own": "agnts[0]" is not there (line 2 of the template)
            ---
            2:28 collaboration.topology error[bad_extension] topology "own": filter shout is unknown (line 2 of the template)
            ---
            2:28 collaboration.topology error[bad_extension] topology "own": "agents[7]" is not there (line 2 of the template)
            ---
            2:28 collaboration.topology error[bad_extension] topology "own": "params.x" is not there (line 2 of the template)
            ---
            2:28 collaboration.topology error[bad_extension] topology "own": now is unknown (line 2 of the template)
        "#]],
    );
}

/// A review loop that ends by a condition of its own.
fn condition(own: &str, used: &str) -> String {
    format!(
        "agents: [{{ name: coder, demo: true }}, {{ name: code-tester, demo: true }}]
extensions:
  conditions:
    content: {own}
collaboration:
  topology: review-loop
  agents: [coder, code-tester]
  max_iterations: 3
  termination: {{ any_of: [ {used} ] }}
"
    )
}

#[test]
fn a_condition_of_ones_own_is_read_with_its_parameters() {
    let own = r#"{ expr: "replies['code-tester'] | length >= params.rounds and 'FAILED' not in last['code-tester']", describe: the tester is content }"#;
    let spec = Case::new(&condition(own, "{ content: { rounds: 2 } }")).spec();
    let Collaboration::Graph(graph) = spec.collaboration else { panic!("it is a graph") };
    let json = serde_json::to_string(&graph.termination).expect("it is JSON");
    expect![[r#"{"any_of":[{"one":{"test":{"own":{"name":"content","rule":{"expr":"replies['code-tester'] | length >= params.rounds and 'FAILED' not in last['code-tester']"},"params":{"rounds":2},"describe":"the tester is content"}},"written":{"content":{"rounds":2}}}}]}"#]].assert_eq(&json);
}

#[test]
fn a_mistake_in_an_expression_is_told_where_it_stands() {
    let own = [
        r#"{ expr: "last.codr == 'x'" }"#,
        r#"{ expr: "rounds >= 2" }"#,
        r#"{ expr: "last.coder | lenght > 2" }"#,
        r#"{ expr: "last.coder is nothing" }"#,
        r#"{ expr: "round >= " }"#,
        r#"{ expr: "last.coder" }"#,
        r#"{ expr: "last.coder + 1 > 2" }"#,
        r#"{ expr: "round > 1 and last.coder" }"#,
        r#"{ expr: "round > 1 and last.coder + 1 > 2" }"#,
        r#"{ expr: "usage.token > 2" }"#,
        r#"{ expr: "last.coder.upper() == 'X'" }"#,
        r#"{ expr: "now() > 3" }"#,
        r#"{ expr: "last['zed'] == 'X'" }"#,
        r#"{ expr: "round > params.most" }"#,
        r#"{ expr: "round > 2", params: [1] }"#,
        r#"{ exp: "round > 2" }"#,
        r#"{ expr: "range(99999) | list | length > 2" }"#,
    ];
    tell(
        own.map(|own| condition(own, "{ content: {} }")),
        &expect![[r#"
            4:28 extensions.conditions.content.expr error[bad_extension] condition "content": there is no agent "codr" | help: did you mean "coder"?
            ---
            4:23 extensions.conditions.content.expr error[bad_extension] condition "content": there is no variable rounds | help: did you mean "round"?
            ---
            4:36 extensions.conditions.content.expr error[bad_extension] condition "content": there is no filter lenght | help: did you mean "length"?
            ---
            4:37 extensions.conditions.content.expr error[bad_extension] condition "content": there is no test nothing | help: did you mean "string"?
            ---
            4:29 extensions.conditions.content.expr error[bad_extension] condition "content": unexpected end of input, expected expression
            ---
            9:30 collaboration.termination.any_of[0].content error[bad_extension] condition "content": it must give true or false; it gives a value of type string
            ---
            9:30 collaboration.termination.any_of[0].content error[bad_extension] condition "content": tried to use + operator on unsupported types string and number
            ---
            9:30 collaboration.termination.any_of[0].content error[bad_extension] condition "content": it must give true or false; it gives a value of type string
            ---
            9:30 collaboration.termination.any_of[0].content warning[trial_failed] condition "content" cannot be evaluated in a trial: tried to use + operator on unsupported types string and number
            ---
            4:29 extensions.conditions.content.expr error[bad_extension] condition "content": there is no usage.token | help: did you mean "tokens"?
            ---
            9:30 collaboration.termination.any_of[0].content error[bad_extension] condition "content": string has no method named upper
            ---
            4:23 extensions.conditions.content.expr error[bad_extension] condition "content": there is no variable now
            ---
            4:28 extensions.conditions.content.expr error[bad_extension] condition "content": there is no agent "zed"
            ---
            9:30 collaboration.termination.any_of[0].content error[missing_key] content needs the parameter most
            ---
            4:43 extensions.conditions.content.params error[bad_value] params must be a map of names and values
            ---
            4:14 extensions.conditions.content error[missing_key] expr is missing
            4:16 extensions.conditions.content.exp error[unknown_key] unknown key "exp" | help: did you mean "expr"?
            ---
            9:30 collaboration.termination.any_of[0].content error[bad_extension] condition "content": it takes more than 100000 steps
        "#]],
    );
}

#[test]
fn a_use_of_a_condition_is_checked() {
    let own = r#"{ expr: "round > params.most", params: { most: 2 } }"#;
    let used = [
        "{ content: { mots: 3 } }",
        "{ content: 3 }",
        "{ content: { most: many } }",
        "{ contnet: {} }",
        "{ content: {}, stuck: { repeats: 2 } }",
        "{ content: }",
    ];
    tell(
        used.map(|used| condition(own, used)),
        &expect![[r#"
        9:30 collaboration.termination.any_of[0].content error[unknown_key] unknown parameter "mots" of content | help: did you mean "most"?
        ---
        9:30 collaboration.termination.any_of[0].content error[bad_value] content must be a map of parameters; got 3
        ---
        9:30 collaboration.termination.any_of[0].content error[bad_value] most must be a number, as its default is; got "many"
        ---
        9:30 collaboration.termination.any_of[0].contnet error[unknown_key] unknown termination condition "contnet" | help: did you mean "content"?
        ---
        9:28 collaboration.termination.any_of[0] error[bad_condition] a condition names exactly one kind; found stuck, content
        ---
        9:28 collaboration.termination.any_of[0] error[bad_condition] a condition names exactly one kind; found none
    "#]],
    );
}

#[test]
fn what_can_never_be_compared_is_found_when_the_file_is_read() {
    let file = |expr: &str| {
        format!(
            "agents: [{{ name: coder, demo: true }}, {{ name: 评审员, demo: true }}]\n\
             extensions: {{ conditions: {{ it: {{ expr: \"{expr}\" }} }} }}\n\
             collaboration: {{ topology: review-loop, agents: [coder, 评审员], max_iterations: 3, termination: {{ any_of: [{{ it: {{}} }}] }} }}\n"
        )
    };
    let told: Vec<String> = [
        "last.coder > 3",
        "round > 5 and last.coder - 3 > 1",
        "replies.coder >= 2",
        "3 < verdict['评审员']",
        "round == '2'",
        "score.coder <= task",
        "last.评审员 == 'x'",
    ]
    .iter()
    .map(|expr| Case::new(&file(expr)).told())
    .collect();
    expect![[r#"
        2:42 extensions.conditions.it.expr error[bad_extension] condition "it": last.coder is a text, and 3 is a number | help: for a number write last.coder | int
        2:56 extensions.conditions.it.expr error[bad_extension] condition "it": last.coder is a text, and 3 is a number | help: for a number write last.coder | int
        2:42 extensions.conditions.it.expr error[bad_extension] condition "it": replies.coder is a list, and 2 is a number | help: for a number write replies.coder | length
        2:42 extensions.conditions.it.expr error[bad_extension] condition "it": 3 is a number, and verdict['评审员'] is a text | help: for a number write verdict['评审员'] | int
        2:42 extensions.conditions.it.expr error[bad_extension] condition "it": round is a number, and '2' is a text | help: for a number write '2' | int
        2:42 extensions.conditions.it.expr error[bad_extension] condition "it": score.coder is a number, and task is a text | help: for a number write task | int
        2:47 extensions.conditions.it.expr error[bad_extension] condition "it": unexpected character | help: write last["评审员"]
    "#]].assert_eq(&told.concat());
    for sound in [
        "last.coder | length > 3",
        "(last.coder | length) > 3",
        "replies.coder | length - 1 > 0",
        "score['评审员'] >= 7.5 and round < 3",
        "last.coder == last['评审员']",
        "not verdict.coder == 'approve' and task != ''",
        "elapsed_ms / 1000 > 60 or usage.tokens > 10",
        "last.coder ~ 3 == 'A3'",
    ] {
        assert_eq!(Case::new(&file(sound)).told(), "", "{sound}");
    }
}

#[test]
fn parameters_of_strategies_have_no_effect_in_a_graph_and_that_is_told() {
    Case::new(
        "agents: [{ name: a, demo: true }]\n\
         collaboration: { topology: pipeline, agents: [a], rounds: 3, self_votes: true, timeout: 60 }\n",
    )
    .tells(&expect![[r#"
        2:51 collaboration.rounds warning[ignored_parameter] rounds has no effect in a graph
        2:62 collaboration.self_votes warning[ignored_parameter] self_votes has no effect in a graph
    "#]]);
}
