//! Exported runs, as files that anybody may have changed.

use std::{path::Path, sync::Arc};

use folkmoot_agents::{Agents, Providers};
use folkmoot_core::event::Record;
use folkmoot_runtime::{
    engine::{Engine, RunId},
    export::{FileError, read_from},
    store::{Append, MemoryStore, Store},
    tools::NoTools,
};
use tokio::runtime::Builder;

use crate::source::Choices;

/// A run that was exported is read back as it was; and whatever is changed about the file, the change
/// is found.
///
/// The first line is taken as bytes that choose what is changed, the others are the records, as far
/// as they are some and in order; the whole is tried as a file too.
pub fn export(bytes: &[u8]) {
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    let (edit, rest) = (&bytes[..end], bytes.get(end + 1..).unwrap_or_default());
    let runtime = Builder::new_current_thread().build().expect("nothing is needed for it");
    runtime.block_on(async {
        let _ = read(bytes).await;
        let _ = read(rest).await;
        let text = String::from_utf8_lossy(rest);
        let mut bodies: Vec<Arc<str>> = Vec::new();
        for line in text.lines() {
            let due = bodies.len() as u64 + 1;
            if Record::parse(line).is_ok_and(|record| record.seq == due) {
                bodies.push(line.into());
            }
        }
        if bodies.is_empty() {
            return;
        }
        let file = written(&bodies).await;
        let (store, run) = read(file.as_bytes()).await.expect("it is as it was written");
        assert_eq!(bodies_of(&store, &run).await, bodies, "what was written is not what is read");
        let _ = engine(store).load(&run).await;
        let changed = changed(file.as_bytes(), &mut Choices::new(edit));
        if let Some(changed) = changed {
            let read = read(&changed).await;
            assert!(read.is_err(), "a change is not found: {}", String::from_utf8_lossy(&changed));
        }
    });
}

async fn read(file: &[u8]) -> Result<(MemoryStore, RunId), FileError> {
    read_from(file, Path::new("run.jsonl")).await
}

fn engine(store: MemoryStore) -> Engine {
    let nobody = Providers::new(&[].into(), &|_| None);
    Engine::new(Arc::new(store), Arc::new(Agents::new(nobody)), Arc::new(NoTools), "fuzz")
}

/// The file of a run with these records.
async fn written(bodies: &[Arc<str>]) -> String {
    let (store, run) = (MemoryStore::new(), RunId::parse("fuzzed"));
    let append = Append::new(&"run/fuzzed".into(), 0, bodies.to_vec());
    store.append(append).await.expect("nobody else writes");
    let engine = engine(store);
    let mut export = engine.export(&run, |_| false).await.expect("its records can be read");
    let mut file = String::new();
    while let Some(lines) = export.next().await.expect("they are there") {
        file.push_str(&lines);
    }
    file
}

async fn bodies_of(store: &MemoryStore, run: &RunId) -> Vec<Arc<str>> {
    let stream = format!("run/{run}").as_str().into();
    let rows = store.read(&stream, 0, usize::MAX).await.expect("it is in memory");
    rows.into_iter().map(|row| row.body).collect()
}

/// The file with one byte replaced, added or left out, or with its end cut off; nothing if that is
/// the same.
fn changed(file: &[u8], choices: &mut Choices<'_>) -> Option<Vec<u8>> {
    let at = choices.number() as usize % file.len();
    let mut changed = file.to_vec();
    match choices.below(4) {
        0 => changed[at] = choices.byte(),
        1 => changed.insert(at, choices.byte()),
        2 => drop(changed.remove(at)),
        _ => changed.truncate(at),
    }
    (changed != file).then_some(changed)
}
