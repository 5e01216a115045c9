//! Phases and cards as they are told.

use std::collections::BTreeMap;

use folkmoot_core::orchestrate::{Card, Cards, Materialized, Plan, State, Template};
use folkmoot_runtime::told;
use serde_json::{Value, json};

use crate::app::App;

/// A value for programs, or a line for people.
pub(super) fn value(app: &App, value: &Value, text: &str) {
    if app.wants_json() {
        app.print_json(value);
    } else {
        app.print(&app.page().text(text));
    }
}

/// A card.
pub(super) fn card(app: &App, card: &Card) {
    let mut text = line(card);
    let parts = [
        ("branch", card.branch.name.as_deref()),
        ("head", card.branch.head.as_deref()),
        ("run", card.runs.last().map(|it| &**it)),
        ("waits for an answer", card.waiting_on.as_ref().map(|it| &*it.reason)),
    ];
    for (name, part) in parts {
        text.extend(part.map(|part| format!("\n  {name}: {part}")));
    }
    text.extend(card.findings.iter().map(|finding| format!("\n  to do: {finding}")));
    value(app, &told::card(card), &text);
}

/// A card that a run has worked on.
pub(super) fn executed(app: &App, card: &Card) {
    if app.wants_json() {
        app.print_json(&json!({ "run_id": card.runs.last(), "card": told::card(card) }));
    } else {
        self::card(app, card);
    }
}

/// What a person is asked about a card.
pub(super) fn question(app: &App, card: &Card, run: &str, question: &str) {
    let told = json!({ "run_id": run, "question": question, "card": told::card(card) });
    value(app, &told, &format!("{question}\n`folkmoot answer {run} …`, then merge again"));
}

/// How all cards are.
pub(super) fn summary(app: &App, cards: &Cards, limit: usize) {
    let all = cards.all();
    let mut by_state: BTreeMap<State, usize> = BTreeMap::new();
    for card in all {
        *by_state.entry(card.state).or_default() += 1;
    }
    let waits = all.iter().filter(|card| card.state == State::Blocked);
    let blocked: Vec<Value> =
        waits.map(|card| json!({ "task_id": card.task_id, "by": cards.unmet(card) })).collect();
    let newest = || all.iter().rev().take(limit);
    let summary = json!({
        "summary": { "total": all.len(), "by_state": by_state },
        "cards": newest().map(told::card).collect::<Vec<_>>(),
        "blocked": blocked,
    });
    let lines: Vec<String> = newest().map(line).collect();
    value(app, &summary, &if lines.is_empty() { "no cards".to_owned() } else { lines.join("\n") });
}

/// The plan of a phase.
pub(super) fn plan(app: &App, plan: &Plan) {
    let cards = plan.cards.iter().map(|card| {
        let before = card.depends_on.join(", ");
        let after = if before.is_empty() { before } else { format!(" after {before}") };
        format!("  {} · {} · {}{after}", card.issue_id, card.kind.as_str(), card.role.as_str())
    });
    let deferred =
        plan.deferred.iter().map(|it| format!("  {} · later: {}", it.issue_id, it.reason));
    let doubts = plan.warnings.iter().map(|it| format!("  {} · {}", it.issue_id, it.code));
    let head = format!("phase {}", plan.phase_id);
    let lines: Vec<String> =
        [head].into_iter().chain(cards).chain(deferred).chain(doubts).collect();
    value(app, &plan.told(), &lines.join("\n"));
}

/// The cards that were made of a plan.
pub(super) fn materialized(
    app: &App,
    plan: &Plan,
    name: &str,
    template: &Template,
    made: &Materialized,
    cards: &Cards,
) {
    let ids = made.reused.iter().chain(&made.created);
    let meant: Vec<&Card> = ids.filter_map(|id| cards.get(id)).collect();
    let told = |card: &&Card| {
        json!({
            "task_id": card.task_id,
            "card_id": card.card_id,
            "state": card.state,
            "role": card.role,
            "candidates": template.candidates(card.role),
        })
    };
    let all = json!({
        "phase_id": plan.phase_id,
        "template": name,
        "cards": meant.iter().map(told).collect::<Vec<_>>(),
        "created": made.created,
        "reused": made.reused,
    });
    let lines: Vec<String> = meant.iter().map(|card| line(card)).collect();
    value(app, &all, &lines.join("\n"));
}

fn line(card: &Card) -> String {
    let agent = card.agent.as_deref().unwrap_or(card.role.as_str());
    format!("{} · {} · {agent} · {}", card.task_id, card.state.as_str(), card.title)
}
