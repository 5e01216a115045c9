//! Logs, as they could stand in a store or an exported file.

use std::sync::Arc;

use folkmoot_core::{
    event::{Event, Record},
    log,
    replay::{Change, Retry, fork, replay},
    run::Run,
    spec::Spec,
    view,
};

/// Whatever records a log has, in whatever order, they can be folded; and a log that is sound can be
/// shown, replayed, forked and gone on with.
pub fn log(text: &[u8]) {
    let text = String::from_utf8_lossy(text);
    let records: Vec<Record> = text.lines().filter_map(|line| Record::parse(line).ok()).collect();
    for record in &records {
        let read = Record::parse(&record.to_json());
        assert!(read.is_ok_and(|read| read == *record), "a record is not what it was written as");
    }
    let run = Run::fold(&records);
    let _ = run.commands(&records);
    if let Ok((spec, loaded)) = log::load(&records) {
        assert_eq!(loaded, run, "it is loaded to another state than it is folded to");
        use_it(&spec, &run, &records);
    }
}

fn use_it(spec: &Arc<Spec>, run: &Run, records: &[Record]) {
    let outcome = view::outcome("run", spec, run, false);
    serde_json::to_string(&outcome).expect("a result is plain data");
    let _ = view::report("run", spec, run, true);
    let _ = replay(records);
    for retry in [None, Some(Retry { from: None, prompt: Some("better".into()) })] {
        let change = Change { at: run.seq(), spec: spec.clone(), answers: Vec::new(), retry };
        let events = fork("run", records, &change, 0);
        let stepped = Run::default().step(spec.program(), spec, events, run.at());
        let forked = log::load(&stepped.records);
        assert!(forked.is_ok(), "a fork of a sound log is unsound: {forked:?}");
    }
    let mut going_on = run.clone();
    let lost = run.cut_off(spec);
    let resumed = [Event::Resumed { wall: 0 }].into_iter().chain(lost);
    let stepped = going_on.step(spec.program(), spec, resumed, run.at());
    let _ = going_on.commands(&stepped.records);
    let whole: Vec<Record> = records.iter().cloned().chain(stepped.records).collect();
    let whole = log::load(&whole).expect("what follows from a sound log is sound too");
    assert_eq!(whole.1, going_on, "the fold of the log is another state");
}
