//! What a pattern tells of itself beside the unified result (collaborate.md §10).

use serde_json::{Map, Value, json};

use super::{
    Pattern,
    convergence::Layer,
    course::{Course, Turn},
};
use crate::{
    call::Fault,
    programs::turns,
    scope::{Account, Scope},
    verdict::{Ruling, Severity, Signal},
    view::Spending,
};

/// Tells all of it: the turns by round, and the fields of the record.
pub(super) fn tell(cx: &Scope, course: &Course, account: &mut Account) {
    let Pattern { form, max_rounds, cast, .. } = course.pattern;
    let turns: Vec<Value> = course.turns.iter().map(|turn| told(cx, course, turn)).collect();
    let end = course.end;
    let open = open(cx, course);
    let (state, reason, layer) = match (end, course.asks_because) {
        (Some(end), _) => (end.state.as_str(), None, end.layer.map(Layer::as_str)),
        (None, Some((reason, layer))) if !open.is_empty() => {
            ("NEEDS_INPUT", Some(reason), Some(layer))
        }
        (None, _) => ("WORKING", None, None),
    };
    let providers: Map<String, Value> =
        cast.iter().map(|it| (it.role.as_str().to_owned(), (&*it.target).into())).collect();
    let last = course.turns.last().map(|turn| {
        let (number, role) = (turn.number, turn.role.as_str());
        json!({ "turn": number, "role": role, "output": turn.reply.text() })
    });
    let mut record = json!({
        "pattern": form.shape().name,
        "task": cx.spec().task,
        "state": state,
        "layer": layer,
        "converged": end.is_some_and(|end| end.converged),
        "verdict": course.ruling().map(Ruling::as_str),
        "max_rounds": max_rounds,
        "judge_calls": course.judge_calls,
        "providers": providers,
        "turns": turns,
        "final_artifact": course.products().next().and_then(|turn| turn.reply.text()),
        "last_turn": last,
        "unresolved": unresolved(course, &open),
        "signals": signals(course),
        "usage": Spending::from(cx.spent_in_all()),
        "elapsed_s": cx.moment().at.since(crate::time::Time::default()).as_secs_f64(),
    });
    if let Some(plan) = &course.planned {
        record["plan"] = json!(plan.text());
    }
    if let Some(first) = open.first() {
        record["question"] = first.clone();
        record["open_questions"] = open.into();
    }
    if let Some(reason) = reason {
        record["reason"] = reason.into();
    }
    if let Value::Object(fields) = record {
        account.record.extend(fields);
    }
    account.rounds.extend(rounds(course));
}

fn told(cx: &Scope, course: &Course, turn: &Turn) -> Value {
    let (role, agent) = (turn.role.as_str(), &turn.reply.agent);
    let part = course.pattern.cast.iter().find(|part| part.role == turn.role);
    let told = turns::Turn {
        number: turn.number,
        round: turn.round,
        stage: turn.stage,
        role,
        agent,
        name: cx.name(agent).to_owned(),
        target: part.map(|part| &*part.target),
        said: said(turn),
        calls: &cx.at(format!("stage-{}", turn.stage)).calls_of(role),
    };
    told.told(cx)
}

/// What came of a turn, whole.
fn said(turn: &Turn) -> Result<&str, String> {
    match &turn.reply.outcome {
        Ok(answer) if turn.has_failed() => {
            Err(if answer.is_blank() { "blank reply" } else { "no reply" }.to_owned())
        }
        Ok(answer) => Ok(&answer.text),
        Err(Fault::TimedOut) => Err("timed out".to_owned()),
        Err(fault) => Err(fault.to_string()),
    }
}

/// The turns of each cycle.
fn rounds(course: &Course) -> Vec<Value> {
    let kind = course.pattern.form.shape().name;
    let last = course.turns.last().map_or(0, |turn| turn.round);
    let round = |n: u64| {
        let turns = course.turns.iter().filter(|turn| turn.round == n).map(|turn| {
            let (number, stage, role) = (turn.number, turn.stage, turn.role.as_str());
            let (what, text) = match said(turn) {
                Ok(output) => ("output", output.to_owned()),
                Err(error) => ("error", error),
            };
            json!({ "turn": number, "stage": stage, "role": role, what: text })
        });
        json!({ "round": n, "kind": kind, "turns": turns.collect::<Vec<_>>() })
    };
    (1..=last).map(round).collect()
}

/// All signals that were given, and whether each was the one that counts.
fn signals(course: &Course) -> Vec<Value> {
    let of_turn = |turn: &Turn| {
        let told = |signal: &Signal| {
            json!({
                "turn": turn.number,
                "role": turn.role.as_str(),
                "signal": signal.as_str(),
                "obeyed": turn.counts == Some(*signal),
            })
        };
        turn.says.given.iter().map(told).collect::<Vec<_>>()
    };
    course.turns.iter().flat_map(of_turn).collect()
}

/// The questions that wait for an answer.
fn open(cx: &Scope, course: &Course) -> Vec<Value> {
    let place = cx.at("person");
    let unanswered = course.open.iter().filter_map(|question| {
        let key = place.key(question.name());
        let is_open = cx.reply(&key).is_none();
        let (role, text) = (question.role.as_str(), &question.text);
        is_open.then(|| json!({ "key": key, "role": role, "text": text }))
    });
    unanswered.collect()
}

/// What is left open: findings of the latest review, conflicts of the latest synthesis, questions.
fn unresolved(course: &Course, questions: &[Value]) -> Vec<Value> {
    let closing = course.turns.iter().rev();
    let closing = closing.filter(|turn| course.closes(turn.role) && !turn.has_failed());
    let mut open = Vec::new();
    for turn in closing.take(1) {
        let (number, role) = (turn.number, turn.role.as_str());
        let of = |kind: &str, text: &str| json!({ "kind": kind, "turn": number, "role": role, "text": text });
        for (severity, text) in &turn.says.findings {
            let mut finding = of("finding", text);
            finding["severity"] = json!(severity.map(Severity::as_str));
            open.push(finding);
        }
        if open.is_empty() && turn.counts == Some(Signal::Blocking) {
            open.extend(turn.reply.text().map(|text| of("finding", text)));
        }
        if turn.counts == Some(Signal::Conflict) {
            open.extend(turn.says.conflicts.iter().map(|text| of("conflict", text)));
        }
    }
    open.extend(questions.iter().map(|question| {
        let mut question = question.clone();
        question["kind"] = "question".into();
        question
    }));
    open
}
