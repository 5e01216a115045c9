//! From a goal to merged cards, one request per step (orchestrate.md).

mod asked;
mod execute;
mod merge;
mod place;
mod question;
mod told;

use anyhow::Result;
use clap::Args;
use folkmoot_core::orchestrate::{
    self as core, Assignment, Card, Judgement, PlanRequest, Refusals, Role, Template, Verdict,
};
use folkmoot_runtime::{
    engine::{Engine, EngineError, RunId},
    orchestrate::{Desk, MaterializeRequest},
    refusals,
};
use serde_json::{Value, json};

pub(crate) use self::asked::asked;
use self::{execute::Execution, merge::Merging};
use super::team::from_stdin_if_asked;
use crate::{
    app::{self, App},
    exit::{Exit, Refusal},
};

/// Takes a goal from issues to merged cards, a request for each step.
///
/// The actions in the order of work: plan, phase-plan, phase-materialize, assign, execute, status,
/// review, merge. Nothing before phase-materialize makes work, and only execute calls agents.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  folkmoot orchestrate phase-plan --issues-json '[{\"id\": \"1\", \"title\": \"Parse durations\"}]'
  folkmoot orchestrate phase-materialize --collaboration-template phase_delivery_team
  folkmoot orchestrate execute T001
  folkmoot orchestrate review T001 --verdict approved --commit 4f1c…
  folkmoot orchestrate merge T001")]
pub(crate) struct Orchestrate {
    /// What to do
    #[arg(allow_hyphen_values = true)]
    action: String,
    /// The task of `plan`; of all others the card
    #[arg(value_name = "TASK|CARD")]
    subject: Option<String>,
    /// The task of `plan`; `-` reads it from standard input
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    task: Option<String>,
    /// The card
    #[arg(long, value_name = "ID")]
    task_id: Option<String>,
    /// The branch of the card
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,
    /// The issues as a JSON array; `-` reads them from standard input
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    issues_json: Option<String>,
    /// parallel-team, star or pipeline
    #[arg(long, value_name = "NAME")]
    topology: Option<String>,
    /// The most cards that write [default: 4]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    max_dev_teams: Option<String>,
    /// What the phase is delivered with
    #[arg(long, value_name = "NAME")]
    collaboration_template: Option<String>,
    /// The branch that the work goes into [default: the one that is checked out]
    #[arg(long, value_name = "BRANCH")]
    target: Option<String>,
    /// The phase [default: the one that was planned last]
    #[arg(long, value_name = "ID")]
    phase_id: Option<String>,
    /// The digest that the plan must have
    #[arg(long, value_name = "SHA256")]
    digest: Option<String>,
    /// What the agent is to be
    #[arg(long, value_name = "ROLE")]
    role: Option<String>,
    /// Who is to do the card
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// `approved` or `changes_requested`
    #[arg(long, value_name = "VERDICT")]
    verdict: Option<String>,
    /// The commit that was looked at
    #[arg(long, value_name = "SHA")]
    commit: Option<String>,
    /// What is wrong; may be given several times
    #[arg(long = "findings", value_name = "TEXT", allow_hyphen_values = true)]
    findings: Vec<String>,
    /// merge, or record for one that was made elsewhere
    #[arg(long, value_name = "MODE")]
    mode: Option<String>,
    /// What agents may do at most
    #[arg(long, value_name = "LEVEL")]
    sandbox: Option<String>,
    /// The most time a run may take: seconds, `30m`, or `none`
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    timeout: Option<String>,
    /// The most cards to tell of
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
    /// Who you are: the name of an agent, or your own [default: the user's name]
    #[arg(long = "as", value_name = "NAME")]
    me: Option<String>,
}

impl Orchestrate {
    pub(crate) async fn run(mut self, app: &App) -> Result<Exit> {
        let action = core::action(&self.action).map_err(refusals::all)?;
        match (action, self.subject.take()) {
            (_, None) => {}
            ("plan", Some(task)) => self.task = self.task.or(Some(task)),
            (_, Some(card)) => self.task_id = self.task_id.or(Some(card)),
        }
        let actor = self.me.clone().unwrap_or_else(app::user);
        let engine = app.engine()?;
        let desk = Desk::new(&engine, &app.owner()?, &actor);
        match action {
            "plan" => self.plan(app, &desk).await,
            "phase-plan" => self.plan_phase(app, &desk).await,
            "phase-materialize" => self.materialize(app, &desk).await,
            "assign" => self.assign(app, &desk).await,
            "status" => self.status(app, &desk).await,
            "review" => self.review(app, &engine, &desk).await,
            "execute" => Execution { app, engine: &engine, desk: &desk, asked: &self }.run().await,
            _ => {
                let cards = desk.cards().await.map_err(Refusal::from)?;
                let card = cards.meant(self.task_id.as_deref(), self.branch.as_deref());
                let card = self.found(&desk, card.cloned()).await?;
                Merging { app, engine: &engine, desk: &desk }.run(card, self.mode.as_deref()).await
            }
        }
    }

    async fn plan(self, app: &App, desk: &Desk) -> Result<Exit> {
        let task = self.task.map(from_stdin_if_asked).transpose()?.unwrap_or_default();
        let card = desk.plan(&task, self.task_id.as_deref()).await.map_err(Refusal::from)?;
        let told = json!({
            "task_id": card.task_id,
            "state": card.state,
            "title": card.title,
            "suggested_role": card.role,
            "roles": Role::ALL,
            "next_actions": ["phase-plan", "assign", "status"],
        });
        told::value(
            app,
            &told,
            &format!("{} · {} · {}", card.task_id, card.role.as_str(), card.title),
        );
        Ok(Exit::DONE)
    }

    async fn plan_phase(self, app: &App, desk: &Desk) -> Result<Exit> {
        if let Some(name) = &self.collaboration_template {
            template(app, name)?;
        }
        let issues = self.issues_json.map(from_stdin_if_asked).transpose()?;
        let request = PlanRequest {
            issues: issues.map_or(Value::Null, Value::String),
            topology: self.topology,
            max_dev_teams: self.max_dev_teams.map(Value::String),
            target: self.target.map(Into::into),
        };
        let plan = desk.plan_phase(&request).await.map_err(Refusal::from)?;
        told::plan(app, &plan);
        Ok(Exit::DONE)
    }

    async fn materialize(self, app: &App, desk: &Desk) -> Result<Exit> {
        let name = self.collaboration_template.as_deref().map(str::trim).unwrap_or_default();
        if name.is_empty() {
            let message = "the template is missing";
            let refusal = Refusal::new("collaboration_template_required", message);
            return Err(Refusal { allowed: app.config()?.templates(), ..refusal }.into());
        }
        let template = template(app, name)?;
        let issues = self.issues_json.map(from_stdin_if_asked).transpose()?;
        let (phase_id, digest) = (self.phase_id, self.digest);
        let request = MaterializeRequest { phase_id, digest, issues: issues.map(Value::String) };
        known_candidates(app, name, &template)?;
        let (plan, made, cards) =
            desk.materialize(&request, name, &template).await.map_err(Refusal::from)?;
        told::materialized(app, &plan, name, &template, &made, &cards);
        Ok(Exit::DONE)
    }

    async fn assign(self, app: &App, desk: &Desk) -> Result<Exit> {
        let catalog = app.config()?.catalog();
        let is_known =
            |name: &str| catalog.built_in.contains_key(name) || catalog.resolve(name).is_ok();
        let given = Assignment {
            role: self.role.unwrap_or_default(),
            agent: self.agent.unwrap_or_default(),
            branch: self.branch,
        };
        let id = self.task_id.unwrap_or_default();
        let card = desk.assign(&id, &given, is_known).await.map_err(Refusal::from)?;
        told::card(app, &card);
        Ok(Exit::DONE)
    }

    async fn status(self, app: &App, desk: &Desk) -> Result<Exit> {
        let cards = desk.cards().await.map_err(Refusal::from)?;
        if self.task_id.is_none() && self.branch.is_none() {
            told::summary(app, &cards, self.limit);
            return Ok(Exit::DONE);
        }
        let card = cards.meant(self.task_id.as_deref(), self.branch.as_deref());
        told::card(app, &self.found(desk, card.cloned()).await?);
        Ok(Exit::DONE)
    }

    async fn review(self, app: &App, engine: &Engine, desk: &Desk) -> Result<Exit> {
        let verdict =
            self.verdict.as_deref().map(Verdict::named).transpose().map_err(refusals::all)?;
        let cards = desk.cards().await.map_err(Refusal::from)?;
        let card = cards.meant(self.task_id.as_deref(), self.branch.as_deref());
        let card = self.found(desk, card.cloned()).await?;
        let card = merge::settled(engine, desk, card).await?;
        let commit = self.commit.clone().map(Into::into);
        let findings = self.findings.iter().map(|it| it.as_str().into()).collect();
        let judgement = verdict.map(|verdict| Judgement { verdict, commit, findings });
        let branch = self.branch.as_deref();
        let head = place::head(&card, branch).await?.map(Into::into);
        let card =
            desk.review(&card, branch, head, judgement.as_ref()).await.map_err(Refusal::from)?;
        let is_open = card.waiting_on.as_ref().is_some_and(|it| it.run.is_none());
        let card = if card.is_disputed() && is_open {
            merge::dispute(app, engine, desk, card).await?
        } else {
            card
        };
        told::card(app, &card);
        Ok(Exit::DONE)
    }

    /// A card, or why it is none: an issue that no card was made of says so.
    async fn found(&self, desk: &Desk, card: std::result::Result<Card, Refusals>) -> Result<Card> {
        match (card, self.task_id.as_deref()) {
            (Ok(card), _) => Ok(card),
            (Err(refusals), None) => Err(refusals::all(refusals).into()),
            (Err(refusals), Some(id)) => {
                let (cards, phases) = (desk.cards().await, desk.phases().await);
                let cards = cards.map_err(Refusal::from)?;
                Err(refusals::all(cards.missing(id, &phases.map_err(Refusal::from)?, refusals))
                    .into())
            }
        }
    }
}

/// Gives a card up, and cancels the run that works on it or asks about it.
pub(super) async fn cancel(app: &App, task_id: &str) -> Result<Exit> {
    let engine = app.engine()?;
    let desk = Desk::new(&engine, &app.owner()?, &app::user());
    let (card, run) = desk.cancel(task_id).await.map_err(Refusal::from)?;
    if let Some(run) = run {
        match engine.cancel(&RunId::parse(&run)).await {
            // It was noted, but never began.
            Ok(_) | Err(EngineError::NoSuchRun(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    if let Some(repository) = place::repository().await? {
        repository.clear(&place::folder(app, &card, "")?).await?;
    }
    told::card(app, &card);
    Ok(Exit::DONE)
}

/// The template of that name.
fn template(app: &App, name: &str) -> Result<Template> {
    let config = app.config()?;
    config.template(name).ok_or_else(|| {
        let refusal = Refusal::new("unknown_template", format!("there is no template {name}"));
        Refusal { allowed: config.templates(), ..refusal }.into()
    })
}

/// Refuses a template that names what the config does not know.
fn known_candidates(app: &App, name: &str, template: &Template) -> Result<()> {
    let catalog = app.config()?.catalog();
    let targets = template.roles.values().flatten();
    let is_known = |it: &str| catalog.built_in.contains_key(it) || catalog.resolve(it).is_ok();
    let unknown = targets.filter(|target| !is_known(target)).map(|target| {
        let message = format!("the template {name} names {target}, which the config does not know");
        Refusal::new("no_candidate", message)
    });
    Refusal::all(unknown).map_or(Ok(()), |refusal| Err(refusal.into()))
}
