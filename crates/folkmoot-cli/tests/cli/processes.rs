//! Several processes and one record: signals, crashes, owners, onlookers (rules.md §§6, 7, 9).

use std::{
    fs::File,
    io::{PipeReader, PipeWriter, Seek, pipe},
    process::Stdio,
    sync::mpsc::channel,
    thread,
};

use folkmoot_stub::{Door, Reply, Stub};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    bench::{Bench, Called, Process, until},
    held::{Held, PAIR, asked, held},
};

fn status(bench: &Bench) -> Value {
    bench.runs()[0]["status"].clone()
}

fn final_of(called: Called) -> Value {
    called.must_be(0).json()["final"].clone()
}

#[test]
fn ctrl_c_suspends_a_run_and_resume_asks_only_what_is_open() {
    let Held { mut run, bench, stub, door } = held("text");
    run.signal(Signal::INT);
    run.must_tell("suspending; press Ctrl-C again to quit at once");
    let suspended = run.finish().must_be(130);
    assert_eq!(suspended.stdout, "");
    until(&stub, |seen| seen.hung_up == 1 && seen.under_way == 0);
    let listed = &bench.runs()[0];
    assert_eq!((&listed["status"], &listed["owner"]), (&json!("interrupted"), &Value::Null));
    let advice = format!("go on with `folkmoot resume {}`", listed["run_id"].as_str().expect("id"));
    assert!(suspended.stderr.contains(&advice), "{}", suspended.stderr);

    door.open();
    assert_eq!(final_of(bench.call(["resume", "last", "--json"])), "two");
    assert_eq!(asked(&stub), ["first", "second", "second"]);
    assert_eq!((bench.runs().len(), status(&bench)), (1, json!("done")));
    bench.call(["replay", "last"]).must_be(0);
    bench.call(["verify", "last"]).must_be(0);
}

#[test]
fn a_run_that_a_person_or_the_system_suspends_says_so_in_json() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT] {
        let Held { run, bench, stub: _stub, .. } = held("json");
        run.signal(signal);
        let result = run.finish().must_be(130).json();
        assert_eq!(result["status"], "interrupted");
        assert_eq!(result["run_id"], bench.runs()[0]["run_id"]);
    }
}

#[test]
fn a_second_ctrl_c_ends_a_process_that_nobody_reads() {
    let wall = "x".repeat(1 << 20);
    let stub = Stub::start([Reply::text(&wall), Reply::text("two").behind(&Door::closed())]);
    let bench = Bench::with_models(PAIR, &stub);
    let (_unread, stdout) = pipe().expect("a pipe");
    let mut run = start_into(&bench, stdout, "stream-json");
    until(&stub, |seen| seen.requests.len() == 2);
    run.signal(Signal::INT);
    run.must_tell("suspending");
    run.signal(Signal::INT);
    run.finish().must_be(130);
    assert_eq!(status(&bench), "interrupted");
}

#[test]
fn ctrl_c_ends_a_process_whose_result_nobody_reads() {
    let bench = Bench::with_team(&format!(
        "agents: [{{name: a, script: {{replies: ['{}']}}}}]",
        "x".repeat(1 << 19)
    ));
    let (mut unread, stdout) = pipe().expect("a pipe");
    let run = start_into(&bench, stdout, "text");
    // Its first byte tells that the run has ended; the rest does not fit into the pipe.
    std::io::Read::read_exact(&mut unread, &mut [0]).expect("it writes");
    run.signal(Signal::INT);
    run.finish().must_be(130);
    assert_eq!(status(&bench), "done");
}

fn start_into(bench: &Bench, stdout: PipeWriter, output: &str) -> Process {
    let mut command = bench.folkmoot(["run", "team.yaml", "task", "--output", output]);
    Process::start_into(&mut command, stdout)
}

#[test]
fn after_a_kill_runs_resume_and_cancel_work_without_editing_files() {
    let Held { run, bench, stub, door } = held("text");
    run.kill();
    until(&stub, |seen| seen.hung_up == 1);
    door.open();

    let listing = bench.copy();
    assert_eq!(status(&listing), "interrupted");
    assert!(listing.call(["runs"]).must_be(0).stdout.contains("interrupted"));

    let resumed = bench.copy();
    assert_eq!(final_of(resumed.call(["resume", "last", "--json"])), "two");
    assert_eq!(asked(&stub), ["first", "second", "second"]);
    let calls = resumed.last()["calls"].clone();
    let attempts = [&calls[0], &calls[1]].map(|call| call["attempt"].clone());
    assert_eq!(attempts, [json!(1), json!(2)]);
    resumed.call(["replay", "last"]).must_be(0);

    let cancelled = bench.copy();
    let told = cancelled.call(["cancel", "last"]).must_be(0).stderr;
    assert!(told.ends_with("is cancelled\n"), "{told}");
    assert_eq!(status(&cancelled), "cancelled");
    assert_eq!(cancelled.last()["calls"][1]["state"], "withdrawn");
    let refused = cancelled.call(["resume", "last"]).must_be(2).stderr;
    assert!(refused.contains("has ended already"), "{refused}");
    assert_eq!(stub.seen().requests.len(), 3, "cancelling asks nobody");
}

#[test]
fn of_two_that_resume_at_once_one_wins_and_the_other_names_it() {
    let Held { run, bench, stub, .. } = held("text");
    run.kill();
    until(&stub, |seen| seen.hung_up == 1);
    let door = Door::closed();
    let stub = Stub::start([Reply::text("two").behind(&door)]);
    let bench = bench.with("OPENAI_BASE_URL", stub.base_url());

    let (ended, ends) = channel();
    for _ in 0..2 {
        let (ended, resume) = (ended.clone(), bench.start(["resume", "last"]));
        thread::spawn(move || ended.send((resume.id(), resume.finish())));
    }
    let (loser, lost) = ends.recv().expect("one of them has to give up");
    door.open();
    let (winner, won) = ends.recv().expect("the other one goes on");
    assert_eq!(
        (lost.must_be(1).stderr.contains(&format!("process {winner} ")), won.exit),
        (true, 0)
    );
    assert_ne!(winner, loser);
    assert_eq!(stub.seen().requests.len(), 1);
}

#[test]
fn a_run_under_way_cannot_be_resumed_and_tells_its_owner() {
    let Held { run, bench, stub, door } = held("text");
    let owner = format!("process {} ", run.id());
    let refused = bench.call(["resume", "last", "--json"]).must_be(1).json();
    assert_eq!(refused["error"]["code"], "run_is_owned");
    assert!(
        refused["error"]["message"].as_str().is_some_and(|it| it.contains(&owner)),
        "{refused}"
    );
    let listed = &bench.runs()[0];
    assert_eq!(listed["status"], "running");
    assert!(listed["owner"].as_str().is_some_and(|it| it.contains(&owner)), "{listed}");
    door.open();
    run.finish().must_be(0);
    assert_eq!(stub.seen().requests.len(), 2);
}

#[test]
fn another_process_cancels_a_run_and_its_connection_is_gone() {
    let Held { run, bench, stub, .. } = held("json");
    let answer = bench.call(["cancel", "last", "--json"]).must_be(0).json();
    assert_eq!((&answer["status"], &answer["cancelled"]), (&json!("cancelled"), &json!(true)));
    let result = run.finish().must_be(1).json();
    assert_eq!(result["status"], "cancelled");
    assert_eq!(result["run_id"], answer["run_id"]);
    until(&stub, |seen| seen.hung_up == 1 && seen.under_way == 0);
    assert_eq!(stub.seen().requests.len(), 2);

    let again = bench.call(["cancel", "last", "--json"]).must_be(0).json();
    assert_eq!((&again["status"], &again["cancelled"]), (&json!("cancelled"), &json!(false)));
    bench.call(["replay", "last"]).must_be(0);
}

#[test]
fn a_run_keeps_its_team_whatever_becomes_of_its_file() {
    let Held { run, bench, stub, door } = held("text");
    run.kill();
    until(&stub, |seen| seen.hung_up == 1);
    let second = "  - { name: second, model: openai/stub }\n";
    for (file, told) in [
        (PAIR.replace(second, ""), "without second"),
        (PAIR.replace("second", "third"), "without second and with third"),
        (PAIR.replace("sequential }", "sequential, order: [first] }"), "without second"),
    ] {
        bench.write("team.yaml", &file);
        let refused = bench.call(["resume", "last"]).must_be(2).stderr;
        assert!(refused.contains(told) && refused.contains("--as-recorded"), "{refused}");
    }
    let other = PAIR.replace("strategy: sequential", "strategy: relay");
    let prompted = PAIR.replace("name: first,", "name: first, prompt: Be brief.,");
    for (file, told) in [(other, "began with: collaboration"), (prompted, "began with: first")] {
        let copy = bench.copy();
        // The copy's run remembers where its file stood.
        bench.write("team.yaml", &file);
        door.open();
        let resumed = copy.call(["resume", "last"]).must_be(0).stderr;
        assert!(resumed.contains("warning: ") && resumed.contains(told), "{resumed}");
    }
    bench.write("team.yaml", &format!("# a comment\n{PAIR}"));
    let resumed = bench.call(["resume", "last"]).must_be(0).stderr;
    assert!(!resumed.contains("warning"), "{resumed}");
}

#[test]
fn another_process_amends_an_answer_and_what_was_made_from_it_is_asked_again() {
    let Held { run, bench, stub, door } = held("json");
    let amended = bench.call(["amend", "last", "step-1/first", "mine", "--json"]).must_be(0).json();
    assert_eq!(amended["asked_again"], json!(["step-2/second"]));
    assert_eq!((&amended["status"], &amended["key"]), (&json!("running"), &json!("step-1/first")));
    until(&stub, |seen| seen.requests.len() == 3 && seen.hung_up == 1);
    let again = stub.seen().requests[2].body.to_string();
    assert!(again.contains("mine") && !again.contains("one\\n"), "{again}");
    door.open();
    let result = run.finish().must_be(0).json();
    assert_eq!((&result["run_id"], &result["status"]), (&amended["run_id"], &json!("done")));
    bench.call(["replay", "last"]).must_be(0);
    let late = bench.call(["amend", "last", "step-1/first", "again"]).must_be(2);
    assert!(late.stderr.contains("--answer step-1/first=TEXT"), "{}", late.stderr);
}

#[test]
fn an_interrupted_run_is_amended_and_its_resumption_goes_on_from_that() {
    let Held { run, bench, stub, door } = held("text");
    run.kill();
    until(&stub, |seen| seen.hung_up == 1);
    let told = bench.call_on("- mine\n", ["amend", "last", "step-1/first", "-"]).must_be(0);
    assert!(told.stderr.contains("asked again: step-2/second"), "{}", told.stderr);
    assert!(told.stderr.contains("`folkmoot resume "), "{}", told.stderr);
    assert_eq!((stub.seen().requests.len(), status(&bench)), (2, json!("interrupted")));
    door.open();
    bench.call(["resume", "last"]).must_be(0);
    let again = stub.seen().requests[2].body.to_string();
    assert!(again.contains("- mine"), "{again}");
    bench.call(["replay", "last"]).must_be(0);
    bench.call(["verify", "last"]).must_be(0);
}

#[test]
fn a_run_under_way_is_not_tried_again_but_exported_as_it_stands() {
    let Held { run, bench, door, stub: _stub } = held("text");
    let refused = bench.call(["retry", "last", "--json"]).must_be(1).json();
    assert_eq!(refused["error"]["code"], "run_is_owned");
    let told = bench.call(["export", "last", "-o", "early.jsonl"]).must_be(0).stderr;
    assert!(told.contains("the run has not ended"), "{told}");
    let shown = bench.call(["show", "early.jsonl", "--json"]).must_be(0).json();
    assert_eq!(shown["run"]["status"], "interrupted");
    bench.call(["replay", "early.jsonl"]).must_be(0);
    door.open();
    run.finish().must_be(0);
}

#[test]
fn an_onlooker_sees_every_event_once_in_order_and_then_the_result() {
    let Held { run, bench, door, stub: _stub } = held("json");
    let mut early = bench.start(["watch", "last", "--json"]);
    early.must_write(r#""key":"step-2/second""#);
    let mut reader = bench.start(["watch", "last"]);
    reader.must_tell("asked");
    door.open();
    let result = run.finish().must_be(0).json();

    let late = bench.call(["watch", "last", "--json"]).must_be(0);
    let early = early.finish().must_be(0);
    assert_eq!(early.stdout, late.stdout);
    let mut lines = late.json_lines();
    let last = lines.pop().expect("there is a result");
    assert_eq!(without_type(last, "result"), result);
    let seqs: Vec<_> = lines.iter().map(|line| line["seq"].as_u64()).collect();
    let recorded = bench.last()["events"].as_array().map_or(0, Vec::len) as u64;
    assert_eq!(seqs, (1..=recorded).map(Some).collect::<Vec<_>>());
    assert!(lines.iter().all(|line| line["type"] == "record"));

    let rest = bench.call(["watch", "last", "--json", "--after", "3"]).must_be(0);
    assert!(late.stdout.ends_with(&rest.stdout));
    assert_eq!(rest.json_lines()[0]["seq"], 4);

    let read = reader.finish().must_be(0);
    assert_eq!(read.stdout, "two\n");
    assert!(read.stderr.contains("done"), "{}", read.stderr);
}

fn without_type(mut line: Value, expected: &str) -> Value {
    let kind = line.as_object_mut().and_then(|fields| fields.shift_remove("type"));
    assert_eq!(kind, Some(expected.into()));
    line
}

#[test]
fn an_onlooker_of_an_abandoned_run_is_told_how_it_goes_on_and_sees_it_go_on() {
    let Held { run, bench, door, stub: _stub } = held("text");
    run.kill();
    let mut onlooker = bench.start(["watch", "last"]);
    onlooker.must_tell("nobody drives run");
    door.open();
    bench.call(["resume", "last"]).must_be(0);
    assert_eq!(onlooker.finish().must_be(0).stdout, "two\n");
}

#[test]
fn the_lines_of_a_stream_are_those_that_an_onlooker_sees() {
    let Held { run, bench, door, stub: _stub } = held("stream-json");
    door.open();
    let streamed = run.finish().must_be(0).stdout;
    let watched = bench.call(["watch", "last", "--output", "stream-json"]).must_be(0).stdout;
    let records = |text: &str| {
        let lines = text.lines().filter(|line| !line.starts_with(r#"{"type":"delta""#));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(records(&streamed), records(&watched));
}

#[test]
fn a_run_finishes_though_nobody_reads_its_output() {
    for output in ["text", "json", "stream-json"] {
        let bench = Bench::with_team("agents: [{name: a, script: {replies: [done]}}]");
        start_into(&bench, closed(pipe()), output).finish().must_be(0);
        assert_eq!(status(&bench), "done", "{output}");
    }
}

/// The end for writing of a pipe that nobody reads any longer.
fn closed(pipe: std::io::Result<(PipeReader, PipeWriter)>) -> PipeWriter {
    pipe.expect("a pipe").1
}

#[test]
fn a_run_finishes_though_nobody_reads_what_it_tells() {
    let bench = Bench::with_team("agents: [{name: a, script: {replies: [done]}}]");
    let mut command = bench.folkmoot(["run", "team.yaml", "task"]);
    let ended = command.stdout(Stdio::null()).stderr(closed(pipe())).status();
    assert_eq!(ended.expect("it can be started").code(), Some(0));
    assert_eq!(status(&bench), "done");
}

#[test]
fn standard_input_is_read_for_a_dash_and_for_nothing_else() {
    const TASK: &str = "which database?\n";
    let bench = Bench::with_team("agents: [{name: echo, script: {}}]");
    bench.write("task", TASK);
    let call = |arguments: &[&str]| {
        let input = File::open(bench.path("task")).expect("it was just written");
        // Both share the place up to which the file was read.
        let mut ours = input.try_clone().expect("files can be opened twice");
        let called = Called::of(bench.folkmoot(arguments.iter().copied()).stdin(input)).must_be(0);
        (called, ours.stream_position().expect("files have a position"))
    };
    for arguments in [
        &["run", "team.yaml", "task"][..],
        &["run", "team.yaml", "-p", "task"],
        &["simulate", "team.yaml", "task"],
        &["dispatch", "echo", "task", "--team", "team.yaml"],
        &["resume", "--help"],
        &["check", "team.yaml"],
        &["show", "last"],
        &["fork", "last"],
    ] {
        assert_eq!(call(arguments).1, 0, "{arguments:?}");
    }
    for arguments in [
        &["run", "team.yaml", "-", "--json"][..],
        &["run", "--config", "team.yaml", "-", "--json"],
        &["run", "team.yaml", "-p", "-", "--json"],
        &["simulate", "team.yaml", "-", "--json"],
    ] {
        let (called, read) = call(arguments);
        assert_eq!((called.json()["prompt"].as_str(), read), (Some(TASK), TASK.len() as u64));
    }
    for arguments in [&["dispatch", "echo"][..], &["broadcast", "echo"]] {
        let arguments = [arguments, &["-", "--team", "team.yaml"]].concat();
        let (called, read) = call(&arguments);
        assert!(called.stdout.contains(TASK.trim()), "{}", called.shown());
        assert_eq!(read, TASK.len() as u64);
    }
}
