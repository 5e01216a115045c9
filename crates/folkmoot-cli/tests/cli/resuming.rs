//! Going on with a run whose team file is another one by now (rules.md 7.10).

use folkmoot_stub::{Door, Stub};

use crate::{
    bench::{Bench, until},
    held::{Held, PAIR, asked, held},
};

/// A run that was killed, and another team file since.
fn changed_since(from: &str, to: &str) -> (Bench, Stub, Door) {
    let Held { run, bench, stub, door } = held("text");
    run.kill();
    until(&stub, |seen| seen.hung_up == 1);
    door.open();
    assert!(PAIR.contains(from));
    bench.write("team.yaml", &PAIR.replace(from, to));
    (bench, stub, door)
}

// Comments pass, prompts and ways of working warn; renamed and removed agents refuse.
#[test]
fn a_run_keeps_its_team_and_tells_what_its_file_says_otherwise_now() {
    for (from, to, warning) in [
        ("name: pair", "# a comment\nname: pair", ""),
        ("name: second,", "name: second, prompt: Be brief.,", "with what it began with: second\n"),
        (
            "strategy: sequential",
            "strategy: debate, judge: first",
            "with what it began with: collaboration\n",
        ),
        ("name: pair", "name: pair\nlimits: { calls: 1 }", "with what it began with: limits\n"),
        ("name: pair", "name: [", "is gone or has mistakes;"),
    ] {
        let (bench, stub, _door) = changed_since(from, to);
        let resumed = bench.call(["resume", "last", "--json"]).must_be(0);
        assert_eq!(resumed.json()["final"], "two", "{to}");
        assert_eq!(asked(&stub), ["first", "second", "second"]);
        assert!(resumed.stderr.contains(warning), "{to}: {}", resumed.stderr);
        let warnings = resumed.stderr.matches("warning:").count();
        assert_eq!(warnings, usize::from(!warning.is_empty()), "{}", resumed.stderr);
    }
}

#[test]
fn a_run_whose_agents_are_gone_or_renamed_in_its_file_goes_on_only_if_told_so() {
    let second = "  - { name: second, model: openai/stub }\n";
    for (from, to, difference) in [
        ("name: second", "name: other", "without second and with other"),
        (second, "", "without second"),
        (
            second,
            "  - { name: second, model: openai/stub }\n  - { name: third, demo: true }\n",
            "with third",
        ),
    ] {
        let (bench, stub, _door) = changed_since(from, to);
        let refused = bench.call(["resume", "last"]).must_be(2).stderr;
        assert!(refused.contains(difference), "{refused}");
        assert!(refused.contains("--as-recorded"), "{refused}");
        assert_eq!(asked(&stub).len(), 2, "a refusal asks nobody");
        bench.call(["resume", "last", "--as-recorded"]).must_be(0);
        assert_eq!(asked(&stub), ["first", "second", "second"]);
    }
}
