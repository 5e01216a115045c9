//! What is told of a run that one request has made (collaborate.md §§3, 4).

use std::sync::Arc;

use serde_json::{Value, json};

use super::{CallView, Outcome, Status, calls};
use crate::{request::Form, run::Run, spec::Spec};

impl Status {
    /// The state of collaborate.md §9 that it means.
    pub fn state(self) -> &'static str {
        match self {
            Status::Done => "COMPLETE",
            Status::Cancelled => "CANCELLED",
            Status::NeedsInput => "NEEDS_INPUT",
            Status::Running | Status::Interrupted => "WORKING",
            Status::Failed | Status::BudgetExhausted | Status::BoundReached | Status::Deadline => {
                "FAILED"
            }
        }
    }
}

impl Form {
    /// The record of a run in this form.
    pub fn record(&self, outcome: &Outcome, spec: &Spec, run: &Run) -> Value {
        match self {
            Form::Unified => json!(outcome),
            Form::Dispatch { target } => dispatch(outcome, spec, run, target),
            Form::Broadcast { targets } => broadcast(outcome, targets),
        }
    }
}

/// Every target that was asked in the trail, under its own name if there is a chain of them.
fn dispatch(outcome: &Outcome, spec: &Spec, run: &Run, target: &str) -> Value {
    let is_chain = spec.team.agents.iter().any(|agent| !agent.fallbacks.is_empty());
    let name = |call: &CallView| match &call.model {
        Some(model) if is_chain => model.clone(),
        Some(_) | None => target.to_owned(),
    };
    let calls = calls(spec, run);
    let requests: Vec<&CallView> = calls.iter().filter(|call| call.tool.is_none()).collect();
    let attempts: Vec<Value> = requests
        .iter()
        .map(|call| {
            let status = if call.reply.is_some() { "success" } else { "error" };
            let error = call.fault.as_ref().map(|it| &it["error"]);
            let mut attempt =
                json!({ "target": name(call), "status": status, "error": error, "waited_s": 0 });
            if let Some(kind) = call.fault.as_ref().and_then(|it| it.get("kind")) {
                attempt["kind"] = kind.clone();
            }
            attempt
        })
        .collect();
    json!({
        "run_id": outcome.run_id,
        "state": outcome.status.state(),
        "status": if outcome.answer.is_some() { "success" } else { "error" },
        "output": outcome.answer,
        "error": outcome.errors.last().map(|it| &it.error).filter(|_| outcome.answer.is_none()),
        "served_by": requests.last().map_or_else(|| target.to_owned(), |call| name(call)),
        "attempts": attempts,
        "usage": outcome.meta.usage.total,
    })
}

/// The results in the order of the targets, each of the agent that stood for it.
fn broadcast(outcome: &Outcome, targets: &[(String, Arc<str>)]) -> Value {
    let none = Value::Null;
    let responses = outcome.rounds.first().map_or(&none, |round| &round["responses"]);
    let result = |(target, agent): &(String, Arc<str>)| {
        let usage = outcome.meta.usage.agents.get(&**agent).copied().unwrap_or_default();
        let response = &responses[&**agent];
        match response.get("error") {
            Some(error) => {
                json!({ "target": target, "status": "error", "error": error, "usage": usage })
            }
            None => {
                json!({ "target": target, "status": "success", "output": response, "usage": usage })
            }
        }
    };
    let results: Vec<Value> = targets.iter().map(result).collect();
    let success = results.iter().filter(|result| result["status"] == "success").count();
    let (total, error) = (results.len(), results.len() - success);
    json!({
        "run_id": outcome.run_id,
        "state": outcome.status.state(),
        "results": results,
        "summary": { "total": total, "success": success, "error": error },
        "comparison": null,
    })
}
