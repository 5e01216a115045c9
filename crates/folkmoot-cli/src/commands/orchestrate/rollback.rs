//! How the card of a run follows when another run goes on from it (orchestrate.md §7): its checkout is
//! again what it was before a call, in a commit of its own, and nothing of what came later is lost.

use anyhow::Result;
use folkmoot_core::{
    limits::Limits,
    orchestrate::{Card, Cards, Event},
    spec::Spec,
};
use folkmoot_runtime::{
    driver::Driver,
    engine::{Engine, EngineError, Loaded, RunId},
    orchestrate::Desk,
    refusals,
};

use super::{
    budget::Reckoned,
    execute::{Execution, Given},
    place,
    told::{self, Told},
};
use crate::{
    app::{self, App},
    commands::drive::{drive_quietly, tell},
    exit::{Exit, Refusal},
};

/// The card that a run was of.
pub(crate) struct Followed {
    desk: Desk,
    card: Card,
    reckoned: Reckoned,
    /// What the run that goes on may use.
    limits: Limits,
}

impl Followed {
    /// The card that `origin` is a run of, if it is one; refused if it cannot be rolled back.
    pub(crate) async fn by(
        app: &App,
        engine: &Engine,
        origin: &Loaded,
    ) -> Result<Option<Followed>> {
        let desk = Desk::new(engine, &app.owner()?, &app::user());
        let cards = desk.cards().await.map_err(Refusal::from)?;
        let is_its = |card: &&Card| card.runs.iter().any(|run| **run == *origin.id.as_str());
        let Some(card) = cards.all().iter().find(is_its).cloned() else { return Ok(None) };
        cards.roll_back(&card, origin.id.as_str()).map_err(refusals::all)?;
        if card.write {
            // It may be gone, and its files are to be put back.
            let execution = Execution { app, engine, desk: &desk };
            execution.checkout(&card).await?;
        }
        let reckoned = Reckoned::of(engine, &desk, &card).await?;
        let limits = reckoned.left(&card)?;
        Ok(Some(Followed { desk, card, reckoned, limits }))
    }

    /// A spec under what is left of the limits of the card's phase.
    pub(crate) fn within(&self, spec: &Spec) -> Spec {
        Spec { limits: spec.limits.within(&self.limits), ..spec.clone() }
    }

    /// Lets the card follow a run that goes on from `origin`, whose files are put back, and drives it.
    pub(crate) async fn drive(
        &self,
        app: &App,
        engine: &Engine,
        (origin, key): (&Loaded, Option<&str>),
        driver: Driver,
    ) -> Result<Exit> {
        let limits = driver.spec().limits;
        if limits.within(&self.limits) != limits {
            let message = "the limits of the card's phase leave less than such a run may use";
            let help = format!("`folkmoot fork {}` goes on under what is left", origin.id);
            return Err(Refusal::new("phase_exhausted", message).help(help).into());
        }
        let (from, run) = (origin.id.as_str(), driver.id().as_str().into());
        let head = self.head(app, engine, from).await?.map(Into::into);
        let (from_run, key) = (from.into(), key.map(Into::into));
        let event = Event::RolledBack { run, from: from_run, key, limits, head };
        let may = |cards: &Cards, card: &Card| {
            cards.roll_back(card, from)?;
            self.reckoned.holds(cards, card)
        };
        let card = self.desk.note(&self.card.task_id, event, may).await.map_err(Refusal::from)?;
        if self.card.open_run.is_some() {
            // It was broken off, and another one works in its place.
            match engine.cancel(&RunId::parse(from)).await {
                Ok(_) | Err(EngineError::NoSuchRun(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let (outcome, _) = drive_quietly(driver, app).await?;
        let status = outcome.status;
        tell(&outcome, &limits, app);
        let execution = Execution { app, engine, desk: &self.desk };
        let card = execution.settle(&card, Some(outcome), &Given::default()).await?;
        let Told { text, .. } = told::card(&card);
        app.tell(&format!("{}\n", app.screen().text(&text)));
        Ok(status.into())
    }

    /// Commits what the files are again; gives the last commit of the card's branch.
    async fn head(&self, app: &App, engine: &Engine, from: &str) -> Result<Option<String>> {
        if !self.card.write {
            return Ok(None);
        }
        let execution = Execution { app, engine, desk: &self.desk };
        let (tree, _) = execution.checkout(&self.card).await?;
        let (Some(tree), Some(repository)) = (tree, place::repository().await?) else {
            return Err(place::no_repository().into());
        };
        let message = format!("{}: go back in run {from}", self.card.task_id);
        Ok(Some(repository.commit_all(&tree, &message).await?))
    }
}
