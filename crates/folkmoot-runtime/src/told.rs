//! What is kept, as programs read it: JSON with moments in words, alike on the command line and from
//! the servers.

use folkmoot_core::{
    board::Delta,
    mail::Reading,
    orchestrate::Card,
    view::{CallView, Status},
};
use serde_json::{Value, json};

use crate::{engine::Listed, mail::Header};

/// A moment in microseconds since 1970, as programs write it.
pub fn rfc3339(micros: u64) -> String {
    let moment = jiff::Timestamp::from_microsecond(i64::try_from(micros).unwrap_or(i64::MAX));
    moment.map(|moment| moment.to_string()).unwrap_or_default()
}

/// A moment that programs have written, in microseconds since 1970.
pub fn moment(text: &str) -> Option<u64> {
    let moment: jiff::Timestamp = text.parse().ok()?;
    u64::try_from(moment.as_microsecond()).ok()
}

/// A run in a list.
pub fn listed(run: &Listed) -> Value {
    let summary = run.summary.as_ref();
    let status = summary.and_then(|summary| summary.status);
    let unfinished = if run.owner.is_some() { Status::Running } else { Status::Interrupted };
    json!({
        "run_id": run.id.as_str(),
        "status": status.unwrap_or(unfinished),
        "reason": summary.and_then(|it| it.reason.clone()),
        "strategy": summary.map(|it| it.strategy.clone()),
        "team": summary.map(|it| it.team.clone()),
        "prompt": summary.map(|it| it.prompt.clone()),
        "started_at": summary.map(|it| rfc3339(it.started_at)),
        "ended_at": summary.and_then(|it| it.ended_at).map(rfc3339),
        "usage": summary.map(|it| &it.usage),
        "origin": summary.and_then(|it| it.origin.as_ref()),
        "owner": run.owner.as_ref().map(ToString::to_string),
    })
}

/// A call.
pub fn call(call: &CallView) -> Value {
    let mut told = json!(call);
    told["asked_at"] = rfc3339(call.asked_at).into();
    if let Some(at) = call.answered_at {
        told["answered_at"] = rfc3339(at).into();
    }
    told
}

/// The header of a message.
pub fn header(header: &Header) -> Value {
    let mut told = json!(header);
    told["sent_at"] = rfc3339(header.sent_at).into();
    if let Some(receipt) = &header.receipt {
        told["receipt"]["at"] = rfc3339(receipt.at).into();
    }
    told
}

/// A message that is lent.
pub fn reading(reading: &Reading) -> Value {
    let mut message = json!(reading.message);
    message["sent_at"] = rfc3339(reading.message.sent_at).into();
    let mut told =
        json!({ "message": message, "lease": reading.lease, "attempt": reading.attempt });
    if reading.phase_missed {
        told["phase_missed"] = true.into();
    }
    told
}

/// What came to a board.
pub fn delta(delta: &Delta) -> Value {
    let mut told = json!(delta);
    for entry in told["entries"].as_array_mut().into_iter().flatten() {
        entry["at"] = rfc3339(entry["at"].as_u64().unwrap_or_default()).into();
    }
    told
}

/// A card.
pub fn card(card: &Card) -> Value {
    let mut told = json!(card);
    for event in told["events"].as_array_mut().into_iter().flatten() {
        event["at"] = rfc3339(event["at"].as_u64().unwrap_or_default()).into();
    }
    told
}
