//! How a card is executed: as an ordinary run in a checkout of its own (orchestrate.md §6).

use std::{
    fmt::Write as _,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Result;
use folkmoot_agents::Worktree;
use folkmoot_core::{
    file::overrides::{self, Override},
    orchestrate::{Card, Cards, Event, Role, State, Template, usual_branch},
    programs::roles::{Path, Weighing},
    request::{Kind, Request},
    spec::Spec,
    team::Sandbox,
    view::{self, Outcome, Status},
};
use folkmoot_runtime::{
    boards::Boards,
    driver::Driver,
    engine::{Engine, EngineError, RunId},
    orchestrate::Desk,
};
use serde_json::{Map, Value, json};

use super::super::{
    drive::drive_for,
    team::{Origin, Team},
};
use super::{
    budget::{self, Reckoned},
    place, template,
    told::{self, Told},
};
use crate::{
    app::App,
    exit::{Exit, Refusal},
};

/// How many entries of the phase's board are told.
const NOTED: usize = 50;

/// How much of what a card before this one made is told, in characters.
const HANDED_ON: usize = 4_000;

/// How often a run is begun anew because others of its phase were begun at the same time.
const AGAIN: usize = 100;

/// Executes cards.
pub(super) struct Execution<'a> {
    pub(super) app: &'a App,
    pub(super) engine: &'a Engine,
    pub(super) desk: &'a Desk,
}

/// What a card is executed with.
#[derive(Default)]
pub(super) struct Given {
    pub(super) task_id: String,
    pub(super) sandbox: Option<String>,
    pub(super) timeout: Option<String>,
    /// How long to wait in all; its run goes on when it is executed again.
    pub(super) wait: Option<Duration>,
}

impl Execution<'_> {
    pub(super) async fn run(&self, given: &Given) -> Result<(Told, Exit)> {
        let mut card = self.desk.take_up(&given.task_id).await.map_err(Refusal::from)?;
        let began = Instant::now();
        loop {
            let wait = given.wait.map(|wait| wait.saturating_sub(began.elapsed()));
            let outcome = if let Some(run) = card.open_run.clone() {
                self.go_on(&card, &run, (given, wait)).await?
            } else {
                let driver = self.begin(&card, given).await?;
                Some(drive_for(driver, self.app, wait).await?.0)
            };
            let status = outcome.as_ref().map(|it| it.status);
            card = self.settle(&card, outcome, given).await?;
            let is_to_try_again = matches!(status, Some(Status::Failed | Status::Deadline) | None);
            if !(is_to_try_again && card.state == State::Implementing && card.open_run.is_none()) {
                let exit = match (card.state, status) {
                    (State::Reviewing, _) => Exit::DONE,
                    (_, Some(status @ (Status::NeedsInput | Status::Interrupted))) => status.into(),
                    _ => Exit::FAILED,
                };
                return Ok((told::executed(&card), exit));
            }
        }
    }

    /// Takes up a run that was noted; nothing if it never began and cannot any longer.
    async fn go_on(
        &self,
        card: &Card,
        run: &str,
        (given, wait): (&Given, Option<Duration>),
    ) -> Result<Option<Outcome>> {
        let run = RunId::parse(run);
        let loaded = match self.engine.load(&run).await {
            Err(EngineError::NoSuchRun(_)) => {
                return self.begin_noted(card, run, (given, wait)).await;
            }
            loaded => loaded?,
        };
        if loaded.is_alive() {
            let message = format!("run {run} works on card {}", card.task_id);
            let help = format!("`folkmoot watch {run}` follows it");
            return Err(Refusal::new("busy", message).help(help).into());
        }
        let outcome = view::outcome(run.as_str(), &loaded.spec, &loaded.run, false);
        if outcome.status != Status::Interrupted {
            return Ok(Some(outcome));
        }
        let engine = Team::engine_for(self.app, self.engine.clone(), &loaded.spec, None)?;
        let driver = engine.resume(&run).await?;
        Ok(Some(drive_for(driver, self.app, wait).await?.0))
    }

    /// Begins a run that was noted, but not kept: whoever noted it has died.
    async fn begin_noted(
        &self,
        card: &Card,
        run: RunId,
        (given, wait): (&Given, Option<Duration>),
    ) -> Result<Option<Outcome>> {
        let is_rolled_back = card.events.last().is_some_and(|it| it.event == "rolled_back");
        let Some(agent) = card.agent.as_deref().filter(|_| !is_rolled_back) else {
            return Ok(None);
        };
        let template = template(self.app, card.template.as_deref().unwrap_or(Template::BUILT_IN))?;
        let (folder, _) = self.folder(card).await?;
        let (engine, mut spec) = self.spec(card, &template, agent, (folder, given)).await?;
        spec.limits = spec.limits.within(&card.limits);
        let driver = engine.start_as(run, Arc::new(spec)).await?;
        Ok(Some(drive_for(driver, self.app, wait).await?.0))
    }

    /// Where a card is worked on, and the commit that it began from.
    async fn folder(&self, card: &Card) -> Result<(PathBuf, Option<String>)> {
        let (tree, base) = self.checkout(card).await?;
        Ok((tree.map_or_else(std::env::current_dir, |tree| Ok(tree.folder))?, base))
    }

    /// Begins a run in the card's checkout, under what is left of the phase's limits.
    async fn begin(&self, card: &Card, given: &Given) -> Result<Driver> {
        let name = card.template.as_deref().unwrap_or(Template::BUILT_IN);
        let template = template(self.app, name)?;
        let (folder, base) = self.folder(card).await?;
        let agent = agent(card, &template)?;
        let (engine, spec) = self.spec(card, &template, &agent, (folder, given)).await?;
        let members = spec.team.agents.iter().map(|agent| agent.name.clone());
        let authors: Vec<Arc<str>> =
            if template.team.is_some() { members.collect() } else { Vec::new() };
        let branch = usual_branch(card).filter(|_| card.write);
        let base: Option<Arc<str>> = base.map(Into::into).filter(|_| card.write);
        let mut tries = 0;
        loop {
            let run = RunId::random();
            let reckoned = Reckoned::of(self.engine, self.desk, card).await?;
            let limits = reckoned.share(card)?;
            let begun = Event::Begun {
                run: run.as_str().into(),
                agent: agent.clone(),
                authors: authors.clone(),
                branch: branch.clone(),
                base: base.clone(),
                limits,
            };
            let is_so = |cards: &Cards, card: &Card| {
                cards.begin(card)?;
                reckoned.holds(cards, card)
            };
            tries += 1;
            match self.desk.note(&card.task_id, begun, is_so).await {
                Ok(_) => {
                    let limits = spec.limits.within(&limits);
                    return Ok(engine.start_as(run, Arc::new(Spec { limits, ..spec })).await?);
                }
                // Another run of the phase was begun meanwhile, so there is less left.
                Err(error) if budget::is_outrun(&error) && tries < AGAIN => {}
                Err(error) => return Err(Refusal::from(error).into()),
            }
        }
    }

    /// The checkout of a card, and the commit that it began from.
    pub(super) async fn checkout(&self, card: &Card) -> Result<(Option<Worktree>, Option<String>)> {
        let Some(repository) = place::repository().await? else {
            return if card.write { Err(place::no_repository().into()) } else { Ok((None, None)) };
        };
        let phases = self.desk.phases().await.map_err(Refusal::from)?;
        let (_, base) = place::target(&repository, &phases, card).await?;
        let folder = place::folder(self.app, card, "")?;
        let branch = usual_branch(card).filter(|_| card.write);
        if branch.is_none() {
            // What a card reads is what is in by now.
            repository.clear(&folder).await?;
        }
        let tree = repository.worktree(&folder, branch.as_deref(), &base).await?;
        Ok((Some(tree), Some(base)))
    }

    async fn spec(
        &self,
        card: &Card,
        template: &Template,
        agent: &str,
        (folder, given): (PathBuf, &Given),
    ) -> Result<(Engine, Spec)> {
        let task = self.task(card).await?;
        let sandbox = sandbox(card, template, given);
        let workdir = folder.to_string_lossy().into_owned();
        let request = Request::new(Kind::Collaborate, Map::new())
            .with("pattern", Some("review".to_owned()))
            .with("task", Some(task.clone()))
            .with("sandbox", Some(sandbox.as_str().to_owned()))
            .with("workdir", Some(workdir.clone()))
            .with("timeout", given.timeout.clone());
        let put = |name: &str, value| Override { name: name.to_owned(), value };
        let text = |text: &str| overrides::Given::Json(Value::from(text));
        let (origin, overrides) = if let Some(file) = &template.team {
            let mut overrides =
                vec![put("sandbox", text(sandbox.as_str())), put("workdir", text(&workdir))];
            let timeout = given.timeout.clone().map(overrides::Given::Text);
            overrides.extend(timeout.map(|value| put("--deadline", value)));
            (Origin::File(PathBuf::from(&**file)), overrides)
        } else {
            let reviewer = template.candidates(Role::Reviewer).first();
            let reviewer = reviewer.map_or(agent, |it| &**it);
            let cast = json!({ "implementer": agent, "reviewer": reviewer, "reviser": agent });
            let mut judged = request.with("providers", Some(cast.to_string())).judge(false);
            if let Some(refusal) = Refusal::all(judged.refused) {
                return Err(refusal.into());
            }
            let planner = template.planner().filter(|_| is_to_be_planned(card));
            judged.overrides.extend(planner.map(|it| put("planner", text(it))));
            (Origin::Text(hands(planner.is_some()).to_string()), judged.overrides)
        };
        let team = Team::check(self.app, &origin, Some(&task), &overrides)?;
        let engine = team.means().given_to(self.engine.clone());
        Ok((engine, team.sound_spec()?))
    }

    /// The task of a card's run: the issue, what has to be done better, what the cards before it made,
    /// and the board of the phase; each line of others is marked as quoted.
    async fn task(&self, card: &Card) -> Result<String> {
        let mut task = format!("{}\n", card.title);
        if !card.body.is_empty() {
            let _ = write!(task, "\n{}\n", card.body);
        }
        if !card.findings.is_empty() {
            task.push_str("\nThis has to be done better:\n");
            card.findings.iter().for_each(|finding| task.push_str(&quoted(finding)));
        }
        let cards = self.desk.cards().await.map_err(Refusal::from)?;
        for before in card.depends_on.iter().filter_map(|id| cards.get(id)) {
            let _ = write!(task, "\nCard {} came before", before.task_id);
            if let (Some(branch), Some(head)) = (&before.branch.name, &before.branch.head) {
                let _ = write!(task, "; its work is commit {head} of {branch}");
            }
            task.push_str(":\n");
            task.push_str(&quoted(&before.title));
            let Some(run) = before.runs.last() else { continue };
            let loaded = self.engine.load(&RunId::parse(run)).await?;
            let made = view::outcome(run, &loaded.spec, &loaded.run, false).answer;
            let made: String = made.unwrap_or_default().chars().take(HANDED_ON).collect();
            task.push_str(&quoted(&made));
        }
        let Some(phase) = &card.phase_id else { return Ok(task) };
        let board =
            Boards::new(self.engine, &self.app.owner()?).show(phase, 0, None, NOTED).await?;
        if !board.entries.is_empty() {
            let _ = writeln!(task, "\nOn the board {phase} of this phase:");
        }
        for entry in &board.entries {
            task.push_str(&quoted(&format!("{}: {}", entry.post.topic, entry.post.text)));
        }
        Ok(task)
    }

    /// Notes what came of a run.
    pub(super) async fn settle(
        &self,
        card: &Card,
        outcome: Option<Outcome>,
        given: &Given,
    ) -> Result<Card> {
        let fell = |why: String| Event::Fell { why: why.into() };
        let event = match outcome {
            None => fell("its run never began".to_owned()),
            Some(outcome) => match outcome.status {
                Status::Running | Status::Interrupted => {
                    let cards = self.desk.cards().await.map_err(Refusal::from)?;
                    return Ok(cards.get(&card.task_id).cloned().unwrap_or_else(|| card.clone()));
                }
                Status::NeedsInput => Event::Asked,
                Status::Done | Status::BoundReached => self.judge(card, &outcome, given).await?,
                Status::Failed | Status::Cancelled | Status::BudgetExhausted | Status::Deadline => {
                    fell(outcome.reason.unwrap_or_else(|| outcome.status.as_str().to_owned()))
                }
            },
        };
        Ok(self.desk.note(&card.task_id, event, |_, _| Ok(())).await.map_err(Refusal::from)?)
    }

    /// What a run that is done has brought: its commit, what it passes, and what is missing.
    async fn judge(&self, card: &Card, outcome: &Outcome, given: &Given) -> Result<Event> {
        let mut findings: Vec<Arc<str>> = Vec::new();
        if outcome.status == Status::BoundReached
            || outcome.record.get("converged") == Some(&json!(false))
        {
            let reason = outcome.reason.as_deref().unwrap_or("bound");
            findings.push(format!("the run did not converge: {reason}").into());
        }
        if !card.write {
            return Ok(Event::Executed { head: None, gates: [].into(), findings });
        }
        let (tree, base) = self.checkout(card).await?;
        let (Some(tree), Some(repository)) = (tree, place::repository().await?) else {
            return Err(place::no_repository().into());
        };
        let message =
            format!("{}: {}\n\nWritten in run {}", card.task_id, card.title, outcome.run_id);
        let head = repository.commit_all(&tree, &message).await?;
        let branch = usual_branch(card).unwrap_or_default();
        if repository.commit(&branch).await?.as_deref() != Some(&*head) {
            findings.push(format!("the checkout has left the branch {branch}").into());
        }
        if Some(&*head) == card.branch.base.as_deref().or(base.as_deref()) {
            findings.push("nothing was written".into());
        }
        let name = card.template.as_deref().unwrap_or(Template::BUILT_IN);
        let sandbox = sandbox(card, &template(self.app, name)?, given);
        let looked = place::gates(card, &tree.folder, sandbox).await;
        findings.extend(looked.iter().filter_map(|(.., why)| Some(why.as_deref()?.into())));
        let gates = looked.into_iter().map(|(name, passed, _)| (name, passed)).collect();
        Ok(Event::Executed { head: Some(head.into()), gates, findings })
    }
}

/// What the roles of a template may use, below the level of the card: as the coder, the reviewer and the
/// planner of a role team (agents.md §7); who implements looks around as well.
fn hands(has_planner: bool) -> Value {
    let agent = |name: &str, grants: &[&str]| json!({ "name": name, "grants": grants });
    let works = ["file", "search", "shell"];
    let mut agents = vec![
        agent("implementer", &works),
        agent("reviewer", &["file.read", "search", "shell"]),
        agent("reviser", &works),
    ];
    agents.extend(has_planner.then(|| agent("planner", &["file.read", "search"])));
    json!({ "name": "card", "agents": agents })
}

/// Whether a card's issue is so complex that somebody plans first; not if it asks for a plan itself.
fn is_to_be_planned(card: &Card) -> bool {
    let issue = format!("{}\n{}", card.title, card.body);
    card.role != Role::Planner && Weighing::default().of(&issue).path == Path::Roles
}

fn sandbox(card: &Card, template: &Template, given: &Given) -> Sandbox {
    let level = |text: &str| serde_json::from_value(Value::from(text)).ok();
    let asked = given.sandbox.as_deref().and_then(level);
    match asked.or(template.sandbox) {
        _ if !card.write => Sandbox::ReadOnly,
        Some(level) => level,
        None => Sandbox::Write,
    }
}

/// Who works on a card: whoever it was assigned to, else the next candidate.
fn agent(card: &Card, template: &Template) -> Result<Arc<str>> {
    let is_assigned = card.events.iter().any(|it| it.event == "assigned");
    let assigned = card.agent.clone().filter(|_| is_assigned && template.team.is_none());
    let candidates = template.candidates(card.role);
    let next = candidates.get(card.failures as usize % candidates.len().max(1)).cloned();
    let none = || {
        let help = "set default_model, or name targets in the card's template, or assign it";
        let message = format!("nobody can work on card {}", card.task_id);
        Refusal::new("no_candidate", message).help(help)
    };
    Ok(template.team.clone().or(assigned).or(next).ok_or_else(none)?)
}

/// Lines of others, each behind a mark.
fn quoted(text: &str) -> String {
    let ends = ['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'];
    let lines: Vec<&str> = text.trim_end().split(ends).collect();
    format!("> {}\n", lines.join("\n> "))
}
