//! What may happen to cards next (orchestrate.md §§1, 3, 4): each request gives the rows that are to be
//! appended, or says why not.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    Budget, Card, Cards, Event, Kind, Mark, New, Origin, Phases, Plan, Refusals, Role, Row, State,
    Template, helped,
};
use crate::{diagnostic::quoted, refusal::Refusal, request::LARGEST};

/// The longest title, in characters.
const TITLE: usize = 80;

/// Who is to do a card, as what, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The role's name.
    pub role: String,
    /// Who.
    pub agent: String,
    /// The branch, if it is not the usual one.
    pub branch: Option<String>,
}

/// What comes of making cards of a plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Materialized {
    /// The new cards.
    pub created: Vec<Arc<str>>,
    /// Those that were there.
    pub reused: Vec<Arc<str>>,
}

/// A refusal, and the way out.
pub(super) fn refuse<T>(
    code: &'static str,
    message: impl Into<String>,
    help: impl Into<String>,
) -> Result<T, Refusals> {
    Err(vec![helped(code, message, help)])
}

impl Cards {
    /// Records something to be done; no agent is ever called for it.
    pub fn plan(&self, by: &Mark, task: &str, task_id: Option<&str>) -> Result<Row, Refusals> {
        let task = task.trim();
        if task.is_empty() {
            return refuse("task_required", "the task is missing", "give it: `plan TASK`");
        }
        if task.len() > LARGEST {
            return refuse("too_large", "the task is over 1 MiB", "name a file in it instead");
        }
        let id = match task_id.map(str::trim).filter(|id| !id.is_empty()) {
            None => self.free_id(),
            Some(id) if !is_id(id) => {
                let message = format!("{} cannot be the name of a card", quoted(id));
                let help = "up to 40 letters of ASCII, digits, `-` and `_`";
                return refuse("bad_task_id", message, help);
            }
            Some(id) if self.get(id).is_some() => {
                let message = format!("there is a card {id} already");
                return refuse(
                    "task_id_exists",
                    message,
                    "without an id it gets the next free one",
                );
            }
            Some(id) => id.into(),
        };
        let role = Role::suggested(task);
        let new = New {
            title: title(task),
            body: task.into(),
            kind: Kind::Record,
            role,
            write: true,
            origin: None,
            depends_on: Vec::new(),
            gates: Vec::new(),
            limits: Budget::default(),
        };
        Ok(by.row(&id, Event::Made(new)))
    }

    /// Makes a card of each that is planned; what was made of this plan before is used again.
    pub fn materialize(
        &self,
        by: &Mark,
        plan: &Plan,
        name: &str,
        template: &Template,
    ) -> Result<(Materialized, Vec<Row>), Refusals> {
        let told = plan.cards.iter().filter(|planned| {
            template.team.is_none() && template.candidates(planned.role).is_empty()
        });
        let told: Refusals = told
            .map(|planned| {
                let message = format!(
                    "the template {name} has no candidate for the {} of issue {}",
                    planned.role.as_str(),
                    quoted(&planned.issue_id),
                );
                let help = format!(
                    "set default_model in the config, or name targets under [templates.{name}]"
                );
                helped("no_candidate", message, help)
            })
            .collect();
        if !told.is_empty() {
            return Err(told);
        }
        let is_of_plan = |card: &&Card| card.digest.as_ref() == Some(&plan.digest);
        let mut ids: BTreeMap<&str, Arc<str>> = BTreeMap::new();
        for card in self.all().iter().filter(is_of_plan) {
            ids.extend(card.issue_id.as_deref().map(|issue| (issue, card.task_id.clone())));
        }
        let mut made = Materialized::default();
        let mut next = number(&self.free_id());
        for planned in &plan.cards {
            let issue = &*planned.issue_id;
            if let Some(there) = ids.get(issue) {
                made.reused.push(there.clone());
                continue;
            }
            let id: Arc<str> = format!("T{next:03}").into();
            next += 1;
            made.created.push(id.clone());
            ids.insert(issue, id);
        }
        let new = plan.cards.iter().filter_map(|planned| {
            let id = ids.get(&*planned.issue_id).filter(|id| made.created.contains(id))?;
            let issue = plan.issue(&planned.issue_id);
            let before = planned.depends_on.iter().filter_map(|it| ids.get(&**it).cloned());
            let new = New {
                title: issue.map_or("Read what all cards made".into(), |it| title(&it.title)),
                body: issue.map_or("".into(), |it| it.body.clone()),
                kind: planned.kind,
                role: planned.role,
                write: planned.write,
                origin: Some(Origin {
                    phase_id: plan.phase_id.clone(),
                    digest: plan.digest.clone(),
                    card_id: planned.card_id.clone(),
                    issue_id: planned.issue_id.clone(),
                    template: name.into(),
                }),
                depends_on: before.collect(),
                gates: if planned.write { template.gates.clone() } else { Vec::new() },
                limits: template.limits,
            };
            Some(by.row(id, Event::Made(new)))
        });
        let rows = new.collect();
        Ok((made, rows))
    }

    /// Gives a card to somebody; `is_known` tells whether the config knows an agent.
    pub fn assign(
        &self,
        by: &Mark,
        card: &Card,
        given: &Assignment,
        is_known: impl Fn(&str) -> bool,
    ) -> Result<Row, Refusals> {
        open(card)?;
        let role = Role::named(given.role.trim())?;
        let agent = given.agent.trim();
        if agent.is_empty() || !is_known(agent) {
            let message = match agent {
                "" => "the agent is missing".to_owned(),
                agent => format!("the config knows no {}", quoted(agent)),
            };
            let help = "name an alias of the config or a model; `folkmoot models` lists them";
            return refuse("unknown_agent", message, help);
        }
        idle(card)?;
        if card.state == State::Blocked {
            return Err(vec![self.blocked(card)]);
        }
        let named = given.branch.as_deref().map(str::trim).filter(|it| !it.is_empty());
        let branch = match named {
            Some(branch) => Some(self.free_branch(card, branch)?),
            None => usual_branch(card),
        };
        Ok(by.row(&card.task_id, Event::Assigned { role, agent: agent.into(), branch }))
    }

    /// The branch, if no other card that is still open uses it.
    pub(super) fn free_branch(&self, card: &Card, branch: &str) -> Result<Arc<str>, Refusals> {
        if !is_branch(branch) {
            let message = format!("{} cannot be a branch", quoted(branch));
            let help =
                "up to 200 letters of ASCII, digits, `-`, `_`, `.` and `/`, as git takes them";
            return refuse("bad_branch", message, help);
        }
        let is_used = |other: &&Card| {
            let is_on = other.branch.name.as_deref() == Some(branch);
            other.task_id != card.task_id && is_on && !other.state.is_final()
        };
        match self.all().iter().find(is_used) {
            Some(other) => {
                let message = format!("the branch {branch} is that of card {}", other.task_id);
                let help = "name another, or none: the card gets one of its own";
                refuse("branch_in_use", message, help)
            }
            None => Ok(branch.into()),
        }
    }

    /// Whether a card may be worked on now. One that waits for others says so in its refusal, and in
    /// the row that goes with it.
    pub fn execute(&self, by: &Mark, card: &Card) -> Result<Result<(), Row>, Refusals> {
        open(card)?;
        if card.kind == Kind::Record {
            let message = format!("card {} is a record: no phase was made of it", card.task_id);
            let help = "`phase-plan` plans issues, and `phase-materialize` makes cards of them";
            return refuse("not_materialized", message, help);
        }
        if card.state == State::Reviewing {
            return under_review(card);
        }
        let unmet = self.unmet(card);
        if unmet.is_empty() {
            return Ok(Ok(()));
        }
        Ok(Err(by.row(&card.task_id, Event::Blocked { by: unmet })))
    }

    /// Whether a run of a card may begin at this moment.
    pub fn begin(&self, card: &Card) -> Result<(), Refusals> {
        open(card)?;
        idle(card)?;
        match (card.state, &self.unmet(card)[..]) {
            (State::Reviewing, _) => under_review(card),
            (_, []) => Ok(()),
            (_, _) => Err(vec![self.blocked(card)]),
        }
    }

    /// Whether a run of a card that another goes on from, `origin`, may be undone at this moment.
    pub fn roll_back(&self, card: &Card, origin: &str) -> Result<(), Refusals> {
        open(card)?;
        match card.open_run.as_deref() {
            Some(run) if run != origin => idle(card),
            _ => Ok(()),
        }
    }

    /// The refusal of a card that waits for others.
    pub fn blocked(&self, card: &Card) -> Refusal {
        let unmet = self.unmet(card).join(", ");
        let message = format!("card {} waits for {unmet}", card.task_id);
        let until = if card.write { "integrated" } else { "approved" };
        let help = format!("execute it once {unmet} is {until}; `status` tells how far that is");
        helped("blocked_by_dependency", message, help)
    }

    /// Why there is no card of that name, where it may be an issue.
    pub fn missing(&self, task_id: &str, phases: &Phases, refusals: Refusals) -> Refusals {
        if !phases.knows_issue(task_id.trim()) {
            return refusals;
        }
        let message = format!("issue {} is planned, but no card was made of it", quoted(task_id));
        let help =
            "`phase-materialize` makes cards of what is planned; what was deferred is planned anew";
        vec![helped("not_materialized", message, help)]
    }

    /// Gives a card up.
    pub fn cancel(&self, by: &Mark, card: &Card) -> Result<Row, Refusals> {
        open(card)?;
        Ok(by.row(&card.task_id, Event::Cancelled))
    }
}

/// The branch of a card that is not told another.
pub fn usual_branch(card: &Card) -> Option<Arc<str>> {
    let phase = card.phase_id.as_deref().filter(|_| card.write)?;
    let usual = || format!("folkmoot/{phase}/{}", card.task_id).into();
    Some(card.branch.name.clone().unwrap_or_else(usual))
}

fn under_review<T>(card: &Card) -> Result<T, Refusals> {
    let message = format!("card {} is under review", card.task_id);
    let help = "`review` takes a verdict; `assign` gives it to somebody anew";
    refuse("wrong_state", message, help)
}

pub(super) fn open(card: &Card) -> Result<(), Refusals> {
    if card.state.is_final() {
        let message = format!("card {} is {}", card.task_id, card.state.as_str());
        let is_in = card.state == State::Integrated;
        let undone = "what it brought in is undone by a new card: plan one";
        let help = if is_in { undone } else { "plan it anew, as another card" };
        return refuse("terminal", message, help);
    }
    Ok(())
}

pub(super) fn idle(card: &Card) -> Result<(), Refusals> {
    match &card.open_run {
        Some(run) => {
            let message = format!("run {run} works on card {}", card.task_id);
            let help = match card.waiting_on {
                Some(_) => format!("it waits for a person: `folkmoot answer {run} …`"),
                None => format!("`execute` goes on with it, `folkmoot cancel {run}` gives it up"),
            };
            refuse("busy", message, help)
        }
        None => Ok(()),
    }
}

/// The first line of a task, as a title.
fn title(task: &str) -> Arc<str> {
    let line = task.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    line.chars().filter(|c| !c.is_control()).take(TITLE).collect::<String>().into()
}

fn number(id: &str) -> u64 {
    id.trim_start_matches('T').parse().unwrap_or(1)
}

/// Whether a card can be called so: its name is part of names of branches and folders.
fn is_id(id: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    id.len() <= 40
        && id.starts_with(|c: char| c.is_ascii_alphanumeric())
        && id.chars().all(is_plain)
}

/// Whether a branch can be called so: a strict part of what git takes.
fn is_branch(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    let is_part = |part: &str| {
        let is_odd = part.starts_with(['.', '-'])
            || part.ends_with('.')
            || part.strip_suffix(".lock").is_some();
        !part.is_empty() && !is_odd && !part.contains("..")
    };
    name.len() <= 200 && name.chars().all(is_plain) && name.split('/').all(is_part)
}
