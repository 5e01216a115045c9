//! Strategies: what is refused, what is filled in, what is warned of, what it takes.

use expect_test::expect;
use folkmoot_core::{
    bounds::Range,
    programs::{Adaptive, Clocks, Convergence},
    spec::Collaboration,
    team::AgentId,
    time::Duration,
};

use crate::Case;

/// A team of offline agents of these names with these parameters.
fn team(names: &str, parameters: &str) -> String {
    let agents = names.split_whitespace().map(|name| format!("- {{ name: {name}, demo: true }}\n"));
    format!("agents:\n{}collaboration: {{ {parameters} }}\n", agents.collect::<String>())
}

fn work(names: &str, parameters: &str) -> Collaboration {
    Case::new(&team(names, parameters)).spec().collaboration
}

fn ids(ids: &[AgentId]) -> String {
    ids.iter().map(AgentId::as_str).collect::<Vec<_>>().join(" ")
}

/// The codes and messages of all errors.
fn refusals(names: &str, parameters: &str) -> String {
    let checked = Case::new(&team(names, parameters)).check();
    let refusals = checked.diagnostics.iter();
    refusals.fold(String::new(), |all, told| format!("{all}  {}: {}\n", told.code, told.message))
}

#[test]
fn refusals_have_the_words_of_the_page() {
    let all = [
        ("a b", "strategy: quorum"),
        ("a b", "strategy: debate, judge: ghost"),
        ("a", "strategy: debate"),
        ("a", "strategy: consensus"),
        ("a b", "strategy: debate, agents: [b]"),
        ("a b", "strategy: relay, order: [a]"),
        ("a b", "strategy: relay, order: [a, a]"),
        ("a", "strategy: relay"),
        ("boss", "strategy: supervisor"),
        ("boss w", "strategy: supervisor, workers: []"),
        ("boss w", "strategy: supervisor, workers: [boss, w]"),
        ("boss w", "strategy: supervisor, workers: [w, w]"),
        ("boss w", "strategy: supervisor, workers: [ghost], supervisor: ghoul"),
        ("a b", "strategy: broadcast, agents: [a, A, a]"),
        ("a b", "strategy: sequential, order: [a, ghost, b]"),
        ("a b", "strategy: broadcast, ronds: 1, rounds: 0, timeout: -1"),
    ];
    let mut told = String::new();
    for (names, parameters) in all {
        told.extend([names, " | ", parameters, "\n", &refusals(names, parameters)]);
    }
    expect![[r#"
        a b | strategy: quorum
          unknown_strategy: unknown strategy "quorum"; known: broadcast, sequential, debate, supervisor, consensus, relay, auto
        a b | strategy: debate, judge: ghost
          unknown_agent: debate: unknown agent "ghost" in judge; agents: a, b
        a | strategy: debate
          too_few_agents: debate needs at least 2 agents; it has 1
        a | strategy: consensus
          too_few_agents: consensus needs at least 2 agents; it has 1
        a b | strategy: debate, agents: [b]
          too_few_agents: debate needs at least 2 agents; it has 1
        a b | strategy: relay, order: [a]
          too_few_agents: relay needs at least 2 different agents in order; it has 1
        a b | strategy: relay, order: [a, a]
          too_few_agents: relay needs at least 2 different agents in order; it has 1
        a | strategy: relay
          too_few_agents: relay needs at least 2 different agents in order; it has 1
        boss | strategy: supervisor
          too_few_workers: supervisor needs at least 1 worker besides "boss"
        boss w | strategy: supervisor, workers: []
          too_few_workers: supervisor needs at least 1 worker besides "boss"
        boss w | strategy: supervisor, workers: [boss, w]
          supervisor_is_worker: "boss" is the supervisor and cannot be in workers
        boss w | strategy: supervisor, workers: [w, w]
          listed_twice: "w" is listed twice in workers
        boss w | strategy: supervisor, workers: [ghost], supervisor: ghoul
          unknown_agent: supervisor: unknown agent "ghost" in workers; agents: boss, w
          unknown_agent: supervisor: unknown agent "ghoul" in supervisor; agents: boss, w
        a b | strategy: broadcast, agents: [a, A, a]
          unknown_agent: broadcast: unknown agent "A" in agents; agents: a, b
          listed_twice: "a" is listed twice in agents
        a b | strategy: sequential, order: [a, ghost, b]
          unknown_agent: sequential: unknown agent "ghost" in order; agents: a, b
        a b | strategy: broadcast, ronds: 1, rounds: 0, timeout: -1
          unknown_key: unknown parameter "ronds"
          bad_value: rounds must be a whole number from 1 to 100; got 0
          bad_value: timeout must be greater than 0; got -1
    "#]].assert_eq(&told);
}

#[test]
fn names_that_break_lines_break_no_message() {
    let file = "agents: [{ name: \"a\\nb\", demo: true }, { name: c, demo: true }]\n\
                collaboration: { strategy: debate, judge: ghost }\n";
    Case::new(file).tells(&expect![[r#"
        1:18 agents[0].name error[bad_name] Agent name "a\u{a}b" holds U+000A; letters, digits, blanks and signs of any script are permitted, but no slash, line break, control or invisible character
        2:43 collaboration.judge error[unknown_agent] debate: unknown agent "ghost" in judge; agents: a\u{a}b, c
    "#]]);
}

#[test]
fn all_violations_are_told_together_each_where_it_stands() {
    Case::new(&team(
        "a b",
        "strategy: Debate, ronds: 3, judge: ghost, agents: [a, c, a], rounds: 0",
    ))
    .tells(&expect![[r#"
        4:36 collaboration.ronds error[unknown_key] unknown parameter "ronds" | help: did you mean "rounds"?
        4:53 collaboration.judge error[unknown_agent] debate: unknown agent "ghost" in judge; agents: a, b
        4:72 collaboration.agents[1] error[unknown_agent] debate: unknown agent "c" in agents; agents: a, b
        4:75 collaboration.agents[2] error[listed_twice] "a" is listed twice in agents | 4:69 listed here first
        4:87 collaboration.rounds error[bad_value] rounds must be a whole number from 1 to 100; got 0
    "#]]);
    let mut case = Case::new(
        "agents: []\ncollaboration: { strategy: quorm, rounds: x }\nlimits: { call: 1 }\n",
    );
    case.task = Some(" \n");
    case.tells(&expect![[r#"
        2:16 collaboration error[no_agents] the team has no agents
        2:28 collaboration.strategy error[unknown_strategy] unknown strategy "quorm"; known: broadcast, sequential, debate, supervisor, consensus, relay, auto
        2:43 collaboration.rounds error[bad_value] rounds must be a whole number from 1 to 100; got "x"
        3:11 limits.call error[unknown_key] unknown limit "call" | help: did you mean "calls"?
        - - error[empty_prompt] the task is empty
    "#]]);
}

#[test]
fn an_empty_task_is_refused_only_where_one_is_needed() {
    let file = team("a", "");
    let mut case = Case::new(&file);
    for (task, code) in [
        (Some(""), Some("empty_prompt")),
        (Some("\t\n"), Some("empty_prompt")),
        (Some("x"), None),
        (None, None),
    ] {
        case.task = task;
        assert_eq!(case.check().diagnostics.first().map(|told| told.code), code, "{task:?}");
    }
}

#[test]
fn names_of_strategies_have_any_case() {
    for name in ["broadcast", "Broadcast", "BROADCAST", "' broadcast '"] {
        let work = work("a b", &format!("strategy: {name}"));
        assert!(matches!(work, Collaboration::Broadcast(_)), "{name}");
    }
}

#[test]
fn participants_come_in_registration_order_by_name_or_id() {
    let file = "agents: [{ name: Data Team, demo: true }, { name: b, demo: true }, { name: é, demo: true }]\n\
                collaboration: { strategy: broadcast, agents: [\"e\\u0301\", data-team] }\n";
    let Collaboration::Broadcast(broadcast) = Case::new(file).spec().collaboration else {
        panic!("a broadcast")
    };
    assert_eq!((ids(&broadcast.agents).as_str(), broadcast.rounds), ("data-team é", 1));
}

#[test]
fn every_strategy_has_its_defaults() {
    let Collaboration::Debate(debate) = work("a b", "strategy: debate") else { panic!("a debate") };
    assert_eq!(
        (ids(&debate.agents).as_str(), debate.rounds, debate.judge.as_str()),
        ("a b", 3, "a")
    );
    assert_eq!(
        debate.clocks,
        Clocks { timeout: Some(Duration::from_secs(600)), call_timeout: None }
    );
    let Collaboration::Relay(relay) = work("a b", "strategy: relay, order: []") else {
        panic!("a relay")
    };
    assert_eq!(
        (ids(&relay.order).as_str(), relay.rounds, relay.convergence),
        ("a b", 2, Convergence::Exact)
    );
    let Collaboration::Sequential(chain) = work("a b c", "strategy: sequential, agents: [c, a]")
    else {
        panic!("a chain")
    };
    assert_eq!(ids(&chain.order), "a c", "participants are the default of order");
    let Collaboration::Consensus(vote) = work("a judge", "strategy: consensus") else {
        panic!("a vote")
    };
    assert!(vote.self_votes);
    assert_eq!(vote.judge.as_str(), "judge");
    let Collaboration::Supervisor(plan) = work("a b supervisor", "strategy: supervisor") else {
        panic!("a plan")
    };
    assert_eq!((plan.supervisor.as_str(), ids(&plan.workers).as_str()), ("supervisor", "a b"));
    assert_eq!((plan.replan, plan.strict, plan.max_tasks), (true, false, 32));
}

#[test]
fn parameters_win_over_defaults() {
    let Collaboration::Debate(debate) = work(
        "a judge c",
        "strategy: debate, judge: c, agents: [a, judge], rounds: 1, timeout: none, call_timeout: 5",
    ) else {
        panic!("a debate")
    };
    assert_eq!((ids(&debate.agents).as_str(), debate.judge.as_str()), ("a judge", "c"));
    assert_eq!(debate.clocks, Clocks { timeout: None, call_timeout: Some(Duration::from_secs(5)) });
    let Collaboration::Relay(relay) =
        work("a b c", "strategy: relay, order: [c, a, c], convergence: normalized")
    else {
        panic!("a relay")
    };
    assert_eq!((ids(&relay.order).as_str(), relay.convergence), ("c a c", Convergence::Normalized));
    let Collaboration::Supervisor(plan) = work(
        "a boss b c",
        "strategy: supervisor, supervisor: boss, workers: [c, a], replan: false, strict: true, max_tasks: 4",
    ) else {
        panic!("a plan")
    };
    assert_eq!((plan.supervisor.as_str(), ids(&plan.workers).as_str()), ("boss", "a c"));
    assert_eq!((plan.replan, plan.strict, plan.max_tasks), (false, true, 4));
    let Collaboration::Consensus(vote) = work("a b", "strategy: consensus, self_votes: false")
    else {
        panic!("a vote")
    };
    assert!(!vote.self_votes);
}

#[test]
fn the_default_judge_may_stand_outside_the_debate() {
    let Collaboration::Debate(debate) = work("a b judge", "strategy: debate, agents: [a, b]")
    else {
        panic!("a debate")
    };
    assert_eq!((ids(&debate.agents).as_str(), debate.judge.as_str()), ("a b", "judge"));
    let Collaboration::Debate(debate) = work("a b c", "strategy: debate, agents: [c, b]") else {
        panic!("a debate")
    };
    assert_eq!(debate.judge.as_str(), "b", "else the first participant judges");
}

#[test]
fn auto_chooses_by_names_alone() {
    let chosen = |names: &str, parameters: &str| {
        let spec = Case::new(&team(names, parameters)).spec();
        let auto = spec.auto.expect("a choice");
        (auto.rule.to_string(), auto.chose.to_string(), !auto.because.is_empty())
    };
    let seed = |strategy: &str| ("seed".to_owned(), strategy.to_owned(), true);
    assert_eq!(chosen("a", ""), seed("broadcast"));
    assert_eq!(chosen("supervisor", "strategy: auto"), seed("broadcast"));
    assert_eq!(chosen("a supervisor", "strategy: AUTO"), seed("supervisor"));
    assert_eq!(chosen("a Supervisor", "auto: seed"), seed("debate"));
    assert_eq!(chosen("a b", "rounds: 1"), seed("debate"));
    assert_eq!(chosen("a b supervisor", "agents: [a, b]"), seed("debate"));
    assert_eq!(chosen("a b", "agents: [b]"), seed("broadcast"));
    let adaptive = |strategy: &str| ("adaptive".to_owned(), strategy.to_owned(), true);
    assert_eq!(chosen("a", "auto: adaptive"), adaptive("broadcast"));
    assert_eq!(chosen("a supervisor", "auto: adaptive"), adaptive("supervisor"));
    assert_eq!(chosen("a boss", "auto: adaptive, supervisor: boss"), adaptive("supervisor"));
    assert_eq!(chosen("a b", "auto: adaptive"), adaptive("debate"));
    let no_collaboration = Case::new("agents: [{ name: a, demo: true }]\n").spec();
    assert!(no_collaboration.auto.is_some());
    assert_eq!(Case::new(&team("a", "strategy: broadcast")).spec().auto, None);
}

#[test]
fn adaptive_keeps_both_ways_open() {
    let Collaboration::Adaptive(Adaptive::Supervise(plan)) =
        work("a b", "auto: adaptive, supervisor: b, max_tasks: 3")
    else {
        panic!("a plan")
    };
    assert_eq!((plan.supervisor.as_str(), plan.max_tasks), ("b", 3));
    let Collaboration::Adaptive(Adaptive::Debate(debate)) =
        work("a b", "auto: adaptive, rounds: 2")
    else {
        panic!("a debate")
    };
    assert_eq!(debate.rounds, 2);
    assert!(matches!(work("a", "auto: adaptive"), Collaboration::Broadcast(_)));
}

#[test]
fn parameters_of_other_strategies_are_checked_for_type_and_ignored_with_a_warning() {
    Case::new(&team(
        "a b",
        "strategy: broadcast, judge: nobody, order: [x], auto: adaptive, max_tasks: 3",
    ))
    .tells(&expect![[r#"
        4:39 collaboration.judge warning[ignored_parameter] judge has no effect in broadcast
        4:54 collaboration.order warning[ignored_parameter] order has no effect in broadcast
        4:66 collaboration.auto warning[ignored_parameter] auto has no effect in broadcast
        4:82 collaboration.max_tasks warning[ignored_parameter] max_tasks has no effect in broadcast
    "#]]);
    Case::new(&team("a b", "strategy: broadcast, max_tasks: none")).tells(&expect![[r#"
        4:50 collaboration.max_tasks error[bad_value] max_tasks must be a whole number from 1 to 1000; got "none"
    "#]]);
    Case::new(&team("a b", "strategy: auto, order: [x], judge: b")).tells(&expect![[r#"
        4:34 collaboration.order warning[ignored_parameter] order has no effect in debate
    "#]]);
    Case::new(&team("a b", "strategy: broadcast, judge: ~")).tells(&expect![""]);
}

#[test]
fn what_is_legal_but_hardly_meant_is_warned_of() {
    let model =
        |name: &str, model: &str| format!("- {{ name: {name}, script: {{}}, model: {model} }}\n");
    let same: String = ["a", "b", "Judge"].map(|name| model(name, "m")).concat();
    let debate = "collaboration: { strategy: debate, rounds: 5 }\nlimits: { calls: 14 }\n";
    Case::new(&format!("agents:\n{same}{debate}")).tells(&expect![[r#"
        4:11 agents[2].name warning[name_case] "Judge" is not found as the judge: the name counts case included | help: name it "judge", or say judge: "Judge"
        5:28 collaboration.strategy warning[one_model] All participants share model "m"
        5:28 collaboration.strategy warning[judge_takes_part] The judge "a" is a participant
        5:44 collaboration.rounds warning[many_rounds] a debate gains little after 4 rounds; it has 5
        6:18 limits.calls warning[budget_below_minimum] calls is 14, but the work takes at least 15
    "#]]);
    let mixed = [model("a", "m"), model("b", "n"), model("judge", "o")].concat();
    let debate = "collaboration: { strategy: debate, rounds: 4 }\nlimits: { calls: 12 }\n";
    Case::new(&format!("agents:\n{mixed}{debate}")).tells(&expect![""]);
    let outside = [model("a", "m"), model("b", "n"), model("c", "m")].concat();
    let vote = "collaboration: { strategy: consensus, judge: c, agents: [a, b] }\n";
    Case::new(&format!("agents:\n{outside}{vote}")).tells(&expect![""]);
    let many = (0..16).map(|n| format!("a{n} ")).collect::<Vec<_>>().concat();
    Case::new(&team(&many, "strategy: broadcast")).tells(&expect![[r#"
        18:28 collaboration.strategy warning[many_agents] a broadcast gains little above 15 agents; it has 16
    "#]]);
    Case::new(&team("SUPERVISOR w1 w2", "strategy: supervisor")).tells(&expect![[r#"
        2:11 agents[0].name warning[name_case] "SUPERVISOR" is not found as the supervisor: the name counts case included | help: name it "supervisor", or say supervisor: "SUPERVISOR"
        5:28 collaboration.strategy warning[no_capabilities] no worker has capabilities or a description: tasks go to who has fewest
    "#]]);
    let able = "agents:\n- { name: supervisor, demo: true }\n- { name: w1, demo: true, description: x }\n- { name: w2, demo: true }\ncollaboration: { strategy: supervisor }\n";
    Case::new(able).tells(&expect![""]);
}

#[test]
fn bounds_follow_the_table_of_the_page() {
    for (names, parameters, min, max, path) in [
        ("a b c", "strategy: broadcast, rounds: 4", 12, 12, 4),
        ("a b", "strategy: sequential, order: [a, b, a]", 3, 3, 3),
        ("a b", "strategy: debate", 6, 7, 4),
        ("supervisor w", "strategy: supervisor, max_tasks: 10", 3, 13, 13),
        (
            "supervisor w",
            "strategy: supervisor, max_tasks: 10, strict: true, replan: false",
            1,
            12,
            12,
        ),
        ("a b c", "strategy: consensus", 3, 7, 3),
        ("a b", "strategy: relay, order: [a, b, a], rounds: 5", 3, 15, 15),
        ("a", "", 1, 1, 1),
        ("a b", "auto: adaptive", 2, 8, 5),
        ("a supervisor", "auto: adaptive", 2, 35, 35),
        ("a supervisor", "auto: adaptive, strict: true, replan: false", 1, 34, 34),
        ("a", "auto: adaptive, rounds: 2", 2, 2, 2),
    ] {
        let bounds = Case::new(&team(names, parameters)).check().bounds.expect("sound");
        let calls = Range { min, max };
        let told = (bounds.total.calls, bounds.turns, bounds.tokens_max, bounds.critical_path);
        assert_eq!(told, (calls, calls, Some(160 * max), path), "{parameters}");
    }
}

#[test]
fn tokens_are_bounded_only_where_every_reply_is_known() {
    let tokens = |agents: &str| {
        let file =
            format!("agents: [{agents}]\ncollaboration: {{ strategy: broadcast, rounds: 3 }}\n");
        Case::new(&file).check().bounds.expect("sound").tokens_max
    };
    // In order, the last one repeated; a rehearsal tries each again as often as `retries` allow.
    let used = "script: { replies: [x, { reply: y, usage: { input: 7, output: 3 } }] }";
    assert_eq!(tokens(&format!("{{ name: a, {used} }}, {{ name: b, script: {{}} }}")), Some(20));
    assert_eq!(tokens(&format!("{{ name: a, {used}, retries: 2 }}")), Some(3 * 20));
    let tools = "script: { replies: [{ tool_calls: [{ name: search }], usage: { input: 1 } }] }, max_steps: 4";
    assert_eq!(tokens(&format!("{{ name: a, {tools} }}")), Some(12));
    assert_eq!(tokens(&format!("{{ name: a, {used} }}, {{ name: b, model: fast }}")), None);
}
