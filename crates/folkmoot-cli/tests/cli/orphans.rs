//! What a Folkmoot that was killed leaves behind is ended by the next one (rules.md 6.10).

use std::{
    fs,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use crate::bench::{Bench, Process};

/// A team in which a program goes on for long, as a tool of an agent.
fn tool(command: &str) -> String {
    format!(
        "
sandbox: full
agents:
  - name: coder
    grants: [shell]
    script:
      replies:
        - tool_calls: [{{ name: shell, arguments: {{ command: \"{command}\", timeout_s: 600 }} }}]
"
    )
}

/// The same as a coding agent.
fn coding_agent(command: &str) -> String {
    format!(
        "
sandbox: full
agents:
  - name: coder
    grants: [shell]
    cli: {{ command: [/bin/sh, -c, \"{command}\"] }}
"
    )
}

/// The same as a controller.
fn controller(command: &str) -> String {
    format!(
        "
sandbox: full
agents: [{{ name: coder, demo: true }}]
collaboration: {{ program: {{ command: [/bin/sh, -c, \"{command}\"] }} }}
"
    )
}

const STAYS: &str = "exec sleep 600";

/// A run, and the process that it has started.
struct Under {
    bench: Bench,
    run: Process,
    program: u32,
}

fn under_way(team: &str) -> Under {
    let bench = Bench::with_team(team);
    let run = bench.start(["run", "team.yaml", "Do it"]);
    let program = sleeping(&bench);
    Under { bench, run, program }
}

/// The program that sleeps in the folder of a test, once it does.
fn sleeping(bench: &Bench) -> u32 {
    let folder = bench.path(".").canonicalize().expect("it is there");
    let is_it = |process: &Path| {
        let command = fs::read_to_string(process.join("comm")).unwrap_or_default();
        command == "sleep\n" && fs::read_link(process.join("cwd")).is_ok_and(|it| it == folder)
    };
    let until = Instant::now() + Duration::from_mins(1);
    loop {
        let mut all = fs::read_dir("/proc").expect("it is there").flatten().map(|it| it.path());
        let found = all.find(|process| is_it(process));
        if let Some(id) = found.and_then(|it| it.file_name()?.to_str()?.parse().ok()) {
            return id;
        }
        assert!(Instant::now() < until, "it does not begin");
        thread::yield_now();
    }
}

fn is_running(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    status.contains("\nVmSize:")
}

/// What was killed may take a moment to end.
#[track_caller]
fn must_have_ended(process: u32) {
    let until = Instant::now() + Duration::from_mins(1);
    while is_running(process) {
        assert!(Instant::now() < until, "process {process} goes on");
        thread::yield_now();
    }
}

#[test]
fn programs_of_a_killed_process_end_before_the_next_run_starts_anything() {
    for team in [tool, coding_agent, controller] {
        let Under { bench, run, program } = under_way(&team(STAYS));
        run.kill();
        bench.call(["run", "--demo", "Something else"]).must_be(0);
        must_have_ended(program);
    }
}

#[test]
fn what_left_its_group_and_does_not_listen_is_ended_too() {
    let stubborn = "trap '' TERM; setsid sleep 600 & wait";
    let Under { bench, run, program } = under_way(&tool(stubborn));
    run.kill();
    bench.call(["run", "--demo", "Something else"]).must_be(0);
    must_have_ended(program);
}

#[test]
fn a_run_that_goes_on_finds_nobody_else_at_work() {
    let goes_on = "[ -e begun ] && exec echo Done; touch begun; exec sleep 600";
    let Under { bench, run, program } = under_way(&coding_agent(goes_on));
    run.kill();
    bench.call(["resume", "last"]).must_be(0);
    must_have_ended(program);
}

#[test]
fn programs_of_a_process_that_lives_are_left_alone() {
    let Under { run, program, .. } = under_way(&tool(STAYS));
    Bench::new().call(["run", "--demo", "Something else"]).must_be(0);
    assert!(is_running(program));
    run.signal(rustix::process::Signal::INT);
    run.finish().must_be(130);
    must_have_ended(program);
}
