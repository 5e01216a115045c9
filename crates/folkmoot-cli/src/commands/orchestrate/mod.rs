//! From a goal to merged cards, one request per step (orchestrate.md).

mod asked;
mod budget;
mod execute;
mod merge;
mod place;
mod question;
mod rollback;
mod told;

use std::time::Duration;

use anyhow::Result;
use clap::Args;
use folkmoot_core::orchestrate::{
    self as core, Assignment, Card, Judgement, PlanRequest, Refusals, Role, Template, Verdict,
};
use folkmoot_core::request::LONGEST_WAIT;
use folkmoot_runtime::{
    engine::{Engine, EngineError, RunId},
    orchestrate::{Desk, MaterializeRequest},
    refusals,
};
use serde_json::{Value, json};

pub(crate) use self::asked::asked;
pub(super) use self::rollback::Followed;
use self::{
    execute::{Execution, Given},
    merge::Merging,
    told::Told,
};
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
    /// The most seconds to wait; a run that is not done by then goes on with the next `execute`
    #[arg(long, value_name = "SECONDS", allow_hyphen_values = true)]
    wait_s: Option<String>,
    /// The most cards to tell of
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
    /// Who you are: the name of an agent, or your own [default: the user's name]
    #[arg(long = "as", value_name = "NAME")]
    me: Option<String>,
}

impl Orchestrate {
    pub(crate) async fn run(self, app: &App) -> Result<Exit> {
        let (told, exit) = self.done(app).await?;
        print(app, &told);
        Ok(exit)
    }

    /// Does what is asked for; gives what came of it.
    async fn done(mut self, app: &App) -> Result<(Told, Exit)> {
        let action = core::action(&self.action).map_err(refusals::all)?;
        match (action, self.subject.take()) {
            (_, None) => {}
            ("plan", Some(task)) => self.task = self.task.or(Some(task)),
            (_, Some(card)) => self.task_id = self.task_id.or(Some(card)),
        }
        let actor = self.me.clone().unwrap_or_else(app::user);
        let engine = app.engine()?;
        let desk = Desk::new(&engine, &app.owner()?, &actor);
        let told = match action {
            "plan" => self.plan(&desk).await,
            "phase-plan" => self.plan_phase(app, &desk).await,
            "phase-materialize" => self.materialize(app, &desk).await,
            "assign" => self.assign(app, &desk).await,
            "status" => self.status(&desk).await,
            "review" => self.review(app, &engine, &desk).await,
            "execute" => {
                return Execution { app, engine: &engine, desk: &desk }.run(&self.given()?).await;
            }
            _ => {
                let cards = desk.cards().await.map_err(Refusal::from)?;
                let card = cards.meant(self.task_id.as_deref(), self.branch.as_deref());
                let card = self.found(&desk, card.cloned()).await?;
                let merging = Merging { app, engine: &engine, desk: &desk };
                return merging.run(card, self.mode.as_deref()).await;
            }
        };
        Ok((told?, Exit::DONE))
    }

    /// What a card is to be executed with.
    fn given(self) -> Result<Given> {
        let wait = self.wait_s.as_deref().map(|text| {
            let seconds = text.trim().parse().ok().filter(|it| (0.0..=LONGEST_WAIT).contains(it));
            seconds.map(Duration::from_secs_f64).ok_or_else(|| {
                let message = format!("wait_s must be from 0 to 3600 seconds, not {text}");
                Refusal::new("invalid_wait_s", message)
            })
        });
        let (sandbox, timeout) = (self.sandbox, self.timeout);
        let task_id = self.task_id.unwrap_or_default();
        Ok(Given { task_id, sandbox, timeout, wait: wait.transpose()? })
    }

    async fn plan(self, desk: &Desk) -> Result<Told> {
        let task = self.task.map(from_stdin_if_asked).transpose()?.unwrap_or_default();
        let card = desk.plan(&task, self.task_id.as_deref()).await.map_err(Refusal::from)?;
        let value = json!({
            "task_id": card.task_id,
            "state": card.state,
            "title": card.title,
            "suggested_role": card.role,
            "roles": Role::ALL,
            "next_actions": ["phase-plan", "assign", "status"],
        });
        let text = format!("{} · {} · {}", card.task_id, card.role.as_str(), card.title);
        Ok(Told { value, text })
    }

    async fn plan_phase(self, app: &App, desk: &Desk) -> Result<Told> {
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
        Ok(told::plan(&plan))
    }

    async fn materialize(self, app: &App, desk: &Desk) -> Result<Told> {
        let name = self.collaboration_template.as_deref().map(str::trim).unwrap_or_default();
        if name.is_empty() {
            let (message, allowed) = ("the template is missing", app.config()?.templates());
            let help = format!("--collaboration-template NAME; there are: {}", allowed.join(", "));
            let refusal = Refusal::new("collaboration_template_required", message).help(help);
            return Err(Refusal { allowed, ..refusal }.into());
        }
        let template = template(app, name)?;
        let issues = self.issues_json.map(from_stdin_if_asked).transpose()?;
        let (phase_id, digest) = (self.phase_id, self.digest);
        let request = MaterializeRequest { phase_id, digest, issues: issues.map(Value::String) };
        known_candidates(app, name, &template)?;
        let (plan, made, cards) =
            desk.materialize(&request, name, &template).await.map_err(Refusal::from)?;
        Ok(told::materialized(&plan, (name, &template), &made, &cards))
    }

    async fn assign(self, app: &App, desk: &Desk) -> Result<Told> {
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
        Ok(told::card(&card))
    }

    async fn status(self, desk: &Desk) -> Result<Told> {
        let cards = desk.cards().await.map_err(Refusal::from)?;
        if self.task_id.is_none() && self.branch.is_none() {
            return Ok(told::summary(&cards, self.limit));
        }
        let card = cards.meant(self.task_id.as_deref(), self.branch.as_deref());
        Ok(told::card(&self.found(desk, card.cloned()).await?))
    }

    async fn review(self, app: &App, engine: &Engine, desk: &Desk) -> Result<Told> {
        let verdict =
            self.verdict.as_deref().map(Verdict::named).transpose().map_err(refusals::all)?;
        let cards = desk.cards().await.map_err(Refusal::from)?;
        let card = cards.meant(self.task_id.as_deref(), self.branch.as_deref());
        let card = self.found(desk, card.cloned()).await?;
        let card = merge::settled(app, engine, desk, card).await?;
        let commit = self.commit.clone().map(Into::into);
        let findings = self.findings.iter().map(|it| it.as_str().into()).collect();
        let judgement = verdict.map(|verdict| Judgement { verdict, commit, findings });
        let branch = self.branch.as_deref();
        let head = place::head(&card, branch).await?.map(Into::into);
        let card =
            desk.review(&card, branch, head, judgement.as_ref()).await.map_err(Refusal::from)?;
        Ok(told::card(&merge::settled(app, engine, desk, card).await?))
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
    print(app, &told::card(&card));
    Ok(Exit::DONE)
}

/// Prints what came of a request: a value for programs, lines for people.
fn print(app: &App, told: &Told) {
    if app.wants_json() {
        app.print_json(&told.value);
    } else {
        app.print(&app.page().text(&told.text));
    }
}

/// The template of that name.
fn template(app: &App, name: &str) -> Result<Template> {
    let config = app.config()?;
    config.template(name).ok_or_else(|| {
        let allowed = config.templates();
        let help = format!("there are: {}; others stand under [templates]", allowed.join(", "));
        let refusal = Refusal::new("unknown_template", format!("there is no template {name}"));
        Refusal { allowed, ..refusal.help(help) }.into()
    })
}

/// Refuses a template that names what the config does not know.
fn known_candidates(app: &App, name: &str, template: &Template) -> Result<()> {
    let catalog = app.config()?.catalog();
    let targets = template.roles.values().flatten();
    let is_known = |it: &str| catalog.built_in.contains_key(it) || catalog.resolve(it).is_ok();
    let unknown = targets.filter(|target| !is_known(target)).map(|target| {
        let message = format!("the template {name} names {target}, which the config does not know");
        let help = format!(
            "name aliases or models under [templates.{name}]; `folkmoot models` lists them"
        );
        Refusal::new("no_candidate", message).help(help)
    });
    Refusal::all(unknown).map_or(Ok(()), |refusal| Err(refusal.into()))
}
