//! What a round table tells of itself beside the unified result.

use serde_json::{Value, json};

use super::{Course, End};
use crate::{
    programs::responses,
    scope::{Account, Scope},
    time::{Duration, Time},
};

/// The rounds by each agent's n-th turn, the board, and how it ended.
pub(super) fn tell(cx: &Scope, course: &Course, account: &mut Account) {
    for (n, replies) in (1..).zip(&course.rounds) {
        // In the order of the seats, whoever came back first.
        let by_seat = course.seats.iter();
        let by_seat =
            by_seat.filter_map(|it| replies.iter().find(|reply| reply.agent == *it.agent));
        let replies: Vec<_> = by_seat.cloned().collect();
        let round =
            json!({ "round": n, "kind": "roundtable", "responses": responses(cx, &replies) });
        account.rounds.push(round);
    }
    let board = course.table.board();
    let entries = board.entries().iter().map(|it| {
        json!({
            "seq": it.seq, "author": it.author, "topic": it.post.topic, "text": it.post.text,
            "refs": it.post.refs, "elapsed_s": seconds(it.at),
        })
    });
    let cells = board.cells().map(|it| {
        json!({ "key": it.key, "value": it.value, "version": it.version, "author": it.author })
    });
    let (entries, cells): (Vec<Value>, Vec<Value>) = (entries.collect(), cells.collect());
    let (state, converged) = match course.end {
        None => ("WORKING", false),
        Some(End::Quiet) => ("COMPLETE", true),
        Some(End::Bound | End::Stopped(Some(_))) => ("COMPLETE", false),
        Some(End::Stopped(None)) => ("CANCELLED", false),
        Some(End::Deserted) => ("FAILED", false),
    };
    account.record.insert("state".to_owned(), state.into());
    account.record.insert("converged".to_owned(), converged.into());
    account.record.insert("board".to_owned(), json!({ "entries": entries, "cells": cells }));
}

fn seconds(at: u64) -> f64 {
    Time(at).since(Time::default()).max(Duration::default()).as_secs_f64()
}
