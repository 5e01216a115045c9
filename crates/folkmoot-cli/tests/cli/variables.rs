//! What a team file sets for its programs stands in no record, and is there when a run goes on
//! (agents.md §4).

use std::fs;

use crate::bench::Bench;

const TEAM: &str = "
sandbox: full
agents:
  - name: Coder
    env: { TOKEN: s3cret-0f-theirs }
    cli: { command: [/bin/sh, -c, 'cat > /dev/null; [ -e ready ] && echo \"has ${#TOKEN} of $TOKEN\"'] }
";

/// A run that failed, and would not a second time.
fn failed() -> Bench {
    let bench = Bench::with_team(TEAM);
    bench.call(["run", "team.yaml", "Do it"]).must_be(1);
    bench.write("ready", "");
    bench
}

#[test]
fn they_are_read_again_where_the_file_stood_and_stand_in_no_record() {
    let bench = failed();
    let result = bench.call(["retry", "last", "--json"]).must_be(0).json();
    assert_eq!(result["final"], "has 16 of ***");
    let fresh = failed();
    let stored = String::from_utf8_lossy(&fresh.stored()).into_owned();
    assert!(stored.contains("TOKEN") && !stored.contains("s3cret"));
}

#[test]
fn where_they_are_missing_nothing_is_asked_and_another_file_can_be_named() {
    let bench = failed();
    fs::rename(bench.path("team.yaml"), bench.path("moved.yaml")).expect("it is there");
    let error = bench.call(["retry", "last", "--json"]).must_be(2).json();
    assert_eq!(error["error"]["code"], "variables_missing");
    let message = error["error"]["message"].as_str().expect("a text");
    let told = "team.yaml does not set TOKEN of Coder, which no record holds the values of";
    assert!(message.ends_with(told), "{message}");
    assert_eq!(bench.runs().len(), 1);
    let named = bench.call(["retry", "last", "--team", "moved.yaml", "--json"]).must_be(0).json();
    assert_eq!(named["final"], "has 16 of ***");
}

#[test]
fn a_run_that_is_resumed_has_them_too() {
    let bench =
        Bench::with_team(&TEAM.replace("[ -e ready ] &&", "[ -e ready ] || exec sleep 600;"));
    let mut run = bench.start(["run", "team.yaml", "Do it"]);
    run.must_tell("started");
    run.signal(rustix::process::Signal::INT);
    run.finish().must_be(130);
    bench.write("ready", "");
    fs::rename(bench.path("team.yaml"), bench.path("moved.yaml")).expect("it is there");
    let refused = bench.call(["resume", "last"]).must_be(2).stderr;
    assert!(refused.contains("does not set TOKEN of Coder"), "{refused}");
    let result = bench.call(["resume", "last", "--team", "moved.yaml", "--json"]).must_be(0).json();
    assert_eq!(result["final"], "has 16 of ***");
}
