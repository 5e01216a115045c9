//! Programs that are not built in: what a file may say of them, and what it takes.

use expect_test::expect;
use folkmoot_core::{bounds::Fit, call::Limit, programs::Controller, spec::Collaboration};

use crate::Case;

fn team(collaboration: &str) -> String {
    format!(
        "agents: [{{ name: Ann, demo: true }}, {{ name: Bob, demo: true }}]\ncollaboration: {collaboration}\n"
    )
}

#[test]
fn a_controller_is_a_command_and_whom_it_can_ask() {
    let file =
        team("{ program: { command: [python3, ./my_program.py] }, agents: [bob], timeout: 60 }");
    let spec = Case::new(&file).spec();
    let Collaboration::Controller(Controller { command, folder, agents, clocks }) =
        &spec.collaboration
    else {
        panic!("it is a controller")
    };
    assert_eq!(command.join(" "), "python3 ./my_program.py");
    assert_eq!((agents.len(), agents[0].as_str()), (1, "bob"));
    assert_eq!(clocks.timeout.map(|it| it.0), Some(60_000_000));
    assert_eq!(&*spec.team.staff[0].name, "python3 ./my_program.py");
    assert_eq!((&**folder, spec.workspace.is_some()), (".", true));
    assert_eq!(spec.limits.calls, Some(1024));
    assert_eq!(Case::new(&file).told(), "");
}

#[test]
fn what_is_wrong_with_a_program_is_told_with_its_place() {
    let files = [
        "{ program: {} }",
        "{ program: { command: [] } }",
        "{ program: { command: [''] } }",
        "{ program: { command: run.sh } }",
        "{ program: { comand: [run.sh] } }",
        "{ program: nothing }",
        "{ program: { command: [run.sh] }, agents: [Ann, Bod] }",
        "{ program: { command: [run.sh] }, strategy: debate }",
        "{ program: { command: [run.sh] }, topology: star, agents: [ann] }",
        "{ program: { command: [run.sh] }, rounds: 2, judge: Ann }",
        "{ program: [run.sh] }",
    ];
    let told: Vec<String> = files.iter().map(|it| Case::new(&team(it)).told()).collect();
    expect![[r#"
        2:27 collaboration.program error[missing_key] command is missing
        ---
        2:38 collaboration.program.command error[bad_value] command must have 1 to 1000 words; it has 0
        ---
        2:38 collaboration.program.command error[bad_value] command begins with the program to run; it begins with nothing
        ---
        2:38 collaboration.program.command error[bad_value] command must be a list of words; got "run.sh"
        ---
        2:27 collaboration.program error[missing_key] command is missing
        2:29 collaboration.program.comand error[unknown_key] unknown key "comand" | help: did you mean "command"?
        ---
        2:27 collaboration.program error[unknown_program] unknown program "nothing" | help: a program of your own is a process: program: { command: [...] }
        ---
        2:64 collaboration.agents[1] error[unknown_agent] unknown agent "Bod" in agents | help: did you mean "Bob"?
        ---
        2:50 collaboration.strategy error[bad_config] a collaboration is one thing; found program and strategy
        ---
        2:50 collaboration.topology error[bad_config] a collaboration is one thing; found program and topology
        ---
        2:50 collaboration.rounds warning[ignored_parameter] rounds has no effect beside program
        2:61 collaboration.judge warning[ignored_parameter] judge has no effect beside program
        ---
        2:27 collaboration.program error[bad_value] program must be a text or a map; got a list
    "#]].assert_eq(&told.join("---\n"));
    let alone = "agents: []\ncollaboration: { program: { command: [run.sh] } }\n";
    assert!(Case::new(alone).told().contains("error[no_agents]"));
}

#[test]
fn nothing_but_limits_bounds_a_controller_and_that_is_told() {
    let command = "{ program: { command: [run.sh] } }";
    for (more, calls) in [("", 1024), ("limits: { calls: 10 }\n", 10)] {
        let checked = Case::new(&(team(command) + more)).check();
        let bounds = checked.bounds.expect("it is sound");
        assert_eq!((bounds.total.calls.min, bounds.total.calls.max), (1, calls));
        assert_eq!((bounds.turns.min, bounds.turns.max), (0, calls - 1));
        assert_eq!(bounds.total.started.max, None, "no limit is a bound of its own");
        assert_eq!((bounds.critical_path, bounds.fits), (calls, None));
        let [told] = &bounds.unknown[..] else { panic!("{:?}", bounds.unknown) };
        assert_eq!(
            (told.of, &*told.message),
            (Limit::Calls, "the program asks whom it likes as often as it likes")
        );
        let fit = Fit { agent: None, limit: Limit::Calls, allowed: calls, most: None };
        assert_eq!(bounds.against, [fit]);
    }
}
