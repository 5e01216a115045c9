//! Logs as earlier versions wrote them: they must load, and come to what they came to then.
//!
//! This is the compatibility surface. A log is added where its kind is new, and never changed: if one
//! of them no longer loads or its result differs, then so it is with the runs that people keep. The
//! rounds of a result are made by the programs of today, which must recognise the questions they
//! asked then: a change of wording that leaves old runs without rounds shows here too.

use std::{collections::BTreeSet, fmt::Write};

use expect_test::{ExpectFile, expect_file};
use folkmoot_core::{
    event::{Event, Record},
    log, view,
};

macro_rules! logs {
    ($($name:literal),*) => {
        [$((
            include_str!(concat!("golden/", $name, ".jsonl")),
            expect_file![concat!("golden/", $name, ".txt")],
        )),*]
    };
}

/// Each log, one record a line, and what came of it.
fn logs() -> impl Iterator<Item = (Vec<Record>, &'static str, ExpectFile)> {
    let logs = logs![
        "acp",
        "adaptive",
        "broadcast",
        "consensus",
        "controller",
        "debate",
        "failover",
        "faults",
        "fork",
        "graph-evidence",
        "graph-join",
        "graph-lead",
        "graph-own",
        "graph-person",
        "graph-pipeline",
        "graph-review",
        "mail",
        "mcp",
        "pattern-consensus",
        "pattern-debate",
        "pattern-review",
        "relay",
        "retry",
        "roles",
        "roundtable",
        "saved",
        "sequential",
        "supervisor",
        "team-of-teams",
        "woken"
    ];
    logs.into_iter().map(|(log, result)| (records(log), log, result))
}

fn records(log: &str) -> Vec<Record> {
    let records = log.lines().map(Record::parse).collect::<Result<_, _>>();
    records.unwrap_or_else(|unreadable| panic!("{unreadable}"))
}

#[test]
fn a_log_of_an_earlier_version_comes_to_the_same_result() {
    for (records, _, result) in logs() {
        let (spec, run) = log::load(&records).unwrap_or_else(|unsound| panic!("{unsound}"));
        let outcome = view::outcome("golden", &spec, &run, false);
        let mut text = serde_json::to_string_pretty(&outcome).expect("it is JSON");
        for call in view::calls(&spec, &run) {
            let view::CallView { key, state, attempt, usage, .. } = call;
            let tokens = usage.total_tokens;
            write!(text, "\n{key}: {state}, attempt {attempt}, {tokens} tokens").expect("a string");
        }
        result.assert_eq(&text);
    }
}

#[test]
fn a_log_of_an_earlier_version_would_be_written_the_same_today() {
    for (records, log, _) in logs() {
        let lines: Vec<String> = records.iter().map(Record::to_json).collect();
        assert_eq!(lines, log.lines().collect::<Vec<_>>());
    }
}

#[test]
fn there_is_an_example_of_every_event() {
    let kinds: BTreeSet<&str> = logs()
        .flat_map(|(records, _, _)| records)
        .map(|record| match record.event {
            Event::Started { .. } => "started",
            Event::Inherited { .. } => "inherited",
            Event::Prompted { .. } => "prompted",
            Event::Resumed { .. } => "resumed",
            Event::Answered { .. } => "answered",
            Event::Amended { .. } => "amended",
            Event::CancelRequested => "cancel_requested",
            Event::Ticked => "ticked",
            Event::Woken { .. } => "woken",
            Event::Saved { .. } => "saved",
            Event::Mailed { .. } => "mailed",
            Event::Asked { .. } => "asked",
            Event::Refused { .. } => "refused",
            Event::Withdrawn { .. } => "withdrawn",
            Event::Concluded { .. } => "concluded",
            Event::Ended { .. } => "ended",
        })
        .collect();
    assert_eq!(kinds.len(), 16);
}
