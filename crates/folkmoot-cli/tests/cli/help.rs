//! What the program says about itself, and what it writes to begin with.

use std::fs;

use expect_test::expect;
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use crate::{bench::Bench, snapshot::check};

/// The commands that the help lists, each with what it says of them.
fn commands(bench: &Bench) -> Vec<(String, String)> {
    let help = bench.call(["--help"]).must_be(0).stdout;
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let lines = lines.take_while(|line| !line.is_empty());
    // What is indented further goes on with the line before.
    let first = lines.filter_map(|line| line.strip_prefix("  ").filter(|it| !it.starts_with(' ')));
    let named = first.map(|line| line.split_once(' ').unwrap_or((line, "")));
    named.map(|(name, about)| (name.to_owned(), about.trim().to_owned())).collect()
}

#[test]
fn the_help_of_every_command_fits_its_columns_and_leaves_nothing_out() {
    let bench = Bench::new();
    let commands = commands(&bench);
    assert!(commands.len() > 18, "{commands:?}");
    for (name, about) in &commands {
        assert!(!about.is_empty(), "nothing is said about {name}");
        for flag in ["--help", "-h"] {
            let help = bench.call([name, flag]);
            // `help` is the parser's own and explains every command but itself.
            if name != "help" {
                fits(&help.must_be(0).stdout);
            }
        }
        if name != "help" {
            says_something(&bench.call([name, "--help"]).stdout);
        }
    }
    fits(&bench.call(["-h"]).must_be(0).stdout);
    let own = bench.call(["--help"]).must_be(0).stdout;
    fits(&own);
    says_something(&own);
}

#[track_caller]
fn fits(help: &str) {
    for line in help.lines() {
        assert!(line.width() <= 100, "{} columns: {line}", line.width());
    }
}

/// Whether a further indented line follows each flag and argument.
#[track_caller]
fn says_something(help: &str) {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let lines: Vec<&str> = help.lines().collect();
    let items = lines.iter().zip(lines.iter().skip(1).chain([&""]));
    let is_item = |line: &str| {
        (2..8).contains(&indent(line)) && line.trim_start().starts_with(['-', '<', '['])
    };
    let items: Vec<_> = items.filter(|(line, _)| is_item(line)).collect();
    assert!(items.len() > 3, "{help}");
    for (item, next) in items {
        assert!(indent(next) > indent(item), "nothing is said about {item}:\n{help}");
    }
}

#[test]
fn the_help_of_run_has_its_own_flags_first() {
    let bench = Bench::new();
    check(
        &bench,
        bench.call(["run", "-h"]),
        expect![[r#"
            exit 0
            > Runs a team on a task
            > 
            > Usage: folkmoot run [OPTIONS] [TEAM] [PROMPT]
            > 
            > Arguments:
            >   [TEAM]    The team file; left out with --demo, --agents or --config
            >   [PROMPT]  The task; `-` reads it from standard input
            > 
            > Options:
            >       --strict-budget   Refuses to start unless the worst case is proved to fit the limits
            >   -p, --prompt <TEXT>   The task
            >       --config <FILE>   The team file
            >       --demo            Uses the built-in offline team, or makes the agents of --agents offline ones
            >       --agents <NAMES>  Makes a team of these agents, with the default model
            >   -h, --help            Print help (see more with '--help')
            >   -V, --version         Print version
            > 
            > Instead of what the team file says:
            >       --strategy <NAME>    How the team works: broadcast, sequential, debate, supervisor, consensus,
            >                            relay or auto
            >       --program <NAME>     A ready-made program in place of a strategy: roles
            >       --rounds <N>         How many rounds
            >       --order <NAMES>      Who speaks in which order
            >       --judge <NAME>       Who judges
            >       --supervisor <NAME>  Who plans and reports
            >       --workers <NAMES>    Who works
            >       --timeout <TIME>     The clock of one phase, step or task: seconds, `30m`, or `none`
            >       --model <MODEL>      The model of agents that name none: provider/model, or an alias
            >       --sandbox <LEVEL>    What agents may do at most: read-only, write or full
            >       --workdir <FOLDER>   The workspace
            >       --max-tokens <N>     The most tokens the run may use
            >       --max-calls <N>      The most calls the run may make
            >       --max-cost <USD>     The most US dollars the run may cost
            >       --deadline <TIME>    The most time the run may take: seconds, `30m`, or `none`
            > 
            > Options of every command:
            >       --db <FILE>        The file in which runs are kept [default: in the user's state directory]
            >                          [env: FOLKMOOT_DB]
            >       --output <FORMAT>  How results are printed on standard output [default: text] [possible
            >                          values: text, json, stream-json]
            >       --json             Short for --output json
            > 
            > Examples:
            >   folkmoot run --demo "Which database should we use?"
            >   folkmoot run team.yaml "Review this design" --strategy debate --rounds 2
            >   folkmoot run --demo --agents 产品,研发,运营 --strategy consensus "Q3 优先做哪个功能？"
        "#]],
    );
}

#[test]
fn the_version_is_told() {
    let bench = Bench::new();
    let version = format!("folkmoot {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(bench.call(["--version"]).must_be(0).stdout, version);
}

#[test]
fn each_shell_gets_completions_that_know_every_command() {
    let bench = Bench::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = bench.call(["completions", shell]).must_be(0).stdout;
        for (command, _) in commands(&bench) {
            assert!(script.contains(&command), "{shell} does not know {command}");
        }
    }
    bench.call(["completions", "tcsh"]).must_be(2);
}

#[test]
fn what_init_writes_is_sound_and_runs_and_is_not_written_over() {
    let bench = Bench::new();
    check(
        &bench,
        bench.call(["init"]),
        expect![[r#"
        exit 0
        ! wrote team.yaml; try: folkmoot run team.yaml "your task"
    "#]],
    );
    let checked = bench.call(["check", "team.yaml"]).must_be(0);
    assert_eq!(checked.stderr, "", "it is nothing to warn of");
    bench.call(["run", "team.yaml", "task"]).must_be(0);
    bench.write("team.yaml", "mine");
    check(
        &bench,
        bench.call(["init"]),
        expect![[r#"
        exit 2
        ! error: team.yaml exists already
        ! help: name another file
    "#]],
    );
    assert_eq!(fs::read_to_string(bench.path("team.yaml")).expect("it is there"), "mine");
    bench.call(["init", "团队.yaml"]).must_be(0);
    bench.call(["check", "团队.yaml"]).must_be(0);
    bench.call(["init", "nowhere/team.yaml"]).must_be(1);
}

#[test]
fn the_schema_is_valid_and_tells_sound_files_from_unsound_ones() {
    let bench = Bench::new();
    let schema = bench.call(["schema"]).must_be(0).json();
    assert!(jsonschema::meta::is_valid(&schema));
    let validator = jsonschema::validator_for(&schema).expect("it is a schema");
    let errors = |team: &str| {
        let team: Value = serde_saphyr::from_str(team).expect("it is YAML");
        validator.iter_errors(&team).map(|error| error.to_string()).collect::<Vec<_>>()
    };
    for (file, team) in crate::examples::all() {
        assert_eq!(errors(&team), [""; 0], "{file}");
    }
    assert_ne!(errors("agnets: []"), [""; 0]);
    assert_ne!(errors("agents: [{ name: a }]\ncollaboration: { rounds: '3' }"), [""; 0]);
}
