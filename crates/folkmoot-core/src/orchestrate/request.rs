//! What may happen to cards next (orchestrate.md §§1, 3, 4): each request gives the rows that are to be
//! appended, or says why not.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    Card, Cards, Event, Kind, Mark, New, Phases, Plan, Refusals, Role, Row, State, Template,
    Verdict, card::Passed, cards::Origin, refused,
};
use crate::{diagnostic::quoted, names, request::LARGEST};

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

/// A verdict as it is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// The commit that was looked at.
    pub commit: Option<Arc<str>>,
    /// What is wrong.
    pub findings: Vec<Arc<str>>,
}

/// What comes of making cards of a plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Materialized {
    /// The new cards.
    pub created: Vec<Arc<str>>,
    /// Those that were there.
    pub reused: Vec<Arc<str>>,
}

fn refuse<T>(code: &'static str, message: impl Into<String>) -> Result<T, Refusals> {
    Err(vec![refused(code, message)])
}

impl Cards {
    /// Records something to be done; no agent is ever called for it.
    pub fn plan(&self, by: &Mark, task: &str, task_id: Option<&str>) -> Result<Row, Refusals> {
        let task = task.trim();
        if task.is_empty() {
            return refuse("task_required", "the task is missing");
        }
        if task.len() > LARGEST {
            return refuse("too_large", "the task is over 1 MiB");
        }
        let id = match task_id.map(str::trim).filter(|id| !id.is_empty()) {
            None => self.free_id(),
            Some(id) if !is_id(id) => {
                let message = format!("{} cannot be the name of a card", quoted(id));
                let help = "up to 40 letters of ASCII, digits, `-` and `_`".to_owned();
                let refused = refused("bad_task_id", message);
                return Err(vec![crate::refusal::Refusal { help: Some(help), ..refused }]);
            }
            Some(id) if self.get(id).is_some() => {
                return refuse("task_id_exists", format!("there is a card {id} already"));
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
                refused("no_candidate", message)
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
            return refuse("unknown_agent", format!("the config knows no {}", quoted(agent)));
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
    fn free_branch(&self, card: &Card, branch: &str) -> Result<Arc<str>, Refusals> {
        if !is_branch(branch) {
            return refuse("bad_branch", format!("{} cannot be a branch", quoted(branch)));
        }
        let is_used = |other: &&Card| {
            let is_on = other.branch.name.as_deref() == Some(branch);
            other.task_id != card.task_id && is_on && !other.state.is_final()
        };
        match self.all().iter().find(is_used) {
            Some(other) => {
                let message = format!("the branch {branch} is that of card {}", other.task_id);
                refuse("branch_in_use", message)
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
            return refuse("not_materialized", message);
        }
        if card.state == State::Reviewing {
            let message = format!("card {} is under review", card.task_id);
            return refuse("wrong_state", message);
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
            (State::Reviewing, _) => {
                refuse("wrong_state", format!("card {} is under review", card.task_id))
            }
            (_, []) => Ok(()),
            (_, _) => Err(vec![self.blocked(card)]),
        }
    }

    /// The refusal of a card that waits for others.
    pub fn blocked(&self, card: &Card) -> crate::refusal::Refusal {
        let unmet = self.unmet(card).join(", ");
        refused("blocked_by_dependency", format!("card {} waits for {unmet}", card.task_id))
    }

    /// Why there is no card of that name, where it may be an issue.
    pub fn missing(&self, task_id: &str, phases: &Phases, refusals: Refusals) -> Refusals {
        if !phases.knows_issue(task_id.trim()) {
            return refusals;
        }
        let message = format!("issue {} is planned, but no card was made of it", quoted(task_id));
        vec![refused("not_materialized", message)]
    }

    /// Puts a card up for review, or takes a verdict on it. `head` is the last commit of its branch, as
    /// far as anybody can tell.
    pub fn review(
        &self,
        by: &Mark,
        card: &Card,
        branch: Option<&str>,
        head: Option<Arc<str>>,
        judgement: Option<&Judgement>,
    ) -> Result<Vec<Row>, Refusals> {
        open(card)?;
        match (card.state, judgement) {
            (State::Planned | State::Blocked | State::Failed, _) => {
                refuse("must_be_assigned", format!("nobody works on card {}", card.task_id))
            }
            (State::ChangesRequested, None) => refuse(
                "must_be_assigned",
                format!("card {} has to be done better first", card.task_id),
            ),
            (State::Implementing, Some(_)) => {
                let message = format!("card {} is not under review yet", card.task_id);
                refuse("must_be_reviewing", message)
            }
            (State::ChangesRequested, Some(it)) if !is_second_opinion(card, &by.actor, it) => {
                let message = format!("card {} is not under review", card.task_id);
                refuse("must_be_reviewing", message)
            }
            (State::Implementing | State::Reviewing, None) => self.submit(by, card, branch, head),
            (State::Reviewing | State::ChangesRequested, Some(it)) => {
                let mut rows =
                    if head != card.branch.head && head.is_some() {
                        vec![by.row(
                            &card.task_id,
                            Event::Submitted { branch: None, head: head.clone() },
                        )]
                    } else {
                        Vec::new()
                    };
                let head = head.or_else(|| card.branch.head.clone());
                rows.push(judge(by, card, head.as_deref(), it)?);
                Ok(rows)
            }
            (State::Integrated | State::Cancelled, _) => refuse("terminal", "the card is final"),
        }
    }

    fn submit(
        &self,
        by: &Mark,
        card: &Card,
        branch: Option<&str>,
        head: Option<Arc<str>>,
    ) -> Result<Vec<Row>, Refusals> {
        idle(card)?;
        let named = branch.map(str::trim).filter(|it| !it.is_empty());
        let is_own = |it: &&str| card.branch.name.as_deref() == Some(*it);
        let branch = match named.filter(|it| !is_own(it)) {
            Some(branch) => Some(self.free_branch(card, branch)?),
            None => None,
        };
        if card.write && branch.is_none() && card.branch.name.is_none() {
            return refuse("branch_required", format!("card {} has no branch yet", card.task_id));
        }
        if card.state == State::Reviewing
            && branch.is_none()
            && (head.is_none() || head == card.branch.head)
        {
            return Ok(Vec::new());
        }
        Ok(vec![by.row(&card.task_id, Event::Submitted { branch, head })])
    }

    /// Whether a card may be merged, but for its release; `head` is the last commit of its branch.
    pub fn merge(&self, card: &Card, head: Option<&str>) -> Result<(), Refusals> {
        open(card)?;
        if card.state != State::Reviewing {
            let message = format!("card {} is {}", card.task_id, card.state.as_str());
            return refuse("must_be_reviewing", message);
        }
        let is_approval = card.review.as_ref().filter(|it| it.verdict == Verdict::Approved);
        let approved = match is_approval {
            Some(review) if !card.is_disputed() => review,
            _ => {
                let message = format!("card {} has no approval that nobody disputes", card.task_id);
                return refuse("not_approved", message);
            }
        };
        let moved = head.is_some() && head != approved.commit.as_deref();
        if moved || approved.commit != card.branch.head {
            let message = format!("card {} was approved at another commit", card.task_id);
            return refuse("stale_commit", message);
        }
        let open: Vec<&str> = card
            .gates
            .iter()
            .filter(|(_, it)| **it != Passed::Passed)
            .map(|(name, _)| &**name)
            .collect();
        if !open.is_empty() {
            return refuse("gates_not_passed", format!("not passed: {}", open.join(", ")));
        }
        Ok(())
    }

    /// Gives a card up.
    pub fn cancel(&self, by: &Mark, card: &Card) -> Result<Row, Refusals> {
        open(card)?;
        Ok(by.row(&card.task_id, Event::Cancelled))
    }
}

/// Whether somebody else has looked at this very commit before.
fn is_second_opinion(card: &Card, by: &str, it: &Judgement) -> bool {
    let is_other = |review: &super::Review| *review.by != *by && review.commit == it.commit;
    card.verdicts.iter().any(is_other)
}

fn judge(by: &Mark, card: &Card, head: Option<&str>, it: &Judgement) -> Result<Row, Refusals> {
    let Judgement { verdict, commit, findings } = it.clone();
    let is_own = |author: &Arc<str>| names::slug(author) == names::slug(&by.actor);
    if card.authors.iter().any(is_own) && verdict == Verdict::Approved {
        let message = format!("{} wrote card {} and cannot approve it", by.actor, card.task_id);
        return refuse("own_work", message);
    }
    if card.write && (commit.is_none() || (head.is_some() && commit.as_deref() != head)) {
        let head = head.unwrap_or("unknown");
        let message = format!("commit is the one that was looked at; the branch is at {head}");
        return refuse("stale_commit", message);
    }
    let commit = commit.filter(|_| card.write);
    Ok(by.row(&card.task_id, Event::Judged { verdict, commit, findings }))
}

impl Verdict {
    /// The verdict of that name.
    pub fn named(name: &str) -> Result<Verdict, Refusals> {
        match name.trim().to_lowercase().as_str() {
            "approved" => Ok(Verdict::Approved),
            "changes_requested" => Ok(Verdict::ChangesRequested),
            _ => {
                let allowed = super::texts(&["approved", "changes_requested"]);
                let refused =
                    refused("unknown_verdict", format!("there is no verdict {}", quoted(name)));
                Err(vec![crate::refusal::Refusal { allowed, ..refused }])
            }
        }
    }
}

/// The branch of a card that is not told another.
pub fn usual_branch(card: &Card) -> Option<Arc<str>> {
    let phase = card.phase_id.as_deref().filter(|_| card.write)?;
    let usual = || format!("folkmoot/{phase}/{}", card.task_id).into();
    Some(card.branch.name.clone().unwrap_or_else(usual))
}

fn open(card: &Card) -> Result<(), Refusals> {
    if card.state.is_final() {
        let message = format!("card {} is {}", card.task_id, card.state.as_str());
        return refuse("terminal", message);
    }
    Ok(())
}

fn idle(card: &Card) -> Result<(), Refusals> {
    match &card.open_run {
        Some(run) => refuse("busy", format!("run {run} works on card {}", card.task_id)),
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
