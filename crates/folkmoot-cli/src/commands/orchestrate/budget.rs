//! What the runs of a phase have taken of its limits, read from their own logs (orchestrate.md §6).

use std::sync::Arc;

use anyhow::Result;
use folkmoot_core::{
    limits::Limits,
    orchestrate::{Card, Cards, Refusals, Taken},
    refusal::Refusal,
};
use folkmoot_runtime::{
    engine::{Engine, EngineError, RunId},
    orchestrate::{Desk, DeskError},
    refusals,
};

/// What a run is called that another was faster than.
const OUTRUN: &str = "outrun";

/// What the runs of a card's phase have taken of its limits by now.
pub(super) struct Reckoned {
    cards: Cards,
    /// The runs; none where nothing is bounded.
    runs: Vec<Arc<str>>,
    taken: Vec<Taken>,
}

impl Reckoned {
    pub(super) async fn of(engine: &Engine, desk: &Desk, card: &Card) -> Result<Reckoned> {
        let cards = desk.cards().await.map_err(Refusal::from)?;
        let runs = runs(&cards, card);
        let mut taken = Vec::new();
        for run in &runs {
            taken.push(of_run(engine, &cards, run).await?);
        }
        Ok(Reckoned { cards, runs, taken })
    }

    /// What the next run of a card may use: its share of what is left.
    pub(super) fn share(&self, card: &Card) -> Result<Limits> {
        self.cards.share(card, self.taken.iter().copied()).map_err(|it| refusals::all(it).into())
    }

    /// All that is left.
    pub(super) fn left(&self, card: &Card) -> Result<Limits> {
        card.left(self.taken.iter().copied()).map_err(|it| refusals::all(it).into())
    }

    /// Refused if other runs have begun meanwhile.
    pub(super) fn holds(&self, cards: &Cards, card: &Card) -> std::result::Result<(), Refusals> {
        if runs(cards, card) == self.runs {
            return Ok(());
        }
        let message = "another run of the phase began at the same moment";
        Err(vec![Refusal::new(OUTRUN, message).help("try it again")])
    }
}

fn runs(cards: &Cards, card: &Card) -> Vec<Arc<str>> {
    let phase_id = card.phase_id.as_deref().filter(|_| !card.budget.is_none());
    phase_id.map(|phase_id| cards.runs_of(phase_id)).unwrap_or_default()
}

async fn of_run(engine: &Engine, cards: &Cards, run: &str) -> Result<Taken> {
    match engine.load(&RunId::parse(run)).await {
        // It was noted: it is about to begin, or never will.
        Err(EngineError::NoSuchRun(_)) => {
            let mut cards = cards.all().iter();
            let card = cards.find(|card| card.open_run.as_deref() == Some(run));
            Ok(card.map_or(Taken::default(), |card| Taken::at_most(&card.limits)))
        }
        Err(error) => Err(error.into()),
        Ok(it) if it.run.ending().is_some() => Ok(Taken::used(&it.run.ledger().run)),
        Ok(it) => Ok(Taken::at_most(&it.spec.limits)),
    }
}

/// Whether a run was refused because another one was faster.
pub(super) fn is_outrun(error: &DeskError) -> bool {
    matches!(error, DeskError::Refused(told) if told.iter().any(|it| it.code == OUTRUN))
}
