//! All cards of an owner: a fold of their stream.

use std::sync::Arc;

use super::card::{Card, Changed, State};
use super::event::{Event, Row};
use super::{Refusals, helped};
use crate::diagnostic::quoted;

/// The cards, oldest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cards {
    cards: Vec<Card>,
}

impl Cards {
    /// All of them, oldest first.
    pub fn all(&self) -> &[Card] {
        &self.cards
    }

    /// The card of that name.
    pub fn get(&self, task_id: &str) -> Option<&Card> {
        self.cards.iter().find(|card| *card.task_id == *task_id)
    }

    /// The newest card with that branch.
    pub fn on(&self, branch: &str) -> Option<&Card> {
        let is_on = |card: &&Card| card.branch.name.as_deref() == Some(branch);
        self.cards.iter().rev().find(is_on)
    }

    /// The card that is meant by its name, by its branch, or by both.
    pub fn meant(&self, task_id: Option<&str>, branch: Option<&str>) -> Result<&Card, Refusals> {
        let given =
            |text: Option<&str>| text.map(str::trim).filter(|it| !it.is_empty()).map(str::to_owned);
        let unknown = |what: String| {
            vec![helped("unknown_task_id", what, "`folkmoot orchestrate status` lists the cards")]
        };
        match (given(task_id), given(branch)) {
            (None, None) => Err(unknown("no card is named: give task_id or branch".to_owned())),
            (Some(id), None) => {
                self.get(&id).ok_or_else(|| unknown(format!("there is no card {}", quoted(&id))))
            }
            (None, Some(branch)) => {
                let none = || unknown(format!("no card has the branch {}", quoted(&branch)));
                self.on(&branch).ok_or_else(none)
            }
            (Some(id), Some(branch)) => {
                let card = self.meant(Some(&id), None)?;
                let other = self.on(&branch).filter(|other| other.task_id != card.task_id);
                other.map_or(Ok(card), |other| {
                    let other = &other.task_id;
                    let message =
                        format!("{id} is one card, and the branch {branch} is that of {other}");
                    Err(vec![helped("ambiguous_target", message, "give one of the two")])
                })
            }
        }
    }

    /// Whether an issue of that id is in.
    pub fn is_integrated(&self, issue_id: &str) -> bool {
        let is_it = |card: &Card| card.issue_id.as_deref() == Some(issue_id);
        self.cards.iter().any(|card| is_it(card) && card.state == State::Integrated)
    }

    /// The cards that must be done before `card` and are not.
    pub fn unmet(&self, card: &Card) -> Vec<Arc<str>> {
        let is_met = |id: &&Arc<str>| self.get(id).is_some_and(|before| before.is_met_for(card));
        card.depends_on.iter().filter(|id| !is_met(id)).cloned().collect()
    }

    /// The first name that no card has.
    pub fn free_id(&self) -> Arc<str> {
        let numbers =
            self.cards.iter().filter_map(|card| card.task_id.strip_prefix('T')?.parse().ok());
        let last: u64 = numbers.filter(|it| *it < u64::MAX).max().unwrap_or(0);
        format!("T{:03}", last + 1).into()
    }

    /// Folds a row; what makes no sense changes nothing.
    pub fn apply(&mut self, row: Row) {
        let Row { at, actor, task_id, event } = row;
        let name = event.as_str();
        if let Event::Made(new) = event {
            if self.get(&task_id).is_none() {
                let after = State::Planned;
                let mut card = Card::new(task_id, new);
                card.events.push(Changed { at, actor, event: name, before: None, after });
                self.cards.push(card);
            }
            return;
        }
        let Some(card) = self.cards.iter_mut().find(|card| card.task_id == task_id) else { return };
        let before = card.state;
        if before.is_final() {
            return;
        }
        card.take(&actor, event);
        let after = card.state;
        card.events.push(Changed {
            at,
            actor: actor.clone(),
            event: name,
            before: Some(before),
            after,
        });
        self.unblock(at, &actor);
    }

    /// Lets the cards go on whose predecessors are done.
    fn unblock(&mut self, at: u64, actor: &Arc<str>) {
        let blocked = |card: &&Card| card.state == State::Blocked && self.unmet(card).is_empty();
        let free: Vec<Arc<str>> =
            self.cards.iter().filter(blocked).map(|card| card.task_id.clone()).collect();
        for card in self.cards.iter_mut().filter(|card| free.contains(&card.task_id)) {
            let (before, after) = (Some(card.state), State::Planned);
            card.state = after;
            let actor = actor.clone();
            card.events.push(Changed { at, actor, event: "unblocked", before, after });
        }
    }
}
