//! What answers for an agent.

use expect_test::expect;
use folkmoot_core::{
    file::models::Unresolved,
    money::Money,
    team::{Acp, Agent, Cli, CliInput, CliOutput, CliProgram, Target},
};

use crate::{Case, catalog};

fn one(agent: &str) -> Agent {
    let file = format!("agents: [{{ name: a, {agent} }}]\n");
    Case::new(&file).spec().team.agents.remove(0)
}

fn model(agent: &Agent) -> String {
    match &agent.target {
        Target::Model(model) => model.to_string(),
        Target::Script(_)
        | Target::Demo
        | Target::Cli(_)
        | Target::Acp(_)
        | Target::A2a(_)
        | Target::Team(_) => {
            panic!("{} has no model", agent.name)
        }
    }
}

#[test]
fn models_are_named_directly_or_by_alias() {
    assert_eq!(model(&one("model: openai/gpt")), "openai/gpt");
    assert_eq!(model(&one("model: openai/org/gpt")), "openai/org/gpt", "the first slash divides");
    assert_eq!(model(&one("model: fast")), "openai/mini");
    assert_eq!(one("model: demo/anything").target, Target::Demo);
    assert_eq!(one("demo: true, retries: 3").retries, 3);
}

/// The chain of an agent as people write it.
fn chain(agent: &Agent) -> String {
    let later = agent.fallbacks.iter().map(|it| (it.number, &it.target));
    let all = [(1, &agent.target)].into_iter().chain(later);
    let shown =
        all.map(|(number, target)| format!("{number} {}", target.label().expect("it has one")));
    shown.collect::<Vec<_>>().join(", ")
}

#[test]
fn an_alias_may_stand_for_a_chain_of_models_and_coding_agents() {
    let mut case = Case::new("agents: [{ name: a, model: best }]\n");
    assert_eq!(chain(&case.spec().team.agents[0]), "1 anthropic/sonnet, 2 openai/gpt");
    case.tells(&expect![""]);

    let chain_of = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
    case.catalog.aliases.insert("codex".into(), chain_of(&["openai/gpt"]));
    case.catalog.programs.insert("coder".into(), codex());
    case.catalog.aliases.insert("best".into(), chain_of(&["fast", "coder", "claude", " demo "]));
    let expected = "1 openai/mini, 2 codex/gpt-5, 3 anthropic/sonnet, 4 openai/gpt, 5 demo";
    assert_eq!(chain(&case.spec().team.agents[0]), expected);
    case.tells(&expect![""]);
}

fn codex() -> Target {
    Target::Cli(Cli { program: CliProgram::Codex, model: Some("gpt-5".into()) })
}

#[test]
fn an_alias_that_stands_for_nothing_is_refused() {
    let mut case = Case::new("agents: [{ name: a, model: coder }, { name: b, model: none }]\n");
    case.catalog.programs.insert("coder".into(), codex());
    case.catalog.aliases.insert("none".into(), Vec::new());
    case.tells(&expect![[r#"
        1:55 agents[1].model error[unknown_model] the alias "none" stands for nothing | help: name a target
    "#]]);
}

#[test]
fn a_coding_agent_is_a_preset_or_a_command() {
    assert_eq!(one("cli: claude").target.label().as_deref(), Some("claude"));
    let own = one("cli: { command: [/opt/bin/agent, --quiet], input: file, output: jsonl }");
    assert_eq!((own.target.label().as_deref(), own.retries), (Some("agent"), 0));
    let Target::Cli(Cli { program: CliProgram::Own(own), model: None }) = own.target else {
        panic!("it is a command");
    };
    assert_eq!((own.input, own.output), (CliInput::File, CliOutput::Jsonl));
    assert_eq!(*own.command, ["/opt/bin/agent".into(), "--quiet".into()]);
    Case::new("agents: [{ name: a, cli: codx }, { name: b, cli: { command: [] } }, { name: c, cli: codex, model: openai/gpt }]\n")
        .tells(&expect![[r#"
            1:26 agents[0].cli error[unknown_cli] unknown coding agent "codx" | help: did you mean "codex"?
            1:61 agents[1].cli.command error[bad_value] command must have 1 to 1000 words; it has 0
            1:92 agents[2].model error[two_back_ends] agent "c" has two back-ends, cli and model; give one | 1:80 the other one
        "#]]);
}

#[test]
fn a_coding_agent_that_speaks_a_protocol_is_a_command() {
    let agent = one("acp: { command: [/opt/bin/agent, acp] }");
    assert_eq!((agent.target.label().as_deref(), agent.retries), (Some("agent"), 0));
    let Target::Acp(Acp { command }) = agent.target else { panic!("it is one") };
    assert_eq!(*command, ["/opt/bin/agent".into(), "acp".into()]);
    Case::new("agents: [{ name: a, acp: agent }, { name: b, acp: { command: [] } }, { name: c, acp: { comand: [x] } }, { name: d, cli: codex, acp: { command: [x] } }]\n")
        .tells(&expect![[r#"
            1:26 agents[0].acp error[bad_value] acp must be a map; got "agent"
            1:62 agents[1].acp.command error[bad_value] command must have 1 to 1000 words; it has 0
            1:86 agents[2].acp error[missing_key] command is missing
            1:88 agents[2].acp.comand error[unknown_key] unknown key "comand" | help: did you mean "command"?
            1:128 agents[3].acp error[two_back_ends] agent "d" has two back-ends, cli and acp; give one | 1:116 the other one
        "#]]);
    Case::new("agents: [{ name: a, acp: { command: [x] } }]\nlimits: { tokens: 9 }\n")
        .tells(&expect![[r#"
            2:19 limits.tokens error[unbounded_agent] the limit cannot be kept: nobody knows what x will use | help: limit calls and time instead
        "#]]);
}

#[test]
fn no_limit_of_tokens_or_money_holds_for_a_coding_agent() {
    Case::new("agents: [{ name: a, cli: codex }, { name: b, cli: claude, limits: { cost_usd: 1 } }]\nlimits: { tokens: 9 }\n")
        .tells(&expect![[r#"
            1:79 agents[1].limits.cost_usd error[unbounded_agent] the limit cannot be kept: nobody knows what claude will use | help: limit calls and time instead
            2:19 limits.tokens error[unbounded_agent] the limit cannot be kept: nobody knows what codex will use | help: limit calls and time instead
        "#]]);
}

#[test]
fn a_chain_has_an_end_however_aliases_multiply() {
    let mut case = Case::new("agents: [{ name: a, model: a0 }, { name: b, model: b0 }]\n");
    for n in 0..40 {
        let (twice, once) = (format!("a{}", n + 1), format!("b{}", n + 1));
        case.catalog.aliases.insert(format!("a{n}"), vec![twice.clone(), twice]);
        case.catalog.aliases.insert(format!("b{n}"), vec![once]);
    }
    case.tells(&expect![[r#"
        1:28 agents[0].model error[alias_too_long] the alias "a0" stands for more than 16 targets or aliases
        1:52 agents[1].model error[alias_too_long] the alias "b0" stands for more than 16 targets or aliases
    "#]]);
}

/// What is wrong with the names of a config.
fn faults(aliases: &[(&str, &[&str])], default_model: Option<&str>) -> Vec<String> {
    let mut catalog = catalog();
    let owned = |(name, chain): &(&str, &[&str])| {
        ((*name).to_owned(), chain.iter().map(|it| (*it).to_owned()).collect())
    };
    catalog.aliases = aliases.iter().map(owned).collect();
    catalog.programs = [("codex".to_owned(), codex())].into();
    catalog.default_model = default_model.map(str::to_owned);
    let told = |(alias, it): (Option<&str>, Unresolved)| {
        format!("{} {}: {}", alias.unwrap_or("-"), it.code, it.message)
    };
    catalog.faults().into_iter().map(told).collect()
}

#[test]
fn everything_that_is_wrong_with_the_names_of_a_config_is_told_at_once_and_once() {
    assert_eq!(faults(&[("a", &["codex", "openai/x"]), ("b", &["a"])], Some("b")), [""; 0]);
    assert_eq!(faults(&[], Some("codex")), [""; 0]);
    let found = faults(
        &[
            ("a", &["b"]),
            ("b", &["openai/x", "c"]),
            ("c", &["a", "nobody/x", "gtp"]),
            ("d", &["a", "d"]),
            ("e", &["c"]),
        ],
        Some("gone"),
    );
    let expected = [
        "a alias_cycle: the alias \"a\" leads to itself: a -> b -> c -> a",
        "c unknown_provider: unknown provider \"nobody\" in \"nobody/x\"",
        "c unknown_model: unknown model \"gtp\"",
        "d alias_cycle: the alias \"d\" leads to itself: d -> d",
        "- unknown_model: unknown model \"gone\"",
    ];
    assert_eq!(found, expected);
    assert_eq!(
        faults(&[("none", &[])], None),
        ["none unknown_model: the alias \"none\" stands for nothing"]
    );
}

#[test]
fn aliases_in_a_row_and_in_circles_are_judged_in_one_look_however_many_there_are() {
    let told = |alias: &dyn Fn(usize) -> String| {
        let mut catalog = catalog();
        catalog.aliases = (0..20_000).map(|n| (format!("a{n:05}"), vec![alias(n)])).collect();
        let faults = catalog.faults();
        (faults.len(), faults[0].1.message.clone())
    };
    let row = told(&|n| if n < 19_999 { format!("a{:05}", n + 1) } else { "openai/x".into() });
    let too_long = "the alias \"a00000\" stands for more than 16 targets or aliases";
    assert_eq!(row, (100, too_long.to_owned()));
    let (count, circle) = told(&|n| format!("a{:05}", (n + 1) % 20_000));
    assert_eq!(count, 1);
    assert!(circle.ends_with("-> a00015 -> … (19984 more) -> a00000"), "{circle}");
    assert_eq!(told(&|n| format!("b{n:05}")).0, 100);
}

#[test]
fn a_later_target_without_a_price_is_left_out_where_money_is_limited() {
    let mut case = Case::new("agents: [{ name: a, model: best, limits: { cost_usd: 1 } }]\n");
    let chain_of = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
    let best = chain_of(&["openai/gpt", "anthropic/sonnet", "demo"]);
    case.catalog.aliases.insert("best".into(), best);
    assert_eq!(chain(&case.spec().team.agents[0]), "1 openai/gpt, 3 demo");
    case.tells(&expect![[r#"
        1:54 agents[0].limits.cost_usd warning[target_left_out] target 2 of "a" is left out: the price of anthropic/sonnet is not known, and cost_usd is to be kept | help: give it in the config, under [prices."anthropic/sonnet"]
    "#]]);
}

#[test]
fn names_of_nothing_are_refused_with_the_near_miss() {
    Case::new(
        "\
agents:
  - { name: a, model: fats }
  - { name: b, model: gpt-9000 }
  - { name: c, model: opnai/gpt }
  - { name: d, model: acme/gpt }
  - { name: e, model: openai/ }
  - { name: f, model: ring }
  - { name: g, model: stale }
  - { name: h, model: '' }
",
    )
    .tells(&expect![[r#"
        2:23 agents[0].model error[unknown_model] unknown model "fats" | help: did you mean "fast"?
        3:23 agents[1].model error[unknown_model] unknown model "gpt-9000" | help: write provider/model, or an alias of the config
        4:23 agents[2].model error[unknown_provider] unknown provider "opnai" in "opnai/gpt" | help: did you mean "openai"?
        5:23 agents[3].model error[unknown_provider] unknown provider "acme" in "acme/gpt" | help: known: anthropic, openai, demo
        6:23 agents[4].model error[unknown_model] "openai/" names a provider but no model
        7:23 agents[5].model error[alias_cycle] the alias "ring" leads to itself: ring -> round -> ring
        8:23 agents[6].model error[unknown_provider] unknown provider "gone" in "gone/model", which the alias "stale" stands for | help: known: anthropic, openai, demo
        9:23 agents[7].model error[unknown_model] unknown model "" | help: write provider/model, or an alias of the config
    "#]]);
}

#[test]
fn an_agent_without_a_back_end_has_the_teams_model_or_the_machines() {
    let mut case = Case::new("agents: [{ name: a }, { name: b, model: openai/gpt }]\n");
    case.catalog.default_model = Some("fast".into());
    let spec = case.spec();
    assert_eq!(
        spec.team.agents.iter().map(model).collect::<Vec<_>>(),
        ["openai/mini", "openai/gpt"]
    );
    case.catalog.default_model = Some("gone".into());
    case.tells(&expect![[r#"
        - default_model error[unknown_model] unknown model "gone" | help: write provider/model, or an alias of the config
    "#]]);
    let mut case = Case::new("model: anthropic/opus\nagents: [{ name: a }]\n");
    case.catalog.default_model = Some("gone".into());
    assert_eq!(model(&case.spec().team.agents[0]), "anthropic/opus");
}

#[test]
fn without_any_model_a_team_can_be_checked_and_not_run() {
    let mut case = Case::new("agents: [{ name: a }, { name: b }]\n");
    case.tells(&expect![[r#"
        1:10 agents[0] error[no_model] agent "a" has no model | help: give it or the team a model, or set default_model in the config
        1:23 agents[1] error[no_model] agent "b" has no model | help: give it or the team a model, or set default_model in the config
    "#]]);
    case.task = None;
    case.tells(&expect![[r#"
        1:10 agents[0] warning[no_model] agent "a" has no model | help: give it or the team a model, or set default_model in the config
        1:23 agents[1] warning[no_model] agent "b" has no model | help: give it or the team a model, or set default_model in the config
    "#]]);
    assert!(case.check().bounds.is_some());
}

#[test]
fn a_wrong_team_model_is_told_once() {
    Case::new("model: gone\nagents: [{ name: a }, { name: b }]\n").tells(&expect![[r#"
        1:8 model error[unknown_model] unknown model "gone" | help: write provider/model, or an alias of the config
    "#]]);
    Case::new("model: [gone]\nagents: [{ name: a }]\n").tells(&expect![[r#"
        1:8 model error[bad_value] model must be a text; got a list
    "#]]);
}

#[test]
fn one_thing_answers_for_an_agent() {
    Case::new(
        "agents:\n  - name: a\n    model: fast\n    demo: true\n  - name: b\n    script: {}\n    demo: true\n",
    )
    .tells(&expect![[r#"
        4:5 agents[0].demo error[two_back_ends] agent "a" has two back-ends, model and demo; give one | 3:5 the other one
        7:5 agents[1].demo error[two_back_ends] agent "b" has two back-ends, script and demo; give one | 6:5 the other one
    "#]]);
    assert_eq!(model(&one("demo: false, model: fast")), "openai/mini");
    let Target::Script(script) = one("script: {}, model: no/such").target else {
        panic!("a script")
    };
    assert_eq!(script.label.as_deref(), Some("no/such"), "beside a script it is only a label");
}

#[test]
fn a_limit_of_money_needs_prices() {
    Case::new(
        "agents:\n  - { name: a, model: openai/gpt }\n  - { name: b, model: fast }\n  - { name: c, demo: true }\n  - { name: d, model: anthropic/opus, limits: { cost_usd: 1 } }\nlimits: { cost_usd: 2.5 }\n",
    )
    .tells(&expect![[r#"
        5:59 agents[3].limits.cost_usd error[unknown_price] cost_usd cannot be kept: the price of anthropic/opus is not known | help: give it in the config, under [prices."anthropic/opus"]
        6:21 limits.cost_usd error[unknown_price] cost_usd cannot be kept: the price of openai/mini is not known | help: give it in the config, under [prices."openai/mini"]
    "#]]);
    let spec =
        Case::new("agents: [{ name: a, model: openai/gpt }]\nlimits: { cost_usd: 2.5 }\n").spec();
    assert_eq!(spec.limits.cost.map(Money::usd), Some(2.5));
}
