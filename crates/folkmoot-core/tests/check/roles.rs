//! Teams of roles.

use expect_test::expect;
use folkmoot_core::{
    check::Source,
    programs::{Roles, roles::Path},
    spec::{Collaboration, Spec},
    team::{Agent, Sandbox},
};

use crate::Case;

/// A file of these agents whose work is a role team's, with these parameters.
fn file(agents: &str, parameters: &str) -> String {
    format!(
        "sandbox: write\nmodel: openai/gpt\nagents: [{agents}]\ncollaboration: {{ program: roles, {parameters} }}\n"
    )
}

fn roles(spec: &Spec) -> &Roles {
    let Collaboration::Roles(roles) = &spec.collaboration else { panic!("it is a role team") };
    roles
}

/// An agent in a line: its name, its grants, its steps and what it may do.
fn line(agent: &Agent) -> String {
    let Agent { name, grants, max_steps, sandbox, .. } = agent;
    format!("{name} [{}] {max_steps} {}", grants.join(", "), sandbox.as_str())
}

#[test]
fn a_role_team_needs_no_agents_of_its_own_and_has_five() {
    let file = file("", "");
    let spec = Case::new(&file).spec();
    let lines: Vec<String> = spec.team.agents.iter().map(line).collect();
    assert_eq!(
        lines,
        [
            "explorer [search, fetch, file.read] 10 read-only",
            "planner [file.read, search] 8 read-only",
            "coder [shell, file.read, file.write] 30 write",
            "reviewer [shell, file.read] 10 read-only",
            "general [*] 30 write",
        ]
    );
    assert!(
        spec.team.agents.iter().all(|agent| agent.target.label().as_deref() == Some("openai/gpt"))
    );
    assert!(spec.team.agents.iter().all(|agent| agent.retries == 2));
}

#[test]
fn an_agent_with_the_name_of_a_role_replaces_its_back_end_its_model_and_its_limits() {
    let file = file(
        "{ name: Coder, model: fast, max_steps: 7, retries: 1, limits: { tokens: 900, calls: 3 } }, { name: planner, grants: [file.read], demo: true }",
        "",
    );
    let spec = Case::new(&file).spec();
    let coder = &spec.team.agents[2];
    assert_eq!(line(coder), "Coder [shell, file.read, file.write] 7 write");
    assert_eq!((coder.target.label().as_deref(), coder.retries), (Some("openai/mini"), 1));
    assert_eq!((coder.limits.calls, coder.limits.tokens), (Some(3), None), "its tokens are soft");
    assert_eq!(roles(&spec).hand_off_at.get(&coder.id), Some(&900));
    assert_eq!(line(&spec.team.agents[1]), "planner [file.read] 8 read-only");
    assert_eq!(spec.team.agents[0].sandbox, Sandbox::ReadOnly);
}

#[test]
fn an_explicit_general_is_the_same_as_an_absent_one_and_may_have_no_role_settings() {
    let (absent, explicit) = (file("", ""), file("{ name: general }", ""));
    assert_eq!(Case::new(&absent).spec().team, Case::new(&explicit).spec().team);
    let file = file(
        "{ name: general, grants: [shell], max_steps: 3, prompt: Be quick, limits: { tokens: 3, calls: 4 } }",
        "",
    );
    Case::new(&file).tells(&expect![[r#"
        3:27 agents[0].grants error[role_config_not_allowed] general has no grants of its own: it does everything, as it is
        3:44 agents[0].max_steps error[role_config_not_allowed] general has no max_steps of its own: it does everything, as it is
        3:58 agents[0].prompt error[role_config_not_allowed] general has no prompt of its own: it does everything, as it is
        3:86 agents[0].limits.tokens error[role_config_not_allowed] general has no tokens of its own: it does everything, as it is
    "#]]);
}

#[test]
fn a_role_of_another_name_needs_grants_and_has_no_part() {
    let file = file("{ name: tester }, { name: codder }, { name: other, grants: [shell] }", "");
    Case::new(&file).tells(&expect![[r#"
        3:18 agents[0].name error[role_config_required] "tester" is no known role: it needs grants of its own | help: the roles are explorer, planner, coder, reviewer, general
        3:36 agents[1].name error[role_config_required] "codder" is no known role: it needs grants of its own | help: did you mean "coder"?
        3:54 agents[2].name warning[unused_agent] "other" has no part in roles
    "#]]);
}

#[test]
fn an_unknown_program_is_told_with_the_near_miss() {
    for (program, expected) in [
        (
            "role",
            expect![[r#"
            2:27 collaboration.program error[unknown_program] unknown program "role" | help: did you mean "roles"?
        "#]],
        ),
        (
            "nothing",
            expect![[r#"
                2:27 collaboration.program error[unknown_program] unknown program "nothing" | help: a program of your own is a process: program: { command: [...] }
            "#]],
        ),
        (
            "roundtabel",
            expect![[r#"
                2:27 collaboration.program error[unknown_program] unknown program "roundtabel" | help: did you mean "roundtable"?
            "#]],
        ),
    ] {
        let file = format!(
            "agents: [{{ name: a, demo: true }}]\ncollaboration: {{ program: {program} }}\n"
        );
        Case::new(&file).tells(&expected);
    }
}

#[test]
fn a_program_and_another_way_of_working_are_too_many() {
    let file = file("", "strategy: debate, topology: pipeline, rounds: 3");
    Case::new(&file).tells(&expect![[r#"
        4:34 collaboration.strategy error[bad_config] a collaboration is one thing; found program and strategy
        4:52 collaboration.topology error[bad_config] a collaboration is one thing; found program and topology
        4:72 collaboration.rounds warning[ignored_parameter] rounds has no effect in roles
    "#]]);
}

#[test]
fn a_flag_asks_for_the_role_team_whatever_the_file_says() {
    let file = "agents: [{ name: coder, demo: true }]\nmodel: openai/gpt\ncollaboration: { strategy: broadcast }\n";
    let spec = Case::new(file).flag("--program", "roles").spec();
    assert_eq!(spec.collaboration.name(), "roles");
    let back = Case::new(
        "model: openai/gpt\nagents: [{ name: coder }]\ncollaboration: { program: roles }\n",
    );
    assert_eq!(back.flag("--strategy", "broadcast").spec().collaboration.name(), "broadcast");
}

#[test]
fn without_a_file_the_default_model_of_the_machine_answers() {
    let mut case = Case::of(Source::Names(&[])).flag("--program", "roles");
    case.catalog.default_model = Some("fast".into());
    let spec = case.spec();
    assert!(spec.team.agents.iter().all(|it| it.target.label().as_deref() == Some("openai/mini")));
    case.catalog.default_model = None;
    case.tells(&expect![[r#"
        - - error[no_model] agent "general" has no model | help: give it or the team a model, or set default_model in the config
    "#]]);
}

#[test]
fn only_who_takes_part_needs_a_model() {
    let simple = "agents: [{ name: general, demo: true }]\ncollaboration: { program: roles, path: single }\n";
    Case::new(simple).tells(&expect![""]);
}

#[test]
fn the_task_and_the_parameters_choose_the_path() {
    let path = |task, parameters: &str| {
        let file = file("", parameters);
        let spec = Case { task: Some(task), ..Case::new(&file) }.spec();
        roles(&spec).weighing.of(&spec.task).path
    };
    assert_eq!(path("What is the weather?", ""), Path::Single);
    assert_eq!(path("fix it", ""), Path::Roles);
    assert_eq!(path("fix it", "complexity: 1"), Path::Single);
    assert_eq!(path("x", "intents: [development]"), Path::Roles);
    assert_eq!(path("x", "past_steps: 11, complexity_threshold: 1"), Path::Roles);
    assert_eq!(path("fix it", "path: single"), Path::Single);
}

#[test]
fn a_budget_is_multiplied_exactly() {
    let total = |parameters: &str| {
        let file = file("", parameters);
        Case::new(&file).spec().collaboration.clone()
    };
    let total = |parameters: &str| match total(parameters) {
        Collaboration::Roles(roles) => roles.budget.map(|budget| budget.total()),
        other => panic!("{other:?}"),
    };
    assert_eq!(total("single_agent_budget: 100000"), Some(150_000));
    assert_eq!(total("single_agent_budget: 10, multiplier: 1.1"), Some(11));
    assert_eq!(total("single_agent_budget: 3, multiplier: 1.5"), Some(4));
    assert_eq!(total(""), None);
    let file = file("", "single_agent_budget: 10, multiplier: -1");
    Case::new(&file).tells(&expect![[r#"
        4:71 collaboration.multiplier error[bad_value] multiplier must be a number of at least 0, such as 1.5; got -1
    "#]]);
}

#[test]
fn the_economy_model_answers_for_each_role_and_scripts_only_change_their_label() {
    let economy = |spec: &Spec| {
        let told = spec.team.agents.iter().map(|agent| {
            let labels = agent
                .economy
                .iter()
                .map(|it| format!("{} {}", it.number, it.target.label().unwrap_or_default()));
            labels.collect::<Vec<_>>().join(", ")
        });
        told.collect::<Vec<_>>()
    };
    let agents =
        "{ name: coder, script: { replies: [a] }, model: premium }, { name: general, demo: true }";
    let with = file(agents, "single_agent_budget: 9, economy_model: claude");
    let chain = "101 anthropic/sonnet, 102 openai/gpt";
    assert_eq!(economy(&Case::new(&with).spec()), [chain, chain, "101 claude", chain, "101 demo"]);
    let without = file(agents, "single_agent_budget: 9");
    assert_eq!(economy(&Case::new(&without).spec()), [""; 5]);
    let mut aliased = Case::new(&without);
    aliased.catalog.aliases.insert("economy".into(), vec!["openai/mini".into()]);
    assert_eq!(economy(&aliased.spec())[0], "101 openai/mini");
    let free = file(agents, "economy_model: claude, multiplier: 2");
    assert_eq!(economy(&Case::new(&free).spec()), [""; 5], "there is no budget");
    Case::new(&free).tells(&expect![[r#"
        4:34 collaboration.economy_model warning[ignored_parameter] economy_model has no effect without single_agent_budget
        4:57 collaboration.multiplier warning[ignored_parameter] multiplier has no effect without single_agent_budget
    "#]]);
    let unknown = file("", "single_agent_budget: 9, economy_model: cluade");
    Case::new(&unknown).tells(&expect![[r#"
        4:73 collaboration.economy_model error[unknown_model] unknown model "cluade" | help: did you mean "claude"?
    "#]]);
}

#[test]
fn who_uses_tools_is_told_what_the_workspace_asks_and_coding_agents_read_it_by_themselves() {
    let file = "
model: fast
agents:
  - { name: a, prompt: You read., grants: [file.read] }
  - { name: b, grants: [shell] }
  - { name: c, prompt: You judge. }
  - { name: d, cli: codex, grants: [file] }
collaboration: { strategy: sequential }
";
    let asks = "What this workspace asks of who works in it (AGENTS.md):\nRun the tests.";
    let case = Case { instructions: Some("\u{feff}Run the tests.\n"), ..Case::new(file) };
    let spec = case.spec();
    let prompts = spec.team.agents.iter().map(|agent| agent.prompt.as_deref());
    let first = format!("You read.\n\n{asks}");
    assert_eq!(prompts.collect::<Vec<_>>(), [Some(&*first), Some(asks), Some("You judge."), None]);
    let roles = "model: fast\ncollaboration: { program: roles }\n";
    let spec = Case { instructions: Some("Run the tests."), ..Case::new(roles) }.spec();
    let told: Vec<&str> =
        spec.team.everyone().filter_map(|agent| agent.prompt.as_deref()).collect();
    assert!(!told.is_empty() && told.iter().all(|it| *it == asks), "each once: {told:?}");
    let empty = Case { instructions: Some(" \n"), ..Case::new(roles) }.spec();
    assert!(empty.team.everyone().all(|agent| agent.prompt.is_none()));
}
