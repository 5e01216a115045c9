//! What flags and callers say wins over the file.

use expect_test::expect;
use folkmoot_core::{
    check::Source,
    file::overrides::Given,
    money::Money,
    spec::Collaboration,
    team::{AgentId, Target},
    time::Duration,
};
use serde_json::json;

use crate::Case;

const TEAM: &str = "\
agents: [{ name: a, demo: true }, { name: b, demo: true }, { name: Data Team, demo: true }]
collaboration: { strategy: relay, rounds: 0, order: [a, ghost] }
limits: { calls: -1 }
";

#[test]
fn a_flag_stands_in_place_of_what_the_file_says() {
    let spec = Case::new(TEAM)
        .flag("--rounds", "5")
        .flag("--order", "b, data-team,b")
        .flag("--timeout", "0.5")
        .flag("--max-calls", "7")
        .flag("--max-cost", "1.5")
        .flag("--deadline", "2m")
        .spec();
    let Collaboration::Relay(relay) = spec.collaboration else { panic!("a relay") };
    let order: Vec<_> = relay.order.iter().map(AgentId::as_str).collect();
    assert_eq!((relay.rounds, &order[..]), (5, &["b", "data-team", "b"][..]));
    assert_eq!(relay.clocks.timeout, Some(Duration::from_millis(500)));
    assert_eq!(spec.limits.calls, Some(7));
    assert_eq!(spec.limits.cost, Some(Money::from_usd(1.5)));
    assert_eq!(spec.limits.time, Some(Duration::from_secs(120)));
}

#[test]
fn a_file_needs_no_section_for_a_flag() {
    let file = "agents: [{ name: a, demo: true }, { name: b }]\ncollaboration:\n";
    let case = Case::new(file).flag("--strategy", "DEBATE").flag("--judge", "b");
    let spec = case.flag("--model", "fast").flag("--max-tokens", "9").spec();
    let Collaboration::Debate(debate) = spec.collaboration else { panic!("a debate") };
    assert_eq!((debate.judge.as_str(), debate.rounds), ("b", 3));
    assert!(
        matches!(&spec.team.agents[1].target, Target::Model(model) if model.to_string() == "openai/mini")
    );
    assert_eq!(spec.limits.tokens, Some(9));
}

#[test]
fn mistakes_in_flags_name_the_flag() {
    Case::new("agents: [{ name: a, demo: true }, { name: b, demo: true }]\n")
        .flag("--strategy", "debate")
        .flag("--rounds", "zero")
        .flag("--judge", "c")
        .flag("--timeout", "")
        .flag("--max-calls", "-3")
        .flag("--ronds", "3")
        .flag("--programs", "roles")
        .tells(&expect![[r#"
            - --ronds error[unknown_key] unknown parameter "--ronds" | help: did you mean "--rounds"?
            - --programs error[unknown_key] unknown parameter "--programs" | help: did you mean "--program"?
            - --rounds error[bad_value] rounds must be a whole number from 1 to 100; got "zero"
            - --timeout error[bad_value] timeout must be a time up to 365d, such as 30 (seconds), 0.5 or 30m, or none; got "" | help: units are ms, s, m, h and d
            - --max-calls error[bad_value] calls must be a whole number of at least 0; got -3
            - --judge error[unknown_agent] debate: unknown agent "c" in judge; agents: a, b
        "#]]);
    Case::new("agents: [{ name: a, demo: true }]\n")
        .flag("--strategy", "debat")
        .tells(&expect![[r#"
            - --strategy error[unknown_strategy] unknown strategy "debat"; known: broadcast, sequential, debate, supervisor, consensus, relay, auto | help: did you mean "debate"?
        "#]]);
}

#[test]
fn a_request_gives_values_as_json() {
    let case = Case::new(TEAM)
        .given("rounds", Given::Json(json!(2)))
        .given("order", Given::Json(json!(["a", "Data Team"])))
        .given("timeout", Given::Json(json!("none")))
        .given("calls", Given::Json(json!(3)))
        .given("judge", Given::Json(json!(null)));
    let spec = case.spec();
    let Collaboration::Relay(relay) = spec.collaboration else { panic!("a relay") };
    assert_eq!((relay.rounds, relay.order.len(), relay.clocks.timeout), (2, 2, None));
    assert_eq!(spec.limits.calls, Some(3));
    Case::new(TEAM)
        .given("rounds", Given::Json(json!("2")))
        .given("order", Given::Json(json!("a,b")))
        .given("calls", Given::Json(json!({ "max": 3 })))
        .tells(&expect![[r#"
            - rounds error[bad_value] rounds must be a whole number from 1 to 100; got "2" (a string) | help: write it without quotes
            - order error[bad_value] order must be a list of names; got "a,b"
            - calls error[bad_value] calls must be a whole number of at least 0; got a map
        "#]]);
}

#[test]
fn names_alone_make_a_team() {
    let names = ["产品", "研发"].map(str::to_owned);
    let spec = Case::of(Source::DemoNames(&names)).flag("--strategy", "consensus").spec();
    assert!(spec.team.agents.iter().all(|agent| agent.target == Target::Demo));
    let mut case = Case::of(Source::Names(&names));
    case.catalog.default_model = Some("openai/gpt".into());
    assert_eq!(case.spec().team.agents[1].name, "研发".into());
    case.catalog.default_model = None;
    case.tells(&expect![[r#"
        - --agents error[no_model] agent "产品" has no model | help: give it or the team a model, or set default_model in the config
        - --agents error[no_model] agent "研发" has no model | help: give it or the team a model, or set default_model in the config
    "#]]);
    let twins = ["a", "A", ""].map(str::to_owned);
    Case::of(Source::DemoNames(&twins)).tells(&expect![[r#"
        - --agents error[bad_name] Agents "a" and "A" cannot be told apart
        - --agents error[bad_name] an agent's name must not be blank
    "#]]);
    Case::of(Source::DemoNames(&[])).tells(&expect![[r#"
        - - error[no_agents] the team has no agents
    "#]]);
}

#[test]
fn the_demo_team_runs_offline() {
    let case = Case::of(Source::Demo);
    let spec = case.spec();
    let names: Vec<_> = spec.team.agents.iter().map(|agent| &*agent.name).collect();
    assert_eq!(names, ["researcher", "critic", "writer"]);
    assert!(spec.team.agents.iter().all(|agent| agent.target == Target::Demo));
    assert_eq!(case.told(), "");
    Case::of(Source::Demo)
        .flag("--strategy", "supervisor")
        .flag("--supervisor", "researchr")
        .tells(&expect![[r#"
            - --supervisor error[unknown_agent] supervisor: unknown agent "researchr" in supervisor; agents: researcher, critic, writer | help: did you mean "researcher"?
        "#]]);
}
