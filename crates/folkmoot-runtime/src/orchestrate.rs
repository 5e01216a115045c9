//! Phases and cards in the store: what `folkmoot orchestrate` does short of git and runs
//! (orchestrate.md).

use std::sync::Arc;

use folkmoot_core::{
    orchestrate::{
        Assignment, Card, Cards, Event, Issue, Judgement, Mark, Materialized, Phases, Plan,
        PlanRequest, Refusals, Row, Template,
    },
    refusal::Refusal,
};
use serde_json::Value;
use thiserror::Error;

use crate::{
    engine::{Engine, EngineError},
    folds::{self, FoldError},
    store::StreamId,
};

/// Phases and cards of one owner, and who asks for changes of them.
#[derive(Clone)]
pub struct Desk {
    engine: Engine,
    owner: Arc<str>,
    actor: Arc<str>,
}

/// Why a request about cards failed.
#[derive(Debug, Error)]
pub enum DeskError {
    /// It is refused.
    #[error("{}", .0.first().map_or("it is refused", |it| it.message.as_str()))]
    Refused(Refusals),
    /// It could not be read or kept.
    #[error(transparent)]
    Kept(#[from] FoldError),
    /// A run of it failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl From<Refusals> for DeskError {
    fn from(refusals: Refusals) -> DeskError {
        DeskError::Refused(refusals)
    }
}

impl DeskError {
    /// A refusal with one fault, and the way out.
    pub fn refused(
        code: &'static str,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> DeskError {
        DeskError::Refused(vec![Refusal::new(code, message).help(help)])
    }
}

/// A plan of which cards are to be made.
#[derive(Clone, Debug, Default)]
pub struct MaterializeRequest {
    /// The phase; the one that was planned last if none.
    pub phase_id: Option<String>,
    /// The digest that its plan is to have.
    pub digest: Option<String>,
    /// The issues that it is to be of.
    pub issues: Option<Value>,
}

impl Desk {
    /// The desk of `owner` in the store of `engine`, for `actor`.
    pub fn new(engine: &Engine, owner: &str, actor: &str) -> Desk {
        Desk { engine: engine.clone(), owner: owner.into(), actor: actor.into() }
    }

    /// The same for somebody else.
    #[must_use]
    pub fn by(&self, actor: &str) -> Desk {
        Desk { actor: actor.into(), ..self.clone() }
    }

    /// All cards.
    pub async fn cards(&self) -> Result<Cards, DeskError> {
        Ok(folds::load(self.engine.store(), &self.stream("cards")).await?.0)
    }

    /// All plans.
    pub async fn phases(&self) -> Result<Phases, DeskError> {
        Ok(folds::load(self.engine.store(), &self.stream("phase")).await?.0)
    }

    /// Records something to be done.
    pub async fn plan(&self, task: &str, task_id: Option<&str>) -> Result<Card, DeskError> {
        let decide = |cards: &Cards| {
            let row = cards.plan(&self.mark(), task, task_id)?;
            Ok((row.task_id.clone(), vec![row]))
        };
        let (id, cards) = self.decided(decide).await?;
        kept(&cards, &id)
    }

    /// Plans a phase, and keeps the plan; nothing else.
    pub async fn plan_phase(&self, request: &PlanRequest) -> Result<Plan, DeskError> {
        let cards = self.cards().await?;
        let plan = Plan::new(request, |issue| cards.is_integrated(issue))?;
        let decide = |_: &Phases| Ok::<_, Refusals>(((), vec![plan.clone()]));
        folds::change(self.engine.store(), &self.stream("phase"), decide).await??;
        Ok(plan)
    }

    /// Makes a card of each that is planned.
    pub async fn materialize(
        &self,
        request: &MaterializeRequest,
        name: &str,
        template: &Template,
    ) -> Result<(Plan, Materialized, Cards), DeskError> {
        let phases = self.phases().await?;
        let plan = phases.plan(request.phase_id.as_deref()).ok_or_else(|| {
            let which = request.phase_id.as_deref().unwrap_or("any phase");
            let message = format!("there is no plan of {which}");
            DeskError::refused("no_phase_plan", message, "`phase-plan` makes one of issues")
        })?;
        let again = match &request.issues {
            Some(issues) => Some(plan.digest_with(&Issue::read(issues)?)),
            None => None,
        };
        let wanted = request.digest.as_deref().map(str::trim).into_iter().chain(again.as_deref());
        if wanted.into_iter().any(|digest| digest != &*plan.digest) {
            let message = format!("the plan of {} is another by now", plan.phase_id);
            let help = "`phase-plan` again, and give the digest that it tells";
            return Err(DeskError::refused("plan_drift", message, help));
        }
        let decide = |cards: &Cards| cards.materialize(&self.mark(), plan, name, template);
        let (made, cards) = self.decided(decide).await?;
        Ok((plan.clone(), made, cards))
    }

    /// Gives a card to somebody.
    pub async fn assign(
        &self,
        task_id: &str,
        given: &Assignment,
        is_known: impl Fn(&str) -> bool,
    ) -> Result<Card, DeskError> {
        let phases = self.phases().await?;
        let decide = |cards: &Cards| {
            let card = cards.meant(Some(task_id), None);
            let card = card.map_err(|it| cards.missing(task_id, &phases, it))?;
            let row = cards.assign(&self.mark(), card, given, &is_known)?;
            Ok((card.task_id.clone(), vec![row]))
        };
        let (id, cards) = self.decided(decide).await?;
        kept(&cards, &id)
    }

    /// Puts a card up for review, or takes a verdict on it.
    pub async fn review(
        &self,
        card: &Card,
        branch: Option<&str>,
        head: Option<Arc<str>>,
        judgement: Option<&Judgement>,
    ) -> Result<Card, DeskError> {
        let decide = |cards: &Cards| {
            let card = cards.meant(Some(&card.task_id), None)?;
            let rows = cards.review(&self.mark(), card, branch, head.clone(), judgement)?;
            Ok(((), rows))
        };
        let ((), cards) = self.decided(decide).await?;
        kept(&cards, &card.task_id)
    }

    /// Takes up a card to work on it; one that waits for others is shown as blocked from then on.
    pub async fn take_up(&self, task_id: &str) -> Result<Card, DeskError> {
        let phases = self.phases().await?;
        let decide = |cards: &Cards| {
            let card = cards.meant(Some(task_id), None);
            let card = card.map_err(|it| cards.missing(task_id, &phases, it))?;
            Ok(match cards.execute(&self.mark(), card)? {
                Ok(()) => (Ok(card.clone()), Vec::new()),
                Err(row) => (Err(vec![cards.blocked(card)]), vec![row]),
            })
        };
        let (card, _): (Result<Card, Refusals>, Cards) = self.decided(decide).await?;
        Ok(card?)
    }

    /// Notes that something happened to a card, if `is_so` still holds of it; gives the card.
    pub async fn note(
        &self,
        task_id: &str,
        event: Event,
        is_so: impl Fn(&Cards, &Card) -> Result<(), Refusals>,
    ) -> Result<Card, DeskError> {
        let decide = |cards: &Cards| {
            let card = cards.meant(Some(task_id), None)?;
            is_so(cards, card)?;
            Ok(((), vec![self.mark().row(&card.task_id, event.clone())]))
        };
        let ((), cards) = self.decided(decide).await?;
        kept(&cards, task_id)
    }

    /// Gives a card up; gives the run that worked on it too.
    pub async fn cancel(&self, task_id: &str) -> Result<(Card, Option<Arc<str>>), DeskError> {
        let decide = |cards: &Cards| {
            let card = cards.meant(Some(task_id), None)?;
            let asking = card.waiting_on.as_ref().and_then(|it| it.run.clone());
            let run = card.open_run.clone().or(asking);
            Ok(((card.task_id.clone(), run), vec![cards.cancel(&self.mark(), card)?]))
        };
        let ((id, run), cards) = self.decided(decide).await?;
        Ok((kept(&cards, &id)?, run))
    }

    async fn decided<T>(
        &self,
        decide: impl Fn(&Cards) -> Result<(T, Vec<Row>), Refusals>,
    ) -> Result<(T, Cards), DeskError> {
        Ok(folds::change(self.engine.store(), &self.stream("cards"), decide).await??)
    }

    fn mark(&self) -> Mark {
        Mark { at: self.engine.wall(), actor: self.actor.clone() }
    }

    fn stream(&self, what: &str) -> StreamId {
        format!("{what}/{}", self.owner).into()
    }
}

/// A card that was just written.
fn kept(cards: &Cards, id: &str) -> Result<Card, DeskError> {
    let card = cards.get(id).cloned();
    card.ok_or_else(|| {
        let help = "`folkmoot orchestrate status` lists the cards";
        DeskError::refused("unknown_task_id", format!("there is no card {id}"), help)
    })
}
