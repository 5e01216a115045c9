//! Phases and cards as they are told.

use std::{collections::BTreeMap, fmt::Write as _};

use folkmoot_core::orchestrate::{Card, Cards, Materialized, Plan, Review, State, Template};
use folkmoot_runtime::told;
use serde_json::{Value, json};

/// What came of a request.
pub(super) struct Told {
    /// For programs.
    pub(super) value: Value,
    /// For people.
    pub(super) text: String,
}

/// A card.
pub(super) fn card(card: &Card) -> Told {
    let mut text = line(card);
    let review = card.review.as_ref().map(reviewed);
    let asking = card.waiting_on.as_ref().map(|it| {
        let run = it.run.as_deref().map(|run| format!(", `folkmoot answer {run} …`"));
        format!("{}{}", it.reason, run.unwrap_or_default())
    });
    let parts = [
        ("branch", card.branch.name.as_deref()),
        ("head", card.branch.head.as_deref()),
        ("run", card.runs.last().map(|it| &**it)),
        ("review", review.as_deref()),
        ("waits for an answer", asking.as_deref()),
    ];
    for (name, part) in parts {
        text.extend(part.map(|part| format!("\n  {name}: {part}")));
    }
    for (gate, passed) in &card.gates {
        let _ = write!(text, "\n  gate {}: {gate}", passed.as_str());
    }
    text.extend(card.findings.iter().map(|finding| format!("\n  to do: {finding}")));
    Told { value: told::card(card), text }
}

/// A verdict, the commit that it is about, and whose it is.
fn reviewed(Review { verdict, commit, by, .. }: &Review) -> String {
    let commit = commit.as_deref().map(|commit| format!(" at {}", short(commit)));
    format!("{}{} by {by}", verdict.as_str(), commit.unwrap_or_default())
}

/// A commit as people write it.
fn short(commit: &str) -> String {
    commit.chars().take(12).collect()
}

/// A card that a run has worked on.
pub(super) fn executed(card: &Card) -> Told {
    let Told { value, text } = self::card(card);
    Told { value: json!({ "run_id": card.runs.last(), "card": value }), text }
}

/// What a person is asked about a card.
pub(super) fn question(card: &Card, run: &str, question: &str) -> Told {
    let value = json!({ "run_id": run, "question": question, "card": told::card(card) });
    Told { value, text: format!("{question}\n`folkmoot answer {run} …`, then merge again") }
}

/// How all cards are.
pub(super) fn summary(cards: &Cards, limit: usize) -> Told {
    let all = cards.all();
    let mut by_state: BTreeMap<State, usize> = BTreeMap::new();
    for card in all {
        *by_state.entry(card.state).or_default() += 1;
    }
    let waits = all.iter().filter(|card| card.state == State::Blocked);
    let blocked: Vec<Value> =
        waits.map(|card| json!({ "task_id": card.task_id, "by": cards.unmet(card) })).collect();
    let newest = || all.iter().rev().take(limit);
    let value = json!({
        "summary": { "total": all.len(), "by_state": by_state },
        "cards": newest().map(told::card).collect::<Vec<_>>(),
        "blocked": blocked,
    });
    let lines: Vec<String> = newest().map(line).collect();
    let text = if lines.is_empty() { "no cards".to_owned() } else { lines.join("\n") };
    Told { value, text }
}

/// The plan of a phase.
pub(super) fn plan(plan: &Plan) -> Told {
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
    Told { value: plan.told(), text: lines.join("\n") }
}

/// The cards that were made of a plan.
pub(super) fn materialized(
    plan: &Plan,
    (name, template): (&str, &Template),
    made: &Materialized,
    cards: &Cards,
) -> Told {
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
    let value = json!({
        "phase_id": plan.phase_id,
        "template": name,
        "cards": meant.iter().map(told).collect::<Vec<_>>(),
        "created": made.created,
        "reused": made.reused,
    });
    let lines: Vec<String> = meant.iter().map(|card| line(card)).collect();
    Told { value, text: lines.join("\n") }
}

fn line(card: &Card) -> String {
    let agent = card.agent.as_deref().unwrap_or(card.role.as_str());
    let is_approved = card.state == State::Reviewing && card.is_approved();
    let approved = if is_approved { ", approved" } else { "" };
    format!("{} · {}{approved} · {agent} · {}", card.task_id, card.state.as_str(), card.title)
}
