//! Writers that take turns in any order.

use std::sync::Arc;

use folkmoot_runtime::store::{Append, Head, MemoryStore, Store, StoreError};
use proptest::{collection::vec, prelude::*, test_runner::TestCaseResult};

use crate::{OnDisk, all, head, stream, texts};

/// What one of several writers does next.
#[derive(Clone, Debug)]
enum Move {
    /// Looks where the stream ends.
    Look,
    /// Appends so many rows to where it last saw the end.
    Append(usize),
}

const WRITERS: usize = 4;

fn moves() -> impl Strategy<Value = Vec<(usize, Move)>> {
    let one = prop_oneof![Just(Move::Look), (0..4_usize).prop_map(Move::Append)];
    vec((0..WRITERS, one), 0..60)
}

/// Plays the moves against a store and against a plain list: each append succeeds exactly if its
/// writer knew the end, and the stream is the list.
async fn play(store: &dyn Store, moves: &[(usize, Move)]) -> TestCaseResult {
    let run = stream("run/1");
    let mut model: Vec<String> = Vec::new();
    let mut known = [0; WRITERS];
    for (turn, (writer, next)) in moves.iter().enumerate() {
        match next {
            Move::Look => known[*writer] = head(store, &run).await.seq,
            Move::Append(rows) => {
                let new: Vec<String> =
                    (0..*rows).map(|row| format!("{writer} {turn} {row}")).collect();
                let bodies: Vec<Arc<str>> = new.iter().map(|text| text.as_str().into()).collect();
                let result = store.append(Append::new(&run, known[*writer], bodies)).await;
                if known[*writer] == model.len() as u64 {
                    model.extend(new);
                    let end = result.expect("it follows the end");
                    prop_assert_eq!(end.seq, model.len() as u64);
                    known[*writer] = end.seq;
                } else {
                    let refused = matches!(result, Err(StoreError::Conflict { head, .. })
                        if head.seq == model.len() as u64);
                    prop_assert!(refused, "{:?}", result);
                }
            }
        }
    }

    let rows = all(store, &run).await;
    prop_assert_eq!(texts(&rows), model.iter().map(String::as_str).collect::<Vec<_>>());
    let end = Head::origin(&run).accept_all(&rows).expect("the rows are a chain");
    prop_assert_eq!(head(store, &run).await, end);
    Ok(())
}

fn block_on(play: impl Future<Output = TestCaseResult>) -> TestCaseResult {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime starts").block_on(play)
}

proptest! {
    #[test]
    fn turns_in_memory_lose_double_and_swap_nothing(moves in moves()) {
        block_on(play(&MemoryStore::new(), &moves))?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn turns_on_disk_lose_double_and_swap_nothing(moves in moves()) {
        block_on(play(&OnDisk::new().store, &moves))?;
    }
}
